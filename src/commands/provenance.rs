//! `ledger provenance check`.

use crate::cli::{Format, ProvenanceCommand};
use crate::context::{Context, TOOL, shown};
use crate::exit::Exit;
use crate::failure::Failure;
use ledger::amend::read_bindings;
use ledger::manifest::{self, Manifest};
use ledger::probe::{self, Target};
use ledger::provenance::document::{self, Document, WeightFile};
use ledger::provenance::verdict::{self, Claim, RunWindow, Verdict};
use ledger::text::printable;
use serde_json::{Value, json};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Runs the command.
pub(crate) fn run(
    context: &Context,
    command: &ProvenanceCommand,
    out: &mut impl Write,
) -> Result<Exit, Failure> {
    match command {
        ProvenanceCommand::Capture { port, pid, output, proc_root } => {
            let target = match (port, pid) {
                (Some(port), _) => Target::Port(*port),
                (None, Some(pid)) => Target::Pid(*pid),
                (None, None) => return Err(Failure::input("usage", "name a port or a pid")),
            };
            capture(context, target, proc_root, output.as_deref(), out)
        }
        ProvenanceCommand::Check { documents, run, format } => {
            check(context, documents, run.as_deref(), *format, out)
        }
    }
}

fn capture(
    context: &Context,
    target: Target,
    proc_root: &Path,
    output: Option<&Path>,
    out: &mut impl Write,
) -> Result<Exit, Failure> {
    let bar = crate::progress::bytes(context.shows_progress, 0, "hashing weights");
    let captured =
        probe::capture(proc_root, target, context.clock.now(), TOOL, &mut |bytes| bar.inc(bytes));
    bar.finish_and_clear();
    let document = captured?;
    let text = serde_json::to_string_pretty(&document).map_err(std::io::Error::from)? + "\n";
    match output {
        Some(path) => std::fs::write(path, text)?,
        None => out.write_all(text.as_bytes())?,
    }
    let names: Vec<&str> = document.weights.iter().map(WeightFile::file_name).collect();
    let pid = document.process.as_ref().map_or(0, |process| process.pid);
    let served = document.labels.served_names.join(", ");
    let called = if served.is_empty() { String::new() } else { format!(", answers to {served}") };
    crate::progress::say(&printable(&format!("pid {pid} holds {}{called}", names.join(", "))));
    Ok(Exit::Done)
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    std::fs::read(path)
        .map_err(|error| Failure::input("io", format!("cannot read `{}`: {error}", shown(path))))
}

fn check(
    context: &Context,
    paths: &[PathBuf],
    run: Option<&Path>,
    format: Format,
    out: &mut impl Write,
) -> Result<Exit, Failure> {
    let mut documents = Vec::new();
    for path in paths {
        let document = document::parse(&read(path)?)
            .map_err(|error| Failure::input("bad-value", format!("`{}`: {error}", shown(path))))?;
        documents.push(document);
    }
    let manifest = match run {
        Some(path) => parse_manifest(path)?,
        None => Manifest::default(),
    };
    let bindings =
        context.open_if_any()?.as_ref().map(read_bindings).transpose()?.unwrap_or_default();
    let verdict = verdict::check(
        &documents,
        &claim(&manifest, &documents),
        &bindings,
        window(&manifest, &documents),
    );
    if format == Format::Json {
        writeln!(out, "{:#}", to_json(&verdict))?;
    } else {
        write_text(&verdict, out)?;
    }
    Ok(if verdict.is_verified() { Exit::Done } else { Exit::Unverified })
}

fn parse_manifest(path: &Path) -> Result<Manifest, Failure> {
    let bytes = read(path)?;
    let text = String::from_utf8(bytes)
        .map_err(|error| Failure::input("bad-encoding", format!("`{}`: {error}", shown(path))))?;
    manifest::parse(&shown(path), &text).map_err(|findings| {
        let first = findings.first().map_or_else(String::new, |finding| finding.message.clone());
        Failure::input("bad-value", format!("`{}`: {first}", shown(path)))
    })
}

fn claim(manifest: &Manifest, documents: &[Document]) -> Claim {
    let stated = |path: &str| {
        let found = manifest.statements.iter().find(|statement| statement.path == path)?;
        found.value.as_str().filter(|text| *text != "unknown").map(str::to_owned)
    };
    let proved = documents.last().and_then(|document| document.weights.first()?.hf.clone());
    Claim {
        model_id: stated("model.id").or_else(|| proved.map(|hf| hf.repo)),
        revision: stated("model.revision"),
    }
}

/// Without a manifest, the moment of the last capture stands for the run.
fn window(manifest: &Manifest, documents: &[Document]) -> Option<RunWindow> {
    let stated =
        manifest.measured_at.as_ref().and_then(|(text, _)| ledger::clock::parse(text).ok());
    let at = stated.or_else(|| documents.last().map(|document| document.captured_at))?;
    Some(RunWindow { started: at, ended: at })
}

fn to_json(verdict: &Verdict) -> Value {
    json!({
        "verdict": if verdict.is_verified() { "verified" } else { "unverified" },
        "grade": verdict.grade.as_str(), "requested": verdict.requested, "loaded": verdict.loaded, "weight_set": verdict.weight_set,
        "rules": verdict.rules.iter().map(|rule| json!({"rule": rule.number, "passed": rule.passed, "fact": rule.fact})).collect::<Vec<_>>(),
        "facts": verdict.facts.iter().map(|fact| json!({"field": fact.path, "value": fact.value, "at": fact.at})).collect::<Vec<_>>(),
    })
}

fn write_text(verdict: &Verdict, out: &mut impl Write) -> Result<(), Failure> {
    let word = if verdict.is_verified() { "verified" } else { "unverified" };
    writeln!(out, "{word}, grade {}", verdict.grade.as_str())?;
    for rule in &verdict.rules {
        let state = if rule.passed { "pass" } else { "FAIL" };
        writeln!(out, "  rule {}  {state}  {}", rule.number, printable(&rule.fact))?;
    }
    writeln!(
        out,
        "  requested   {}",
        printable(verdict.requested.as_deref().unwrap_or("(nothing)"))
    )?;
    writeln!(out, "  loaded      {}", printable(&verdict.loaded.join(", ")))?;
    writeln!(out, "  weight set  {}", verdict.weight_set.as_deref().unwrap_or("(not hashed)"))?;
    Ok(())
}
