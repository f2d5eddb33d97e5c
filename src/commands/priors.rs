//! `ledger priors`: rows of imported files, with where they come from and what each leaves unknown.

use crate::cli::{Format, PriorsArgs};
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::render::table::Rows;
use ledger::entry::{Body, PriorBody, PriorRow, StoredCell};
use ledger::quantity::rounded;
use ledger::statement::{required_paths, show};
use ledger::store::{Access, Store};
use serde_json::{Value, json};
use std::io::Write;

/// Metrics of a row that its line shows.
const SHOWN_METRICS: usize = 3;

/// Runs the command.
pub(crate) fn run(
    context: &Context,
    arguments: &PriorsArgs,
    out: &mut impl Write,
) -> Result<Exit, Failure> {
    let store = context.open(Access::Read)?;
    let priors = find(&store, arguments)?;
    if arguments.format == Format::Json {
        let answer: Vec<Value> = priors.iter().map(|prior| to_json(prior, arguments)).collect();
        writeln!(out, "{:#}", Value::Array(answer))?;
        return Ok(Exit::Done);
    }
    let rows: Vec<Vec<String>> = priors.iter().flat_map(|prior| lines(prior, arguments)).collect();
    if rows.is_empty() {
        crate::progress::say("no prior matches");
        return Ok(Exit::Done);
    }
    let header = vec![
        "key",
        "source",
        "published",
        "model",
        "engine",
        "quant",
        "hardware",
        "cell",
        "metrics",
        "unknown",
        "status",
    ];
    out.write_all(Rows { header, rows }.render(arguments.format, context.width).as_bytes())?;
    Ok(Exit::Done)
}

fn find(store: &Store, arguments: &PriorsArgs) -> Result<Vec<PriorBody>, Failure> {
    let mut found = Vec::new();
    for seq in store.prior_entries(arguments.source.as_deref())? {
        if let Body::Prior(prior) = store.read_body(seq)? {
            let is_asked = prior.rows.iter().any(|row| matches(row, arguments))
                || (prior.rows.is_empty() && !arguments.narrows());
            if is_asked {
                found.push(*prior);
            }
        }
    }
    Ok(found)
}

fn matches(row: &PriorRow, arguments: &PriorsArgs) -> bool {
    let holds = |path: &str, wanted: &Option<String>| {
        wanted.as_ref().is_none_or(|wanted| {
            stated(row, path)
                .is_some_and(|text| text.to_lowercase().contains(&wanted.to_lowercase()))
        })
    };
    holds("model.id", &arguments.model)
        && holds("topology.accelerators", &arguments.hardware)
        && holds("engine.name", &arguments.engine)
        && holds("quant.weights", &arguments.quant)
}

fn stated(row: &PriorRow, path: &str) -> Option<String> {
    row.stated.get(path).map(|statement| show(&statement.value))
}

fn unknown(row: &PriorRow) -> Vec<&'static str> {
    required_paths().filter(|path| !row.stated.contains_key(*path)).collect()
}

fn lines(prior: &PriorBody, arguments: &PriorsArgs) -> Vec<Vec<String>> {
    let start = vec![
        prior.key.get(..8).unwrap_or(&prior.key).to_owned(),
        prior.source.name.clone(),
        prior.source.published_on.clone().unwrap_or_default(),
    ];
    if let Some(reason) = &prior.unparsed {
        let rest = ["", "", "", "", "", "", ""].map(str::to_owned);
        let state = format!("unparsed: {reason}");
        return vec![start.into_iter().chain(rest).chain([state]).collect()];
    }
    let rows = prior.rows.iter().filter(|row| matches(row, arguments));
    rows.flat_map(|row| row.cells.iter().map(|cell| line(&start, row, cell))).collect()
}

fn line(start: &[String], row: &PriorRow, cell: &StoredCell) -> Vec<String> {
    let metrics: Vec<String> = cell
        .metrics
        .iter()
        .filter_map(|metric| {
            let (_, value) = metric.headline()?;
            Some(format!("{} {}", metric.name, rounded(value)))
        })
        .take(SHOWN_METRICS)
        .collect();
    let known = |path| stated(row, path).unwrap_or_default();
    let cell =
        if row.locus.is_empty() { cell.id.clone() } else { format!("{} [{}]", cell.id, row.locus) };
    let rest = [
        known("model.id"),
        known("engine.name"),
        known("quant.weights"),
        known("topology.accelerators"),
        cell,
        metrics.join(", "),
        format!("{} of {} fields", unknown(row).len(), required_paths().count()),
        "advisory".to_owned(),
    ];
    start.iter().cloned().chain(rest).collect()
}

fn to_json(prior: &PriorBody, arguments: &PriorsArgs) -> Value {
    let rows: Vec<Value> = prior
        .rows
        .iter()
        .filter(|row| matches(row, arguments))
        .map(|row| {
            json!({"locus": row.locus, "measured_at": row.measured_at, "stated": row.stated, "observed": row.observed,
                "unknown": unknown(row), "cells": row.cells})
        })
        .collect();
    json!({"key": prior.key, "source": prior.source, "path": prior.path, "recorded_at": prior.recorded_at,
        "adapter": prior.read_as.as_ref().map(|read| &read.adapter), "unparsed": prior.unparsed, "advisory": true,
        "findings": prior.findings, "rows": rows})
}
