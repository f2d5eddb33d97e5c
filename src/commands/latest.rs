//! `ledger latest`.

use crate::cli::{Format, ViewArgs};
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::render::table::Rows;
use crate::render::{stamp, time};
use ledger::store::{Access, LatestRow};
use serde_json::{Value, json};
use std::io::Write;

/// Runs the command.
pub(crate) fn run(
    context: &Context,
    arguments: &ViewArgs,
    out: &mut impl Write,
) -> Result<Exit, Failure> {
    let store = context.open(Access::Read)?;
    let rows = store.latest(&arguments.labels.filter())?;
    if arguments.format == Format::Json {
        let answer: Vec<Value> = rows.iter().map(to_json).collect();
        serde_json::to_writer_pretty(&mut *out, &answer).map_err(std::io::Error::from)?;
        writeln!(out)?;
    } else if rows.is_empty() {
        crate::progress::say("no verified run matches");
    } else {
        out.write_all(table(&rows).render(arguments.format, context.width).as_bytes())?;
    }
    Ok(Exit::Done)
}

fn to_json(row: &LatestRow) -> Value {
    json!({
        "candidate": row.subject.candidate, "config": row.subject.config, "task": row.subject.task, "hardware": row.subject.hardware,
        "key": row.key.to_string(), "measured_at": stamp(row.measured_at), "validity": row.validity, "headline": row.headline,
        "runs": row.runs, "later_failure": row.later_failure,
    })
}

fn table(rows: &[LatestRow]) -> Rows {
    let cells = |row: &LatestRow| {
        let mut remark = if row.validity == "ok" { String::new() } else { row.validity.clone() };
        if row.runs == 1 {
            remark = if remark.is_empty() { "n=1".to_owned() } else { format!("{remark}, n=1") };
        }
        if row.later_failure.is_some() {
            remark.push_str(if remark.is_empty() { "failed since" } else { ", failed since" });
        }
        vec![
            row.subject.candidate.clone(),
            row.subject.config.clone(),
            row.subject.task.clone(),
            row.subject.hardware.clone(),
            time(row.measured_at),
            row.key.short(),
            row.headline.clone(),
            remark,
        ]
    };
    Rows {
        header: vec![
            "candidate",
            "config",
            "task",
            "hardware",
            "measured",
            "key",
            "headline",
            "remark",
        ],
        rows: rows.iter().map(cells).collect(),
    }
}
