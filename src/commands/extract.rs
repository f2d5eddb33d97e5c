//! `ledger extract`.

use crate::cli::ExtractArgs;
use crate::context::{Context, shown};
use crate::exit::Exit;
use crate::failure::Failure;
use ledger::entry::Body;
use ledger::quantity;
use ledger::restore::{read_tree, restore};
use ledger::store::{Access, RunRow, Store};
use ledger::subject::SubjectFilter;
use std::io::Write;
use std::path::Path;
use std::sync::Mutex;

/// Runs the command.
pub(crate) fn run(
    context: &Context,
    arguments: &ExtractArgs,
    out: &mut impl Write,
) -> Result<Exit, Failure> {
    let store = context.open(Access::Read)?;
    if let Some(folder) = &arguments.all {
        let rows = store.find_runs(&SubjectFilter::default())?;
        let bytes = extract_all(&store, &rows, folder)?;
        writeln!(out, "{} runs, {}", rows.len(), quantity::bytes(bytes))?;
        return Ok(Exit::Done);
    }
    let (Some(key), Some(folder)) = (&arguments.key, &arguments.folder) else {
        return Err(Failure::input("usage", "name a run and a folder, or `--all DIR`"));
    };
    let row = store.resolve_run(key)?;
    let bytes = extract_one(&store, &row, folder)?;
    crate::progress::say(&format!("wrote {} to `{}`", quantity::bytes(bytes), shown(folder)));
    Ok(Exit::Done)
}

fn extract_one(store: &Store, row: &RunRow, folder: &Path) -> Result<u64, Failure> {
    let Body::Run(run) = store.read_body(row.seq)? else {
        return Err(Failure::input("entry-unreadable", format!("entry {} is no run", row.seq)));
    };
    let tree = read_tree(store, &run.root)?;
    std::fs::create_dir_all(folder)?;
    Ok(restore(store, &tree, folder)?)
}

/// Writes every run, on all cores; each worker has its own connection and takes the next run.
fn extract_all(store: &Store, rows: &[RunRow], folder: &Path) -> Result<u64, Failure> {
    let next = Mutex::new(rows.iter());
    let workers = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let take = || next.lock().ok().and_then(|mut rows| rows.next());
    let source = store.folder();
    std::thread::scope(|scope| {
        let work = || {
            let own = Store::open(source, Access::Read)?;
            let mut bytes = 0;
            while let Some(row) = take() {
                bytes += extract_one(&own, row, &folder.join(row.key.to_string()))?;
            }
            Ok(bytes)
        };
        let handles: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        let mut bytes = 0;
        for handle in handles {
            let done: Result<u64, Failure> = handle
                .join()
                .unwrap_or_else(|_panic| Err(Failure::input("internal", "a worker stopped")));
            bytes += done?;
        }
        Ok(bytes)
    })
}
