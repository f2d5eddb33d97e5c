//! A first look at a text, made once for all adapters: whether there is JSON in it, and which keys
//! its first object has. Detection then costs a list of keys and not another walk over megabytes for
//! every format. No format is known here.

/// How far into a text a first JSON line is looked for; logs before results are short.
const HEAD_BYTES: usize = 64 << 10;

/// Longest text value that an outline keeps.
const VALUE_BYTES: usize = 200;

/// The first JSON object of a text: at its top, or the first element of an array at its top.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outline<'a> {
    /// True when the text holds a JSON object or array near its start.
    pub is_json: bool,
    /// True when the first JSON value is an array.
    pub is_array: bool,
    /// Keys of the object in file order, raw between their quotes, each with its value where that
    /// is a short text.
    pub keys: Vec<(&'a str, Option<&'a str>)>,
    /// The first line that is not blank.
    pub first_line: &'a str,
}

impl Outline<'_> {
    /// True when the object has every one of these keys.
    pub fn has_all(&self, keys: &[&str]) -> bool {
        keys.iter().all(|wanted| self.has(wanted))
    }

    /// True when the object has this key.
    pub fn has(&self, key: &str) -> bool {
        self.keys.iter().any(|(found, _)| *found == key)
    }

    /// Returns the short text under a key.
    pub fn find_text(&self, key: &str) -> Option<&str> {
        self.keys.iter().find(|(found, _)| *found == key).and_then(|(_, value)| *value)
    }
}

/// Takes the first look.
pub fn outline(text: &str) -> Outline<'_> {
    let first_line = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let mut outline = Outline { first_line, ..Outline::default() };
    let Some(start) = find_json(text) else { return outline };
    let mut walk = Walk { text, at: start };
    outline.is_json = true;
    outline.is_array = walk.peek() == Some(b'[');
    if outline.is_array {
        walk.at += 1;
        walk.skip_space();
    }
    if walk.peek() == Some(b'{') {
        walk.at += 1;
        walk.keys(&mut outline.keys);
    }
    outline
}

/// Finds the first line near the start of a text that begins a JSON object or array: after the
/// bracket comes what JSON allows there, which `[INFO]` does not.
pub fn find_json(text: &str) -> Option<usize> {
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        if start > HEAD_BYTES {
            return None;
        }
        let indent = line.len() - line.trim_start().len();
        if begins_json(text.get(start + indent..).unwrap_or_default()) {
            return Some(start + indent);
        }
        start += line.len();
    }
    None
}

/// True when a text begins a JSON object or array.
pub fn begins_json(text: &str) -> bool {
    let next = |rest: &str| rest.bytes().find(|byte| !byte.is_ascii_whitespace());
    if let Some(rest) = text.strip_prefix('{') {
        return matches!(next(rest), Some(b'"' | b'}'));
    }
    text.strip_prefix('[').is_some_and(|rest| matches!(next(rest), Some(b'{' | b'[' | b']')))
}

struct Walk<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Walk<'a> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while self.peek().is_some_and(|byte| byte.is_ascii_whitespace() || byte == b',') {
            self.at += 1;
        }
    }

    /// Reads a quoted text, leaving its escapes.
    fn quoted(&mut self) -> Option<&'a str> {
        let start = self.at + 1;
        let end = end_of_string(self.text.as_bytes(), start)?;
        self.at = end + 1;
        self.text.get(start..end)
    }

    fn keys(&mut self, keys: &mut Vec<(&'a str, Option<&'a str>)>) {
        loop {
            self.skip_space();
            if self.peek() != Some(b'"') {
                return;
            }
            let Some(key) = self.quoted() else { return };
            self.skip_space();
            if self.peek() != Some(b':') {
                return;
            }
            self.at += 1;
            self.skip_space();
            let value = if self.peek() == Some(b'"') { self.quoted() } else { None };
            let is_short = |text: &&str| text.len() <= VALUE_BYTES;
            keys.push((key, value.filter(is_short)));
            if value.is_none() && self.skip_value().is_none() {
                return;
            }
        }
    }

    /// Skips a value that is no text; `None` at the end of the text.
    fn skip_value(&mut self) -> Option<()> {
        let bytes = self.text.as_bytes();
        let mut depth = 0usize;
        while let Some(byte) = bytes.get(self.at) {
            match byte {
                b'"' => self.at = end_of_string(bytes, self.at + 1)?,
                b'[' | b'{' => depth += 1,
                b']' | b'}' | b',' if depth == 0 => return Some(()),
                b']' | b'}' => depth -= 1,
                _ => {}
            }
            self.at += 1;
        }
        None
    }
}

/// Returns the place of the quote that ends a text begun before `at`.
pub fn end_of_string(bytes: &[u8], mut at: usize) -> Option<usize> {
    loop {
        match bytes.get(at)? {
            b'"' => return Some(at),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_the_first_object_are_seen_past_nested_values() {
        let text =
            "warming up\n[INFO] x\n{\"a\": [1, {\"no\": \"]\"}], \"b\": \"t\\\"x\", \"c\": 1}\n";
        let seen = outline(text);
        assert!(seen.is_json && !seen.is_array);
        assert_eq!(seen.keys, [("a", None), ("b", Some("t\\\"x")), ("c", None)]);
        assert_eq!(seen.first_line, "warming up");
    }

    #[test]
    fn an_array_shows_its_first_element() {
        let seen = outline("[\n  {\"a\": 1},\n {\"b\": 2}]");
        assert!(seen.is_array && seen.has_all(&["a"]) && !seen.has("b"));
    }

    #[test]
    fn a_log_is_no_json() {
        assert!(!outline("[INFO] started\nINFO {ready}\n").is_json);
        assert_eq!(outline("").first_line, "");
        assert!(outline("{\"cut\": [1, 2").has("cut"));
    }
}
