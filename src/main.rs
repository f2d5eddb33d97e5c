//! `ledger`: the command line. Parses, runs one command, renders its answer, and turns it into an exit
//! status; everything else is in the library.

mod cli;
mod commands;
mod context;
mod exit;
mod failure;
mod progress;
mod render;

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments = cli::Cli::parse();
    let context = match context::Context::new(&arguments) {
        Ok(context) => context,
        Err(failure) => return failure.report().into(),
    };
    match commands::run(&context, arguments.command) {
        Ok(exit) => exit.into(),
        Err(failure) if failure.is_broken_pipe() => ExitCode::SUCCESS,
        Err(failure) => failure.report().into(),
    }
}
