//! The exit table of the command line (README, "Exit status").

use std::process::ExitCode;

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Done, or the answer is yes.
    Done,
    /// The answer is no.
    No,
    /// The input or the usage is wrong; nothing was stored.
    Input,
    /// Rejected as unverified; nothing was stored.
    Unverified,
    /// The environment failed; nothing was stored.
    Environment,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Done => 0,
            Exit::No => 1,
            Exit::Input => 2,
            Exit::Unverified => 3,
            Exit::Environment => 4,
        })
    }
}
