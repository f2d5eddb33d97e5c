//! What can go wrong with a ledger's folder and database.

use std::io;
use std::path::PathBuf;

/// Why the store could not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// There is no ledger.
    #[error("there is no ledger at `{}`", path.display())]
    NotFound {
        /// Where it was looked for.
        path: PathBuf,
    },
    /// The folder holds a database that is no ledger.
    #[error("`{}` is not a ledger: {problem}", path.display())]
    NotALedger {
        /// The database.
        path: PathBuf,
        /// What it has instead.
        problem: String,
    },
    /// The ledger was made by a later version.
    #[error(
        "ledger has format {found}, this program writes format {known} and only reads later ones"
    )]
    Newer {
        /// Format found.
        found: i64,
        /// Format known.
        known: i64,
    },
    /// Another process holds the ledger's lock.
    #[error("ledger is busy: another process has been writing for {waited_s} s")]
    Busy {
        /// Seconds waited.
        waited_s: u64,
    },
    /// A file operation failed.
    #[error("cannot {action} `{}`", path.display())]
    Io {
        /// What was attempted: `read`, `create`, `sync`.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The database refused.
    #[error("database refused to {action}")]
    Database {
        /// What was attempted.
        action: &'static str,
        /// Why.
        #[source]
        source: rusqlite::Error,
    },
    /// A stored object is not what its name says.
    #[error("object {blob} is damaged: {problem}")]
    Damaged {
        /// Blob id, in hex.
        blob: String,
        /// What is wrong.
        problem: String,
    },
    /// No object has this id.
    #[error("ledger holds no object {blob}")]
    NoBlob {
        /// Blob id, in hex.
        blob: String,
    },
    /// A stored entry cannot be read.
    #[error("entry {seq} cannot be read: {problem}")]
    Entry {
        /// Its place in the log, from 0.
        seq: i64,
        /// What is wrong.
        problem: String,
    },
    /// A value has no canonical form.
    #[error("entry has no canonical form")]
    Canonical(#[from] crate::canonical::CanonicalError),
    /// A name that a person typed matches nothing.
    #[error("`{typed}` names no run of this ledger")]
    NoSuchRun {
        /// What was typed.
        typed: String,
    },
    /// A name that a person typed matches several things.
    #[error("`{typed}` names {} runs", candidates.len())]
    Ambiguous {
        /// What was typed.
        typed: String,
        /// The keys it could mean, in hex.
        candidates: Vec<String>,
    },
    /// A name that a person typed is too short or no hex.
    #[error("`{typed}` is no key: type 8 or more of its hex digits")]
    NotAKey {
        /// What was typed.
        typed: String,
    },
}

impl StoreError {
    /// Wraps a failed file operation.
    pub(crate) fn io(
        action: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { action, path, source }
    }

    /// Wraps a failed database operation; a lock that could not be had is [`StoreError::Busy`].
    pub(crate) fn database(action: &'static str) -> impl FnOnce(rusqlite::Error) -> Self {
        move |source| match source.sqlite_error_code() {
            Some(rusqlite::ErrorCode::DatabaseBusy | rusqlite::ErrorCode::DatabaseLocked) => {
                Self::Busy { waited_s: super::BUSY_WAIT.as_secs() }
            }
            _ => Self::Database { action, source },
        }
    }

    /// True when the world failed rather than the input.
    pub const fn is_environment(&self) -> bool {
        matches!(self, Self::Busy { .. } | Self::Io { .. } | Self::Database { .. })
    }
}
