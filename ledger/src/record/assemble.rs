//! Third step of a plan: manifest, artifacts and provenance become one entry body, or a list of
//! everything that stands against it. Weights come first: a run that carries metrics and cannot
//! prove them is rejected as unverified whatever else is right.

use super::cautions::cautions;
use super::extract::Extracted;
use super::files::{Document as RawDocument, Gathered, bytes_blob};
use super::measured::{MeasuredAt, read_time, window};
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
use crate::provenance::document::{self, Document};
use crate::provenance::naming::normalize;
use crate::provenance::verdict::{self, Claim, RunWindow, Verdict};
use crate::statement::{self, Assembled, Source, SourceKind, Statement, show};
use crate::subject::Subject;
use crate::summary::summarize;
use crate::tree::{Artifact, Tree};
use crate::validity;
use serde_json::Value;
use std::collections::BTreeMap;

/// Everything that stands fast before the entry is written.
pub(super) struct Settled {
    pub(super) documents: Vec<Document>,
    pub(super) subject: Subject,
    pub(super) measured: MeasuredAt,
    pub(super) verdict: Verdict,
    pub(super) assembled: Assembled,
    pub(super) manifest: Manifest,
}

/// Builds the plan.
pub(super) fn assemble(
    request: &RecordRequest,
    surroundings: &Surroundings<'_>,
    mut gathered: Gathered,
    mut extracted: Extracted,
) -> Result<Plan, RecordError> {
    let mut settled = settle(request, surroundings, &gathered, &extracted)?;
    let cautions = cautions(&extracted, &settled);
    let context = settled.assembled.fingerprint.find("context.tokens").and_then(Value::as_u64);
    let mut findings = validity::judge(&mut extracted.run.cells, context);
    let told = std::mem::take(&mut settled.manifest.circumstances);
    let circumstances = circumstances(told, &mut extracted);
    findings.extend(validity::judge_circumstances(&circumstances));
    findings.extend(cautions);
    if let Some((path, bytes)) = extracted.slice.take() {
        add_slice(&mut gathered, path, bytes);
    }
    let body =
        body(request, surroundings, &gathered, extracted, settled, (circumstances, findings))?;
    let key = body
        .key
        .parse()
        .map_err(|_bad| refuse(request, Code::IdentityWrong, "run key is no id"))?;
    Ok(Plan { source: request.source.clone(), key, body, blobs: gathered.into_blobs() })
}

fn refuse(request: &RecordRequest, code: Code, message: &str) -> RecordError {
    refuse_all(request, vec![Finding::refusal(code, "", message)])
}

fn refuse_all(request: &RecordRequest, findings: Vec<Finding>) -> RecordError {
    RecordError::Refused(Refusal::input(&request.source, findings))
}

/// Reads what people and documents say, and refuses in this order: what cannot be read, a failed
/// attempt with metrics, weights that are not proved, fields that disagree or are missing.
fn settle(
    request: &RecordRequest,
    surroundings: &Surroundings<'_>,
    gathered: &Gathered,
    extracted: &Extracted,
) -> Result<Settled, RecordError> {
    let mut findings = Vec::new();
    let manifest = read_manifest(request, gathered, &mut findings);
    let documents = read_documents(&gathered.provenance, &mut findings);
    let has_metrics = has_metrics(&extracted.run.cells);
    let is_failed = request.failed.is_some() || !has_metrics;
    let now = surroundings.clock.now();
    let subject = manifest.subject().map_err(|missing| missing_labels(&missing));
    let measured = read_time(request, &manifest, extracted, (now, is_failed));
    let (subject, measured) = match (subject, measured) {
        (Ok(subject), Ok(measured)) if findings.is_empty() => (subject, measured),
        (subject, measured) => {
            findings.extend(subject.err().into_iter().flatten());
            findings.extend(measured.err());
            return Err(refuse_all(request, findings));
        }
    };
    if request.failed.is_some() && has_metrics {
        let message = "attempt is declared as failed and its artifacts hold metrics; record it without `--failed`";
        return Err(refuse(request, Code::FailedWithMetrics, message));
    }
    let verdict = prove(&documents, &manifest, surroundings, window(&measured, extracted));
    if !is_failed && !verdict.is_verified() {
        return Err(unverified(request, &verdict));
    }
    let mut statements = gather_statements(request, &manifest, extracted, &verdict);
    if is_failed {
        statements.extend(unknown_rest(&statements));
    }
    let assembled = statement::assemble(&statements).map_err(|found| refuse_all(request, found))?;
    let identity = check_identity(&assembled);
    if !identity.is_empty() {
        return Err(refuse_all(request, identity));
    }
    Ok(Settled { documents, subject, measured, verdict, assembled, manifest })
}

fn body(
    request: &RecordRequest,
    surroundings: &Surroundings<'_>,
    gathered: &Gathered,
    extracted: Extracted,
    settled: Settled,
    (circumstances, findings): (Circumstances, Vec<Finding>),
) -> Result<RunBody, RecordError> {
    let Settled { documents, subject, measured, verdict, assembled, manifest } = settled;
    // What the rules took out may have been all there was.
    let outcome =
        if has_metrics(&extracted.run.cells) { Outcome::Measured } else { Outcome::Failed };
    let fingerprint_id = assembled.fingerprint.id();
    let fingerprint_id =
        fingerprint_id.map_err(|error| refuse(request, Code::BadValue, &error.to_string()))?;
    let root = Tree::new(gathered.artifacts.clone()).root();
    let observations =
        extracted.observations.iter().flat_map(|observation| observation.observed.clone());
    Ok(RunBody {
        v: BODY_VERSION,
        key: RunKey::derive(&root, &fingerprint_id).to_string(),
        root: root.to_string(),
        fingerprint_id: fingerprint_id.to_string(),
        recorded_at: clock::stamp(surroundings.clock.now()),
        tool: surroundings.tool.to_owned(),
        subject,
        fingerprint: assembled.fingerprint.to_json(),
        sources: assembled.sources,
        measured_at: clock::stamp(measured.at),
        measured_at_source: measured.source,
        server_start: documents.last().and_then(document::server_start),
        outcome,
        failure: failure(request, manifest.failure, outcome, &findings),
        provenance: stored_provenance(&gathered.provenance, &documents, &verdict),
        manifest: gathered
            .manifest
            .as_ref()
            .map(|document| BlobId::of(&document.bytes).to_string()),
        results: extracted.results,
        cells: extracted.run.cells.iter().map(summarize).collect(),
        labels: labels(&extracted.run.facts, &documents),
        observed: observations.chain(extracted.run.observed).collect(),
        circumstances,
        validity: validity::derive_validity(&extracted.run.cells, &findings),
        findings,
        given_beside: given_beside(request),
        replaces: request.replaces.map(|key| key.to_string()),
    })
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
    let text = |value: &Value| {
        value.as_str().map_or_else(|| value.clone(), |text| normalize(&path, text).into())
    };
    let value = match statement.value.as_array() {
        Some(items) => items.iter().map(text).collect(),
        None => text(&statement.value),
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
