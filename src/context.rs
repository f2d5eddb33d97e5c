//! The only place that reads the environment: where the ledger is, what time it is, how wide and how
//! colorful the terminal is.

use crate::cli::Cli;
use crate::failure::Failure;
use ledger::clock::{self, Clock};
use ledger::store::{Access, FOLDER, Store, StoreError};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

/// Everything a command needs to know about where it runs.
#[derive(Debug)]
pub(crate) struct Context {
    folder: Option<PathBuf>,
    current: PathBuf,
    /// The clock.
    pub(crate) clock: Clock,
    /// Columns of the terminal, when stdout is one.
    pub(crate) width: Option<u16>,
    /// True when progress may be drawn on stderr.
    pub(crate) shows_progress: bool,
}

/// Name and version of the program, as entries carry it.
pub(crate) const TOOL: &str = concat!("ledger ", env!("CARGO_PKG_VERSION"));

#[expect(clippy::disallowed_methods, reason = "this is the one place that reads the environment")]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

impl Context {
    /// Reads arguments and environment.
    pub(crate) fn new(cli: &Cli) -> Result<Self, Failure> {
        let current = std::env::current_dir().map_err(|error| {
            Failure::input("io", format!("cannot read the current folder: {error}"))
        })?;
        let given = cli.ledger.clone().or_else(|| variable("LEDGER_DIR").map(PathBuf::from));
        let clock = match variable("LEDGER_CLOCK") {
            Some(text) => Clock::Fixed(clock::parse(&text).map_err(|error| {
                Failure::input(
                    "bad-value",
                    format!("LEDGER_CLOCK is `{text}`, expected an RFC 3339 time: {error}"),
                )
            })?),
            None => Clock::System,
        };
        let is_terminal = std::io::stdout().is_terminal();
        let columns = variable("COLUMNS").and_then(|text| text.parse().ok());
        Ok(Self {
            folder: given,
            current,
            clock,
            width: if is_terminal { columns.or(Some(120)) } else { columns },
            shows_progress: std::io::stderr().is_terminal(),
        })
    }

    /// Opens the ledger that is meant.
    pub(crate) fn open(&self, access: Access) -> Result<Store, Failure> {
        let found = self.folder.clone().or_else(|| Store::find(&self.current));
        let folder =
            found.ok_or_else(|| StoreError::NotFound { path: self.current.join(FOLDER) })?;
        Ok(Store::open(&folder, access)?)
    }

    /// Opens the ledger that is meant if there is one.
    pub(crate) fn open_if_any(&self) -> Result<Option<Store>, Failure> {
        match self.folder.clone().or_else(|| Store::find(&self.current)) {
            Some(folder) => match Store::open(&folder, Access::Read) {
                Ok(store) => Ok(Some(store)),
                Err(StoreError::NotFound { .. }) => Ok(None),
                Err(error) => Err(error.into()),
            },
            None => Ok(None),
        }
    }

    /// Opens the ledger that is meant, or makes one in the current folder and says so.
    pub(crate) fn open_or_create(&self) -> Result<Store, Failure> {
        let found = self.folder.clone().or_else(|| Store::find(&self.current));
        let folder = found.unwrap_or_else(|| self.current.join(FOLDER));
        let (store, made) = Store::open_or_create(&folder)?;
        if made {
            crate::progress::say(&format!("made a ledger in `{}`", shown(&folder)));
        }
        Ok(store)
    }
}

/// Writes a path for a person.
pub(crate) fn shown(path: &Path) -> String {
    ledger::text::printable(&path.display().to_string())
}
