//! Statements about fingerprint fields, and how they become one fingerprint. A manifest, an
//! artifact, a process command line and a probe may all state the same field. They must agree; the
//! ledger never picks a winner between two sources that both say what was in force.

use crate::finding::{Code, Finding};
use crate::fingerprint::{
    FIELDS, Fingerprint, UNKNOWN, find_problem, is_equal, is_field, is_unknown,
};
use crate::text::nearest;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// What sort of place a value was read from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SourceKind {
    /// The command line of the measured process.
    CommandLine,
    /// A configuration file that the process read.
    Configuration,
    /// A probe of the machine or the process.
    Probe,
    /// A result file or a file beside it.
    Artifact,
    /// A person typed it.
    Declared,
    /// It follows from other facts by a rule, not from a measured number.
    Derived,
}

impl SourceKind {
    /// Every kind with the name a manifest uses.
    pub const NAMES: [(&'static str, Self); 6] = [
        ("command-line", Self::CommandLine),
        ("configuration", Self::Configuration),
        ("probe", Self::Probe),
        ("artifact", Self::Artifact),
        ("declared", Self::Declared),
        ("derived", Self::Derived),
    ];

    /// Reads a kind's name.
    pub fn parse(text: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(name, _)| *name == text).map(|(_, kind)| *kind)
    }

    /// Returns the name a manifest uses.
    pub fn as_str(self) -> &'static str {
        Self::NAMES.iter().find(|(_, kind)| *kind == self).map_or("", |(name, _)| name)
    }
}

/// Where a value was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// What sort of place.
    pub kind: SourceKind,
    /// The place: `run.toml:9`, `argument --max-model-len of pid 4121`.
    pub at: String,
    /// The spelling that was given there, when the name table replaced it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub given: Option<Value>,
}

/// Somebody says that a field has a value.
#[derive(Debug, Clone, PartialEq)]
pub struct Statement {
    /// The field's path.
    pub path: String,
    /// The value, normalized.
    pub value: Value,
    /// Where it was read.
    pub source: Source,
}

/// A fingerprint with the source of each value.
#[derive(Debug, Clone, PartialEq)]
pub struct Assembled {
    /// The fingerprint.
    pub fingerprint: Fingerprint,
    /// Where each field's value was read, by path.
    pub sources: BTreeMap<String, Source>,
}

/// Makes one fingerprint of all statements, or lists everything that stands against it.
///
/// # Errors
/// Every unknown key (with the nearest known one), every value of a wrong type, every field that two
/// sources state differently (with all values and sources), and every required field that nobody
/// states, in one list.
pub fn assemble(statements: &[Statement]) -> Result<Assembled, Vec<Finding>> {
    let mut findings: Vec<Finding> = statements.iter().filter_map(find_defect).collect();
    let mut by_path: BTreeMap<&str, Vec<&Statement>> = BTreeMap::new();
    for statement in statements {
        by_path.entry(&statement.path).or_default().push(statement);
    }
    findings.extend(by_path.iter().filter_map(|(path, said)| find_disagreement(path, said)));
    findings.extend(find_missing(&by_path));
    if !findings.is_empty() {
        return Err(findings);
    }
    let mut fields = BTreeMap::new();
    let mut sources = BTreeMap::new();
    for (path, said) in by_path {
        if let Some(best) = choose(&said) {
            fields.insert(path.to_owned(), best.value.clone());
            sources.insert(path.to_owned(), best.source.clone());
        }
    }
    let fingerprint = Fingerprint::new(fields)
        .map_err(|error| vec![Finding::refusal(Code::BadValue, "", error.to_string())])?;
    Ok(Assembled { fingerprint, sources })
}

/// A known value before an unknown one, then what the process and the machine show before what a
/// person says; all known values are equal here.
fn choose<'a>(said: &[&'a Statement]) -> Option<&'a Statement> {
    said.iter()
        .copied()
        .min_by_key(|statement| (is_unknown(&statement.value), statement.source.kind))
}

fn find_defect(statement: &Statement) -> Option<Finding> {
    let Statement { path, value, source } = statement;
    if !is_field(path) {
        let known = FIELDS.iter().map(|field| field.path);
        let meant = nearest(path, known)
            .map_or_else(String::new, |near| format!(", did you mean `{near}`"));
        let message = format!("`{path}` is no fingerprint field{meant}");
        return Some(
            Finding::refusal(Code::UnknownKey, path, message).with(value.to_string(), &source.at),
        );
    }
    let problem = find_problem(path, value)?;
    Some(Finding::refusal(Code::BadValue, path, problem).with(show(value), &source.at))
}

fn find_disagreement(path: &str, said: &[&Statement]) -> Option<Finding> {
    let known: Vec<&&Statement> =
        said.iter().filter(|statement| !is_unknown(&statement.value)).collect();
    let first = known.first()?;
    if known.iter().all(|statement| is_equal(&statement.value, &first.value)) {
        return None;
    }
    let message = format!("`{path}` is stated differently by {} sources", known.len());
    let finding = Finding::refusal(Code::FieldDisagrees, path, message);
    Some(known.iter().fold(finding, |finding, statement| {
        finding.with(show(&statement.value), &statement.source.at)
    }))
}

fn find_missing(by_path: &BTreeMap<&str, Vec<&Statement>>) -> Vec<Finding> {
    FIELDS
        .iter()
        .filter(|field| !by_path.contains_key(field.path))
        .map(|field| {
            let message = format!(
                "`{}` is stated nowhere; it is read from {}, or give it, or say \"{UNKNOWN}\"",
                field.path, field.read_from
            );
            Finding::refusal(Code::MissingField, field.path, message)
        })
        .collect()
}

/// Writes a value as people read it: texts without quotes.
pub fn show(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(show).collect::<Vec<_>>().join(", "),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => value.to_string(),
    }
}

/// Returns the paths of every required field, for messages.
pub fn required_paths() -> impl Iterator<Item = &'static str> {
    FIELDS.iter().map(|field| field.path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn say(path: &str, value: Value, kind: SourceKind, at: &str) -> Statement {
        Statement { path: path.into(), value, source: Source { kind, at: at.into(), given: None } }
    }

    fn complete() -> Vec<Statement> {
        FIELDS
            .iter()
            .map(|field| say(field.path, json!(UNKNOWN), SourceKind::Declared, "run.toml:1"))
            .collect()
    }

    #[test]
    fn a_known_value_fills_an_unknown_one() {
        let mut statements = complete();
        statements.push(say("context.tokens", json!(4096), SourceKind::CommandLine, "argument"));
        let assembled = assemble(&statements).unwrap();
        assert_eq!(assembled.fingerprint.find("context.tokens"), Some(&json!(4096)));
        assert_eq!(assembled.sources["context.tokens"].at, "argument");
    }

    #[test]
    fn a_disagreement_names_every_value_and_where_it_was_read() {
        let mut statements = complete();
        statements.push(say("context.tokens", json!(4096), SourceKind::CommandLine, "argument"));
        statements.push(say("context.tokens", json!(8192), SourceKind::Declared, "run.toml:9"));
        let findings = assemble(&statements).unwrap_err();
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].code, Code::FieldDisagrees);
        assert_eq!(findings[0].values[1].value, "8192");
        assert_eq!(findings[0].values[1].source, "run.toml:9");
    }

    #[test]
    fn everything_that_is_missing_is_named_at_once() {
        assert_eq!(assemble(&[]).unwrap_err().len(), FIELDS.len());
    }

    #[test]
    fn a_mistyped_key_names_the_nearest() {
        let mut statements = complete();
        statements.push(say("contxt.tokens", json!(1), SourceKind::Declared, "run.toml:3"));
        let findings = assemble(&statements).unwrap_err();
        assert_eq!(
            findings[0].message,
            "`contxt.tokens` is no fingerprint field, did you mean `context.tokens`"
        );
    }
}
