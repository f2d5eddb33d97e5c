//! `ledger record`.

use crate::cli::{Format, Labels, RecordArgs};
use crate::context::{Context, TOOL, shown};
use crate::exit::Exit;
use crate::failure::{Failure, refused};
use crate::progress;
use crate::render::findings;
use ledger::amend::read_bindings;
use ledger::entry::BindingBody;
use ledger::finding::{Finding, Severity};
use ledger::id::RunKey;
use ledger::record::{self, Planned, RecordRequest, Recorded, Surroundings};
use ledger::store::{Access, Store};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Runs the command.
pub(crate) fn run(
    context: &Context,
    arguments: &RecordArgs,
    out: &mut impl Write,
) -> Result<Exit, Failure> {
    let requests = requests(context, arguments)?;
    if arguments.dry_run {
        return dry_run(context, arguments, &requests, out);
    }
    if let Some(source) =
        requests.iter().map(|request| &request.source).find(|source| !source.exists())
    {
        return Err(missing(source));
    }
    let mut store = context.open_or_create()?;
    let bindings = read_bindings(&store)?;
    let surroundings = surroundings(context, &bindings);
    let is_batch = arguments.each.is_some() || requests.len() > 1;
    let outcomes = if is_batch {
        record_all(context, arguments, &mut store, &requests, &surroundings)?
    } else {
        record_one(context, &mut store, &requests, &surroundings)?
    };
    answer(arguments, &requests, &outcomes, out)
}

fn missing(source: &Path) -> Failure {
    Failure::input("io", format!("run was not recorded: there is no `{}`", shown(source)))
}

fn surroundings<'a>(context: &Context, bindings: &'a [(String, BindingBody)]) -> Surroundings<'a> {
    Surroundings { formats: importers::formats(), clock: context.clock, bindings, tool: TOOL }
}

fn labels(labels: &Labels) -> BTreeMap<String, String> {
    labels.given().into_iter().map(|(name, label)| (name.to_owned(), label.to_owned())).collect()
}

fn requests(context: &Context, arguments: &RecordArgs) -> Result<Vec<RecordRequest>, Failure> {
    let replaces = match &arguments.replaces {
        Some(typed) => Some(context.open(Access::Read)?.resolve_run(typed)?.key),
        None => None,
    };
    let base = RecordRequest {
        source: arguments.source.clone().unwrap_or_default(),
        manifest: arguments.run.clone(),
        provenance: arguments.provenance.clone(),
        labels: labels(&arguments.labels),
        settings: arguments.settings.clone(),
        measured_at: arguments.measured_at.clone(),
        adapter: arguments.adapter.clone(),
        results: arguments.results.clone(),
        pick: arguments.pick,
        failed: arguments.failed.clone(),
        replaces,
    };
    if let Some(parent) = &arguments.each {
        return each(&base, parent);
    }
    if arguments.split { split(&base) } else { Ok(vec![base]) }
}

fn each(base: &RecordRequest, parent: &Path) -> Result<Vec<RecordRequest>, Failure> {
    let unreadable =
        |error| Failure::input("io", format!("cannot read `{}`: {error}", shown(parent)));
    let mut folders: Vec<PathBuf> = fs::read_dir(parent)
        .map_err(unreadable)?
        .filter_map(Result::ok)
        .map(|entry| entry.path())
        .filter(|path| path.is_dir())
        .collect();
    folders.sort();
    if folders.is_empty() {
        return Err(Failure::input(
            "empty-folder",
            format!("no run was recorded: `{}` has no subfolder", shown(parent)),
        ));
    }
    Ok(folders.into_iter().map(|source| RecordRequest { source, ..base.clone() }).collect())
}

/// One request for each run of the only result file that holds several.
fn split(base: &RecordRequest) -> Result<Vec<RecordRequest>, Failure> {
    let count = record::count_runs(base, &importers::formats())?;
    Ok((1..=count).map(|pick| RecordRequest { pick: Some(pick), ..base.clone() }).collect())
}

fn record_one(
    context: &Context,
    store: &mut Store,
    requests: &[RecordRequest],
    surroundings: &Surroundings<'_>,
) -> Result<Vec<Recorded>, Failure> {
    let Some(request) = requests.first() else { return Ok(Vec::new()) };
    let bar = progress::bytes(context.shows_progress, folder_bytes(&request.source), "hashing");
    let plan = record::plan(request, surroundings, Some(store), &mut |bytes| bar.inc(bytes));
    bar.finish_and_clear();
    record::commit(store, vec![plan?])?.map_err(|refusals| refused(&refusals, false))
}

fn record_all(
    context: &Context,
    arguments: &RecordArgs,
    store: &mut Store,
    requests: &[RecordRequest],
    surroundings: &Surroundings<'_>,
) -> Result<Vec<Recorded>, Failure> {
    let total = if context.shows_progress {
        requests.iter().map(|request| folder_bytes(&request.source)).sum()
    } else {
        0
    };
    let bar = progress::bytes(context.shows_progress, total, "recording");
    let mut outcomes = Vec::with_capacity(requests.len());
    for batch in requests.chunks(arguments.batch.max(1)) {
        match record::record_batch(store, batch, surroundings, &|bytes| bar.inc(bytes))? {
            Ok(recorded) => outcomes.extend(recorded),
            Err(refusals) => {
                bar.finish_and_clear();
                if !outcomes.is_empty() {
                    progress::say(&format!(
                        "{} runs of earlier batches are stored",
                        outcomes.len()
                    ));
                }
                return Err(refused(&refusals, true));
            }
        }
    }
    bar.finish_and_clear();
    Ok(outcomes)
}

fn folder_bytes(path: &Path) -> u64 {
    let Ok(metadata) = fs::symlink_metadata(path) else { return 0 };
    if metadata.is_file() {
        return metadata.len();
    }
    fs::read_dir(path).map_or(0, |entries| {
        entries.filter_map(Result::ok).map(|entry| folder_bytes(&entry.path())).sum()
    })
}

fn dry_run(
    context: &Context,
    arguments: &RecordArgs,
    requests: &[RecordRequest],
    out: &mut impl Write,
) -> Result<Exit, Failure> {
    let store = context.open_if_any()?;
    let bindings = store.as_ref().map(read_bindings).transpose()?.unwrap_or_default();
    let surroundings = surroundings(context, &bindings);
    let mut answers = Vec::new();
    for request in requests {
        // Without a store nothing is looked up and the plan is always whole.
        let Planned::Run(plan) = record::plan(request, &surroundings, None, &mut |_| {})? else {
            continue;
        };
        if arguments.format == Format::Json {
            answers.push(json!({"key": plan.key.to_string(), "outcome": "dry-run", "source": shown(&request.source),
                "findings": findings::to_json(&plan.body.findings)}));
        } else {
            writeln!(out, "{}", plan.key)?;
        }
        progress::say(&format!(
            "would record {} as {}; nothing was stored",
            shown(&request.source),
            plan.key.short()
        ));
        say_findings(&plan.body.findings);
    }
    write_json(arguments, answers, out)?;
    Ok(Exit::Done)
}

fn say_findings(found: &[Finding]) {
    if !found.is_empty() {
        progress::say(findings::footnotes(found).trim_end());
    }
}

fn write_json(
    arguments: &RecordArgs,
    mut answers: Vec<Value>,
    out: &mut impl Write,
) -> Result<(), Failure> {
    if arguments.format != Format::Json {
        return Ok(());
    }
    let answer = if answers.len() == 1 { answers.remove(0) } else { Value::Array(answers) };
    writeln!(out, "{answer:#}")?;
    Ok(())
}

fn answer(
    arguments: &RecordArgs,
    requests: &[RecordRequest],
    outcomes: &[Recorded],
    out: &mut impl Write,
) -> Result<Exit, Failure> {
    let mut answers = Vec::new();
    let mut has_caution = false;
    let is_quiet = outcomes.len() > 20;
    for (request, outcome) in requests.iter().zip(outcomes) {
        let (word, found, repaired) = match outcome {
            Recorded::New { findings, .. } => ("recorded", findings.as_slice(), 0),
            Recorded::Already { repaired, .. } => ("already-recorded", &[][..], *repaired),
        };
        has_caution |= found.iter().any(|finding| finding.severity > Severity::Note);
        if arguments.format == Format::Json {
            answers.push(json!({"key": outcome.key().to_string(), "outcome": word, "source": shown(&request.source),
                "repaired": repaired, "findings": findings::to_json(found)}));
        } else {
            writeln!(out, "{}", outcome.key())?;
        }
        if !is_quiet {
            say_outcome(outcome.key(), word, repaired);
            say_findings(found);
        }
    }
    if is_quiet {
        let new = outcomes.iter().filter(|outcome| matches!(outcome, Recorded::New { .. })).count();
        progress::say(&format!(
            "recorded {new} runs, {} were already recorded",
            outcomes.len() - new
        ));
    }
    write_json(arguments, answers, out)?;
    Ok(if arguments.strict && has_caution { Exit::No } else { Exit::Done })
}

fn say_outcome(key: RunKey, word: &str, repaired: usize) {
    let word = word.replace('-', " ");
    let healed =
        if repaired > 0 { format!(", repaired {repaired} damaged objects") } else { String::new() };
    progress::say(&format!("{word} {}{healed}", key.short()));
}
