//! `ledger retract`, `correct` and `note`: each appends one entry.

use crate::cli::{CorrectArgs, NoteArgs, RetractArgs, Who};
use crate::context::{Context, shown};
use crate::exit::Exit;
use crate::failure::Failure;
use ledger::amend::{self, AttachedFile, Statement};
use ledger::entry::Body;
use ledger::store::{Access, Store};
use ledger::text::escape_path;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

fn statement(who: &Who, reason: &str) -> Statement {
    Statement { by: who.by.clone(), reason: reason.to_owned() }
}

/// Appends the entry, or prints the id it would have.
pub(crate) fn finish(
    store: &mut Store,
    body: Body,
    files: Vec<AttachedFile>,
    is_dry_run: bool,
    out: &mut impl Write,
) -> Result<Exit, Failure> {
    let id = if is_dry_run {
        crate::progress::say("nothing was appended");
        amend::preview(&body)?
    } else {
        amend::append(store, body, files)?.id
    };
    writeln!(out, "{id}")?;
    Ok(Exit::Done)
}

/// Runs `retract`.
pub(crate) fn retract(
    context: &Context,
    arguments: &RetractArgs,
    out: &mut impl Write,
) -> Result<Exit, Failure> {
    let mut store = context.open(Access::Append)?;
    let row = store.resolve_run(&arguments.key)?;
    let replaced_by =
        arguments.replaced_by.as_deref().map(|typed| store.resolve_run(typed)).transpose()?;
    let statement = statement(&arguments.who, &arguments.reason);
    let body = amend::retract(&row, &statement, replaced_by.map(|run| run.key), context.clock)?;
    finish(&mut store, body, Vec::new(), arguments.who.dry_run, out)
}

/// Runs `correct`.
pub(crate) fn correct(
    context: &Context,
    arguments: &CorrectArgs,
    out: &mut impl Write,
) -> Result<Exit, Failure> {
    let mut store = context.open(Access::Append)?;
    let row = store.resolve_run(&arguments.key)?;
    let labels = arguments
        .labels
        .given()
        .into_iter()
        .map(|(name, label)| (name.to_owned(), label.to_owned()))
        .collect();
    let body = amend::correct(
        &row,
        &labels,
        &statement(&arguments.who, &arguments.reason),
        context.clock,
    )?;
    finish(&mut store, body, Vec::new(), arguments.who.dry_run, out)
}

/// Runs `note`.
pub(crate) fn note(
    context: &Context,
    arguments: &NoteArgs,
    out: &mut impl Write,
) -> Result<Exit, Failure> {
    let mut store = context.open(Access::Append)?;
    let row = store.resolve_run(&arguments.key)?;
    let links = arguments
        .link
        .iter()
        .map(|typed| store.resolve_run(typed).map(|run| run.key))
        .collect::<Result<Vec<_>, _>>()?;
    let files = arguments.attach.iter().map(|path| read(path)).collect::<Result<Vec<_>, _>>()?;
    let statement = statement(&arguments.who, &arguments.text);
    let body =
        amend::note(Some(&row), &arguments.topic, &statement, &files, &links, context.clock)?;
    finish(&mut store, body, files, arguments.who.dry_run, out)
}

fn read(path: &Path) -> Result<AttachedFile, Failure> {
    let bytes = std::fs::read(path).map_err(|error| {
        Failure::input(
            "io",
            format!("nothing was appended: cannot read `{}`: {error}", shown(path)),
        )
    })?;
    let name = path.file_name().map(|name| escape_path(name.as_bytes())).unwrap_or_default();
    Ok((name, bytes))
}
