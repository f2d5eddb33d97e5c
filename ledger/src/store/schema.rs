//! The database schema of this version: creation, and the check that a database is a ledger that
//! this program may read or append to.

use super::{Access, StoreError};
use rusqlite::{Connection, TransactionBehavior};
use std::path::Path;

/// Format of the database that this program writes (`PRAGMA user_version`).
pub const FORMAT: i64 = 1;

/// Marks the file as a ledger (`PRAGMA application_id`): the bytes `LEDG`.
const APPLICATION_ID: i64 = 0x4c45_4447;

pub(crate) const TRUTH: &str = include_str!("../../schema/sql/0001_truth.sql");
pub(crate) const INDEX: &str = include_str!("../../schema/sql/0002_index.sql");

/// Makes the schema if the database is empty. Returns whether it did.
pub(super) fn create(db: &mut Connection) -> Result<bool, StoreError> {
    if application_id(db)? == APPLICATION_ID {
        return Ok(false);
    }
    // The journal mode is kept in the file; several processes may set it at once, and all but one
    // wait here.
    let mode: String =
        retry_busy(|| db.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0)))
            .map_err(StoreError::database("switch to the write-ahead log"))?;
    if mode != "wal" {
        return Err(StoreError::NotALedger {
            path: db.path().unwrap_or_default().into(),
            problem: format!("journal mode stays `{mode}`; is it on a network file system"),
        });
    }
    let transaction = db
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .map_err(StoreError::database("take the write lock"))?;
    if application_id(&transaction)? == APPLICATION_ID {
        return Ok(false);
    }
    transaction
        .execute_batch(&format!(
            "{TRUTH}{INDEX}PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {FORMAT};"
        ))
        .map_err(StoreError::database("create the schema"))?;
    transaction.commit().map_err(StoreError::database("create the schema"))?;
    Ok(true)
}

/// Runs a statement again while another process is making the same ledger: SQLite does not wait
/// inside a change of the journal mode.
fn retry_busy<T>(mut run: impl FnMut() -> rusqlite::Result<T>) -> rusqlite::Result<T> {
    for _ in 0..600 {
        match run() {
            Err(error)
                if matches!(
                    error.sqlite_error_code(),
                    Some(rusqlite::ErrorCode::DatabaseBusy | rusqlite::ErrorCode::DatabaseLocked)
                ) => {}
            outcome => return outcome,
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    run()
}

/// Checks that the database is a ledger of a format this program knows.
pub(super) fn check(db: &Connection, path: &Path, access: Access) -> Result<(), StoreError> {
    let found_id = application_id(db)?;
    if found_id != APPLICATION_ID {
        return Err(StoreError::NotALedger {
            path: path.to_owned(),
            problem: format!("its application id is {found_id:#x}, not {APPLICATION_ID:#x}"),
        });
    }
    let found: i64 = db
        .query_row("PRAGMA user_version", [], |row| row.get(0))
        .map_err(StoreError::database("read the format"))?;
    if found > FORMAT && access == Access::Append {
        return Err(StoreError::Newer { found, known: FORMAT });
    }
    Ok(())
}

fn application_id(db: &Connection) -> Result<i64, StoreError> {
    db.query_row("PRAGMA application_id", [], |row| row.get(0))
        .map_err(StoreError::database("read the application id"))
}

/// Returns the `CREATE` statements that a database of this version holds, as SQLite keeps them:
/// (name, sql), sorted by name.
///
/// # Errors
/// What SQLite says; only memory is used.
pub(crate) fn expected() -> Result<Vec<(String, String)>, StoreError> {
    let db =
        Connection::open_in_memory().map_err(StoreError::database("open a scratch database"))?;
    db.execute_batch(&format!("{TRUTH}{INDEX}"))
        .map_err(StoreError::database("create the scratch schema"))?;
    statements(&db)
}

/// Reads the `CREATE` statements of a database.
pub(crate) fn statements(db: &Connection) -> Result<Vec<(String, String)>, StoreError> {
    let read = StoreError::database("read the schema");
    let mut query = db
        .prepare("SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name")
        .map_err(StoreError::database("read the schema"))?;
    query
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
        .and_then(Iterator::collect)
        .map_err(read)
}
