//! One file a command: arguments, one call into the library, the answer.

mod adapters;
mod amend;
mod cat;
mod extract;
mod history;
mod import;
mod latest;
mod list;
mod priors;
mod provenance;
mod record;
mod show;
mod verify;
mod weights;

use crate::cli::{Cli, Command};
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use clap::CommandFactory;
use ledger::store::Access;
use std::io::{self, Write};
use std::path::Path;

/// Runs a command.
pub(crate) fn run(context: &Context, command: Command) -> Result<Exit, Failure> {
    let mut out = io::stdout().lock();
    match command {
        Command::Record(arguments) => record::run(context, &arguments, &mut out),
        Command::Show(arguments) => show::run(context, &arguments, &mut out),
        Command::List(arguments) => list::run(context, &arguments, &mut out),
        Command::History(arguments) => history::run(context, &arguments, &mut out),
        Command::Latest(arguments) => latest::run(context, &arguments, &mut out),
        Command::Cat(arguments) => cat::run(context, &arguments, &mut out),
        Command::Extract(arguments) => extract::run(context, &arguments, &mut out),
        Command::Retract(arguments) => amend::retract(context, &arguments, &mut out),
        Command::Correct(arguments) => amend::correct(context, &arguments, &mut out),
        Command::Note(arguments) => amend::note(context, &arguments, &mut out),
        Command::Weights(arguments) => weights::run(context, &arguments, &mut out),
        Command::Provenance(arguments) => provenance::run(context, &arguments.command, &mut out),
        Command::Import(arguments) => import::run(context, &arguments, &mut out),
        Command::Priors(arguments) => priors::run(context, &arguments, &mut out),
        Command::Adapters(arguments) => adapters::run(&arguments, &mut out),
        Command::Verify(arguments) => verify::run(context, &arguments, &mut out),
        Command::Reindex => reindex(context),
        Command::Head => head(context, &mut out),
        Command::Completions { shell } => {
            clap_complete::generate(shell, &mut Cli::command(), "ledger", &mut out);
            Ok(Exit::Done)
        }
        Command::Man { folder } => man(&folder),
    }
}

fn reindex(context: &Context) -> Result<Exit, Failure> {
    let entries = context.open(Access::Append)?.reindex()?;
    crate::progress::say(&format!("filled the indexes from {entries} entries"));
    Ok(Exit::Done)
}

fn head(context: &Context, out: &mut impl Write) -> Result<Exit, Failure> {
    let Some(head) = context.open(Access::Read)?.tree_head()? else {
        crate::progress::say("the log is empty");
        return Ok(Exit::No);
    };
    writeln!(out, "{} {}", head.size, ledger::id::to_hex(&head.root))?;
    Ok(Exit::Done)
}

fn man(folder: &Path) -> Result<Exit, Failure> {
    std::fs::create_dir_all(folder)?;
    clap_mangen::generate_to(Cli::command(), folder)?;
    Ok(Exit::Done)
}
