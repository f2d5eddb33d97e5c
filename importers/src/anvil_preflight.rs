//! anvil-serving preflight evidence (`preflight/v2`): the gates that were tried before a run. The file
//! has no time and no identity; it is read as checks of the run it lies beside.

use crate::read::documents::documents;
use ledger::adapter::{Companion, ExtractError, Observation, SourceFile};
use ledger::cell::{Check, CheckStatus};
use ledger::finding::{Code, Finding, Severity};
use serde::Deserialize;

/// The companion.
#[derive(Debug)]
pub struct AnvilPreflight;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Preflight {
    checks: Vec<String>,
    results: Vec<CheckResult>,
    evidence_policy: Policy,
    passed: Option<bool>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct CheckResult {
    name: String,
    passed: Option<bool>,
    detail: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Policy {
    errors: Vec<String>,
}

impl Companion for AnvilPreflight {
    fn id(&self) -> &'static str {
        "anvil-preflight"
    }

    fn version(&self) -> u32 {
        1
    }

    fn title(&self) -> &'static str {
        "anvil-serving preflight evidence"
    }

    fn detect(&self, file: &SourceFile<'_>) -> Option<String> {
        let schema = file.outline.find_text("schema_version").or(file.outline.find_text("schema"));
        (schema == Some("preflight/v2")).then(|| "its `schema_version` is preflight/v2".to_owned())
    }

    fn observe(&self, files: &[SourceFile<'_>]) -> Result<Observation, ExtractError> {
        let mut observation = Observation::default();
        for file in files {
            for record in documents(file.text).records() {
                read(&record.parse()?, file.name, &mut observation);
            }
        }
        Ok(observation)
    }
}

fn read(preflight: &Preflight, file: &str, observation: &mut Observation) {
    for result in &preflight.results {
        let status = match result.passed {
            Some(true) => CheckStatus::Pass,
            Some(false) => CheckStatus::Fail,
            None => CheckStatus::Unscored,
        };
        let reason = result.detail.clone().unwrap_or_default();
        observation.checks.push(Check {
            name: format!("preflight {}", result.name),
            status,
            reason,
        });
    }
    let was_run = |name: &String| preflight.results.iter().any(|result| result.name == *name);
    for name in preflight.checks.iter().filter(|name| !was_run(name)) {
        let name = format!("preflight {name}");
        observation.checks.push(Check { name, status: CheckStatus::NotRun, reason: String::new() });
    }
    // The whole can fail although every check passed: a policy was broken.
    if preflight.passed == Some(false) {
        let reason = preflight.evidence_policy.errors.join("; ");
        observation.checks.push(Check {
            name: "preflight".to_owned(),
            status: CheckStatus::Fail,
            reason,
        });
        observation.cautions.push(
            Finding::new(
                Code::Forced,
                Severity::Untrustworthy,
                "",
                "the preflight failed and the run went on",
            )
            .with("passed: false", file),
        );
    }
    if preflight.results.is_empty() && preflight.passed == Some(true) {
        observation.cautions.push(
            Finding::caution(
                Code::VacuousCheck,
                "preflight",
                "the preflight passed without a single check",
            )
            .with("results: []", file),
        );
    }
}
