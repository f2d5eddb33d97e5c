//! What the ledger has to say about evidence: every refusal, caution and damage is a list of
//! findings, each with a stable code, the thing it concerns, the values and where each was read.
//! Findings are data; the command line renders them. Codes are listed in schema/README.md and a
//! test keeps the two equal.

use serde::{Deserialize, Serialize};
use std::fmt;

macro_rules! codes {
    ($($(#[$doc:meta])* $variant:ident = $text:literal,)*) => {
        /// The stable name of a kind of finding.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum Code {
            $($(#[$doc])* #[serde(rename = $text)] $variant,)*
        }

        impl Code {
            /// Every code, in the order of their declaration.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// Returns the kebab-case name.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }
        }
    };
}

codes! {
    /// A value could not be represented: NaN or infinity where a measurement belongs.
    NonFiniteValue = "non-finite-value",
    /// The file holds bare `NaN` or `Infinity` tokens, read as missing or unbounded.
    NonFiniteTokens = "non-finite-tokens",
    /// Text stands before the first record of a result file.
    LeadingText = "leading-text",
    /// Text stands after the last record of a result file.
    TrailingText = "trailing-text",
    /// The output shows that the process crashed or was killed.
    ProcessEndedAbnormally = "process-ended-abnormally",
    /// The last record of the file is cut; complete records before it are kept.
    TruncatedRecord = "truncated-record",
    /// The file names no usable engine build.
    EngineBuildUnknown = "engine-build-unknown",
    /// No request completed.
    NoRequestCompleted = "no-request-completed",
    /// Every answer was empty.
    EmptyAnswers = "empty-answers",
    /// Some requests failed or were cancelled.
    RequestsFailed = "requests-failed",
    /// Fewer than 95 % of the requests completed.
    CompletionBelowLimit = "completion-below-limit",
    /// Output tokens are zero where text was expected.
    NoOutputTokens = "no-output-tokens",
    /// TTFT is zero or equals end-to-end latency: the answer was not streamed.
    NotStreamed = "not-streamed",
    /// A request ran away into the context ceiling or far beyond the others.
    RunawayRequest = "runaway-request",
    /// Answers were cut at the token limit.
    TruncatedAnswers = "truncated-answers",
    /// A time or a rate is negative.
    NegativeValue = "negative-value",
    /// One sample only: a point, not a spread.
    OneSample = "one-sample",
    /// The spread that the harness printed for one repetition is unknown, not zero.
    SpreadUnknown = "spread-unknown",
    /// A preflight failed and the run was forced.
    Forced = "forced",
    /// A preflight passed with warnings.
    PreflightWarned = "preflight-warned",
    /// Tokens arrived before the first visible chunk: hidden reasoning.
    TokensWithoutChunks = "tokens-without-chunks",
    /// TPOT lies far below ITL, which is possible only if tokens were not streamed one by one.
    TpotBelowItl = "tpot-below-itl",
    /// A statistic that the harness printed disagrees with the samples beside it.
    StatisticDisagrees = "statistic-disagrees",
    /// The statistic is the harness's own; the file holds no samples to recompute it.
    GivenNotComputed = "given-not-computed",
    /// The workload was served from a warm prefix cache.
    WarmCache = "warm-cache",
    /// Nothing shows whether the prefix cache was warm.
    CacheStateUnknown = "cache-state-unknown",
    /// A declared setting was not the one observed.
    DeclaredNotObserved = "declared-not-observed",
    /// A requested setting has no measured effect yet.
    EffectUnverified = "effect-unverified",
    /// A requested setting was replaced by another value.
    RequestedNotEffective = "requested-not-effective",
    /// Clocks fell during the run.
    ClockDrift = "clock-drift",
    /// The engine evaluated fewer prompt tokens than were sent.
    PromptTruncated = "prompt-truncated",
    /// An answer reached the output limit.
    OutputLimitReached = "output-limit-reached",
    /// Prompt tokens planned and prompt tokens seen differ by more than 2 %.
    PlannedNotActual = "planned-not-actual",
    /// The same prompt length repeats far beyond chance: a retry loop.
    RetryLoop = "retry-loop",
    /// Another run holds the same measurement in other bytes.
    SameMeasurement = "same-measurement",
    /// The file was not UTF-8 and was read as what its mark says.
    EncodingConverted = "encoding-converted",
    /// A fingerprint field is unknown and will be comparable with nothing.
    UnknownField = "unknown-field",
    /// The label that a client or harness was given differs from the model id.
    LabelDiffers = "label-differs",
    /// The identity of the model is taken from a file name only.
    IdentityFromFileName = "identity-from-file-name",
    /// The requested and the loaded weights differ, or nothing proves which were loaded.
    WeightsUnverified = "weights-unverified",
    /// A reported value contradicts another reported value.
    ReportsDisagree = "reports-disagree",
    /// Only a part of the planned work was run.
    PartialRun = "partial-run",
    /// A value is meaningless by its own definition and was left out.
    ValueLeftOut = "value-left-out",
    /// A host incident lies near the run.
    HostIncident = "host-incident",
    /// A check of the run failed.
    CheckFailed = "check-failed",
    /// The run is an incident with repairs and no latency evidence.
    IncidentTime = "incident-time",
    /// The measurement is diagnostic and cannot rank.
    DiagnosticOnly = "diagnostic-only",

    /// A key of the manifest is not known.
    UnknownKey = "unknown-key",
    /// A required field is missing.
    MissingField = "missing-field",
    /// A value has the wrong type or form.
    BadValue = "bad-value",
    /// Two sources state the same field differently.
    FieldDisagrees = "field-disagrees",
    /// No file of the folder is a result that an adapter knows.
    NoResult = "no-result",
    /// A file reads as several formats.
    FormatAmbiguous = "format-ambiguous",
    /// A file holds several runs, and none was chosen.
    RunsAmbiguous = "runs-ambiguous",
    /// A file claims to be text of an encoding and is not.
    BadEncoding = "bad-encoding",
    /// A file is cut in the middle of its text.
    TruncatedText = "truncated-text",
    /// A file is not what its format demands.
    MalformedResult = "malformed-result",
    /// The folder holds no file.
    EmptyFolder = "empty-folder",
    /// An empty artifact after a successful exit.
    EmptyArtifact = "empty-artifact",
    /// A link leads out of the folder or to nothing.
    LinkLeaves = "link-leaves",
    /// A device, socket or fifo stands where a file belongs.
    SpecialFile = "special-file",
    /// A file changed while it was read.
    FileChanged = "file-changed",
    /// The measurement time lies in the future.
    FutureTime = "future-time",
    /// A role alias stands where a physical model id belongs.
    RoleAlias = "role-alias",
    /// A revision is a branch name.
    MovingRevision = "moving-revision",
    /// A setting was inferred from a measured ratio.
    InferredSetting = "inferred-setting",
    /// An artifact is already the evidence of another run.
    ArtifactClaimed = "artifact-claimed",
    /// The same run is recorded under another subject.
    SubjectDiffers = "subject-differs",
    /// A check that cannot fail stands where evidence is expected.
    VacuousCheck = "vacuous-check",
    /// A rule of weight provenance failed.
    ProvenanceRule = "provenance-rule",
    /// Metrics stand beside a declaration that the attempt failed.
    FailedWithMetrics = "failed-with-metrics",
    /// A server start is named by a run that started before or outlived it.
    StartMismatch = "start-mismatch",

    /// Stored bytes do not hash to their name.
    BlobAltered = "blob-altered",
    /// Stored bytes are gone.
    BlobMissing = "blob-missing",
    /// The stored form of an object is not the one that was written.
    StoredFormAltered = "stored-form-altered",
    /// An entry body does not hash to its id or is not canonical.
    EntryAltered = "entry-altered",
    /// The sequence of entries has a hole.
    EntryGone = "entry-gone",
    /// A node of the Merkle tree is not the hash of its children.
    TreeAltered = "tree-altered",
    /// A stored tree head is not the root of its size.
    HeadAltered = "head-altered",
    /// An identity inside an entry does not follow from what it names.
    IdentityWrong = "identity-wrong",
    /// The database schema is not the one of this version.
    SchemaAltered = "schema-altered",
    /// The index differs from what the log yields.
    IndexStale = "index-stale",
    /// A metric extracted again is not the recorded one.
    MetricDiffers = "metric-differs",
    /// An adapter of the recorded version is no longer here.
    AdapterGone = "adapter-gone",
    /// An object file can be written to.
    ObjectWritable = "object-writable",
    /// SQLite finds its own structure damaged.
    DatabaseDamaged = "database-damaged",
    /// A file lies in the object store and no blob names it.
    StrayFile = "stray-file",
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How much a finding weighs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// A fact worth a line; changes no verdict.
    Note,
    /// Shown beside every number it concerns.
    Caution,
    /// Keeps the run, the cell or the metric out of comparisons.
    Untrustworthy,
    /// Nothing is stored.
    Refusal,
}

/// One value of a finding and where it was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sourced {
    /// The value as text.
    pub value: String,
    /// Where it stands: `run.toml:9`, `argument --tp of pid 4121`.
    pub source: String,
}

/// One thing the ledger found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Finding {
    /// What kind it is.
    pub code: Code,
    /// How much it weighs.
    pub severity: Severity,
    /// What it concerns: a field, a file, a cell (`concurrency=16`), a metric
    /// (`ttft_ms@concurrency=16`); empty for the whole run.
    pub subject: String,
    /// One sentence without a final period, with the values that matter.
    pub message: String,
    /// The values that clash or were found, each with its source; may be empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<Sourced>,
}

impl Finding {
    /// Makes a finding without values.
    pub fn new(
        code: Code,
        severity: Severity,
        subject: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        Self {
            code,
            severity,
            subject: subject.into(),
            message: message.into(),
            values: Vec::new(),
        }
    }

    /// Makes a refusal.
    pub fn refusal(code: Code, subject: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(code, Severity::Refusal, subject, message)
    }

    /// Makes a caution.
    pub fn caution(code: Code, subject: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(code, Severity::Caution, subject, message)
    }

    /// Adds a value and where it was read.
    #[must_use]
    pub fn with(mut self, value: impl Into<String>, source: impl Into<String>) -> Self {
        self.values.push(Sourced { value: value.into(), source: source.into() });
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_kebab_case_and_unique() {
        let mut seen = std::collections::BTreeSet::new();
        for code in Code::ALL {
            let text = code.as_str();
            assert!(seen.insert(text), "{text} stands twice");
            assert!(text.chars().all(|c| c.is_ascii_lowercase() || c == '-'), "{text}");
        }
    }
}
