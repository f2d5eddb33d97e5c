//! Findings as lines: subject, then what is wrong, then each value and where it was read, aligned.

use ledger::finding::{Finding, Severity};
use ledger::text::printable;
use serde_json::{Value, json};

/// Writes findings, one a line, values below.
pub(crate) fn lines(findings: &[Finding]) -> String {
    let width =
        findings.iter().map(|finding| finding.subject.chars().count()).max().unwrap_or(0).min(40);
    let mut text = String::new();
    for finding in findings {
        let subject = printable(&finding.subject);
        text.push_str(format!("  {subject:width$}  {}", printable(&finding.message)).trim_end());
        text.push('\n');
        let values: Vec<(String, String)> = finding
            .values
            .iter()
            .filter(|value| !(value.value.is_empty() && value.source.is_empty()))
            .map(|value| (printable(&value.value), printable(&value.source)))
            .collect();
        let value_width =
            values.iter().map(|(value, _)| value.chars().count()).max().unwrap_or(0).min(40);
        for (value, source) in values {
            text.push_str(format!("  {:width$}    {value:value_width$}  {source}", "").trim_end());
            text.push('\n');
        }
    }
    text
}

/// Writes the cautions of a run as numbered footnotes.
pub(crate) fn footnotes(findings: &[Finding]) -> String {
    let mut text = String::new();
    for (number, finding) in findings.iter().enumerate() {
        let weight = match finding.severity {
            Severity::Note => "note",
            Severity::Caution => "caution",
            Severity::Untrustworthy => "untrustworthy",
            Severity::Refusal => "refusal",
        };
        let subject = if finding.subject.is_empty() {
            String::new()
        } else {
            format!(" {}", printable(&finding.subject))
        };
        let message = printable(&finding.message);
        text.push_str(&line(number + 1, weight, finding.code.as_str(), &subject, &message));
    }
    text
}

fn line(number: usize, weight: &str, code: &str, subject: &str, message: &str) -> String {
    format!("  [{number}] {weight}[{code}]{subject}: {message}\n")
}

/// Writes findings as JSON (schema/finding.schema.json).
pub(crate) fn to_json(findings: &[Finding]) -> Value {
    json!(findings)
}
