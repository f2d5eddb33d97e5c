//! The five rules of design section 5, as pure functions over documents. Each rule says pass or fail
//! and the fact behind it; nothing is verified unless all five hold.

use super::argv::read_arguments;
use super::document::{Document, Seen, WeightFile, weight_set};
use super::naming::{find_proxy, is_role_alias, names_model, normalize};
use crate::entry::BindingBody;
use crate::statement::SourceKind;
use chrono::{DateTime, Duration, Utc};
use serde_json::Value;

/// How strong the evidence is; derived, never typed in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Grade {
    /// Nothing is known.
    None,
    /// Names only.
    Labelled,
    /// Command line and cache layout name files that are hashed and older than the process.
    Resolved,
    /// The hashed files were seen mapped.
    Mapped,
    /// The engine's own tensor digests equal the hashed files.
    Memory,
}

impl Grade {
    /// Returns the name that is stored.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Labelled => "labelled",
            Self::Resolved => "resolved",
            Self::Mapped => "mapped",
            Self::Memory => "memory",
        }
    }
}

/// What a run claims about its weights.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Claim {
    /// The model id it is recorded under.
    pub model_id: Option<String>,
    /// The revision it states, if it states one.
    pub revision: Option<String>,
}

/// When the run was measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunWindow {
    /// Its start.
    pub started: DateTime<Utc>,
    /// Its end, as far as it is known.
    pub ended: DateTime<Utc>,
}

/// One rule and what came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleResult {
    /// Number of the rule in design section 5.
    pub number: u8,
    /// Whether it holds.
    pub passed: bool,
    /// The fact behind it.
    pub fact: String,
}

/// A fingerprint field that the document proves.
#[derive(Debug, Clone, PartialEq)]
pub struct ProvedFact {
    /// Path of the field.
    pub path: &'static str,
    /// Its value, normalized.
    pub value: Value,
    /// What sort of place it was read from.
    pub kind: SourceKind,
    /// The place.
    pub at: String,
}

/// What the documents prove.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// Grade of the evidence.
    pub grade: Grade,
    /// The five rules.
    pub rules: Vec<RuleResult>,
    /// The model id asked for.
    pub requested: Option<String>,
    /// Names of what was loaded: the snapshot, or the weight files.
    pub loaded: Vec<String>,
    /// Digest of the weight set.
    pub weight_set: Option<String>,
    /// Entry ids of the bindings that rule 4 relied on.
    pub bindings: Vec<String>,
    /// Fingerprint fields it proves.
    pub facts: Vec<ProvedFact>,
}

impl Verdict {
    /// True when all five rules hold.
    pub fn is_verified(&self) -> bool {
        self.rules.iter().all(|rule| rule.passed)
    }

    /// Returns the rules that do not hold.
    pub fn failed_rules(&self) -> impl Iterator<Item = &RuleResult> {
        self.rules.iter().filter(|rule| !rule.passed)
    }
}

/// Seconds by which two clocks' roundings may differ (`/proc` counts starts in hundredths, and boot
/// time is known to a second).
const CLOCK_SLACK_S: i64 = 2;

/// Checks one document, or one captured before and one after the run.
///
/// `documents` is in the order of capture and not empty; the last one is the proof that is quoted.
pub fn check(
    documents: &[Document],
    claim: &Claim,
    bindings: &[(String, BindingBody)],
    window: Option<RunWindow>,
) -> Verdict {
    let Some(document) = documents.last() else {
        return no_document(claim);
    };
    let set = weight_set(document);
    let (naming, relied_on) = check_naming(document, claim, bindings, set.as_deref());
    let rules = vec![
        check_process(document),
        check_listener(document),
        check_digests(document),
        naming,
        check_times(documents, window),
    ];
    Verdict {
        grade: derive_grade(document),
        rules,
        requested: claim.model_id.clone(),
        loaded: loaded_names(document),
        facts: proved_facts(document, set.as_deref()),
        weight_set: set,
        bindings: relied_on,
    }
}

fn no_document(claim: &Claim) -> Verdict {
    let fact = "there is no provenance document: nothing shows which weights were loaded";
    let rule = |number| RuleResult { number, passed: false, fact: fact.to_owned() };
    Verdict {
        grade: Grade::None,
        rules: vec![rule(1)],
        requested: claim.model_id.clone(),
        loaded: Vec::new(),
        weight_set: None,
        bindings: Vec::new(),
        facts: Vec::new(),
    }
}

fn rule(number: u8, outcome: Result<String, String>) -> RuleResult {
    let passed = outcome.is_ok();
    RuleResult { number, passed, fact: outcome.unwrap_or_else(|fact| fact) }
}

fn check_process(document: &Document) -> RuleResult {
    let outcome = match &document.process {
        None => {
            Err("document names no process: an HTTP answer or a served name is a label".to_owned())
        }
        Some(process) if process.argv.is_empty() && process.exe.is_empty() => {
            Err(format!("pid {} has neither executable nor command line", process.pid))
        }
        Some(process) => Ok(format!(
            "pid {} runs `{}` since {}",
            process.pid,
            process.exe,
            crate::clock::stamp(process.started_at)
        )),
    };
    rule(1, outcome)
}

fn check_listener(document: &Document) -> RuleResult {
    let Some(process) = &document.process else {
        return rule(2, Err("no process holds weights".to_owned()));
    };
    let mut with_exe = process.argv.clone();
    if with_exe.is_empty() {
        with_exe.push(process.exe.clone());
    }
    let exe = [process.exe.clone()];
    if let Some(proxy) = find_proxy(&with_exe).or_else(|| find_proxy(&exe)) {
        return rule(
            2,
            Err(format!(
                "pid {} is `{proxy}`: it passes requests on and loads nothing; capture the worker behind it",
                process.pid
            )),
        );
    }
    let outcome = match &document.listener {
        None => Ok(format!("no port: pid {} was observed itself", process.pid)),
        Some(listener) if listener.pid == process.pid => {
            Ok(format!("pid {} listens on port {}", process.pid, listener.port))
        }
        Some(listener) => Err(format!(
            "pid {} listens on port {}, pid {} holds the weights: the listener is a proxy or a router",
            listener.pid, listener.port, process.pid
        )),
    };
    rule(2, outcome)
}

fn is_digest(text: &str) -> bool {
    crate::id::from_hex(text).is_ok()
}

fn check_digests(document: &Document) -> RuleResult {
    if document.weights.is_empty() {
        return rule(3, Err("no weight file was found".to_owned()));
    }
    let replaced: Vec<&str> = document
        .weights
        .iter()
        .filter(|file| file.replaced == Some(true))
        .map(WeightFile::file_name)
        .collect();
    if !replaced.is_empty() {
        return rule(
            3,
            Err(format!("{} was replaced on disk after it was loaded", replaced.join(", "))),
        );
    }
    let hashed = document
        .weights
        .iter()
        .filter(|file| file.blake3.as_deref().is_some_and(is_digest))
        .count();
    let young: Vec<&str> = document
        .weights
        .iter()
        .filter(|file| file.seen != Seen::Mapped && !is_older(document, file))
        .map(WeightFile::file_name)
        .collect();
    if !young.is_empty() {
        let names = young.join(", ");
        return rule(
            3,
            Err(format!(
                "{names} changed after the process started and was not seen mapped: its name proves nothing"
            )),
        );
    }
    let outcome = if hashed == document.weights.len() {
        Ok(format!("{hashed} of {hashed} weight files are hashed"))
    } else {
        Err(format!("{hashed} of {} weight files are hashed", document.weights.len()))
    };
    rule(3, outcome)
}

/// Names of what was loaded, as people compare them with what was asked for.
fn loaded_names(document: &Document) -> Vec<String> {
    let mut names: Vec<String> = document
        .weights
        .iter()
        .map(|file| {
            file.hf.as_ref().map_or_else(|| file.file_name().to_owned(), |hf| hf.repo.clone())
        })
        .collect();
    names.sort();
    names.dedup();
    names
}

fn check_naming(
    document: &Document,
    claim: &Claim,
    bindings: &[(String, BindingBody)],
    set: Option<&str>,
) -> (RuleResult, Vec<String>) {
    let Some(requested) = &claim.model_id else {
        return (rule(4, Err("no model id is claimed".to_owned())), Vec::new());
    };
    if is_role_alias(requested) {
        let fact = format!("`{requested}` is a role, not a model: name the model that was loaded");
        return (rule(4, Err(fact)), Vec::new());
    }
    let bound = bindings.iter().find(|(_, binding)| {
        Some(binding.weight_set.as_str()) == set
            && binding.model_id == *requested
            && claim
                .revision
                .as_ref()
                .is_none_or(|revision| *revision == binding.revision || is_set(revision, set))
    });
    if let Some((entry, binding)) = bound {
        let fact = format!(
            "{} bound this weight set to {}@{}",
            binding.by, binding.model_id, binding.revision
        );
        return (rule(4, Ok(fact)), vec![entry.clone()]);
    }
    (rule(4, check_names(document, requested, claim.revision.as_deref(), set)), Vec::new())
}

fn is_set(revision: &str, set: Option<&str>) -> bool {
    revision.strip_prefix("b3:").is_some_and(|digest| Some(digest) == set)
}

fn check_names(
    document: &Document,
    requested: &str,
    revision: Option<&str>,
    set: Option<&str>,
) -> Result<String, String> {
    let mismatch =
        || Err(format!("requested {requested}, loaded {}", loaded_names(document).join(", ")));
    let mut snapshots: Vec<_> =
        document.weights.iter().filter_map(|file| file.hf.as_ref()).collect();
    snapshots.sort();
    snapshots.dedup();
    match snapshots.as_slice() {
        [] => {}
        [snapshot] if document.weights.iter().all(|file| file.hf.is_some()) => {
            return if snapshot.repo != requested {
                mismatch()
            } else if revision
                .is_some_and(|revision| revision != snapshot.commit && !is_set(revision, set))
            {
                let stated = revision.unwrap_or_default();
                Err(format!("revision {stated} is stated, the snapshot is {}", snapshot.commit))
            } else {
                Ok(format!("snapshot of {} at {}", snapshot.repo, snapshot.commit))
            };
        }
        _ => {
            return Err(format!(
                "weights come from several snapshots: {}",
                loaded_names(document).join(", ")
            ));
        }
    }
    let names = |file: &WeightFile| {
        let stem = file.file_name();
        let header = file.header.as_ref().and_then(|header| header.name.as_deref());
        names_model(requested, stem)
            || folder_names(requested, &file.path)
            || header.is_some_and(|name| names_model(requested, name))
    };
    if document.weights.is_empty() || !document.weights.iter().all(names) {
        return mismatch();
    }
    match revision {
        Some(revision) if !is_set(revision, set) => Err(format!(
            "revision {revision} is stated; of files without a snapshot it is b3:{}",
            set.unwrap_or("(not hashed)")
        )),
        _ => Ok(format!("{} names {requested}", loaded_names(document).join(", "))),
    }
}

/// Shards have names of their own (`model-00001-of-00004.safetensors`); their folder names the model.
fn folder_names(requested: &str, path: &str) -> bool {
    let mut parts = path.rsplit('/');
    let file = parts.next().unwrap_or_default();
    let is_generic = file.starts_with("model")
        || file.starts_with("pytorch_model")
        || file.starts_with("consolidated");
    is_generic && parts.next().is_some_and(|folder| names_model(requested, folder))
}

fn check_times(documents: &[Document], window: Option<RunWindow>) -> RuleResult {
    let processes: Vec<_> = documents.iter().map(|document| document.process.as_ref()).collect();
    let Some(Some(first)) = processes.first() else {
        return rule(5, Err("no process whose time could be compared".to_owned()));
    };
    for (document, process) in documents.iter().zip(&processes) {
        let Some(process) = process else { continue };
        let is_same = process.pid == first.pid
            && process.started_at == first.started_at
            && Some(&document.host.boot_id)
                == documents.first().map(|document| &document.host.boot_id);
        if !is_same {
            return rule(
                5,
                Err(format!(
                    "the process restarted between the captures: pid {} started {}, then pid {} started {}",
                    first.pid,
                    crate::clock::stamp(first.started_at),
                    process.pid,
                    crate::clock::stamp(process.started_at)
                )),
            );
        }
    }
    if let [before, .., after] = documents
        && weight_set(before) != weight_set(after)
    {
        return rule(5, Err("the weight files changed between the captures".to_owned()));
    }
    rule(5, check_window(documents, first.started_at, window))
}

fn check_window(
    documents: &[Document],
    started: DateTime<Utc>,
    window: Option<RunWindow>,
) -> Result<String, String> {
    let Some(window) = window else { return Err("the time of the run is not known".to_owned()) };
    let slack = Duration::seconds(CLOCK_SLACK_S);
    if started > window.started + slack {
        return Err(format!(
            "the process started {}, after the run of {}",
            crate::clock::stamp(started),
            crate::clock::stamp(window.started)
        ));
    }
    let last = documents.iter().map(|document| document.captured_at).max().unwrap_or(started);
    if last + slack < window.ended {
        return Err(format!(
            "the last capture is of {}, before the run ended at {}: nothing shows that the process outlived it",
            crate::clock::stamp(last),
            crate::clock::stamp(window.ended)
        ));
    }
    Ok(format!(
        "the process ran from {} to at least {}",
        crate::clock::stamp(started),
        crate::clock::stamp(last)
    ))
}

/// True unless a file is known to have changed after the process started.
fn is_older(document: &Document, file: &WeightFile) -> bool {
    document
        .process
        .as_ref()
        .zip(file.changed_at)
        .is_none_or(|(process, changed)| changed <= process.started_at)
}

fn derive_grade(document: &Document) -> Grade {
    if document.process.is_none() {
        let has_labels = !document.labels.served_names.is_empty();
        return if has_labels { Grade::Labelled } else { Grade::None };
    }
    let files = &document.weights;
    let all = |holds: &dyn Fn(&WeightFile) -> bool| !files.is_empty() && files.iter().all(holds);
    let is_hashed = |file: &WeightFile| {
        file.blake3.as_deref().is_some_and(is_digest) && file.replaced != Some(true)
    };
    if !all(&is_hashed) {
        return Grade::Labelled;
    }
    let digests = document.memory_digests.as_ref();
    if digests.is_some_and(|digests| {
        digests.total_bytes > 0 && digests.matched_bytes == digests.total_bytes
    }) {
        Grade::Memory
    } else if all(&|file| file.seen == Seen::Mapped) {
        Grade::Mapped
    } else if all(&|file| is_older(document, file)) {
        Grade::Resolved
    } else {
        Grade::Labelled
    }
}

fn proved_facts(document: &Document, set: Option<&str>) -> Vec<ProvedFact> {
    let mut facts = Vec::new();
    let mut push = |path, value: Value, kind, at: &str| {
        facts.push(ProvedFact { path, value, kind, at: at.to_owned() });
    };
    let snapshot = document.weights.first().and_then(|file| file.hf.as_ref());
    if let Some(snapshot) = snapshot {
        push("model.id", snapshot.repo.as_str().into(), SourceKind::Probe, "provenance weights.hf");
        push(
            "model.revision",
            snapshot.commit.as_str().into(),
            SourceKind::Probe,
            "provenance weights.hf",
        );
    } else if let Some(set) = set {
        push("model.revision", format!("b3:{set}").into(), SourceKind::Probe, "provenance weights");
    }
    let engine = &document.engine;
    for (path, value) in [
        ("engine.name", &engine.name),
        ("engine.version", &engine.version),
        ("engine.digest", &engine.digest),
    ] {
        if let Some(value) = value {
            push(path, normalize(path, value).into(), SourceKind::Probe, "provenance engine");
        }
    }
    let quant = document.weights.first().and_then(|file| file.header.as_ref()?.quant.as_deref());
    let stated =
        document.process.as_ref().map(|process| read_arguments(&process.argv)).unwrap_or_default();
    if let Some(quant) = quant.filter(|_| !stated.iter().any(|fact| fact.path == "quant.weights")) {
        push(
            "quant.weights",
            normalize("quant.weights", quant).into(),
            SourceKind::Probe,
            "provenance weights.header",
        );
    }
    let pid = document.process.as_ref().map_or(0, |process| process.pid);
    for fact in stated {
        let value = fact
            .value
            .as_str()
            .map_or_else(|| fact.value.clone(), |text| normalize(fact.path, text).into());
        match fact.option {
            Some(option) => push(
                fact.path,
                value,
                SourceKind::CommandLine,
                &format!("argument {option} of pid {pid}"),
            ),
            None => push(
                fact.path,
                value,
                SourceKind::Derived,
                &format!("default: no such argument of pid {pid}"),
            ),
        }
    }
    facts.extend(machine_facts(document));
    facts
}

fn machine_facts(document: &Document) -> Vec<ProvedFact> {
    let cards = &document.accelerators;
    let fact = |path, value| ProvedFact {
        path,
        value,
        kind: SourceKind::Probe,
        at: "provenance accelerators".to_owned(),
    };
    if cards.is_empty() {
        return document.host.cpu.as_ref().map_or_else(Vec::new, |cpu| {
            vec![
                fact("topology.accelerators", Value::from(vec![format!("cpu:{cpu}")])),
                fact("placement", Value::from(vec!["host"])),
                fact("power.cap_w", "none".into()),
            ]
        });
    }
    let names: Vec<String> =
        cards.iter().map(|card| normalize("topology.accelerators", &card.name)).collect();
    let places: Option<Vec<&str>> = cards.iter().map(|card| card.uuid.as_deref()).collect();
    let caps: Vec<Value> = cards
        .iter()
        .map(|card| card.power_cap_w.map_or_else(|| "unknown".into(), Value::from))
        .collect();
    let cap = match caps.as_slice() {
        [first, rest @ ..] if rest.iter().all(|cap| cap == first) => first.clone(),
        _ => Value::from(caps),
    };
    let mut facts =
        vec![fact("topology.accelerators", Value::from(names)), fact("power.cap_w", cap)];
    if let Some(places) = places {
        facts.push(fact("placement", Value::from(places)));
    }
    facts
}

#[cfg(test)]
#[path = "verdict/tests.rs"]
mod tests;
