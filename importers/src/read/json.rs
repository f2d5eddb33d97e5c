//! JSON documents inside a text: one, several appended, with log lines around them, with the bare
//! words `NaN` and `Infinity` that Python writes, or cut by a killed writer. What is whole is kept,
//! what is not is located and said; nothing is repaired silently.

use ledger::adapter::ExtractError;
use ledger::finding::{Code, Finding, Severity};
use ledger::outline::{begins_json, end_of_string};
use serde::de::DeserializeOwned;
use std::borrow::Cow;

/// Deepest nesting of brackets that is read.
const DEPTH_LIMIT: usize = 100;

/// One whole JSON document of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document<'a> {
    /// Its text, with `NaN` as `null` and infinities as texts.
    pub text: Cow<'a, str>,
    /// First and one past the last byte in the decoded text.
    pub span: (usize, usize),
    /// Line it starts on, from 1.
    pub line: usize,
    /// Bare non-finite words that were rewritten.
    pub non_finite: usize,
}

/// Where a document stops in the middle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cut {
    /// Line it starts on, from 1.
    pub line: usize,
    /// Bytes of it that are there.
    pub bytes: usize,
}

/// A text taken apart.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Documents<'a> {
    /// Whole documents in order.
    pub documents: Vec<Document<'a>>,
    /// Lines of other text before the first document, in between, and after the last.
    pub other_lines: Vec<(usize, &'a str)>,
    /// A document that is cut.
    pub cut: Option<Cut>,
}

/// Takes a text apart. An array that is never closed yields its whole elements as documents.
pub fn split(text: &str) -> Documents<'_> {
    let mut found = Documents::default();
    let mut at = 0;
    let mut line = 1;
    while at < text.len() {
        let rest = text.get(at..).unwrap_or_default();
        let space = rest.len() - rest.trim_start().len();
        line += count_lines(rest.get(..space).unwrap_or_default());
        at += space;
        let rest = text.get(at..).unwrap_or_default();
        if rest.is_empty() {
            break;
        }
        let length = if begins_json(rest) {
            take_document(text, at, line, &mut found)
        } else {
            let length = rest.find('\n').unwrap_or(rest.len());
            found.other_lines.push((line, rest.get(..length).unwrap_or_default().trim_end()));
            length
        };
        line += count_lines(rest.get(..length).unwrap_or_default());
        at += length.max(1);
    }
    found
}

fn count_lines(text: &str) -> usize {
    text.bytes().filter(|byte| *byte == b'\n').count()
}

/// Takes the document at `at`; returns how many bytes it covers.
fn take_document<'a>(text: &'a str, at: usize, line: usize, found: &mut Documents<'a>) -> usize {
    let mut scan = Scan { bytes: text.as_bytes(), at, words: Vec::new() };
    if let Some(end) = scan.value_end() {
        found.documents.push(document(text, (at, end), line, &scan.words));
        return end - at;
    }
    // Cut: keep the whole elements of an array, or of a line that another document follows.
    let rest = text.get(at..).unwrap_or_default();
    if rest.starts_with('[') {
        take_elements(text, at + 1, line, found);
        found.cut = Some(Cut { line, bytes: rest.len() });
        return rest.len();
    }
    let length = rest.find('\n').unwrap_or(rest.len());
    found.cut = Some(Cut { line, bytes: length });
    length
}

fn take_elements<'a>(text: &'a str, mut at: usize, line: usize, found: &mut Documents<'a>) {
    let start = at;
    loop {
        let rest = text.get(at..).unwrap_or_default();
        at += rest.len() - rest.trim_start_matches(|c: char| c.is_whitespace() || c == ',').len();
        if !begins_json(text.get(at..).unwrap_or_default()) {
            return;
        }
        let mut scan = Scan { bytes: text.as_bytes(), at, words: Vec::new() };
        let Some(end) = scan.value_end() else { return };
        let before = count_lines(text.get(start..at).unwrap_or_default());
        found.documents.push(document(text, (at, end), line + before, &scan.words));
        at = end;
    }
}

fn document<'a>(
    text: &'a str,
    span: (usize, usize),
    line: usize,
    words: &[(usize, usize)],
) -> Document<'a> {
    let whole = text.get(span.0..span.1).unwrap_or_default();
    if words.is_empty() {
        return Document { text: Cow::Borrowed(whole), span, line, non_finite: 0 };
    }
    let mut rewritten = String::with_capacity(whole.len() + words.len() * 4);
    let mut from = span.0;
    for (start, end) in words {
        rewritten.push_str(text.get(from..*start).unwrap_or_default());
        let word = text.get(*start..*end).unwrap_or_default();
        rewritten.push_str(match word.trim_start_matches('-').to_ascii_lowercase().as_str() {
            "infinity" | "inf" if word.starts_with('-') => "\"-Infinity\"",
            "infinity" | "inf" => "\"Infinity\"",
            _ => "null",
        });
        from = *end;
    }
    rewritten.push_str(text.get(from..span.1).unwrap_or_default());
    Document { text: Cow::Owned(rewritten), span, line, non_finite: words.len() }
}

/// Walks one value, noting bare words that JSON does not have.
struct Scan<'a> {
    bytes: &'a [u8],
    at: usize,
    words: Vec<(usize, usize)>,
}

impl Scan<'_> {
    fn value_end(&mut self) -> Option<usize> {
        let mut depth = 0usize;
        loop {
            match self.bytes.get(self.at)? {
                b'"' => self.at = end_of_string(self.bytes, self.at + 1)?,
                b'[' | b'{' => {
                    depth += 1;
                    if depth > DEPTH_LIMIT {
                        return None;
                    }
                }
                b']' | b'}' => {
                    depth = depth.checked_sub(1)?;
                    if depth == 0 {
                        return Some(self.at + 1);
                    }
                }
                byte if byte.is_ascii_alphabetic() => self.word(),
                _ => {}
            }
            self.at += 1;
        }
    }

    /// Steps over a bare word, leaving `at` on its last byte. The `e` of an exponent is no word.
    fn word(&mut self) {
        let start = self.at;
        while self.bytes.get(self.at + 1).is_some_and(u8::is_ascii_alphabetic) {
            self.at += 1;
        }
        let word = self.bytes.get(start..=self.at).unwrap_or_default();
        let is_non_finite =
            matches!(word.to_ascii_lowercase().as_slice(), b"nan" | b"infinity" | b"inf");
        if is_non_finite {
            let is_signed = start > 0 && self.bytes.get(start - 1) == Some(&b'-');
            self.words.push((start - usize::from(is_signed), self.at + 1));
        }
    }
}

/// Reads a document as a typed value.
///
/// # Errors
/// [`ExtractError::Malformed`] with line and column in the file.
pub fn parse<T: DeserializeOwned>(document: &Document<'_>) -> Result<T, ExtractError> {
    serde_json::from_str(&document.text).map_err(|error| malformed(document, &error))
}

/// Turns an error inside a document into one with the line of the file.
pub fn malformed(document: &Document<'_>, error: &serde_json::Error) -> ExtractError {
    let problem = error.to_string();
    let problem = problem.split(" at line ").next().unwrap_or_default().to_owned();
    ExtractError::Malformed {
        line: document.line + error.line().saturating_sub(1),
        column: error.column(),
        problem,
    }
}

/// Says what a file holds beside its documents: other lines, a crash, a cut, non-finite words.
pub fn cautions(found: &Documents<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let first = found.documents.first().map_or(usize::MAX, |document| document.line);
    let (leading, trailing): (Vec<_>, Vec<_>) =
        found.other_lines.iter().partition(|(line, _)| *line < first);
    for (code, lines, place) in
        [(Code::LeadingText, &leading, "before"), (Code::TrailingText, &trailing, "after")]
    {
        if let Some((line, _)) = lines.first() {
            let message = format!(
                "{} lines of other text {place} the first record, from line {line}",
                lines.len()
            );
            findings.push(Finding::new(code, Severity::Note, "", message));
        }
    }
    let crash = found.other_lines.iter().find(|(_, line)| is_crash(line));
    if let Some((line, words)) = crash {
        let message = format!("line {line} shows that the process ended abnormally: {words}");
        findings.push(Finding::caution(Code::ProcessEndedAbnormally, "", message));
    }
    if let Some(cut) = &found.cut {
        let message = format!(
            "the record on line {} is cut after {} bytes; {} whole records before it are kept",
            cut.line,
            cut.bytes,
            found.documents.len()
        );
        findings.push(Finding::caution(Code::TruncatedRecord, "", message));
    }
    let non_finite: usize = found.documents.iter().map(|document| document.non_finite).sum();
    if non_finite > 0 {
        let message = format!("{non_finite} bare NaN or Infinity, read as missing or unbounded");
        findings.push(Finding::new(Code::NonFiniteTokens, Severity::Note, "", message));
    }
    findings
}

fn is_crash(line: &str) -> bool {
    let line = line.to_ascii_lowercase();
    [
        "core dumped",
        "segmentation fault",
        "aborted",
        "killed",
        "terminate called",
        "out of memory",
        "panicked at",
    ]
    .iter()
    .any(|sign| line.contains(sign))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts<'a>(found: &'a Documents<'_>) -> Vec<&'a str> {
        found.documents.iter().map(|document| document.text.as_ref()).collect()
    }

    #[test]
    fn documents_are_found_among_other_lines() {
        let found = split("loading\n[INFO] x\n[{\"a\": 1}]\r\nSegmentation fault (core dumped)\n");
        assert_eq!(texts(&found), ["[{\"a\": 1}]"]);
        assert_eq!(found.documents[0].line, 3);
        assert_eq!(found.other_lines.len(), 3);
        let codes: Vec<Code> = cautions(&found).iter().map(|finding| finding.code).collect();
        assert_eq!(codes, [Code::LeadingText, Code::TrailingText, Code::ProcessEndedAbnormally]);
    }

    #[test]
    fn appended_documents_are_several() {
        assert_eq!(texts(&split("{\"a\":1}{\"a\":2}\n[]\n[{}]")).len(), 4);
        let found = split("{\"a\":1}\n{\"a\":2}");
        assert_eq!(found.documents[1].span, (8, 15));
    }

    #[test]
    fn non_finite_words_are_rewritten_outside_texts_only() {
        let found = split(
            "{\"r\": Infinity, \"s\": -Infinity, \"n\": [NaN, nan, 1e5], \"t\": \"NaN Infinity\"}",
        );
        assert_eq!(
            texts(&found),
            [
                "{\"r\": \"Infinity\", \"s\": \"-Infinity\", \"n\": [null, null, 1e5], \"t\": \"NaN Infinity\"}"
            ]
        );
        assert_eq!(found.documents[0].non_finite, 4);
    }

    #[test]
    fn a_cut_keeps_what_is_whole() {
        let lines = split("{\"a\":1}\n{\"a\": [1, 2");
        assert_eq!(texts(&lines), ["{\"a\":1}"]);
        assert_eq!(lines.cut, Some(Cut { line: 2, bytes: 11 }));
        let array = split("[\n {\"a\": 1},\n {\"a\": 2},\n {\"a\"");
        assert_eq!(texts(&array), ["{\"a\": 1}", "{\"a\": 2}"]);
        assert_eq!(array.documents[1].line, 3);
        assert!(array.cut.is_some());
    }

    #[test]
    fn nesting_without_end_is_cut_and_not_a_crash() {
        let deep = "[".repeat(100_000);
        assert!(split(&deep).documents.is_empty());
    }
}
