//! The ledger's folder: one SQLite database with the log and small artifacts, and `objects/` with
//! large ones. This room alone knows SQLite. It appends and reads; what is worth appending is
//! decided elsewhere.
//!
//! ```text
//! .ledger/ledger.db          entries, Merkle tree, blobs up to ROW_LIMIT, indexes
//! .ledger/objects/ab/ab….zst larger blobs, one read-only zstd frame each
//! .ledger/incoming/          temporary files; nothing here is ever read
//! ```

mod blobs;
mod durable;
mod error;
mod index;
mod log;
mod schema;

pub use blobs::{
    BlobStored, Frame, PreparedBlob, ROW_LIMIT, STREAM_LIMIT, StoredBlob, prepare_bytes,
};
pub use error::StoreError;
pub(crate) use index::measurement_digest;
pub use index::{IndexTable, LatestRow, RunRow};
pub use log::{Appended, StoredEntry, TreeHead};
pub use schema::FORMAT;

use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long a command waits for another writer before it gives up.
pub const BUSY_WAIT: Duration = Duration::from_mins(1);

/// Name of the folder that is looked for upward.
pub const FOLDER: &str = ".ledger";

const DATABASE: &str = "ledger.db";

/// What an opened ledger may be used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Questions only.
    Read,
    /// Questions and appends.
    Append,
}

/// An opened ledger.
#[derive(Debug)]
pub struct Store {
    folder: PathBuf,
    db: Connection,
}

impl Store {
    /// Finds the nearest ledger folder at or above `start`.
    pub fn find(start: &Path) -> Option<PathBuf> {
        start
            .ancestors()
            .map(|folder| folder.join(FOLDER))
            .find(|path| path.join(DATABASE).exists())
    }

    /// Opens the ledger in `folder`.
    ///
    /// # Errors
    /// [`StoreError::NotFound`], [`StoreError::NotALedger`], [`StoreError::Newer`] for an append to
    /// a later format, or what the file system or SQLite says.
    pub fn open(folder: &Path, access: Access) -> Result<Self, StoreError> {
        let path = folder.join(DATABASE);
        if !path.exists() {
            return Err(StoreError::NotFound { path: folder.to_owned() });
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let db = Connection::open_with_flags(&path, flags)
            .map_err(StoreError::database("open the ledger"))?;
        configure(&db).map_err(|error| not_a_database(error, &path))?;
        schema::check(&db, &path, access)?;
        Ok(Self { folder: folder.to_owned(), db })
    }

    /// Opens the ledger in `folder`, making it when there is none. Several processes may do this at
    /// the same moment; one makes it, all open it. Returns whether this call made it.
    ///
    /// # Errors
    /// What the file system or SQLite says.
    pub fn open_or_create(folder: &Path) -> Result<(Self, bool), StoreError> {
        let path = folder.join(DATABASE);
        for part in [folder.to_owned(), folder.join("objects"), folder.join("incoming")] {
            durable::create_folder(&part).map_err(StoreError::io("create", &part))?;
        }
        let mut db = Connection::open(&path).map_err(StoreError::database("create the ledger"))?;
        configure(&db).map_err(|error| not_a_database(error, &path))?;
        let made = schema::create(&mut db)?;
        if made {
            durable::sync_folder(folder).map_err(StoreError::io("sync", folder))?;
        }
        schema::check(&db, &path, Access::Append)?;
        Ok((Self { folder: folder.to_owned(), db }, made))
    }

    /// Returns the folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Starts an append: takes the write lock, waiting for other writers.
    ///
    /// # Errors
    /// [`StoreError::Busy`] after [`BUSY_WAIT`].
    pub fn begin(&mut self) -> Result<Append<'_>, StoreError> {
        let transaction = self
            .db
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(StoreError::database("take the write lock"))?;
        Ok(Append { folder: &self.folder, transaction })
    }
}

/// An append that becomes visible and durable as a whole when it is committed.
#[derive(Debug)]
pub struct Append<'store> {
    folder: &'store Path,
    transaction: Transaction<'store>,
}

impl Append<'_> {
    /// Makes the append durable.
    ///
    /// # Errors
    /// What SQLite says; the ledger is then as it was before.
    pub fn commit(self) -> Result<(), StoreError> {
        self.transaction.commit().map_err(StoreError::database("commit"))
    }
}

/// The first statement on a file that is no database says so.
fn not_a_database(error: StoreError, path: &Path) -> StoreError {
    let is_foreign = matches!(&error, StoreError::Database { source, .. }
        if source.sqlite_error_code() == Some(rusqlite::ErrorCode::NotADatabase));
    if !is_foreign {
        return error;
    }
    StoreError::NotALedger { path: path.to_owned(), problem: "it is no SQLite database".to_owned() }
}

fn configure(db: &Connection) -> Result<(), StoreError> {
    db.busy_timeout(BUSY_WAIT).map_err(StoreError::database("set the busy timeout"))?;
    // FULL syncs the log of each commit: an acknowledged key survives power loss.
    db.execute_batch(
        "PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; PRAGMA recursive_triggers = ON;
         PRAGMA cache_size = -16384; PRAGMA temp_store = MEMORY;",
    )
    .map_err(StoreError::database("configure the connection"))?;
    db.set_prepared_statement_cache_capacity(64);
    Ok(())
}
