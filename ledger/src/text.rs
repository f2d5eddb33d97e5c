//! Escaping of bytes that people will read. File names and labels come from strangers: a name can
//! hold control characters, terminal sequences or bytes that are no text. Both escapes here are
//! injective, so that two names never become one.

use std::fmt::Write as _;

/// Escapes a path for a manifest line (design section 3): `\`, control characters and bytes that
/// are not UTF-8 become `\xNN`; everything else stays.
pub fn escape_path(path: &[u8]) -> String {
    let mut escaped = String::with_capacity(path.len());
    for chunk in path.utf8_chunks() {
        for character in chunk.valid().chars() {
            if character == '\\' || character.is_control() {
                let mut bytes = [0u8; 4];
                push_hex(&mut escaped, character.encode_utf8(&mut bytes).as_bytes());
            } else {
                escaped.push(character);
            }
        }
        push_hex(&mut escaped, chunk.invalid());
    }
    escaped
}

fn push_hex(text: &mut String, bytes: &[u8]) {
    for byte in bytes {
        // Writing to a String cannot fail.
        let _infallible = write!(text, "\\x{byte:02x}");
    }
}

/// Reads an escaped path back to its bytes; `None` when an escape is malformed.
pub fn unescape_path(escaped: &str) -> Option<Vec<u8>> {
    let mut path = Vec::with_capacity(escaped.len());
    let mut rest = escaped;
    while let Some((plain, after)) = rest.split_once('\\') {
        path.extend_from_slice(plain.as_bytes());
        let digits = after.strip_prefix('x')?;
        path.push(u8::from_str_radix(digits.get(..2)?, 16).ok()?);
        rest = digits.get(2..)?;
    }
    path.extend_from_slice(rest.as_bytes());
    Some(path)
}

/// Makes any text safe for one line of a terminal: control characters, bidirectional overrides and
/// invisible separators become `\u{…}`, so nothing written by a stranger can move the cursor,
/// reverse a line or hide.
pub fn printable(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut safe, character| {
        if is_treacherous(character) {
            safe.extend(character.escape_unicode());
        } else {
            safe.push(character);
        }
        safe
    })
}

fn is_treacherous(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

/// Names the known word nearest to a typed one, if one is near enough to be meant.
pub fn nearest<'a>(typed: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let tolerance = (typed.chars().count() / 3).max(1);
    known
        .into_iter()
        .map(|word| (strsim::osa_distance(typed, word), word))
        .filter(|(distance, _)| *distance <= tolerance)
        .min()
        .map(|(_, word)| word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_names_never_become_one() {
        assert_eq!(escape_path(b"a\\x0a"), "a\\x5cx0a");
        assert_eq!(escape_path(b"a\n"), "a\\x0a");
        assert_eq!(escape_path(b"a\xff/\xc3\xa9"), "a\\xff/\u{e9}");
        assert_eq!(escape_path("a\u{85}".as_bytes()), "a\\xc2\\x85");
    }

    #[test]
    fn every_name_comes_back() {
        for name in [&b"plain/name"[..], b"\\", b"\x00\xff\n", "z\u{e9}".as_bytes(), b""] {
            assert_eq!(unescape_path(&escape_path(name)).as_deref(), Some(name));
        }
        assert_eq!(unescape_path("a\\n"), None);
        assert_eq!(unescape_path("a\\x0"), None);
    }

    #[test]
    fn a_terminal_sequence_is_printed_not_obeyed() {
        assert_eq!(printable("a\u{1b}[31m\u{202e}b"), "a\\u{1b}[31m\\u{202e}b");
    }

    #[test]
    fn a_typo_names_the_word_that_was_meant() {
        assert_eq!(
            nearest("contex.tokens", ["context.tokens", "quant.weights"]),
            Some("context.tokens")
        );
        assert_eq!(nearest("zzz", ["context.tokens"]), None);
    }
}
