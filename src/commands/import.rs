//! `ledger import`: other people's files become priors, advisory for ever.

use crate::cli::{Format, ImportArgs};
use crate::context::{Context, TOOL, shown};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::progress;
use crate::render::findings;
use ledger::clock::Clock;
use ledger::collect::{CollectError, FoundFile, list_files};
use ledger::entry::{PriorBody, PriorSource};
use ledger::import::{self, ImportError, ImportRequest, Imported, Mapped, Reader};
use ledger::text::printable;
use serde_json::{Value, json};
use std::io::Write;
use std::path::Path;

/// Files beyond which single outcomes are not told on stderr.
const TOLD_ONE_BY_ONE: usize = 20;

/// Runs the command.
pub(crate) fn run(
    context: &Context,
    arguments: &ImportArgs,
    out: &mut impl Write,
) -> Result<Exit, Failure> {
    let source = read_source(arguments, context.clock)?;
    let files = collect(arguments)?;
    let map = arguments.map.as_deref().map(read_map).transpose()?;
    let formats = importers::formats();
    let reader = match (&map, &arguments.adapter) {
        (Some((adapter, bytes)), _) => Reader::Map(Mapped { adapter: &**adapter, bytes }),
        (None, Some(id)) => Reader::Named(formats.find_importable(id).ok_or_else(|| unknown(id))?),
        (None, None) => Reader::Detect,
    };
    let request =
        ImportRequest { source: &source, reader, formats, clock: context.clock, tool: TOOL };
    let outcomes = if arguments.dry_run {
        let bodies = import::preview(&files, &request)?;
        bodies.into_iter().map(|body| Imported { body, was_known: false }).collect()
    } else {
        import::import(&mut context.open_or_create()?, &files, &request)?
    };
    answer(arguments, &outcomes, out)
}

fn read_source(arguments: &ImportArgs, clock: Clock) -> Result<PriorSource, Failure> {
    let name = arguments.source.trim();
    if name.is_empty() || name.chars().any(char::is_control) {
        return Err(Failure::input(
            "bad-value",
            format!("nothing was imported: `{}` is no name of a source", printable(name)),
        )
        .hint("name it on one line: `--source aider-polyglot`"));
    }
    if let Some(day) = &arguments.published {
        let date = chrono::NaiveDate::parse_from_str(day, "%Y-%m-%d").map_err(|error| {
            let message = format!("nothing was imported: `--published {day}` is no day: {error}");
            Failure::input("bad-value", message).hint("write it as 2026-07-31")
        })?;
        if date > clock.now().date_naive() {
            let message = format!("nothing was imported: `--published {day}` lies in the future");
            return Err(Failure::input("future-time", message));
        }
    }
    Ok(PriorSource {
        name: name.to_owned(),
        url: arguments.url.clone(),
        published_on: arguments.published.clone(),
    })
}

fn collect(arguments: &ImportArgs) -> Result<Vec<FoundFile>, Failure> {
    let mut files = Vec::new();
    for path in &arguments.files {
        files.extend(list_files(path).map_err(|error| match error {
            CollectError::Refused { findings } => ImportError::Refused(findings).into(),
            CollectError::Io { path, source } => Failure::from(ImportError::Io { path, source }),
        })?);
    }
    Ok(files)
}

type ReadMap = (Box<dyn ledger::adapter::Adapter>, Vec<u8>);

fn read_map(path: &Path) -> Result<ReadMap, Failure> {
    let bytes = std::fs::read(path).map_err(|error| {
        let message = format!("nothing was imported: cannot read `{}`: {error}", shown(path));
        Failure::input("io", message)
    })?;
    let adapter = importers::map::read_map(&bytes).map_err(|problems| {
        let message = format!(
            "nothing was imported: map `{}` has {} mistakes\n  {}",
            shown(path),
            problems.len(),
            problems.iter().map(|problem| printable(problem)).collect::<Vec<_>>().join("\n  ")
        );
        Failure::input("bad-map", message)
    })?;
    Ok((adapter, bytes))
}

fn unknown(id: &str) -> Failure {
    let formats = importers::formats();
    let known: Vec<&str> = formats.importable().map(ledger::adapter::Adapter::id).collect();
    let failure = Failure::input(
        "unknown-key",
        format!("nothing was imported: no adapter is called `{}`", printable(id)),
    );
    match ledger::text::nearest(id, known.iter().copied()) {
        Some(near) => failure.hint(format!("did you mean `{near}`")),
        None => failure.hint(format!("known are {}", known.join(", "))),
    }
}

fn answer(
    arguments: &ImportArgs,
    outcomes: &[Imported],
    out: &mut impl Write,
) -> Result<Exit, Failure> {
    let is_told = outcomes.len() <= TOLD_ONE_BY_ONE;
    for Imported { body, was_known } in outcomes {
        if arguments.format != Format::Json {
            writeln!(out, "{}", body.key)?;
        }
        if is_told {
            progress::say(&describe(arguments, body, *was_known));
            if !*was_known && !body.findings.is_empty() {
                progress::say(findings::footnotes(&body.findings).trim_end());
            }
        }
    }
    let unparsed = outcomes.iter().filter(|outcome| outcome.body.unparsed.is_some()).count();
    if !is_told {
        let known = outcomes.iter().filter(|outcome| outcome.was_known).count();
        progress::say(&format!(
            "imported {} files as priors, {known} were already imported, {unparsed} could not be parsed",
            outcomes.len() - known
        ));
    }
    if arguments.format == Format::Json {
        let word = if arguments.dry_run { "dry-run" } else { "imported" };
        let answers: Vec<Value> = outcomes
            .iter()
            .map(|Imported { body, was_known }| {
                json!({"key": body.key, "outcome": if *was_known { "already-imported" } else { word }, "path": body.path,
                    "adapter": body.read_as.as_ref().map(|read| &read.adapter), "unparsed": body.unparsed, "rows": body.rows.len(),
                    "cells": body.rows.iter().map(|row| row.cells.len()).sum::<usize>(), "advisory": true,
                    "findings": findings::to_json(&body.findings)})
            })
            .collect();
        writeln!(out, "{:#}", Value::Array(answers))?;
    }
    Ok(if arguments.strict && unparsed > 0 { Exit::No } else { Exit::Done })
}

fn describe(arguments: &ImportArgs, body: &PriorBody, was_known: bool) -> String {
    let word = match (was_known, arguments.dry_run) {
        (true, _) => "already imported",
        (false, true) => "would import",
        (false, false) => "imported",
    };
    let key = body.key.get(..8).unwrap_or(&body.key);
    if let Some(reason) = &body.unparsed {
        return format!("{word} `{}` as {key}, unparsed: {}", body.path, printable(reason));
    }
    let cells: usize = body.rows.iter().map(|row| row.cells.len()).sum();
    let adapter = body.read_as.as_ref().map_or("", |read| read.adapter.as_str());
    let rows = body.rows.len();
    format!("{word} `{}` as {key}: {adapter}, {rows} rows, {cells} cells, advisory", body.path)
}
