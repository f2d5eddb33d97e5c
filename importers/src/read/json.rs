//! JSON that Python and C++ writers produce and JSON does not allow: bare `NaN`, `Infinity`, `nan`,
//! `-nan`, `inf`. They are rewritten outside strings only, because the same words stand inside
//! generated texts. What was rewritten is counted, never hidden.

use serde::de::{Deserializer as _, IgnoredAny, MapAccess, Visitor};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;

/// Text in which every bare non-finite token became valid JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repaired<'a> {
    /// The text; borrowed when nothing was rewritten.
    pub text: Cow<'a, str>,
    /// Tokens rewritten.
    pub non_finite: usize,
}

/// Rewrites bare non-finite tokens outside strings: not-a-number to `null`, infinities to the
/// strings `"Infinity"` and `"-Infinity"`, which [`crate::read::fields`] reads as unbounded.
///
/// A raw line end closes a string, since JSON allows none inside: one stray quote in a log line
/// cannot turn the rest of the file inside out.
pub fn repair(text: &str) -> Repaired<'_> {
    let mut repaired = String::new();
    let mut copied = 0;
    let mut non_finite = 0;
    let mut scanner = Scanner { bytes: text.as_bytes(), at: 0 };
    while let Some((start, end)) = scanner.next_word() {
        let Some(replacement) = text.get(start..end).and_then(find_replacement) else { continue };
        repaired.push_str(text.get(copied..start).unwrap_or_default());
        repaired.push_str(replacement);
        copied = end;
        non_finite += 1;
    }
    if non_finite == 0 {
        return Repaired { text: Cow::Borrowed(text), non_finite };
    }
    repaired.push_str(text.get(copied..).unwrap_or_default());
    Repaired { text: Cow::Owned(repaired), non_finite }
}

/// Returns what a bare non-finite token is read as; nothing for any other word.
pub(crate) fn find_replacement(word: &str) -> Option<&'static str> {
    match word {
        "NaN" | "nan" | "-nan" | "-NaN" => Some("null"),
        "Infinity" | "inf" | "Inf" | "+inf" | "+Infinity" => Some("\"Infinity\""),
        "-Infinity" | "-inf" | "-Inf" => Some("\"-Infinity\""),
        _ => None,
    }
}

/// Walks over the words outside strings: runs of letters, digits, signs and dots.
struct Scanner<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Scanner<'_> {
    fn next_word(&mut self) -> Option<(usize, usize)> {
        loop {
            let byte = *self.bytes.get(self.at)?;
            if byte == b'"' {
                self.at = skip_string(self.bytes, self.at);
            } else if is_word(byte) {
                let start = self.at;
                self.at = skip_word(self.bytes, start);
                return Some((start, self.at));
            } else {
                self.at += 1;
            }
        }
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.' | b'_') || !byte.is_ascii()
}

pub(crate) fn skip_word(bytes: &[u8], start: usize) -> usize {
    let rest = bytes.get(start..).unwrap_or_default();
    start + rest.iter().position(|byte| !is_word(*byte)).unwrap_or(rest.len())
}

/// Returns the offset behind the string that opens at `start`; a raw line end closes it.
pub(crate) fn skip_string(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'\\' if bytes.get(at + 1) != Some(&b'\n') => at += 2,
            b'"' => return at + 1,
            b'\n' => return at,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// Returns the keys that stand more than once in a JSON object, each once, in the order they
/// repeat; nothing for other JSON. JSON readers keep the last value, so a user's key can shadow a
/// measured one.
pub fn duplicate_keys(object: &str) -> Vec<String> {
    let repaired = repair(object);
    let mut reader = serde_json::Deserializer::from_str(&repaired.text);
    reader.deserialize_map(DuplicateKeys).unwrap_or_default()
}

struct DuplicateKeys;

impl<'de> Visitor<'de> for DuplicateKeys {
    type Value = Vec<String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut seen = BTreeSet::new();
        let mut repeated = Vec::new();
        while let Some(key) = map.next_key::<String>()? {
            map.next_value::<IgnoredAny>()?;
            if !seen.insert(key.clone()) && !repeated.contains(&key) {
                repeated.push(key);
            }
        }
        Ok(repeated)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_bare_tokens_are_rewritten_and_counted() {
        let text = r#"{"a": NaN, "b": [Infinity, -Infinity, -nan], "c": "NaN or Infinity \" inf"}"#;
        let repaired = repair(text);
        assert_eq!(
            repaired.text,
            r#"{"a": null, "b": ["Infinity", "-Infinity", null], "c": "NaN or Infinity \" inf"}"#
        );
        assert_eq!(repaired.non_finite, 4);
    }

    #[test]
    fn words_that_only_contain_a_token_stay() {
        let text = r#"{"infinite": true, "x": NaNny}"#;
        assert_eq!(repair(text), Repaired { text: Cow::Borrowed(text), non_finite: 0 });
    }

    #[test]
    fn clean_text_is_not_copied() {
        assert!(matches!(repair(r#"{"a": 1}"#).text, Cow::Borrowed(_)));
    }

    #[test]
    fn a_stray_quote_in_a_log_line_ends_with_its_line() {
        assert_eq!(repair("he said \"no\nNaN").text, "he said \"no\nnull");
    }

    #[test]
    fn keys_that_shadow_each_other_are_named() {
        assert_eq!(duplicate_keys(r#"{"date": 1, "b": {"b": 1}, "date": 2, "date": 3}"#), ["date"]);
        assert!(duplicate_keys("[1]").is_empty());
        assert!(duplicate_keys("{\"a\": ").is_empty());
    }
}
