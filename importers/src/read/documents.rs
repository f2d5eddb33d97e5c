//! Text to JSON documents. A result file may hold one document, one a line, arrays appended to
//! arrays (`][`), log lines before, between and after them, and an end that was cut. Every byte is
//! accounted for: it belongs to a document, to a skipped line or to a flaw. Structure is checked
//! here only as far as finding the ends needs; serde checks the rest, record by record.

use crate::read::json::repair;
use ledger::adapter::ExtractError;
use serde::de::DeserializeOwned;

mod cautions;
mod scan;

/// Deepest nesting that is read; the reader behind it stops at the same depth.
pub const DEPTH_LIMIT: usize = 127;

/// First byte and one past the last byte in the decoded text.
pub type Span = (usize, usize);

/// Everything a text holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Documents<'a> {
    /// The documents in file order, flawed ones included.
    pub documents: Vec<Document<'a>>,
    /// What is no JSON, line by line.
    pub skipped: Vec<Skipped<'a>>,
}

/// One top-level JSON array or object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document<'a> {
    /// Array or object.
    pub shape: Shape,
    /// Its text, as far as it goes.
    pub text: &'a str,
    /// Where it stands.
    pub span: Span,
    /// Line of its first byte, from 1.
    pub line: usize,
    /// Complete elements of an array that are arrays or objects themselves, or the object itself
    /// when it is complete.
    pub records: Vec<Record<'a>>,
    /// What is wrong with it; its complete elements are good all the same.
    pub flaw: Option<Flaw>,
}

/// What a document is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// `[…]`
    Array,
    /// `{…}`
    Object,
}

/// One JSON value to read: an element of a top-level array, or a top-level object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record<'a> {
    /// Its text.
    pub text: &'a str,
    /// Where it stands.
    pub span: Span,
    /// Line of its first byte, from 1.
    pub line: usize,
    /// Column of its first byte, from 1.
    pub column: usize,
    /// Bare `NaN` and `Infinity` tokens in it, read as missing or unbounded.
    pub non_finite: usize,
}

/// Why a document has no proper end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flaw {
    /// What happened.
    pub kind: FlawKind,
    /// Offset where it shows.
    pub offset: usize,
    /// Line where it shows, from 1.
    pub line: usize,
    /// Column where it shows, from 1.
    pub column: usize,
}

/// What is wrong with a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlawKind {
    /// The text ends, or another record begins, before this one is closed.
    Cut,
    /// Something that JSON does not allow.
    Broken,
    /// Nested deeper than [`DEPTH_LIMIT`].
    TooDeep,
}

/// A line, or the rest of one, that is no JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Skipped<'a> {
    /// The text without its line end.
    pub text: &'a str,
    /// Where it stands.
    pub span: Span,
    /// Its line, from 1.
    pub line: usize,
}

/// Splits a text into its JSON documents.
pub fn documents(text: &str) -> Documents<'_> {
    scan::Splitter::new(text).split()
}

impl<'a> Documents<'a> {
    /// Iterates over every complete record of the text.
    pub fn records(&self) -> impl Iterator<Item = Record<'a>> + '_ {
        self.documents.iter().flat_map(|document| document.records.iter().copied())
    }

    /// Returns the first flaw that makes the file unreadable as its format: something broken or too
    /// deep, or a cut before the first complete record.
    ///
    /// # Errors
    /// [`ExtractError::Malformed`] or [`ExtractError::Cut`], located.
    pub fn require_readable(&self) -> Result<(), ExtractError> {
        let complete = self.records().count();
        self.documents
            .iter()
            .filter_map(|document| document.flaw)
            .find_map(|flaw| flaw.to_error(complete))
            .map_or(Ok(()), Err)
    }
}

impl Flaw {
    fn to_error(self, complete: usize) -> Option<ExtractError> {
        let malformed = |problem: &str| ExtractError::Malformed {
            line: self.line,
            column: self.column,
            problem: problem.to_owned(),
        };
        match self.kind {
            FlawKind::Cut if complete > 0 => None,
            FlawKind::Cut => Some(ExtractError::Cut {
                complete,
                problem: format!("line {}, byte {} ends inside it", self.line, self.offset),
            }),
            FlawKind::Broken => Some(malformed("this is no JSON")),
            FlawKind::TooDeep => {
                Some(malformed(&format!("values are nested deeper than {DEPTH_LIMIT}")))
            }
        }
    }
}

impl Record<'_> {
    /// Reads the record, bare non-finite tokens rewritten.
    ///
    /// # Errors
    /// [`ExtractError::Malformed`] at the line of the file; the column may be off behind a
    /// rewritten token.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, ExtractError> {
        let read = if self.non_finite == 0 {
            serde_json::from_str(self.text)
        } else {
            serde_json::from_str(&repair(self.text).text)
        };
        read.map_err(|error| self.malformed(&error))
    }

    fn malformed(&self, error: &serde_json::Error) -> ExtractError {
        let in_first_line = if error.line() <= 1 { self.column - 1 } else { 0 };
        ExtractError::Malformed {
            line: self.line + error.line().saturating_sub(1),
            column: error.column() + in_first_line,
            problem: strip_position(&error.to_string()),
        }
    }
}

/// Takes serde's own position off its message: it counts from the record, not from the file.
fn strip_position(message: &str) -> String {
    message.rfind(" at line ").and_then(|at| message.get(..at)).unwrap_or(message).to_owned()
}

#[cfg(test)]
mod tests;
