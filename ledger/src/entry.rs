//! Entry bodies: the truth of the ledger, as it is stored. Each body is canonical JSON, its id is
//! BLAKE3 of those bytes, and nothing else about an entry is hashed. These types are the stored
//! format and are never an output; schema/entry.schema.json describes them.

mod prior;

pub use prior::{PriorBody, PriorRow, PriorSource, PriorStatement};

use crate::canonical::{self, CanonicalError, Finite};
use crate::cell::{Check, Missing, Parameter, RequestCounts};
use crate::finding::Finding;
use crate::id::EntryId;
use crate::metric::Statistic;
use crate::statement::Source;
use crate::subject::Subject;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// Version of the body format.
pub const BODY_VERSION: u32 = 1;

/// The body of one append.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Body {
    /// A recorded run.
    Run(Box<RunBody>),
    /// New labels for a run.
    Correction(CorrectionBody),
    /// A run that no longer counts.
    Retraction(RetractionBody),
    /// A remark or an attached file.
    Note(NoteBody),
    /// A person's word that a weight set is a model.
    Binding(BindingBody),
    /// Somebody else's numbers.
    Prior(Box<PriorBody>),
}

impl Body {
    /// Returns the name of the kind, as the log's leaf carries it.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Run(_) => "run",
            Self::Correction(_) => "correction",
            Self::Retraction(_) => "retraction",
            Self::Note(_) => "note",
            Self::Binding(_) => "binding",
            Self::Prior(_) => "prior",
        }
    }

    /// Writes the canonical bytes.
    ///
    /// # Errors
    /// [`CanonicalError`] when a value does not pass the gate.
    pub fn to_bytes(&self) -> Result<Vec<u8>, CanonicalError> {
        canonical::to_bytes(self)
    }

    /// Reads stored bytes.
    ///
    /// # Errors
    /// [`CanonicalError::Parse`] for anything but a body of this version.
    pub fn parse(bytes: &[u8]) -> Result<Self, CanonicalError> {
        serde_json::from_slice(bytes).map_err(CanonicalError::Parse)
    }

    /// Returns the key of the run the entry makes or concerns, in hex, if it concerns one.
    pub fn run_key(&self) -> Option<&str> {
        match self {
            Self::Run(run) => Some(&run.key),
            Self::Correction(correction) => Some(&correction.run),
            Self::Retraction(retraction) => Some(&retraction.run),
            Self::Note(note) => note.run.as_deref(),
            Self::Binding(_) | Self::Prior(_) => None,
        }
    }
}

/// Derives the id of an entry from its stored bytes.
pub fn entry_id(body: &[u8]) -> EntryId {
    EntryId::from_bytes(*blake3::hash(body).as_bytes())
}

/// Writes the leaf that the log's tree holds for an entry: canonical JSON of its id and kind.
pub fn leaf(id: &EntryId, kind: &str) -> String {
    format!(r#"{{"entry":"{id}","kind":"{kind}","v":{BODY_VERSION}}}"#)
}

/// Whether a run measured something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// It holds metrics.
    Measured,
    /// It failed before it could measure; kept as failure evidence, never a result.
    Failed,
}

impl Outcome {
    /// Returns the stored name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Measured => "measured",
            Self::Failed => "failed",
        }
    }
}

/// What the validity rules made of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Validity {
    /// Nothing to say.
    Ok,
    /// Something stands beside its numbers.
    Caution,
    /// It is kept out of comparisons and recommendations.
    Untrustworthy,
}

impl Validity {
    /// Returns the stored name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Caution => "caution",
            Self::Untrustworthy => "untrustworthy",
        }
    }
}

/// Which class of traffic produced the evidence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Evidence {
    /// A benchmark client.
    #[default]
    Synthetic,
    /// Real client traffic.
    Client,
}

/// How the client reached the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Path {
    /// Straight to the engine's port.
    #[default]
    Direct,
    /// Through a router or gateway.
    Routed,
    /// Through the deployed service.
    Deployed,
}

/// A result file that an adapter read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResultFile {
    /// Path in the artifact tree, escaped.
    pub path: String,
    /// Blob id, in hex.
    pub blob: String,
    /// Adapter id.
    pub adapter: String,
    /// Adapter version.
    pub version: u32,
    /// Encoding of the file: `utf-8`, `utf-16le-bom`, ….
    pub encoding: String,
}

/// One metric of a stored cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoredMetric {
    /// A name of schema/metrics.toml.
    pub name: String,
    /// Number of samples behind the computed statistics; absent where the file has statistics only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub n: Option<u64>,
    /// Statistics computed from the samples, canonical unit.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub computed: BTreeMap<Statistic, Finite>,
    /// Statistics as the harness gave them, canonical unit.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub given: BTreeMap<Statistic, Finite>,
    /// Contract version of the definition, where a tool changed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<String>,
}

impl StoredMetric {
    /// Returns a statistic, computed before given, and whether it was computed.
    pub fn find(&self, statistic: Statistic) -> Option<(f64, bool)> {
        let computed = self.computed.get(&statistic).map(|value| (value.get(), true));
        computed.or_else(|| self.given.get(&statistic).map(|value| (value.get(), false)))
    }

    /// Returns the statistic a table shows first: the value of the whole cell, the median of the
    /// samples, or the mean where only that is given.
    pub fn headline(&self) -> Option<(Statistic, f64)> {
        [Statistic::Value, Statistic::P50, Statistic::Mean]
            .into_iter()
            .find_map(|statistic| self.find(statistic).map(|(value, _)| (statistic, value)))
    }
}

/// Token counts of a stored cell.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StoredTokens {
    /// Prompt tokens planned per request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt_nominal: Option<u64>,
    /// Mean prompt tokens seen per completed request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt_mean: Option<Finite>,
    /// Output token cap per request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_limit: Option<u64>,
    /// Mean output tokens seen per completed request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_mean: Option<Finite>,
    /// Coefficient of variation of output tokens over requests (sample sd / mean).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_cv: Option<Finite>,
    /// Output tokens of all completed requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_total: Option<u64>,
    /// Prompt tokens of all completed requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt_total: Option<u64>,
    /// Whether reasoning tokens are counted as output.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_counted: Option<bool>,
    /// Tokens per request that arrived before the first visible chunk, where any did.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hidden: Vec<u64>,
}

/// Tallies of the items of a quality cell.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StoredItems {
    /// Distinct items.
    pub items: u64,
    /// Items that passed in every attempt.
    pub stable: u64,
    /// Attempts that were scored.
    pub attempts: u64,
    /// Attempts that passed.
    pub passed: u64,
    /// Attempts cut at the token limit; absent when the tool cannot say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub truncated: Option<u64>,
    /// Attempts by class of failure.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub classes: BTreeMap<String, u64>,
}

/// One cell of a stored run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoredCell {
    /// The cell's id: `concurrency=16,prompt=4096`.
    pub id: String,
    /// Its coordinates.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, Parameter>,
    /// Its metrics.
    pub metrics: Vec<StoredMetric>,
    /// Metrics without a value, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<Missing>,
    /// Request counts.
    pub requests: RequestCounts,
    /// Token counts.
    pub tokens: StoredTokens,
    /// Tallies of items, for a quality cell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub items: Option<StoredItems>,
}

/// The proof of which weights were loaded, as recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoredProvenance {
    /// Blob ids of the provenance documents, in the order of capture.
    pub documents: Vec<String>,
    /// Whether all five rules held. Only a failed attempt may be recorded without.
    pub verified: bool,
    /// Grade of the evidence: `memory`, `mapped` or `resolved`.
    pub grade: String,
    /// The model id that was asked for.
    pub requested: String,
    /// Names of the weight files that were loaded.
    pub loaded: Vec<String>,
    /// Weight set that was loaded.
    pub weight_set: String,
    /// What the served names were, as labels.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
    /// Entry ids of the bindings that rule 4 relied on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bindings: Vec<String>,
}

/// A setting that was asked for, and what came of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Setting {
    /// Its name or fingerprint path.
    pub name: String,
    /// What was asked for.
    pub requested: Value,
    /// What was in force, when that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effective: Option<Value>,
    /// What was measured to show it (`reasoning tokens 0`), when anything was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured: Option<Value>,
    /// Where each was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
}

/// A gate that somebody waived.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Waiver {
    /// What was waived.
    pub gate: String,
    /// How far the waiver reaches.
    pub scope: String,
    /// Who waived it.
    pub by: String,
    /// Why.
    pub reason: String,
}

/// Something that happened to the host near the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Incident {
    /// When, RFC 3339.
    pub at: String,
    /// What: `Xid 79 on GPU 1`.
    pub what: String,
}

/// What a failed attempt is remembered by.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Failure {
    /// Why it failed, as a person or the tool put it.
    pub reason: String,
    /// Class of the cause: `resource-exhaustion`, `environment`, `model`, ….
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    /// Prompt tokens of the request that died.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt_tokens: Option<u64>,
    /// Output tokens it asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    /// The client that sent it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
}

/// Everything around the measurement that a reader needs later.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Circumstances {
    /// Class of traffic.
    pub evidence: Evidence,
    /// How the client reached the server.
    pub path: Path,
    /// Session or campaign the run belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub campaign: Option<String>,
    /// Which attempt this was, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// Key of the attempt before it, in hex.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub previous_attempt: Option<String>,
    /// The exact benchmark command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Clients that sent the traffic, with host and reasoning level as they say.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub clients: Vec<String>,
    /// Operating contract: `one user, exclusive cards`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operating_contract: Option<String>,
    /// Whether the machine was shared, and with what.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenancy: Option<String>,
    /// Evidence that rules out other explanations (storage, memory pressure).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ruled_out: Vec<String>,
    /// State of the prefix cache: `cold`, `partial`, `warm`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_state: Option<String>,
    /// Whether reasoning tokens are counted as output.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_counted: Option<bool>,
    /// Capacity that was configured, in the configuration's own words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capacity_configured: Option<Value>,
    /// Capacity that the engine reported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capacity_reported: Option<Value>,
    /// Capacity that was measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capacity_measured: Option<Value>,
    /// Minutes of machine time the run took, restarts included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_minutes: Option<Finite>,
    /// Memory that was free after the workload, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub headroom_bytes: Option<u64>,
    /// Memory that must stay free, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reserve_floor_bytes: Option<u64>,
    /// State of the machine before the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state_before: Option<String>,
    /// State of the machine after restoration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state_after: Option<String>,
    /// True when the time includes repairs and says nothing about latency.
    #[serde(skip_serializing_if = "is_false")]
    pub incident_time: bool,
    /// True when a preflight failed and the run went on.
    #[serde(skip_serializing_if = "is_false")]
    pub forced: bool,
    /// What the run does not show.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub non_claims: Vec<String>,
    /// Requested and effective settings.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub settings: Vec<Setting>,
    /// Waivers in force.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub waivers: Vec<Waiver>,
    /// Host incidents.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub incidents: Vec<Incident>,
    /// Gates, preflights and probes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<Check>,
    /// Other identities of the subject: draft model, chat template, patches, image.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub identities: BTreeMap<String, String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature serde asks for")]
fn is_false(value: &bool) -> bool {
    !*value
}

/// The body of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunBody {
    /// Format version.
    pub v: u32,
    /// Run key, in hex.
    pub key: String,
    /// Artifact root, in hex.
    pub root: String,
    /// Fingerprint id, in hex.
    pub fingerprint_id: String,
    /// When the ledger was told, RFC 3339 UTC. No part of the key.
    pub recorded_at: String,
    /// Which program wrote the entry.
    pub tool: String,
    /// The four labels.
    pub subject: Subject,
    /// The fairness fingerprint, nested.
    pub fingerprint: Value,
    /// Where each fingerprint value was read, by path.
    pub sources: BTreeMap<String, Source>,
    /// When the measurement started, RFC 3339 UTC.
    pub measured_at: String,
    /// Where the measurement time was read.
    pub measured_at_source: String,
    /// Server start: hash of boot id, pid and process start time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_start: Option<String>,
    /// Whether it measured something.
    pub outcome: Outcome,
    /// What a failed attempt is remembered by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
    /// The proof of its weights; a failed attempt may have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provenance: Option<StoredProvenance>,
    /// Blob id of the manifest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manifest: Option<String>,
    /// Result files that were read, and by which adapter.
    pub results: Vec<ResultFile>,
    /// What was extracted.
    pub cells: Vec<StoredCell>,
    /// Names that somebody chose: served names, client arguments, file names. No evidence.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, Vec<String>>,
    /// Facts of the artifacts that are no fingerprint field.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub observed: BTreeMap<String, Value>,
    /// Everything around the measurement.
    pub circumstances: Circumstances,
    /// What the validity rules made of it.
    pub validity: Validity,
    /// Every caution, with the cell or metric it belongs to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<Finding>,
    /// What was given on the command line beside the manifest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub given_beside: Vec<String>,
    /// Key of the retracted run this one replaces, in hex.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaces: Option<String>,
}

impl RunBody {
    /// True when the run follows from its files alone.
    pub fn is_plain(&self) -> bool {
        self.given_beside.is_empty()
    }

    /// True when what was asked for is not what was loaded or in force, in a name or in a setting.
    pub fn differs(&self) -> bool {
        let name = self.provenance.as_ref().is_some_and(|proof| {
            let requested = &proof.requested;
            !proof.labels.is_empty() && !proof.labels.contains(requested)
        });
        let label = self.labels.get("model.id").is_some_and(|names| {
            let model = self.fingerprint.pointer("/model/id").and_then(Value::as_str);
            names.iter().any(|name| Some(name.as_str()) != model)
        });
        let is_off = |setting: &Setting| {
            setting.effective.as_ref().is_some_and(|value| *value != setting.requested)
        };
        let finding = self
            .findings
            .iter()
            .any(|finding| finding.code == crate::finding::Code::DeclaredNotObserved);
        name || label || finding || self.circumstances.settings.iter().any(is_off)
    }

    /// Writes one line of the run's main metrics.
    pub fn headline(&self) -> String {
        HEADLINES
            .iter()
            .filter_map(|name| self.headline_of(name))
            .take(2)
            .collect::<Vec<_>>()
            .join(", ")
    }

    /// Of several cells the first that has the metric.
    fn headline_of(&self, name: &str) -> Option<String> {
        self.cells.iter().find_map(|cell| {
            let metric = cell.metrics.iter().find(|metric| metric.name == name)?;
            let (_, value) = metric.headline()?;
            let unit = &crate::metric::find_definition(name)?.unit;
            let cell = if self.cells.len() > 1 { format!("@{}", cell.id) } else { String::new() };
            Some(format!("{name}{cell} {} {unit}", crate::quantity::rounded(value)))
        })
    }
}

/// Metrics that a one-line summary shows, best first.
const HEADLINES: [&str; 10] = [
    "decode_tok_s",
    "output_tok_s",
    "total_tok_s",
    "prefill_tok_s",
    "ttft_ms",
    "time_to_first_visible_ms",
    "tpot_ms",
    "pass_rate",
    "accuracy",
    "e2e_ms",
];

/// The body of a correction of labels.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CorrectionBody {
    /// Format version.
    pub v: u32,
    /// Run key, in hex.
    pub run: String,
    /// The labels before.
    pub before: Subject,
    /// The labels from now on.
    pub after: Subject,
    /// Why.
    pub reason: String,
    /// Who.
    pub by: String,
    /// When, RFC 3339 UTC.
    pub recorded_at: String,
}

/// The body of a retraction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RetractionBody {
    /// Format version.
    pub v: u32,
    /// Run key, in hex.
    pub run: String,
    /// Why.
    pub reason: String,
    /// Who.
    pub by: String,
    /// When, RFC 3339 UTC.
    pub recorded_at: String,
    /// Key of the run that stands in its place, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaced_by: Option<String>,
}

/// The body of a note.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NoteBody {
    /// Format version.
    pub v: u32,
    /// Run key, in hex; a note may also stand alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// What sort: `remark`, `attachment`, `incident`, `mitigation`, ….
    pub topic: String,
    /// The text.
    pub text: String,
    /// Who.
    pub by: String,
    /// When, RFC 3339 UTC.
    pub recorded_at: String,
    /// Attached files: path and blob id.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Attachment>,
    /// Keys of other runs it links to, in hex.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<String>,
}

/// A file attached by a note.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Attachment {
    /// File name, escaped.
    pub path: String,
    /// Length in bytes.
    pub size_bytes: u64,
    /// Blob id, in hex.
    pub blob: String,
}

/// The body of a binding of a weight set to a model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BindingBody {
    /// Format version.
    pub v: u32,
    /// Weight set digest, in hex.
    pub weight_set: String,
    /// The model it is: `org/name`.
    pub model_id: String,
    /// Its revision.
    pub revision: String,
    /// Why the person is sure.
    pub because: String,
    /// Who.
    pub by: String,
    /// When, RFC 3339 UTC.
    pub recorded_at: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_reads_back_as_it_was_written() {
        let body = Body::Retraction(RetractionBody {
            v: BODY_VERSION,
            run: "ab".into(),
            reason: "2,437 output tokens a request against 512".into(),
            by: "lena".into(),
            recorded_at: "2026-08-11T00:00:00.000000Z".into(),
            replaced_by: None,
        });
        let bytes = body.to_bytes().unwrap();
        assert_eq!(Body::parse(&bytes).unwrap(), body);
        assert!(
            String::from_utf8_lossy(&bytes).starts_with(r#"{"by":"lena","kind":"retraction","#)
        );
    }

    #[test]
    fn a_leaf_is_canonical_json() {
        let id = EntryId::from_bytes([0; 32]);
        let text = leaf(&id, "run");
        let value: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(canonical::to_bytes(&value).unwrap(), text.as_bytes());
    }

    #[test]
    fn a_body_of_a_later_version_is_not_read_as_one_of_this() {
        assert!(Body::parse(br#"{"kind":"tea","v":1}"#).is_err());
        assert!(Body::parse(br#"{"by":"x","kind":"retraction","reason":"r","recorded_at":"t","run":"ab","sugar":1,"v":1}"#).is_err());
    }
}
