//! The log: entries in order, and the RFC 6962 Merkle tree over them in stored-hash order, so that
//! checkpoints, proofs and tiles are a reading of what is there (C2SP tlog,
//! <https://c2sp.org/tlog-tiles>; tree mathematics by the crate `tlog_tiles`).

use super::{Append, Store, StoreError};
use crate::entry::{Body, entry_id, leaf};
use crate::id::EntryId;
use rusqlite::{Connection, OptionalExtension, params};
use std::collections::BTreeMap;
use tlog_tiles::{Hash, HashReader};

/// `CREATE` statements of a database: (name, SQL).
pub(crate) type Statements = Vec<(String, String)>;

/// Where an entry came to stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Appended {
    /// Its place in the log, from 0.
    pub seq: i64,
    /// Its id.
    pub id: EntryId,
}

/// An entry as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredEntry {
    /// Its place in the log, from 0.
    pub seq: i64,
    /// Its id, as stored.
    pub id: Vec<u8>,
    /// Its kind, as stored.
    pub kind: String,
    /// Its canonical bytes.
    pub body: Vec<u8>,
}

/// The root of the tree at one size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TreeHead {
    /// Number of entries.
    pub size: u64,
    /// SHA-256 root (RFC 6962 section 2.1).
    pub root: [u8; 32],
}

/// Reads tree nodes by their stored-hash index.
pub(crate) struct Nodes<'db>(pub(crate) &'db Connection);

impl HashReader for Nodes<'_> {
    fn read_hashes(&self, indexes: &[u64]) -> Result<Vec<Hash>, tlog_tiles::Error> {
        indexes.iter().map(|index| read_node(self.0, *index)).collect()
    }
}

fn read_node(db: &Connection, index: u64) -> Result<Hash, tlog_tiles::Error> {
    let found: Option<[u8; 32]> = db
        .prepare_cached("SELECT hash FROM tlog_hash WHERE idx = ?1")
        .and_then(|mut query| query.query_row([to_integer(index)], |row| row.get(0)).optional())
        .map_err(|error| tlog_tiles::Error::InvalidInput(error.to_string()))?;
    found
        .map(Hash)
        .ok_or_else(|| tlog_tiles::Error::InvalidInput(format!("tree node {index} is missing")))
}

/// SQLite integers are signed; counts here stay far below 2^63.
pub(crate) fn to_integer(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

pub(crate) fn to_count(integer: i64) -> u64 {
    u64::try_from(integer).unwrap_or(0)
}

fn tree_error(seq: i64) -> impl FnOnce(tlog_tiles::Error) -> StoreError {
    move |error| StoreError::Entry { seq, problem: format!("its tree node: {error}") }
}

impl Append<'_> {
    /// Appends entries and the tree head after them, and brings the indexes up to date.
    ///
    /// # Errors
    /// What SQLite says, or a body without canonical form; nothing is visible until
    /// [`Append::commit`].
    pub fn append(&self, bodies: &[Body]) -> Result<Vec<Appended>, StoreError> {
        let first = self.log_size()?;
        let mut appended = Vec::with_capacity(bodies.len());
        for (seq, body) in (first..).zip(bodies) {
            let bytes = body.to_bytes()?;
            let id = entry_id(&bytes);
            self.transaction
                .prepare_cached("INSERT INTO entry (seq, id, kind, body) VALUES (?1, ?2, ?3, ?4)")
                .and_then(|mut insert| {
                    insert.execute(params![seq, id.as_bytes(), body.kind(), bytes])
                })
                .map_err(StoreError::database("append an entry"))?;
            self.append_nodes(seq, &leaf(&id, body.kind()))?;
            super::index::apply(&self.transaction, seq, body)?;
            appended.push(Appended { seq, id });
        }
        self.append_head()?;
        Ok(appended)
    }

    fn log_size(&self) -> Result<i64, StoreError> {
        log_size(&self.transaction)
    }

    fn append_nodes(&self, seq: i64, leaf: &str) -> Result<(), StoreError> {
        let nodes = Nodes(&self.transaction);
        let hashes = tlog_tiles::stored_hashes(to_count(seq), leaf.as_bytes(), &nodes)
            .map_err(tree_error(seq))?;
        let first = tlog_tiles::stored_hash_index(0, to_count(seq));
        for (index, hash) in (first..).zip(hashes) {
            self.transaction
                .prepare_cached("INSERT INTO tlog_hash (idx, hash) VALUES (?1, ?2)")
                .and_then(|mut insert| insert.execute(params![to_integer(index), hash.0]))
                .map_err(StoreError::database("append a tree node"))?;
        }
        Ok(())
    }

    fn append_head(&self) -> Result<(), StoreError> {
        let size = self.log_size()?;
        let head = compute_head(&self.transaction, to_count(size)).map_err(tree_error(size))?;
        let known: Option<i64> = self
            .transaction
            .query_row("SELECT size FROM tree_head WHERE size = ?1", [size], |row| row.get(0))
            .optional()
            .map_err(StoreError::database("read the tree head"))?;
        if known.is_none() {
            self.transaction
                .execute("INSERT INTO tree_head (size, root) VALUES (?1, ?2)", params![size, head])
                .map_err(StoreError::database("append the tree head"))?;
        }
        Ok(())
    }
}

/// Computes the root of the first `size` leaves from the stored nodes.
pub(crate) fn compute_head(db: &Connection, size: u64) -> Result<[u8; 32], tlog_tiles::Error> {
    tlog_tiles::tree_hash(size, &Nodes(db)).map(|hash| hash.0)
}

fn log_size(db: &Connection) -> Result<i64, StoreError> {
    db.prepare_cached("SELECT coalesce(max(seq) + 1, 0) FROM entry")
        .and_then(|mut query| query.query_row([], |row| row.get(0)))
        .map_err(StoreError::database("count the entries"))
}

impl Store {
    /// Returns the number of entries.
    ///
    /// # Errors
    /// What SQLite says.
    pub fn log_size(&self) -> Result<u64, StoreError> {
        log_size(&self.db).map(to_count)
    }

    /// Returns the newest tree head; `None` for an empty log.
    ///
    /// # Errors
    /// What SQLite says.
    pub fn tree_head(&self) -> Result<Option<TreeHead>, StoreError> {
        self.db
            .query_row("SELECT size, root FROM tree_head ORDER BY size DESC LIMIT 1", [], |row| {
                Ok(TreeHead { size: to_count(row.get(0)?), root: row.get(1)? })
            })
            .optional()
            .map_err(StoreError::database("read the tree head"))
    }

    /// Reads an entry as it is stored.
    ///
    /// # Errors
    /// [`StoreError::Entry`] when the log has no such place.
    pub fn read_entry(&self, seq: i64) -> Result<StoredEntry, StoreError> {
        self.db
            .prepare_cached("SELECT seq, id, kind, body FROM entry WHERE seq = ?1")
            .and_then(|mut query| query.query_row([seq], stored_entry).optional())
            .map_err(StoreError::database("read an entry"))?
            .ok_or(StoreError::Entry { seq, problem: "the log has no such place".to_owned() })
    }

    /// Reads the body of an entry.
    ///
    /// # Errors
    /// [`StoreError::Entry`] when it cannot be read.
    pub fn read_body(&self, seq: i64) -> Result<Body, StoreError> {
        let entry = self.read_entry(seq)?;
        Body::parse(&entry.body)
            .map_err(|error| StoreError::Entry { seq, problem: error.to_string() })
    }

    /// Computes the root of the first `size` entries from the stored nodes.
    ///
    /// # Errors
    /// What is missing, in words.
    pub fn compute_head(&self, size: u64) -> Result<[u8; 32], String> {
        compute_head(&self.db, size).map_err(|error| error.to_string())
    }

    /// Reads every tree node by its stored-hash index.
    ///
    /// # Errors
    /// What SQLite says.
    pub(crate) fn tree_nodes(&self) -> Result<BTreeMap<u64, Vec<u8>>, StoreError> {
        self.db
            .prepare("SELECT idx, hash FROM tlog_hash ORDER BY idx")
            .and_then(|mut query| {
                query.query_map([], |row| Ok((to_count(row.get(0)?), row.get(1)?)))?.collect()
            })
            .map_err(StoreError::database("read the tree"))
    }

    /// Reads every tree head by size.
    ///
    /// # Errors
    /// What SQLite says.
    pub(crate) fn tree_heads(&self) -> Result<Vec<(u64, Vec<u8>)>, StoreError> {
        self.db
            .prepare("SELECT size, root FROM tree_head ORDER BY size")
            .and_then(|mut query| {
                query.query_map([], |row| Ok((to_count(row.get(0)?), row.get(1)?)))?.collect()
            })
            .map_err(StoreError::database("read the tree heads"))
    }

    /// Returns what SQLite finds wrong with the structure of its own file.
    ///
    /// # Errors
    /// What SQLite says when it cannot even look.
    pub(crate) fn find_structural_damage(&self) -> Result<Vec<String>, StoreError> {
        let problems: Vec<String> = self
            .db
            .prepare("PRAGMA integrity_check")
            .and_then(|mut query| query.query_map([], |row| row.get(0))?.collect())
            .map_err(StoreError::database("check its structure"))?;
        Ok(problems.into_iter().filter(|problem| problem != "ok").collect())
    }

    /// Returns the `CREATE` statements of this version and those of the database.
    ///
    /// # Errors
    /// What SQLite says.
    pub(crate) fn schema_statements(&self) -> Result<(Statements, Statements), StoreError> {
        Ok((super::schema::expected()?, super::schema::statements(&self.db)?))
    }

    /// Returns the places of the entries that bind weight sets.
    ///
    /// # Errors
    /// What SQLite says.
    pub(crate) fn binding_entries(&self) -> Result<Vec<i64>, StoreError> {
        self.db
            .prepare_cached("SELECT seq FROM binding ORDER BY seq")
            .and_then(|mut query| query.query_map([], |row| row.get(0))?.collect())
            .map_err(StoreError::database("look up the bindings"))
    }

    /// Walks every entry in log order.
    ///
    /// # Errors
    /// What SQLite says, or what `visit` returns.
    pub fn for_each_entry(
        &self,
        visit: impl FnMut(StoredEntry) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        for_each_entry(&self.db, visit)
    }
}

fn stored_entry(row: &rusqlite::Row<'_>) -> rusqlite::Result<StoredEntry> {
    Ok(StoredEntry { seq: row.get(0)?, id: row.get(1)?, kind: row.get(2)?, body: row.get(3)? })
}

pub(super) fn for_each_entry(
    db: &Connection,
    mut visit: impl FnMut(StoredEntry) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let mut query = db
        .prepare("SELECT seq, id, kind, body FROM entry ORDER BY seq")
        .map_err(StoreError::database("read the log"))?;
    let mut rows = query.query([]).map_err(StoreError::database("read the log"))?;
    while let Some(row) = rows.next().map_err(StoreError::database("read the log"))? {
        visit(stored_entry(row).map_err(StoreError::database("read the log"))?)?;
    }
    Ok(())
}
