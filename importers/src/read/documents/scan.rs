//! The one pass that finds where documents begin and end. It knows strings, brackets, commas and
//! which words JSON allows, which is enough to tell a log line from a value and a cut record from
//! a nested one.

use super::{DEPTH_LIMIT, Document, Documents, Flaw, FlawKind, Record, Shape, Skipped, Span};
use crate::read::json::{find_replacement, skip_string, skip_word};

const MARK: &str = "\u{feff}";

/// Splits a text, keeping count of lines.
pub(super) struct Splitter<'a> {
    text: &'a str,
    lines: Lines,
    at: usize,
    found: Documents<'a>,
}

/// Offsets of the first byte of each line.
struct Lines(Vec<usize>);

impl Lines {
    fn new(text: &str) -> Self {
        let after_ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        Self(std::iter::once(0).chain(after_ends.map(|(at, _)| at + 1)).collect())
    }

    /// Returns line and column of an offset, both from 1; the column counts bytes.
    fn position(&self, offset: usize) -> (usize, usize) {
        let line = self.0.partition_point(|start| *start <= offset);
        let start = self.0.get(line.saturating_sub(1)).copied().unwrap_or_default();
        (line, offset - start + 1)
    }
}

impl<'a> Splitter<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, lines: Lines::new(text), at: 0, found: Documents::default() }
    }

    pub(super) fn split(mut self) -> Documents<'a> {
        let bytes = self.text.as_bytes();
        while let Some(start) = find_ink(bytes, self.at) {
            self.at = start;
            match find_shape(bytes, start) {
                Some(shape) => self.take_document(shape),
                None if self.is_mark(start) => self.at += MARK.len(),
                None => self.skip_line(start),
            }
        }
        self.found
    }

    /// True at a byte order mark, which stands inside a text when marked files were joined.
    fn is_mark(&self, at: usize) -> bool {
        self.text.get(at..).is_some_and(|rest| rest.starts_with(MARK))
    }

    fn take_document(&mut self, shape: Shape) {
        let start = self.at;
        let scanned = Scan::new(self.text.as_bytes(), start).run();
        for noise in &scanned.noise {
            self.push_skipped(*noise);
        }
        let text = self.slice((start, scanned.end));
        let records = match shape {
            Shape::Array => {
                scanned.elements.iter().map(|(span, count)| self.record(*span, *count)).collect()
            }
            Shape::Object if scanned.flaw.is_none() => {
                vec![self.record((start, scanned.end), scanned.non_finite)]
            }
            Shape::Object => Vec::new(),
        };
        let flaw = scanned.flaw.map(|kind| {
            let (line, column) = self.lines.position(scanned.end);
            Flaw { kind, offset: scanned.end, line, column }
        });
        let (line, _) = self.lines.position(start);
        let span = (start, scanned.end);
        self.found.documents.push(Document { shape, text, span, line, records, flaw });
        self.at = scanned.resume;
    }

    fn record(&self, span: Span, non_finite: usize) -> Record<'a> {
        let (line, column) = self.lines.position(span.0);
        Record { text: self.slice(span), span, line, column, non_finite }
    }

    fn skip_line(&mut self, start: usize) {
        let end = find_line_end(self.text.as_bytes(), start);
        self.push_skipped((start, end));
        self.at = end;
    }

    fn push_skipped(&mut self, (start, end): Span) {
        let text = self.slice((start, end)).trim_end();
        let (line, _) = self.lines.position(start);
        self.found.skipped.push(Skipped { text, span: (start, start + text.len()), line });
    }

    fn slice(&self, (start, end): Span) -> &'a str {
        self.text.get(start..end).unwrap_or_default()
    }
}

/// Finds the next byte that is no white space.
fn find_ink(bytes: &[u8], from: usize) -> Option<usize> {
    let rest = bytes.get(from..)?;
    rest.iter().position(|byte| !byte.is_ascii_whitespace()).map(|ahead| from + ahead)
}

fn find_line_end(bytes: &[u8], from: usize) -> usize {
    let rest = bytes.get(from..).unwrap_or_default();
    from + rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len())
}

/// Tells a document from a log line that only begins with a bracket: `[INFO] …`, `{'a': 1}`,
/// `[2026-08-11 10:15] …`. A list of bare numbers is no result and counts as a log line too.
fn find_shape(bytes: &[u8], start: usize) -> Option<Shape> {
    let next = find_ink(bytes, start + 1).and_then(|at| bytes.get(at));
    match bytes.get(start)? {
        b'{' if matches!(next, None | Some(b'"' | b'}')) => Some(Shape::Object),
        b'[' if matches!(next, None | Some(b'{' | b'[' | b'"' | b']')) => Some(Shape::Array),
        _ => None,
    }
}

/// What the scan of one document found.
struct Scanned {
    /// One past its last byte, or the offset of the flaw.
    end: usize,
    /// Where to go on.
    resume: usize,
    flaw: Option<FlawKind>,
    /// Complete elements of the outermost array, each with its bare non-finite tokens.
    elements: Vec<(Span, usize)>,
    /// Log lines between the elements of the outermost array.
    noise: Vec<Span>,
    /// Bare non-finite tokens of the whole document.
    non_finite: usize,
}

/// What stood before, as far as it decides what may follow.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Before {
    Opener,
    Comma,
    Colon,
    Value,
}

struct Scan<'a> {
    bytes: &'a [u8],
    at: usize,
    closers: Vec<u8>,
    before: Before,
    /// Start of the current element, and the tokens before it.
    element: (usize, usize),
    elements: Vec<(Span, usize)>,
    noise: Vec<Span>,
    non_finite: usize,
}

enum Step {
    Continue,
    Complete,
    /// A flaw at the current offset, and where to go on.
    Flaw(FlawKind, usize),
}

impl<'a> Scan<'a> {
    fn new(bytes: &'a [u8], at: usize) -> Self {
        let before = Before::Opener;
        let (closers, elements, noise) = (Vec::new(), Vec::new(), Vec::new());
        Self { bytes, at, closers, before, element: (at, 0), elements, noise, non_finite: 0 }
    }

    fn run(mut self) -> Scanned {
        // Every step moves forward, and so does every flaw: the first byte of a document is one of
        // its own brackets.
        let (flaw, resume) = loop {
            match self.step() {
                Step::Continue => {}
                Step::Complete => break (None, self.at),
                Step::Flaw(kind, resume) => break (Some(kind), resume),
            }
        };
        let (elements, noise, non_finite) = (self.elements, self.noise, self.non_finite);
        Scanned { end: self.at, resume, flaw, elements, noise, non_finite }
    }

    fn step(&mut self) -> Step {
        let Some(at) = find_ink(self.bytes, self.at) else {
            self.at = self.bytes.len();
            return Step::Flaw(FlawKind::Cut, self.at);
        };
        self.at = at;
        match self.bytes.get(at) {
            Some(b'{') => self.open(b'}'),
            Some(b'[') => self.open(b']'),
            Some(closer @ (b'}' | b']')) => self.close(*closer),
            Some(b'"') => self.take_string(),
            Some(b',') => self.pass(Before::Comma),
            Some(b':') => self.pass(Before::Colon),
            _ => self.take_word(),
        }
    }

    fn pass(&mut self, before: Before) -> Step {
        if self.before != Before::Value {
            return self.broken();
        }
        self.before = before;
        self.at += 1;
        Step::Continue
    }

    fn open(&mut self, closer: u8) -> Step {
        if !self.is_value_due() {
            return self.cut_or_broken();
        }
        if self.closers.len() >= DEPTH_LIMIT {
            return Step::Flaw(FlawKind::TooDeep, find_line_end(self.bytes, self.at));
        }
        if self.closers.len() == 1 {
            self.element = (self.at, self.non_finite);
        }
        self.closers.push(closer);
        self.before = Before::Opener;
        self.at += 1;
        Step::Continue
    }

    fn close(&mut self, closer: u8) -> Step {
        let dangling = matches!(self.before, Before::Comma | Before::Colon);
        if self.closers.last() != Some(&closer) || dangling {
            return self.broken();
        }
        self.closers.pop();
        self.at += 1;
        self.before = Before::Value;
        match self.closers.len() {
            0 => return Step::Complete,
            1 if self.closers == [b']'] => self.push_element(),
            _ => {}
        }
        Step::Continue
    }

    fn push_element(&mut self) {
        let (start, before) = self.element;
        self.elements.push(((start, self.at), self.non_finite - before));
    }

    /// A value may follow an opening bracket or comma in an array, a colon in an object, and
    /// nothing else.
    fn is_value_due(&self) -> bool {
        match self.closers.last() {
            None => true,
            Some(b']') => matches!(self.before, Before::Opener | Before::Comma),
            Some(_) => self.before == Before::Colon,
        }
    }

    fn take_string(&mut self) -> Step {
        let is_key_due = self.closers.last() == Some(&b'}')
            && matches!(self.before, Before::Opener | Before::Comma);
        if !is_key_due && !self.is_value_due() {
            return self.broken();
        }
        let end = skip_string(self.bytes, self.at);
        let is_closed = end > self.at + 1 && self.bytes.get(end - 1) == Some(&b'"');
        if !is_closed || is_escaped(self.bytes, self.at, end) {
            self.at = end;
            return Step::Flaw(FlawKind::Cut, end);
        }
        self.at = end;
        self.before = Before::Value;
        Step::Continue
    }

    fn take_word(&mut self) -> Step {
        let end = skip_word(self.bytes, self.at);
        let word = self.bytes.get(self.at..end).unwrap_or_default();
        if self.is_value_due() && is_literal(word) {
            self.non_finite += usize::from(is_non_finite(word));
            self.at = end;
            self.before = Before::Value;
            return Step::Continue;
        }
        if self.closers == [b']'] {
            let line_end = find_line_end(self.bytes, self.at);
            self.noise.push((self.at, line_end));
            self.at = line_end;
            return Step::Continue;
        }
        self.broken()
    }

    /// A bracket where none may stand: at the start of a line it is the next record, and this one
    /// was cut; elsewhere the line is broken.
    fn cut_or_broken(&self) -> Step {
        let line = self.bytes.get(..self.at).unwrap_or_default();
        let before = line.iter().rev().find(|byte| !matches!(byte, b' ' | b'\t'));
        if matches!(before, Some(b'\n')) {
            return Step::Flaw(FlawKind::Cut, self.at);
        }
        self.broken()
    }

    fn broken(&self) -> Step {
        Step::Flaw(FlawKind::Broken, find_line_end(self.bytes, self.at))
    }
}

/// True when the quote that seems to close a string is itself escaped, which happens only at the
/// end of the text.
fn is_escaped(bytes: &[u8], start: usize, end: usize) -> bool {
    let inside = bytes.get(start + 1..end - 1).unwrap_or_default();
    inside.iter().rev().take_while(|byte| **byte == b'\\').count() % 2 == 1
}

/// True for the words a JSON value may be, bare non-finite tokens included.
fn is_literal(word: &[u8]) -> bool {
    let digits = word.strip_prefix(b"-").unwrap_or(word);
    let is_number = digits.first().is_some_and(u8::is_ascii_digit)
        && digits.iter().all(|byte| is_numeric(*byte));
    is_number || matches!(word, b"true" | b"false" | b"null") || is_non_finite(word)
}

fn is_non_finite(word: &[u8]) -> bool {
    std::str::from_utf8(word).is_ok_and(|word| find_replacement(word).is_some())
}

fn is_numeric(byte: u8) -> bool {
    byte.is_ascii_digit() || matches!(byte, b'.' | b'e' | b'E' | b'+' | b'-')
}
