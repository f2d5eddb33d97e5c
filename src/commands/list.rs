//! `ledger list`.

use crate::cli::{Format, ListArgs};
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::render::table::Rows;
use crate::render::{stamp, time};
use ledger::entry::{Body, RunBody};
use ledger::store::{Access, RunRow, Store};
use serde_json::{Value, json};
use std::io::Write;

/// Runs the command.
pub(crate) fn run(
    context: &Context,
    arguments: &ListArgs,
    out: &mut impl Write,
) -> Result<Exit, Failure> {
    let store = context.open(Access::Read)?;
    let rows = find(&store, arguments)?;
    if arguments.format == Format::Json {
        let answer: Vec<Value> = rows.iter().map(to_json).collect();
        serde_json::to_writer_pretty(&mut *out, &answer).map_err(std::io::Error::from)?;
        writeln!(out)?;
    } else if rows.is_empty() {
        crate::progress::say("no run matches");
    } else {
        out.write_all(table(&rows).render(arguments.format, context.width).as_bytes())?;
    }
    Ok(Exit::Done)
}

fn find(store: &Store, arguments: &ListArgs) -> Result<Vec<RunRow>, Failure> {
    let filter = arguments.labels.filter();
    let wants_failed =
        arguments.failed || arguments.cause.is_some() || arguments.prompt_below.is_some();
    let mut rows = if wants_failed {
        store.find_failures(&filter, arguments.cause.as_deref(), arguments.prompt_below)?
    } else {
        store.find_runs(&filter)?
    };
    if let Some(campaign) = &arguments.campaign {
        rows.retain(|row| row.campaign.as_ref() == Some(campaign));
    }
    if !arguments.differs && arguments.search.is_none() {
        return Ok(rows);
    }
    let mut kept = Vec::new();
    for row in rows {
        let Body::Run(run) = store.read_body(row.seq)? else { continue };
        let is_found = match &arguments.search {
            Some(text) => contains(store, &row, &run, text)?,
            None => true,
        };
        if is_found && (!arguments.differs || run.differs()) {
            kept.push(row);
        }
    }
    Ok(kept)
}

/// Looks for a text in everything people wrote about a run.
fn contains(store: &Store, row: &RunRow, run: &RunBody, text: &str) -> Result<bool, Failure> {
    let wanted = text.to_lowercase();
    let mut bodies = vec![serde_json::to_string(run).unwrap_or_default()];
    for seq in store.entries_about(&row.key)? {
        bodies.push(serde_json::to_string(&store.read_body(seq)?).unwrap_or_default());
    }
    Ok(bodies.iter().any(|body| body.to_lowercase().contains(&wanted)))
}

fn to_json(row: &RunRow) -> Value {
    json!({
        "key": row.key.to_string(), "seq": row.seq, "candidate": row.subject.candidate, "config": row.subject.config,
        "task": row.subject.task, "hardware": row.subject.hardware, "measured_at": stamp(row.measured_at), "outcome": row.outcome,
        "validity": row.validity, "cause": row.cause, "campaign": row.campaign, "retracted": row.retracted.is_some(),
    })
}

fn table(rows: &[RunRow]) -> Rows {
    let cells = |row: &RunRow| {
        let state = match (row.retracted, row.outcome.as_str(), &row.cause) {
            (Some(_), _, _) => "retracted".to_owned(),
            (None, "failed", Some(cause)) => format!("failed: {cause}"),
            (None, "failed", None) => "failed".to_owned(),
            _ => row.validity.clone(),
        };
        vec![
            row.key.short(),
            time(row.measured_at),
            row.subject.candidate.clone(),
            row.subject.config.clone(),
            row.subject.task.clone(),
            row.subject.hardware.clone(),
            state,
        ]
    };
    Rows {
        header: vec!["key", "measured", "candidate", "config", "task", "hardware", "state"],
        rows: rows.iter().map(cells).collect(),
    }
}
