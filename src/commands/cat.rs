//! `ledger cat`: bytes to stdout.

use crate::cli::CatArgs;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use ledger::entry::Body;
use ledger::id::{BlobId, SHORTEST_PREFIX};
use ledger::restore::read_tree;
use ledger::store::{Access, Store, StoreError};
use std::io::Write;

/// Runs the command.
pub(crate) fn run(
    context: &Context,
    arguments: &CatArgs,
    out: &mut impl Write,
) -> Result<Exit, Failure> {
    let store = context.open(Access::Read)?;
    let id = match arguments.object.split_once(':') {
        Some((key, path)) => find_artifact(&store, key, path)?,
        None => find_object(&store, &arguments.object)?,
    };
    store.copy_blob(&id, out)?;
    out.flush()?;
    Ok(Exit::Done)
}

fn find_object(store: &Store, typed: &str) -> Result<BlobId, Failure> {
    let is_prefix =
        typed.len() >= SHORTEST_PREFIX && typed.chars().all(|c| matches!(c, '0'..='9' | 'a'..='f'));
    if !is_prefix {
        return Err(Failure::input(
            "not-a-key",
            format!("`{typed}` is no object id: type 8 or more of its hex digits"),
        ));
    }
    if let Ok(id) = typed.parse::<BlobId>() {
        return Ok(id);
    }
    match store.find_blobs_by_prefix(typed)?.as_slice() {
        [id] => Ok(*id),
        [] => Err(StoreError::NoBlob { blob: typed.to_owned() }.into()),
        several => {
            let list = several.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
            Err(Failure::input(
                "prefix-ambiguous",
                format!("`{typed}` names {} objects", several.len()),
            )
            .hint(format!("type more of one of {list}")))
        }
    }
}

fn find_artifact(store: &Store, key: &str, path: &str) -> Result<BlobId, Failure> {
    let row = store.resolve_run(key)?;
    let Body::Run(run) = store.read_body(row.seq)? else {
        return Err(Failure::input("entry-unreadable", format!("entry {} is no run", row.seq)));
    };
    let tree = read_tree(store, &run.root)?;
    let names: Vec<String> =
        tree.artifacts().iter().map(ledger::tree::Artifact::printable_path).collect();
    let found = tree.artifacts().iter().find(|artifact| artifact.printable_path() == path);
    found.map(|artifact| artifact.blob).ok_or_else(|| {
        Failure::input("no-object", format!("run {} has no artifact `{path}`", row.key.short()))
            .hint(format!("it has {}", names.join(", ")))
    })
}
