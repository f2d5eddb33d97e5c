//! `ledger show`.

use crate::cli::{Format, ShowArgs};
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::render;
use ledger::entry::Body;
use ledger::store::{Access, Store};
use serde_json::{Value, json};
use std::io::Write;

/// Runs the command.
pub(crate) fn run(
    context: &Context,
    arguments: &ShowArgs,
    out: &mut impl Write,
) -> Result<Exit, Failure> {
    let store = context.open(Access::Read)?;
    let row = store.resolve_run(&arguments.key)?;
    let entry = store.read_entry(row.seq)?;
    let Body::Run(run) = store.read_body(row.seq)? else {
        return Err(Failure::input("entry-unreadable", format!("entry {} is no run", row.seq)));
    };
    let amendments = amendments(&store, &row.key)?;
    if arguments.format == Format::Json {
        let answer = json!({
            "key": row.key.to_string(), "entry": {"seq": row.seq, "id": ledger::id::to_hex(&entry.id)},
            "subject": row.subject, "retracted": row.retracted.is_some(), "run": run,
            "amendments": amendments.iter().map(|(seq, body)| json!({"seq": seq, "entry": body})).collect::<Vec<Value>>(),
        });
        writeln!(out, "{answer:#}")?;
    } else {
        let is_markdown = arguments.format == Format::Md;
        out.write_all(
            render::run::page(&row, &run, &amendments, is_markdown, context.width).as_bytes(),
        )?;
    }
    Ok(Exit::Done)
}

/// Reads the entries about a run.
pub(crate) fn amendments(
    store: &Store,
    key: &ledger::id::RunKey,
) -> Result<Vec<(i64, Body)>, Failure> {
    let mut bodies = Vec::new();
    for seq in store.entries_about(key)? {
        bodies.push((seq, store.read_body(seq)?));
    }
    Ok(bodies)
}
