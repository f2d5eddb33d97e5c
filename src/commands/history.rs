//! `ledger history`: every run of a subject in order of measurement, with the entries about it.

use super::show::amendments;
use crate::cli::{Format, HistoryArgs};
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::render::run::{amendment, history_line};
use crate::render::stamp;
use chrono::{DateTime, Utc};
use ledger::clock;
use ledger::entry::{Body, RunBody};
use ledger::store::{Access, RunRow};
use ledger::text::printable;
use serde_json::{Value, json};
use std::io::Write;

/// Runs the command.
pub(crate) fn run(
    context: &Context,
    arguments: &HistoryArgs,
    out: &mut impl Write,
) -> Result<Exit, Failure> {
    let as_of = arguments.as_of.as_deref().map(read_time).transpose()?;
    let store = context.open(Access::Read)?;
    let mut lines = Vec::new();
    for row in store.find_runs(&arguments.labels.filter())? {
        let Body::Run(run) = store.read_body(row.seq)? else { continue };
        if !was_known(&run.recorded_at, as_of) {
            continue;
        }
        let known = amendments(&store, &row.key)?
            .into_iter()
            .filter(|(_, body)| was_known(recorded_at(body), as_of))
            .collect();
        lines.push((row, run, known));
    }
    write(arguments.format, &lines, out)?;
    Ok(Exit::Done)
}

type Line = (RunRow, Box<RunBody>, Vec<(i64, Body)>);

fn read_time(text: &str) -> Result<DateTime<Utc>, Failure> {
    clock::parse(text).map_err(|error| {
        Failure::input("bad-value", format!("`{text}` is no time: {error}"))
            .hint("write it as 2026-09-14T00:00:00Z")
    })
}

fn was_known(recorded_at: &str, as_of: Option<DateTime<Utc>>) -> bool {
    as_of.is_none_or(|as_of| clock::parse(recorded_at).is_ok_and(|at| at <= as_of))
}

fn recorded_at(body: &Body) -> &str {
    match body {
        Body::Run(run) => &run.recorded_at,
        Body::Correction(correction) => &correction.recorded_at,
        Body::Retraction(retraction) => &retraction.recorded_at,
        Body::Note(note) => &note.recorded_at,
        Body::Binding(binding) => &binding.recorded_at,
        Body::Prior(prior) => &prior.recorded_at,
    }
}

fn write(format: Format, lines: &[Line], out: &mut impl Write) -> Result<(), Failure> {
    if format == Format::Json {
        let answer: Vec<Value> = lines
            .iter()
            .map(|(row, run, known)| {
                json!({"key": row.key.to_string(), "measured_at": stamp(row.measured_at), "subject": row.subject, "outcome": run.outcome,
                    "validity": run.validity, "headline": run.headline(),
                    "amendments": known.iter().map(|(seq, body)| json!({"seq": seq, "entry": body})).collect::<Vec<Value>>()})
            })
            .collect();
        writeln!(out, "{:#}", Value::Array(answer))?;
        return Ok(());
    }
    if lines.is_empty() {
        crate::progress::say("no run matches");
    }
    let mark = if format == Format::Md { "- " } else { "" };
    for (row, run, known) in lines {
        writeln!(out, "{mark}{}", printable(history_line(row, run).trim_end()))?;
        for (seq, body) in known {
            writeln!(out, "  {mark}{}", printable(&amendment(*seq, body)))?;
        }
    }
    Ok(())
}
