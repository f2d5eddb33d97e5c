//! `ledger weights`: weight sets by digest with every name each was recorded under, and bindings.

use super::amend::finish;
use crate::cli::{Format, WeightsArgs, WeightsCommand};
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::render::table::Rows;
use ledger::amend::{self, Statement, read_bindings};
use ledger::store::Access;
use ledger::subject::SubjectFilter;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;

/// Runs the command.
pub(crate) fn run(
    context: &Context,
    arguments: &WeightsArgs,
    out: &mut impl Write,
) -> Result<Exit, Failure> {
    match &arguments.command {
        None => list(context, arguments.format, out),
        Some(WeightsCommand::Bind { digest, model, because, who }) => {
            let (model_id, revision) = model.split_once('@').ok_or_else(|| {
                Failure::input("bad-value", format!("`{model}` names no revision"))
                    .hint("write it as org/name@revision")
            })?;
            let mut store = context.open(Access::Append)?;
            let statement = Statement { by: who.by.clone(), reason: because.clone() };
            let body = amend::bind(digest, model_id, revision, &statement, context.clock)?;
            finish(&mut store, body, Vec::new(), who.dry_run, out)
        }
    }
}

#[derive(Default)]
struct Set {
    names: BTreeSet<String>,
    runs: usize,
    bindings: Vec<String>,
}

fn list(context: &Context, format: Format, out: &mut impl Write) -> Result<Exit, Failure> {
    let store = context.open(Access::Read)?;
    let mut sets: BTreeMap<String, Set> = BTreeMap::new();
    for row in store.find_runs(&SubjectFilter::default())? {
        let Some(digest) = row.weights.filter(|digest| !digest.is_empty()) else { continue };
        let set = sets.entry(digest).or_default();
        set.runs += 1;
        set.names.extend(row.requested);
    }
    for (_, binding) in read_bindings(&store)? {
        let set = sets.entry(binding.weight_set).or_default();
        set.bindings.push(format!("{}@{} by {}", binding.model_id, binding.revision, binding.by));
    }
    let has_finding = sets.values().any(|set| set.names.len() > 1);
    if format == Format::Json {
        let answer: Vec<Value> = sets
            .iter()
            .map(|(digest, set)| json!({"weight_set": digest, "names": set.names, "runs": set.runs, "bindings": set.bindings}))
            .collect();
        writeln!(out, "{:#}", Value::Array(answer))?;
    } else if sets.is_empty() {
        crate::progress::say("no weight set is recorded");
    } else {
        let rows = sets.iter().map(|(digest, set)| {
            let names = set.names.iter().cloned().collect::<Vec<_>>().join(", ");
            let remark = if set.names.len() > 1 {
                format!("one weight set, {} names", set.names.len())
            } else {
                String::new()
            };
            vec![digest.clone(), names, set.runs.to_string(), set.bindings.join(", "), remark]
        });
        let rows = Rows {
            header: vec!["weight set", "recorded as", "runs", "bound", "remark"],
            rows: rows.collect(),
        };
        out.write_all(rows.render(format, context.width).as_bytes())?;
    }
    Ok(if has_finding { Exit::No } else { Exit::Done })
}
