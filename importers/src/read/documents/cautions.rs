//! What a text with skipped lines or a cut end has to say for itself.

use super::{Document, Documents, Flaw, FlawKind, Skipped};
use ledger::finding::{Code, Finding, Severity};
use ledger::text::printable;

/// Most skipped lines a finding shows; all are counted.
const SHOWN: usize = 5;

/// Longest excerpt of a skipped line that is shown, in characters.
const EXCERPT: usize = 80;

/// What shells, the C++ runtime and Python print when a process dies (ggml-org/llama.cpp#15554).
const DEATHS: [&str; 12] = [
    "core dumped",
    "segmentation fault",
    "aborted",
    "killed",
    "terminate called",
    "out of memory",
    "panicked at",
    "traceback (most recent call last)",
    "ggml_assert",
    "cuda error",
    "bus error",
    "illegal instruction",
];

impl Documents<'_> {
    /// Returns the cautions about the file: text before, between and after the records, traces of
    /// a crash, a cut last record. One finding a kind, with the first lines of it as values.
    pub fn cautions(&self) -> Vec<Finding> {
        let first = self.documents.first().map_or(usize::MAX, |document| document.span.0);
        let last = self.records().map(|record| record.span.1).max().unwrap_or(first);
        let leading = self.skipped_where(|skipped| skipped.span.0 < first);
        let trailing = self.skipped_where(|skipped| skipped.span.0 >= last);
        let between = self.skipped_where(|skipped| (first..last).contains(&skipped.span.0));
        let deaths = self.skipped_where(|skipped| is_death(skipped.text));
        let mut cautions = Vec::new();
        cautions.extend(found(Code::LeadingText, &leading, "before the first record"));
        cautions.extend(found(Code::LeadingText, &between, "between the records"));
        if !self.documents.is_empty() {
            cautions.extend(found(Code::TrailingText, &trailing, "after the last record"));
        }
        cautions.extend(found_death(&deaths));
        cautions.extend(self.found_cuts());
        cautions.extend(found_non_finite(self.records().map(|record| record.non_finite).sum()));
        cautions
    }

    fn skipped_where(&self, is_wanted: impl Fn(&Skipped<'_>) -> bool) -> Vec<Skipped<'_>> {
        self.skipped.iter().filter(|skipped| is_wanted(skipped)).copied().collect()
    }

    /// One finding for every cut record together; a log with thousands of them stays readable.
    fn found_cuts(&self) -> Option<Finding> {
        let flaws = self.documents.iter().filter_map(|document| Some((document, document.flaw?)));
        let cuts: Vec<_> = flaws.filter(|(_, flaw)| flaw.kind == FlawKind::Cut).collect();
        let (document, flaw) = cuts.first()?;
        let bytes = |document: &Document<'_>, flaw: &Flaw| flaw.offset - document.span.0;
        let kept = self.records().filter(|record| record.span.1 <= flaw.offset).count();
        let mut message = format!(
            "the record on line {} is cut after {} bytes, on line {}; {kept} whole records before \
             it are kept",
            document.line,
            bytes(document, flaw),
            flaw.line
        );
        if cuts.len() > 1 {
            message = format!("{} records are cut, the first of them: {message}", cuts.len());
        }
        let finding = Finding::caution(Code::TruncatedRecord, "", message);
        Some(cuts.iter().skip(1).take(SHOWN).fold(finding, |finding, (document, flaw)| {
            let value = format!("cut after {} bytes", bytes(document, flaw));
            finding.with(value, format!("line {}", document.line))
        }))
    }
}

fn is_death(line: &str) -> bool {
    let line = line.to_ascii_lowercase();
    DEATHS.iter().any(|death| line.contains(death))
}

fn found(code: Code, skipped: &[Skipped<'_>], what: &str) -> Option<Finding> {
    let count = skipped.len();
    let noun = if count == 1 { "line of other text stands" } else { "lines of other text stand" };
    let finding = Finding::new(code, Severity::Note, "", format!("{count} {noun} {what}"));
    (count > 0).then(|| with_lines(finding, skipped))
}

fn found_non_finite(count: usize) -> Option<Finding> {
    let message = format!("{count} bare NaN or Infinity, read as missing or unbounded");
    (count > 0).then(|| Finding::new(Code::NonFiniteTokens, Severity::Note, "", message))
}

fn found_death(skipped: &[Skipped<'_>]) -> Option<Finding> {
    let message = "the output shows that the process crashed or was killed";
    let finding = Finding::caution(Code::ProcessEndedAbnormally, "", message);
    (!skipped.is_empty()).then(|| with_lines(finding, skipped))
}

fn with_lines(finding: Finding, skipped: &[Skipped<'_>]) -> Finding {
    skipped.iter().take(SHOWN).fold(finding, |finding, line| {
        finding.with(excerpt(line.text), format!("line {}", line.line))
    })
}

/// Shortens a stranger's line and makes it safe for a terminal.
fn excerpt(line: &str) -> String {
    let short: String = line.chars().take(EXCERPT).collect();
    printable(&short)
}
