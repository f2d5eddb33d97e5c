//! The manifest `run.toml`: what a person says about a run. Keys are known or refused with the
//! nearest known one, all at once and with their line; values that belong to the fingerprint become
//! statements with the line they stand on. schema/run.schema.json describes it for editors.

use crate::cell::Check;
use crate::clock;
use crate::entry::{Circumstances, Failure, Incident, Setting, Waiver};
use crate::finding::{Code, Finding};
use crate::fingerprint::{CONDITIONS, FIELDS};
use crate::statement::{Source, SourceKind, Statement};
use crate::subject::Subject;
use crate::text::nearest;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::ops::Range;
use toml::de::{DeTable, DeValue};

/// A manifest as it was read.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Manifest {
    /// Labels that are given, by name.
    pub labels: BTreeMap<String, String>,
    /// When the measurement started, RFC 3339, and where that stands.
    pub measured_at: Option<(String, String)>,
    /// Statements about fingerprint fields.
    pub statements: Vec<Statement>,
    /// Everything around the measurement.
    pub circumstances: Circumstances,
    /// What a failed attempt is remembered by.
    pub failure: Option<Failure>,
}

impl Manifest {
    /// Returns the subject, or the names of the labels that are missing.
    ///
    /// # Errors
    /// The missing labels.
    pub fn subject(&self) -> Result<Subject, Vec<&'static str>> {
        let missing: Vec<&'static str> =
            Subject::LABELS.into_iter().filter(|name| !self.labels.contains_key(*name)).collect();
        if !missing.is_empty() {
            return Err(missing);
        }
        let label = |name: &str| self.labels.get(name).cloned().unwrap_or_default();
        Ok(Subject {
            candidate: label("candidate"),
            config: label("config"),
            task: label("task"),
            hardware: label("hardware"),
        })
    }
}

/// The typed sections; everything else of the file becomes labels and statements.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Sections {
    run: Circumstances,
    settings: Vec<Setting>,
    waivers: Vec<Waiver>,
    incidents: Vec<Incident>,
    checks: Vec<Check>,
    identities: BTreeMap<String, String>,
    failure: Option<Failure>,
    sources: BTreeMap<String, String>,
}

/// Keys of `[run]`, for messages.
const RUN_KEYS: &[&str] = &[
    "evidence",
    "path",
    "campaign",
    "attempt",
    "previous_attempt",
    "command",
    "clients",
    "operating_contract",
    "tenancy",
    "ruled_out",
    "cache_state",
    "reasoning_counted",
    "capacity_configured",
    "capacity_reported",
    "capacity_measured",
    "cost_minutes",
    "headroom_bytes",
    "reserve_floor_bytes",
    "state_before",
    "state_after",
    "incident_time",
    "forced",
    "non_claims",
];

const FAILURE_KEYS: &[&str] = &["reason", "cause", "prompt_tokens", "output_tokens", "client"];
const SETTING_KEYS: &[&str] = &["name", "requested", "effective", "measured", "at"];
const WAIVER_KEYS: &[&str] = &["gate", "scope", "by", "reason"];
const INCIDENT_KEYS: &[&str] = &["at", "what"];
const CHECK_KEYS: &[&str] = &["name", "status", "reason"];

/// Reads a manifest. `name` is what messages call the file.
///
/// # Errors
/// Every finding against it: what is no TOML, every unknown key with the nearest known one, every
/// label or time of a wrong form.
pub fn parse(name: &str, text: &str) -> Result<Manifest, Vec<Finding>> {
    let document = DeTable::parse(text).map_err(|error| {
        let at = error.span().map_or_else(|| name.to_owned(), |span| place(name, text, &span));
        vec![Finding::refusal(Code::BadValue, name, error.message().to_owned()).with("", at)]
    })?;
    let mut reader = Reader { name, text, manifest: Manifest::default(), findings: Vec::new() };
    let sections = reader.sections();
    let sources = sections.as_ref().map(|sections| sections.sources.clone()).unwrap_or_default();
    reader.walk("", document.get_ref(), &sources);
    if let Some(sections) = sections {
        reader.take(sections);
    }
    if reader.findings.is_empty() { Ok(reader.manifest) } else { Err(reader.findings) }
}

fn place(name: &str, text: &str, span: &Range<usize>) -> String {
    let before = text.get(..span.start).unwrap_or(text);
    format!("{name}:{}", before.matches('\n').count() + 1)
}

struct Reader<'a> {
    name: &'a str,
    text: &'a str,
    manifest: Manifest,
    findings: Vec<Finding>,
}

impl Reader<'_> {
    fn sections(&mut self) -> Option<Sections> {
        toml::from_str(self.text)
            .map_err(|error: toml::de::Error| {
                let at = error.span().map_or_else(
                    || self.name.to_owned(),
                    |span| place(self.name, self.text, &span),
                );
                // Unknown keys are reported by the walk, all of them and with the nearest name.
                if !error.message().contains("unknown field") {
                    let message = error.message().to_owned();
                    self.findings.push(Finding::refusal(Code::BadValue, "", message).with("", at));
                }
            })
            .ok()
    }

    fn take(&mut self, sections: Sections) {
        let Sections { run, settings, waivers, incidents, checks, identities, failure, .. } =
            sections;
        self.manifest.circumstances =
            Circumstances { settings, waivers, incidents, checks, identities, ..run };
        self.manifest.failure = failure;
    }

    fn walk(&mut self, prefix: &str, table: &DeTable<'_>, sources: &BTreeMap<String, String>) {
        for (key, value) in table {
            let path = format!("{prefix}{}", key.get_ref());
            let at = place(self.name, self.text, &key.span());
            match (path.as_str(), value.get_ref()) {
                ("run" | "failure" | "sources" | "identities", DeValue::Table(members)) => {
                    self.check_keys(&path, members);
                }
                ("settings" | "waivers" | "incidents" | "checks", DeValue::Array(items)) => {
                    for item in items {
                        if let DeValue::Table(members) = item.get_ref() {
                            self.check_keys(&path, members);
                        }
                    }
                }
                (_, DeValue::Table(members)) if is_group(&path) => {
                    self.walk(&format!("{path}."), members, sources);
                }
                (_, DeValue::Table(_)) => self.unknown_path(&path, at),
                (_, value) => self.leaf(&path, value, at, sources),
            }
        }
    }

    fn check_keys(&mut self, section: &str, members: &DeTable<'_>) {
        let known = match section {
            "run" => RUN_KEYS,
            "failure" => FAILURE_KEYS,
            "settings" => SETTING_KEYS,
            "waivers" => WAIVER_KEYS,
            "incidents" => INCIDENT_KEYS,
            "checks" => CHECK_KEYS,
            _ => return,
        };
        for key in members.keys() {
            let name = key.get_ref().as_ref();
            if !known.contains(&name) {
                let at = place(self.name, self.text, &key.span());
                self.unknown(&format!("{section}.{name}"), name, known.iter().copied(), at);
            }
        }
    }

    fn unknown(
        &mut self,
        path: &str,
        typed: &str,
        known: impl IntoIterator<Item = &'static str>,
        at: String,
    ) {
        let meant = nearest(typed, known)
            .map_or_else(String::new, |near| format!(", did you mean `{near}`"));
        let message = format!("key `{path}` is not known{meant}");
        self.findings.push(Finding::refusal(Code::UnknownKey, path, message).with("", at));
    }

    fn leaf(
        &mut self,
        path: &str,
        value: &DeValue<'_>,
        at: String,
        sources: &BTreeMap<String, String>,
    ) {
        let Some(value) = to_json(value) else {
            let message = "expected a text, number, boolean or list".to_owned();
            self.findings.push(Finding::refusal(Code::BadValue, path, message).with("", at));
            return;
        };
        if Subject::LABELS.contains(&path) {
            self.label(path, &value, at);
        } else if path == "measured_at" {
            self.time(&value, at);
        } else if path.starts_with(CONDITIONS) || FIELDS.iter().any(|field| field.path == path) {
            self.state(path, value, at, sources);
        } else {
            self.unknown_path(path, at);
        }
    }

    fn unknown_path(&mut self, path: &str, at: String) {
        let groups =
            FIELDS.iter().filter_map(|field| field.path.split_once('.')).map(|(group, _)| group);
        let fields = FIELDS.iter().map(|field| field.path);
        let known = groups.chain(fields).chain(Subject::LABELS).chain(TOP_KEYS.iter().copied());
        self.unknown(path, path, known, at);
    }

    fn label(&mut self, name: &str, value: &Value, at: String) {
        match value.as_str().map(str::trim) {
            Some(label) if !label.is_empty() => {
                self.manifest.labels.insert(name.to_owned(), label.to_owned());
            }
            _ => {
                let message =
                    format!("label `{name}` is a text that is not empty, found `{value}`");
                self.findings.push(Finding::refusal(Code::BadValue, name, message).with("", at));
            }
        }
    }

    fn time(&mut self, value: &Value, at: String) {
        let text = value.as_str().unwrap_or_default();
        match clock::parse(text) {
            Ok(moment) => self.manifest.measured_at = Some((clock::stamp(moment), at)),
            Err(error) => {
                let message = format!(
                    "`measured_at` is a time like 2026-08-02T02:15:49Z, found `{value}`: {error}"
                );
                self.findings
                    .push(Finding::refusal(Code::BadValue, "measured_at", message).with("", at));
            }
        }
    }

    fn state(&mut self, path: &str, value: Value, at: String, sources: &BTreeMap<String, String>) {
        let kind = match sources.get(path).map(String::as_str) {
            None => SourceKind::Declared,
            Some("inferred") => {
                let message = format!(
                    "`{path}` was inferred from a measurement; a setting is read from a configuration or a command line"
                );
                self.findings.push(
                    Finding::refusal(Code::InferredSetting, path, message)
                        .with(value.to_string(), at),
                );
                return;
            }
            Some(name) => {
                let Some(kind) = SourceKind::parse(name) else {
                    let known = SourceKind::NAMES.iter().map(|(name, _)| *name);
                    self.unknown(&format!("sources.{path} = {name}"), name, known, at);
                    return;
                };
                kind
            }
        };
        let source = Source { kind, at, given: None };
        self.manifest.statements.push(Statement { path: path.to_owned(), value, source });
    }
}

const TOP_KEYS: &[&str] = &[
    "measured_at",
    "run",
    "failure",
    "sources",
    "identities",
    "settings",
    "waivers",
    "incidents",
    "checks",
    "conditions",
];

fn is_group(path: &str) -> bool {
    path == "conditions"
        || path.starts_with(CONDITIONS)
        || FIELDS
            .iter()
            .any(|field| field.path.split_once('.').is_some_and(|(group, _)| group == path))
}

fn to_json(value: &DeValue<'_>) -> Option<Value> {
    match value {
        DeValue::String(text) => Some(Value::String(text.to_string())),
        DeValue::Integer(integer) => {
            i64::from_str_radix(integer.as_str(), integer.radix()).ok().map(Value::from)
        }
        DeValue::Float(float) => {
            let number = float.as_str().parse::<f64>().ok()?;
            serde_json::Number::from_f64(number).map(Value::Number)
        }
        DeValue::Boolean(flag) => Some(Value::Bool(*flag)),
        DeValue::Datetime(time) => Some(Value::String(time.to_string())),
        DeValue::Array(items) => items
            .iter()
            .map(|item| to_json(item.get_ref()))
            .collect::<Option<_>>()
            .map(Value::Array),
        DeValue::Table(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: &str = r#"
candidate = "tiny"
config = "tp1"
task = "chat"
hardware = "cpu"
measured_at = 2026-08-02T04:15:49+02:00
placement = ["host"]

[model]
id = "acme/tiny"

[conditions]
temperature = 0.0
harness.name = "vllm bench serve"

[sources]
"model.id" = "configuration"

[run]
evidence = "client"
attempt = 2

[[settings]]
name = "max_tokens"
requested = 50000
effective = 32768
"#;

    #[test]
    fn a_manifest_states_fields_with_the_line_they_stand_on() {
        let manifest = parse("run.toml", SAMPLE).unwrap();
        assert_eq!(manifest.subject().unwrap().candidate, "tiny");
        assert_eq!(
            manifest.measured_at,
            Some(("2026-08-02T02:15:49.000000Z".into(), "run.toml:6".into()))
        );
        let places: Vec<(&str, &str, SourceKind)> = manifest
            .statements
            .iter()
            .map(|said| (said.path.as_str(), said.source.at.as_str(), said.source.kind))
            .collect();
        assert!(places.contains(&("model.id", "run.toml:10", SourceKind::Configuration)));
        assert!(places.contains(&("conditions.harness.name", "run.toml:14", SourceKind::Declared)));
        assert!(places.contains(&("placement", "run.toml:7", SourceKind::Declared)));
        assert_eq!(manifest.circumstances.attempt, Some(2));
        assert_eq!(manifest.circumstances.settings[0].requested, Value::from(50000));
    }

    #[test]
    fn every_unknown_key_is_named_with_the_nearest() {
        let text = "candidat = \"x\"\n[modell]\nid = \"x\"\n[run]\nevidenze = \"client\"\n";
        let findings = parse("run.toml", text).unwrap_err();
        let said: Vec<(&str, &str)> = findings
            .iter()
            .map(|finding| (finding.message.as_str(), finding.values[0].source.as_str()))
            .collect();
        assert_eq!(
            said,
            [
                ("key `candidat` is not known, did you mean `candidate`", "run.toml:1"),
                ("key `modell` is not known, did you mean `model`", "run.toml:2"),
                ("key `run.evidenze` is not known, did you mean `evidence`", "run.toml:5"),
            ]
        );
    }

    #[test]
    fn a_setting_inferred_from_a_ratio_is_refused() {
        let text =
            "[conditions]\nspeculation = 2\n[sources]\n\"conditions.speculation\" = \"inferred\"\n";
        let findings = parse("run.toml", text).unwrap_err();
        assert_eq!(findings[0].code, Code::InferredSetting);
    }

    #[test]
    fn text_that_is_no_toml_says_where() {
        let findings = parse("run.toml", "candidate = \"x\"\nconfig = ").unwrap_err();
        assert_eq!(findings[0].values[0].source, "run.toml:2");
        let twice = parse("run.toml", "task = \"x\"\ntask = \"y\"\n").unwrap_err();
        assert_eq!(twice[0].code, Code::BadValue);
    }
}
