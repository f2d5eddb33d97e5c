//! Third step of a plan: manifest, artifacts and provenance become one entry body, or a list of
//! everything that stands against it. Weights come first: a run that carries metrics and cannot
//! prove them is rejected as unverified whatever else is right.

use super::extract::Extracted;
use super::files::{Document as RawDocument, Gathered, bytes_blob};
use super::{Plan, RecordError, RecordRequest, Refusal, RefusalClass, Surroundings};
use crate::adapter::{Fact, FactKind};
use crate::cell::Cell;
use crate::clock;
use crate::entry::{
    BODY_VERSION, Circumstances, Failure, Outcome, RunBody, Setting, StoredProvenance,
};
use crate::finding::{Code, Finding, Severity};
use crate::fingerprint::{FIELDS, UNKNOWN};
use crate::id::{BlobId, RunKey};
use crate::manifest::{self, Manifest};
use crate::metric::Statistic;
use crate::provenance::document::{self, Document};
use crate::provenance::naming::normalize;
use crate::provenance::verdict::{self, Claim, RunWindow, Verdict};
use crate::statement::{self, Assembled, Source, SourceKind, Statement, show};
use crate::summary::summarize;
use crate::tree::{Artifact, Tree};
use crate::validity;
use chrono::{DateTime, Duration, NaiveDateTime, Utc};
use serde_json::Value;
use std::collections::BTreeMap;

/// A measurement may be stamped this much ahead of the recording machine's clock.
const FUTURE_SLACK_S: i64 = 120;

/// When the run was measured, and where that was read.
struct MeasuredAt {
    at: DateTime<Utc>,
    source: String,
    caution: Option<Finding>,
}

/// Builds the plan.
pub(super) fn assemble(
    request: &RecordRequest,
    surroundings: &Surroundings<'_>,
    mut gathered: Gathered,
    mut extracted: Extracted,
) -> Result<Plan, RecordError> {
    let refuse = |findings| RecordError::Refused(Refusal::input(&request.source, findings));
    let mut findings = Vec::new();
    let manifest = read_manifest(request, &gathered, &mut findings);
    let documents = read_documents(&gathered.provenance, &mut findings);
    let subject = manifest.subject().map_err(|missing| missing_labels(&missing));
    let now = surroundings.clock.now();
    let is_failed = request.failed.is_some() || !has_metrics(&extracted.run.cells);
    let measured = read_time(request, &manifest, &extracted, (now, is_failed));
    let (subject, measured) = match (subject, measured) {
        (Ok(subject), Ok(measured)) if findings.is_empty() => (subject, measured),
        (subject, measured) => {
            findings.extend(subject.err().into_iter().flatten());
            findings.extend(measured.err());
            return Err(refuse(findings));
        }
    };
    if request.failed.is_some() && has_metrics(&extracted.run.cells) {
        let message = "attempt is declared as failed and its artifacts hold metrics; record it without `--failed`";
        return Err(refuse(vec![Finding::refusal(Code::FailedWithMetrics, "", message)]));
    }
    let verdict = prove(&documents, &manifest, surroundings, window(&measured, &extracted));
    let mut statements = gather_statements(request, &manifest, &extracted, &verdict);
    if is_failed {
        statements.extend(unknown_rest(&statements));
    }
    if !is_failed && !verdict.is_verified() {
        return Err(unverified(request, &verdict));
    }
    let assembled = statement::assemble(&statements).map_err(refuse)?;
    let identity = check_identity(&assembled);
    if !identity.is_empty() {
        return Err(refuse(identity));
    }
    let cautions = cautions(&extracted, &manifest, &assembled, &measured);
    let context = assembled.fingerprint.find("context.tokens").and_then(Value::as_u64);
    let mut validity_findings = validity::judge(&mut extracted.run.cells, context);
    let circumstances = circumstances(manifest.circumstances, &mut extracted);
    validity_findings.extend(validity::judge_circumstances(&circumstances));
    validity_findings.extend(cautions);
    if let Some((path, bytes)) = extracted.slice.take() {
        add_slice(&mut gathered, path, bytes);
    }
    // What the rules took out may have been all there was.
    let outcome =
        if has_metrics(&extracted.run.cells) { Outcome::Measured } else { Outcome::Failed };
    let failure = failure(request, manifest.failure, outcome, &validity_findings);
    let tree = Tree::new(gathered.artifacts.clone());
    let root = tree.root();
    let fingerprint_id = assembled
        .fingerprint
        .id()
        .map_err(|error| refuse(vec![Finding::refusal(Code::BadValue, "", error.to_string())]))?;
    let key = RunKey::derive(&root, &fingerprint_id);
    let body = RunBody {
        v: BODY_VERSION,
        key: key.to_string(),
        root: root.to_string(),
        fingerprint_id: fingerprint_id.to_string(),
        recorded_at: clock::stamp(now),
        tool: surroundings.tool.to_owned(),
        subject,
        fingerprint: assembled.fingerprint.to_json(),
        sources: assembled.sources,
        measured_at: clock::stamp(measured.at),
        measured_at_source: measured.source,
        server_start: documents.last().and_then(document::server_start),
        outcome,
        failure,
        provenance: stored_provenance(&gathered.provenance, &documents, &verdict),
        manifest: gathered
            .manifest
            .as_ref()
            .map(|document| BlobId::of(&document.bytes).to_string()),
        results: extracted.results,
        cells: extracted.run.cells.iter().map(summarize).collect(),
        labels: labels(&extracted.run.facts, &documents),
        observed: extracted
            .observations
            .iter()
            .flat_map(|observation| observation.observed.clone())
            .chain(extracted.run.observed)
            .collect(),
        circumstances,
        validity: validity::derive_validity(&extracted.run.cells, &validity_findings),
        findings: validity_findings,
        given_beside: given_beside(request),
        replaces: request.replaces.map(|key| key.to_string()),
    };
    Ok(Plan { source: request.source.clone(), key, body, blobs: gathered.into_blobs() })
}

/// What was given beside the manifest, so that the entry says what its fields followed from.
fn given_beside(request: &RecordRequest) -> Vec<String> {
    let labels = request.labels.iter().map(|(name, label)| format!("--{name} {label}"));
    let settings = request.settings.iter().map(|(path, value)| format!("--set {path}={value}"));
    let results = request.results.iter().map(|path| format!("--result {path}"));
    let others = [
        request.measured_at.as_ref().map(|time| format!("--measured-at {time}")),
        request.adapter.as_ref().map(|id| format!("--adapter {id}")),
        request.pick.map(|pick| format!("--pick {pick}")),
        request.failed.as_ref().map(|reason| format!("--failed {reason}")),
    ];
    labels.chain(settings).chain(results).chain(others.into_iter().flatten()).collect()
}

fn has_metrics(cells: &[Cell]) -> bool {
    cells.iter().any(|cell| {
        let completed_none = cell.requests.completed == Some(0);
        !completed_none && (!cell.metrics.is_empty() || !cell.items.is_empty())
    })
}

fn read_manifest(
    request: &RecordRequest,
    gathered: &Gathered,
    findings: &mut Vec<Finding>,
) -> Manifest {
    let mut manifest = Manifest::default();
    if let Some(document) = &gathered.manifest {
        match std::str::from_utf8(&document.bytes) {
            Ok(text) => match manifest::parse(&document.name, text) {
                Ok(parsed) => manifest = parsed,
                Err(found) => findings.extend(found),
            },
            Err(error) => findings.push(Finding::refusal(
                Code::BadEncoding,
                &document.name,
                format!("manifest is no UTF-8 from byte {}", error.valid_up_to()),
            )),
        }
    }
    for (name, label) in &request.labels {
        let stated = manifest.labels.insert(name.clone(), label.clone());
        if let Some(stated) = stated.filter(|stated| stated != label) {
            let message = format!("label `{name}` is stated differently by 2 sources");
            findings.push(
                Finding::refusal(Code::FieldDisagrees, name, message)
                    .with(stated, gathered.manifest.as_ref().map_or("", |document| &document.name))
                    .with(label, format!("--{name}")),
            );
        }
    }
    manifest
}

fn missing_labels(missing: &[&'static str]) -> Vec<Finding> {
    missing
        .iter()
        .map(|name| {
            let message =
                format!("label `{name}` is missing; give it in run.toml or with `--{name}`");
            Finding::refusal(Code::MissingField, *name, message)
        })
        .collect()
}

fn read_documents(raw: &[RawDocument], findings: &mut Vec<Finding>) -> Vec<Document> {
    let mut documents = Vec::new();
    for document in raw {
        match document::parse(&document.bytes) {
            Ok(parsed) => documents.push(parsed),
            Err(error) => {
                findings.push(Finding::refusal(Code::BadValue, &document.name, error.to_string()));
            }
        }
    }
    documents
}

/// Measurement time: what a person states, else what the artifacts state, else, for an attempt that
/// failed, the moment of recording.
fn read_time(
    request: &RecordRequest,
    manifest: &Manifest,
    extracted: &Extracted,
    (now, is_failed): (DateTime<Utc>, bool),
) -> Result<MeasuredAt, Finding> {
    let missing = |message: &str| Finding::refusal(Code::MissingField, "measured_at", message);
    let stated =
        request.measured_at.as_ref().map(|text| (text.clone(), "--measured-at".to_owned()));
    let stated = stated.or_else(|| manifest.measured_at.clone());
    let measured = if let Some((text, source)) = stated {
        let at = clock::parse(&text).map_err(|error| {
            Finding::refusal(
                Code::BadValue,
                "measured_at",
                format!("`{text}` is no RFC 3339 time: {error}"),
            )
        })?;
        MeasuredAt { at, source, caution: None }
    } else if let Some(text) = &extracted.run.measured_at {
        read_artifact_time(text, extracted).ok_or_else(|| {
            missing("the time in the artifacts cannot be read; give `measured_at`")
        })?
    } else if is_failed {
        MeasuredAt { at: now, source: "time of recording".to_owned(), caution: None }
    } else {
        return Err(missing(
            "`measured_at` is stated nowhere; give it in run.toml or with `--measured-at`",
        ));
    };
    let slack = if measured.caution.is_some() {
        Duration::hours(14)
    } else {
        Duration::seconds(FUTURE_SLACK_S)
    };
    if measured.at > now + slack {
        let message = format!("measurement time {} lies in the future", clock::stamp(measured.at));
        return Err(Finding::refusal(Code::FutureTime, "measured_at", message)
            .with(clock::stamp(measured.at), measured.source)
            .with(clock::stamp(now), "clock of this machine"));
    }
    Ok(measured)
}

fn read_artifact_time(text: &str, extracted: &Extracted) -> Option<MeasuredAt> {
    let source = extracted.results.first().map_or_else(String::new, |result| result.path.clone());
    if let Ok(at) = clock::parse(text) {
        return Some(MeasuredAt { at, source, caution: None });
    }
    let local = NaiveDateTime::parse_from_str(text, "%Y-%m-%dT%H:%M:%S%.f").ok()?;
    let message =
        format!("`{text}` is local time of a zone that the file does not name; read as UTC");
    let caution = Finding::new(Code::ReportsDisagree, Severity::Note, "measured_at", message);
    Some(MeasuredAt { at: local.and_utc(), source, caution: Some(caution) })
}

/// From the measurement time to the end of the longest cell. A file that gives no offset may be off
/// by its zone, so only the time that a person or an offset fixes is held against the process.
fn window(measured: &MeasuredAt, extracted: &Extracted) -> Option<RunWindow> {
    let longest = extracted
        .run
        .cells
        .iter()
        .filter_map(|cell| cell.find_metric("duration_s")?.given.get(&Statistic::Value))
        .map(|given| given.value)
        .filter(|seconds| seconds.is_finite() && *seconds >= 0.0)
        .fold(0.0, f64::max);
    let length = std::time::Duration::try_from_secs_f64(longest).ok()?;
    let ended = measured.at.checked_add_signed(Duration::from_std(length).ok()?)?;
    Some(RunWindow { started: measured.at, ended })
}

fn prove(
    documents: &[Document],
    manifest: &Manifest,
    surroundings: &Surroundings<'_>,
    window: Option<RunWindow>,
) -> Verdict {
    let stated = |path: &str| {
        let found = manifest.statements.iter().find(|statement| statement.path == path)?;
        let text = found.value.as_str().filter(|text| *text != UNKNOWN)?;
        Some(text.to_owned())
    };
    let proved = documents.last().and_then(|document| document.weights.first()?.hf.clone());
    let claim = Claim {
        model_id: stated("model.id").or_else(|| proved.map(|hf| hf.repo)),
        revision: stated("model.revision"),
    };
    verdict::check(documents, &claim, surroundings.bindings, window)
}

fn unverified(request: &RecordRequest, verdict: &Verdict) -> RecordError {
    let findings = verdict
        .failed_rules()
        .map(|rule| {
            let subject = format!("rule {}", rule.number);
            Finding::refusal(Code::ProvenanceRule, subject, rule.fact.clone())
        })
        .collect();
    RecordError::Refused(Refusal {
        source: request.source.clone(),
        class: RefusalClass::Unverified,
        findings,
    })
}

fn gather_statements(
    request: &RecordRequest,
    manifest: &Manifest,
    extracted: &Extracted,
    verdict: &Verdict,
) -> Vec<Statement> {
    let mut statements = manifest.statements.clone();
    statements.extend(request.settings.iter().map(|(path, text)| {
        let value = serde_json::from_str(text).unwrap_or_else(|_text| Value::String(text.clone()));
        let source = Source { kind: SourceKind::Declared, at: "--set".to_owned(), given: None };
        Statement { path: path.clone(), value, source }
    }));
    let facts = extracted.observations.iter().flat_map(|observation| &observation.facts);
    statements.extend(facts.chain(&extracted.run.facts).filter_map(stated_fact));
    if verdict.is_verified() {
        statements.extend(verdict.facts.iter().map(|fact| Statement {
            path: fact.path.to_owned(),
            value: fact.value.clone(),
            source: Source { kind: fact.kind, at: fact.at.clone(), given: None },
        }));
    }
    let mut statements: Vec<Statement> = statements.into_iter().map(normalized).collect();
    drop_overruled_defaults(&mut statements);
    statements
}

/// A default that follows from the absence of an argument gives way to anything that is written.
fn drop_overruled_defaults(statements: &mut Vec<Statement>) {
    let written: Vec<String> = statements
        .iter()
        .filter(|said| {
            said.source.kind != SourceKind::Derived && !crate::fingerprint::is_unknown(&said.value)
        })
        .map(|said| said.path.clone())
        .collect();
    statements
        .retain(|said| said.source.kind != SourceKind::Derived || !written.contains(&said.path));
}

fn stated_fact(fact: &Fact) -> Option<Statement> {
    let kind = match fact.kind {
        FactKind::Stated => SourceKind::Artifact,
        FactKind::Observed => SourceKind::Probe,
        FactKind::Requested | FactKind::Label => return None,
    };
    let source = Source { kind, at: fact.place.clone(), given: None };
    Some(Statement { path: fact.field.clone(), value: fact.value.clone(), source })
}

fn normalized(mut statement: Statement) -> Statement {
    let path = statement.path.clone();
    let value = match &statement.value {
        Value::String(text) => Value::String(normalize(&path, text)),
        Value::Array(items) => items
            .iter()
            .map(|item| {
                item.as_str().map_or_else(|| item.clone(), |text| normalize(&path, text).into())
            })
            .collect(),
        other => other.clone(),
    };
    if value != statement.value {
        statement.source.given = Some(std::mem::replace(&mut statement.value, value));
    }
    statement
}

/// A failed attempt need not know what it would have run on.
fn unknown_rest(statements: &[Statement]) -> Vec<Statement> {
    FIELDS
        .iter()
        .filter(|field| !statements.iter().any(|statement| statement.path == field.path))
        .map(|field| Statement {
            path: field.path.to_owned(),
            value: UNKNOWN.into(),
            source: Source {
                kind: SourceKind::Derived,
                at: "stated nowhere; the attempt failed".to_owned(),
                given: None,
            },
        })
        .collect()
}

fn check_identity(assembled: &Assembled) -> Vec<Finding> {
    let mut findings = Vec::new();
    let at = |path: &str| assembled.sources.get(path).map_or("", |source| source.at.as_str());
    let model = assembled.fingerprint.find_text("model.id").unwrap_or_default();
    if crate::provenance::naming::is_role_alias(model) {
        let message = format!("`{model}` is a role, not a model; name the model that was loaded");
        findings.push(
            Finding::refusal(Code::RoleAlias, "model.id", message).with(model, at("model.id")),
        );
    }
    let revision = assembled.fingerprint.find_text("model.revision").unwrap_or_default();
    if ["main", "master", "latest", "head", "dev"].contains(&revision.to_lowercase().as_str()) {
        let message = format!(
            "`{revision}` is a branch that moves, not a revision; state the commit or leave it to the provenance"
        );
        findings.push(
            Finding::refusal(Code::MovingRevision, "model.revision", message)
                .with(revision, at("model.revision")),
        );
    }
    findings
}

fn cautions(
    extracted: &Extracted,
    manifest: &Manifest,
    assembled: &Assembled,
    measured: &MeasuredAt,
) -> Vec<Finding> {
    let mut findings: Vec<Finding> = extracted.cautions.clone();
    findings.extend(extracted.run.cautions.clone());
    findings
        .extend(extracted.observations.iter().flat_map(|observation| observation.cautions.clone()));
    findings.extend(measured.caution.clone());
    findings.extend(requested_not_observed(extracted, assembled));
    findings.extend(label_differs(extracted, assembled));
    findings.extend(assembled.fingerprint.unknown_fields().into_iter().map(|path| {
        let message = format!("`{path}` is unknown; the run will not be comparable with any other");
        Finding::new(Code::UnknownField, Severity::Caution, path, message)
    }));
    findings.extend(capacity_differs(&manifest.circumstances));
    findings.extend(prompt_truncated(extracted));
    findings
}

/// An engine that evaluates fewer prompt tokens than were sent has cut the prompt, whatever it
/// answered: no quality can be read off such an answer.
fn prompt_truncated(extracted: &Extracted) -> Option<Finding> {
    let observations = extracted.observations.iter().map(|observation| &observation.observed);
    let find = |key: &str| {
        observations
            .clone()
            .chain([&extracted.run.observed])
            .find_map(|facts| facts.get(key)?.as_u64())
    };
    let (sent, evaluated) = (find("prompt_tokens_sent")?, find("prompt_tokens_evaluated")?);
    (evaluated < sent).then(|| {
        let message = format!("{sent} prompt tokens were sent, the engine evaluated {evaluated}");
        Finding::new(Code::PromptTruncated, Severity::Untrustworthy, "", message)
    })
}

fn requested_not_observed(extracted: &Extracted, assembled: &Assembled) -> Vec<Finding> {
    let facts = extracted.observations.iter().flat_map(|observation| &observation.facts);
    facts
        .chain(&extracted.run.facts)
        .filter(|fact| fact.kind == FactKind::Requested)
        .filter_map(|fact| {
            let effective = assembled.fingerprint.find(&fact.field)?;
            if crate::fingerprint::is_equal(effective, &fact.value) {
                return None;
            }
            let message = format!(
                "`{}` was asked for as {} and observed as {}",
                fact.field,
                show(&fact.value),
                show(effective)
            );
            let at = assembled.sources.get(&fact.field).map_or("", |source| source.at.as_str());
            Some(
                Finding::caution(Code::DeclaredNotObserved, &fact.field, message)
                    .with(show(&fact.value), &fact.place)
                    .with(show(effective), at),
            )
        })
        .collect()
}

fn label_differs(extracted: &Extracted, assembled: &Assembled) -> Option<Finding> {
    let model = assembled.fingerprint.find_text("model.id")?;
    let label = extracted.run.facts.iter().find(|fact| {
        fact.kind == FactKind::Label && fact.field == "model.id" && fact.value != model
    })?;
    let message = format!(
        "the client asked for `{}`, the weights are {model}; the name is a label",
        show(&label.value)
    );
    Some(
        Finding::new(Code::LabelDiffers, Severity::Note, "model.id", message)
            .with(show(&label.value), &label.place),
    )
}

fn capacity_differs(circumstances: &Circumstances) -> Option<Finding> {
    let floor = circumstances.reserve_floor_bytes?;
    let left = circumstances.headroom_bytes?;
    (left < floor).then(|| {
        let message = format!("{left} bytes were left after the workload, {floor} must stay free");
        Finding::caution(Code::CheckFailed, "headroom", message)
    })
}

fn circumstances(mut circumstances: Circumstances, extracted: &mut Extracted) -> Circumstances {
    circumstances.checks.append(&mut extracted.run.checks);
    let requested = |fact: &Fact| fact.kind == FactKind::Requested;
    for observation in &mut extracted.observations {
        circumstances.checks.append(&mut observation.checks);
        let state = observation.observed.get("cache_state").and_then(Value::as_str);
        circumstances.cache_state =
            circumstances.cache_state.take().or_else(|| state.map(str::to_owned));
        for fact in observation.facts.iter().filter(|fact| requested(fact)) {
            circumstances.settings.push(Setting {
                name: fact.field.clone(),
                requested: fact.value.clone(),
                effective: None,
                measured: Some("see the fingerprint".into()),
                at: Some(fact.place.clone()),
            });
        }
    }
    if circumstances.reasoning_counted.is_none() {
        circumstances.reasoning_counted =
            extracted.run.cells.iter().find_map(|cell| cell.tokens.reasoning_counted);
    }
    circumstances
}

fn failure(
    request: &RecordRequest,
    stated: Option<Failure>,
    outcome: Outcome,
    findings: &[Finding],
) -> Option<Failure> {
    if outcome == Outcome::Measured {
        return None;
    }
    let found = findings.iter().find(|finding| finding.severity == Severity::Untrustworthy);
    let reason = request
        .failed
        .clone()
        .or_else(|| found.map(|finding| finding.message.clone()))
        .unwrap_or_else(|| "no metric was measured".to_owned());
    let mut failure = stated.unwrap_or(Failure {
        reason: String::new(),
        cause: None,
        prompt_tokens: None,
        output_tokens: None,
        client: None,
    });
    if request.failed.is_some() || failure.reason.is_empty() {
        failure.reason = reason;
    }
    Some(failure)
}

fn add_slice(gathered: &mut Gathered, path: Vec<u8>, bytes: Vec<u8>) {
    let size_bytes = bytes.len() as u64;
    let blob = bytes_blob(bytes);
    gathered.artifacts.push(Artifact { path, size_bytes, blob: blob.id() });
    gathered.blobs.push(blob);
}

fn stored_provenance(
    raw: &[RawDocument],
    documents: &[Document],
    verdict: &Verdict,
) -> Option<StoredProvenance> {
    let last = documents.last()?;
    Some(StoredProvenance {
        documents: raw.iter().map(|document| BlobId::of(&document.bytes).to_string()).collect(),
        grade: verdict.grade.as_str().to_owned(),
        verified: verdict.is_verified(),
        requested: verdict.requested.clone().unwrap_or_default(),
        loaded: verdict.loaded.clone(),
        weight_set: verdict.weight_set.clone().unwrap_or_default(),
        labels: last.labels.served_names.clone(),
        bindings: verdict.bindings.clone(),
    })
}

fn labels(facts: &[Fact], documents: &[Document]) -> BTreeMap<String, Vec<String>> {
    let mut labels: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut add = |name: &str, value: String| {
        let values = labels.entry(name.to_owned()).or_default();
        if !values.contains(&value) {
            values.push(value);
        }
    };
    for fact in facts.iter().filter(|fact| fact.kind == FactKind::Label) {
        add(&fact.field, show(&fact.value));
    }
    for name in documents.iter().flat_map(|document| &document.labels.served_names) {
        add("served_name", name.clone());
    }
    labels
}
