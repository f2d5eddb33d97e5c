//! Artifacts byte for byte: hashed and compressed in one pass, stored once however many runs hold
//! them. Small frames live in the database, where one commit makes them durable together; large
//! ones are files of their own, which a copy or a backup moves without rewriting the database.

use super::durable::{create_folder, create_temporary, publish, sync_folder};
use super::{Append, Store, StoreError};
use crate::id::{BlobId, to_hex};
use rusqlite::{Connection, OptionalExtension, params};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use tempfile::NamedTempFile;
use zstd::zstd_safe::CParameter;

/// Largest frame, in bytes, that is kept in the database.
///
/// Measured with `benches/row_limit.sh` (ARCHITECTURE.md has the table): up to 1 MiB one database
/// commit is faster than a file with its own two syncs; beyond, writing the frame twice (log and
/// database) costs more than the syncs.
pub const ROW_LIMIT: usize = 1 << 20;

/// Files larger than this, in bytes, are never held in memory whole.
pub const STREAM_LIMIT: u64 = 8 << 20;

/// zstd level. Blobs are found by the hash of their content, so another level later changes nothing
/// that is stored.
const LEVEL: i32 = 3;

/// Shortest match that zstd looks for. Benchmark artifacts are mostly floats with all their digits:
/// matches of three or four digits cost more than the digits. Measured on 50 generated runs, level 3:
/// JSON results 6.47 MB with the default, 5.90 MB with 7, in less time; logs 2.28 and 2.27 MB.
const MIN_MATCH: u32 = 7;

/// The compressed form of a blob before it is stored.
#[derive(Debug)]
pub enum Frame {
    /// In memory.
    Bytes(Vec<u8>),
    /// In a temporary file of the ledger's `incoming/` folder.
    File(NamedTempFile),
}

/// A blob that is hashed and compressed and can be stored without further work.
#[derive(Debug)]
pub struct PreparedBlob {
    /// Its id.
    pub id: BlobId,
    /// Length of the original in bytes.
    pub size_bytes: u64,
    /// BLAKE3 of the frame.
    pub stored_hash: [u8; 32],
    /// The frame.
    pub frame: Frame,
}

/// A blob as the database describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredBlob {
    /// Row id.
    pub row: i64,
    /// BLAKE3 of the original, as stored.
    pub hash: Vec<u8>,
    /// Length of the original in bytes, as stored.
    pub size_bytes: u64,
    /// BLAKE3 of the frame, as stored.
    pub stored_hash: Vec<u8>,
    /// The frame, unless it is a file.
    pub data: Option<Vec<u8>>,
}

/// What storing a blob did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlobStored {
    /// It was new.
    New,
    /// It was there, intact.
    Known,
    /// It was there, damaged, and a good copy stands now.
    Repaired,
}

/// Compresses bytes that were hashed as `id`.
///
/// # Errors
/// What zstd says; it has no reason to.
pub fn prepare_bytes(id: BlobId, bytes: &[u8]) -> io::Result<PreparedBlob> {
    thread_local! {
        static COMPRESSOR: std::cell::RefCell<Option<zstd::bulk::Compressor<'static>>> =
            const { std::cell::RefCell::new(None) };
    }
    // A compression context costs as much as compressing a small file, so each thread keeps one.
    let frame = COMPRESSOR.with_borrow_mut(|slot| {
        let mut compressor = slot.take().map_or_else(new_compressor, Ok)?;
        let frame = compressor.compress(bytes);
        *slot = Some(compressor);
        frame
    })?;
    Ok(PreparedBlob {
        id,
        size_bytes: bytes.len() as u64,
        stored_hash: *blake3::hash(&frame).as_bytes(),
        frame: Frame::Bytes(frame),
    })
}

fn new_compressor() -> io::Result<zstd::bulk::Compressor<'static>> {
    let mut compressor = zstd::bulk::Compressor::new(LEVEL)?;
    compressor.set_parameter(CParameter::MinMatch(MIN_MATCH))?;
    Ok(compressor)
}

/// Bytes that are read at once.
const CHUNK_BYTES: usize = 1 << 20;

/// Hashes and compresses a stream in one pass with bounded memory, calling `advance` with the
/// number of bytes of each step. The content is hashed beside the compression, on another core.
pub(super) fn prepare_stream(
    incoming: &Path,
    source: &mut impl Read,
    advance: &mut dyn FnMut(u64),
) -> io::Result<PreparedBlob> {
    let mut target = Hashing { file: create_temporary(incoming)?, hasher: blake3::Hasher::new() };
    let (send, receive) = sync_channel::<Arc<Vec<u8>>>(4);
    let (size_bytes, original) = std::thread::scope(|scope| {
        let hashing = scope.spawn(move || {
            let mut hasher = blake3::Hasher::new();
            for chunk in receive {
                hasher.update(&chunk);
            }
            hasher.finalize()
        });
        let size_bytes = compress_stream(source, &mut target, |chunk| {
            advance(chunk.len() as u64);
            send.send(Arc::clone(chunk)).map_err(io::Error::other)
        });
        drop(send);
        let original = hashing.join().map_err(|_panic| io::Error::other("hashing stopped"));
        size_bytes.and_then(|size_bytes| Ok((size_bytes, original?)))
    })?;
    Ok(PreparedBlob {
        id: BlobId::from_bytes(*original.as_bytes()),
        size_bytes,
        stored_hash: *target.hasher.finalize().as_bytes(),
        frame: Frame::File(target.file),
    })
}

fn compress_stream(
    source: &mut impl Read,
    target: &mut impl Write,
    mut each: impl FnMut(&Arc<Vec<u8>>) -> io::Result<()>,
) -> io::Result<u64> {
    let mut encoder = zstd::stream::write::Encoder::new(target, LEVEL)?;
    encoder.set_parameter(CParameter::MinMatch(MIN_MATCH))?;
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    encoder.multithread(u32::try_from(threads).unwrap_or(1))?;
    let mut size_bytes = 0;
    loop {
        let mut chunk = Vec::with_capacity(CHUNK_BYTES);
        source.by_ref().take(CHUNK_BYTES as u64).read_to_end(&mut chunk)?;
        if chunk.is_empty() {
            break;
        }
        size_bytes += chunk.len() as u64;
        let chunk = Arc::new(chunk);
        each(&chunk)?;
        encoder.write_all(&chunk)?;
    }
    encoder.finish()?;
    Ok(size_bytes)
}

struct Hashing {
    file: NamedTempFile,
    hasher: blake3::Hasher,
}

impl Write for Hashing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.hasher.update(bytes.get(..written).unwrap_or_default());
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Returns the file that holds a blob's frame when it is not in the database.
fn object_path(folder: &Path, hash: &[u8]) -> PathBuf {
    let hex = to_hex(hash);
    let shard = hex.get(..2).unwrap_or_default().to_owned();
    folder.join("objects").join(shard).join(format!("{hex}.zst"))
}

fn find_blob(db: &Connection, id: &BlobId) -> Result<Option<StoredBlob>, StoreError> {
    db.prepare_cached("SELECT id, hash, size, stored_hash, data FROM blob WHERE hash = ?1")
        .and_then(|mut query| query.query_row([id.as_bytes()], stored_blob).optional())
        .map_err(StoreError::database("look up an object"))
}

fn stored_blob(row: &rusqlite::Row<'_>) -> rusqlite::Result<StoredBlob> {
    Ok(StoredBlob {
        row: row.get(0)?,
        hash: row.get(1)?,
        size_bytes: super::log::to_count(row.get(2)?),
        stored_hash: row.get(3)?,
        data: row.get(4)?,
    })
}

/// Says whether the stored frame is the one that was written, in the database or beside it.
fn is_intact(folder: &Path, blob: &StoredBlob) -> bool {
    let matches = |frame: &[u8]| blake3::hash(frame).as_bytes()[..] == blob.stored_hash[..];
    blob.data.as_deref().is_some_and(matches)
        || hash_file(&object_path(folder, &blob.hash))
            .is_ok_and(|hash| hash.as_bytes()[..] == blob.stored_hash[..])
}

fn hash_file(path: &Path) -> io::Result<blake3::Hash> {
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(File::open(path)?)?;
    Ok(hasher.finalize())
}

impl Append<'_> {
    /// Stores blobs and makes object files durable before the commit that names them.
    ///
    /// # Errors
    /// What the file system or SQLite says. Object files of an append that is not committed stay as
    /// stray files that a later append of the same blob takes over.
    pub fn store_blobs(
        &self,
        blobs: impl IntoIterator<Item = PreparedBlob>,
    ) -> Result<Vec<(BlobId, BlobStored)>, StoreError> {
        let mut shards = BTreeSet::new();
        let mut outcomes = Vec::new();
        for blob in blobs {
            let id = blob.id;
            outcomes.push((id, self.store_blob(blob, &mut shards)?));
        }
        for shard in shards {
            sync_folder(&shard).map_err(StoreError::io("sync", &shard))?;
        }
        Ok(outcomes)
    }

    fn store_blob(
        &self,
        blob: PreparedBlob,
        shards: &mut BTreeSet<PathBuf>,
    ) -> Result<BlobStored, StoreError> {
        let known = find_blob(&self.transaction, &blob.id)?;
        if let Some(known) = known {
            if is_intact(self.folder, &known) {
                return Ok(BlobStored::Known);
            }
            self.publish_object(blob, true, shards)?;
            return Ok(BlobStored::Repaired);
        }
        let row = match &blob.frame {
            Frame::Bytes(frame) if frame.len() <= ROW_LIMIT => Some(frame.as_slice()),
            Frame::Bytes(_) | Frame::File(_) => None,
        };
        self.transaction
            .prepare_cached(
                "INSERT INTO blob (hash, size, stored_hash, data) VALUES (?1, ?2, ?3, ?4)",
            )
            .and_then(|mut insert| {
                let size = super::log::to_integer(blob.size_bytes);
                insert.execute(params![blob.id.as_bytes(), size, blob.stored_hash, row])
            })
            .map_err(StoreError::database("store an object"))?;
        if row.is_none() {
            // A file left by an append that was killed may be cut: it is replaced, not trusted.
            self.publish_object(blob, true, shards)?;
        }
        Ok(BlobStored::New)
    }

    fn publish_object(
        &self,
        blob: PreparedBlob,
        replace: bool,
        shards: &mut BTreeSet<PathBuf>,
    ) -> Result<(), StoreError> {
        let path = object_path(self.folder, blob.id.as_bytes());
        let shard = path.parent().unwrap_or(self.folder).to_owned();
        create_folder(&shard).map_err(StoreError::io("create", &shard))?;
        let file = match blob.frame {
            Frame::File(file) => file,
            Frame::Bytes(frame) => {
                let incoming = self.folder.join("incoming");
                write_temporary(&incoming, &frame).map_err(StoreError::io("write", &incoming))?
            }
        };
        publish(file, &path, replace).map_err(StoreError::io("publish", &path))?;
        shards.insert(shard);
        Ok(())
    }

    /// True when the ledger already holds a blob and its frame is intact.
    ///
    /// # Errors
    /// What SQLite says.
    pub fn holds_intact(&self, id: &BlobId) -> Result<bool, StoreError> {
        Ok(find_blob(&self.transaction, id)?.is_some_and(|blob| is_intact(self.folder, &blob)))
    }
}

fn write_temporary(incoming: &Path, frame: &[u8]) -> io::Result<NamedTempFile> {
    let mut file = create_temporary(incoming)?;
    file.write_all(frame)?;
    Ok(file)
}

impl Store {
    /// Hashes and compresses a stream into the ledger's `incoming/` folder with bounded memory.
    ///
    /// # Errors
    /// What reading or writing says.
    pub fn prepare_stream(
        &self,
        source: &mut impl Read,
        advance: &mut dyn FnMut(u64),
    ) -> io::Result<PreparedBlob> {
        prepare_stream(&self.folder.join("incoming"), source, advance)
    }

    /// True when the ledger holds an intact frame for the blob.
    ///
    /// # Errors
    /// What SQLite says.
    pub fn holds_intact(&self, id: &BlobId) -> Result<bool, StoreError> {
        Ok(find_blob(&self.db, id)?.is_some_and(|blob| is_intact(&self.folder, &blob)))
    }

    /// Reads a blob whole and checks it against its id.
    ///
    /// # Errors
    /// [`StoreError::NoBlob`], or [`StoreError::Damaged`] with what was found instead.
    pub fn read_blob(&self, id: &BlobId) -> Result<Vec<u8>, StoreError> {
        let mut bytes = Vec::new();
        self.copy_blob(id, &mut bytes)?;
        Ok(bytes)
    }

    /// Writes a blob's original bytes to `target`, checking them against the id on the way; on
    /// damage `target` has received bytes that must not be used.
    ///
    /// # Errors
    /// As [`Store::read_blob`], and what `target` says.
    pub fn copy_blob(&self, id: &BlobId, target: &mut impl Write) -> Result<u64, StoreError> {
        let blob = find_blob(&self.db, id)?.ok_or(StoreError::NoBlob { blob: id.to_string() })?;
        let damaged = |problem: String| StoreError::Damaged { blob: id.to_string(), problem };
        let mut tee = Tee { target, hasher: blake3::Hasher::new() };
        let length =
            self.decompress(&blob, &mut tee).map_err(|error| damaged(error.to_string()))?;
        let found = tee.hasher.finalize();
        if found.as_bytes() != id.as_bytes() {
            return Err(damaged(format!("content hashes to {found}")));
        }
        Ok(length)
    }

    /// Decompresses a blob's frame; a damaged row falls back to the object file that a repair wrote.
    pub(crate) fn decompress(&self, blob: &StoredBlob, target: &mut impl Write) -> io::Result<u64> {
        let row = blob.data.as_deref().filter(|frame| {
            blake3::hash(frame).as_bytes()[..] == blob.stored_hash[..]
                || !object_path(&self.folder, &blob.hash).exists()
        });
        match row {
            Some(frame) if blob.size_bytes <= STREAM_LIMIT => {
                let limit = usize::try_from(blob.size_bytes).unwrap_or(usize::MAX);
                decompress_small(frame, limit, target)
            }
            Some(frame) => copy_decoded(frame, blob.size_bytes, target),
            None => {
                let file = File::open(object_path(&self.folder, &blob.hash))?;
                copy_decoded(file, blob.size_bytes, target)
            }
        }
    }

    /// Reads the frame of a blob as it is stored.
    pub(crate) fn hash_frame(&self, blob: &StoredBlob) -> io::Result<blake3::Hash> {
        match &blob.data {
            Some(frame) => Ok(blake3::hash(frame)),
            None => hash_file(&object_path(&self.folder, &blob.hash)),
        }
    }

    /// Returns the object file of a blob, which exists only for large or repaired ones.
    pub fn object_path(&self, blob: &StoredBlob) -> PathBuf {
        object_path(&self.folder, &blob.hash)
    }

    /// Lists the blobs in row order, without their frames.
    ///
    /// # Errors
    /// What SQLite says.
    pub fn blob_rows(&self) -> Result<Vec<i64>, StoreError> {
        let mut query = self
            .db
            .prepare("SELECT id FROM blob ORDER BY id")
            .map_err(StoreError::database("list the objects"))?;
        query
            .query_map([], |row| row.get(0))
            .and_then(Iterator::collect)
            .map_err(StoreError::database("list the objects"))
    }

    /// Returns the length of every blob as its row states it, by id.
    ///
    /// # Errors
    /// What SQLite says.
    pub(crate) fn blob_sizes(&self) -> Result<BTreeMap<BlobId, u64>, StoreError> {
        self.db
            .prepare("SELECT hash, size FROM blob")
            .and_then(|mut query| {
                query
                    .query_map([], |row| {
                        Ok((BlobId::from_bytes(row.get(0)?), super::log::to_count(row.get(1)?)))
                    })?
                    .collect()
            })
            .map_err(StoreError::database("list the objects"))
    }

    /// Reads one blob's row.
    ///
    /// # Errors
    /// What SQLite says.
    pub fn read_blob_row(&self, row: i64) -> Result<StoredBlob, StoreError> {
        self.db
            .prepare_cached("SELECT id, hash, size, stored_hash, data FROM blob WHERE id = ?1")
            .and_then(|mut query| query.query_row([row], stored_blob))
            .map_err(StoreError::database("read an object"))
    }

    /// Finds a blob's row by a prefix of its id in hex.
    ///
    /// # Errors
    /// What SQLite says.
    pub fn find_blobs_by_prefix(&self, prefix: &str) -> Result<Vec<BlobId>, StoreError> {
        let mut query = self
            .db
            .prepare("SELECT hash FROM blob WHERE lower(hex(hash)) LIKE ?1 || '%' LIMIT 20")
            .map_err(StoreError::database("look up an object"))?;
        query
            .query_map([prefix], |row| row.get(0).map(BlobId::from_bytes))
            .and_then(Iterator::collect)
            .map_err(StoreError::database("look up an object"))
    }

    /// Lists the object files, as (hash in hex or file name, path).
    ///
    /// # Errors
    /// What the file system says.
    pub fn object_files(&self) -> Result<Vec<PathBuf>, StoreError> {
        let objects = self.folder.join("objects");
        let mut files = Vec::new();
        for shard in read_folder(&objects)? {
            if shard.is_dir() {
                files.extend(read_folder(&shard)?);
            } else {
                files.push(shard);
            }
        }
        files.sort();
        Ok(files)
    }
}

/// Decompresses in memory, with a context and a buffer that each thread keeps: making them costs as
/// much as decompressing a small file.
fn decompress_small(frame: &[u8], limit: usize, target: &mut impl Write) -> io::Result<u64> {
    thread_local! {
        static KEPT: std::cell::RefCell<Option<(zstd::bulk::Decompressor<'static>, Vec<u8>)>> =
            const { std::cell::RefCell::new(None) };
    }
    KEPT.with_borrow_mut(|slot| {
        let (mut decompressor, mut buffer) = match slot.take() {
            Some(kept) => kept,
            None => (zstd::bulk::Decompressor::new()?, Vec::new()),
        };
        buffer.clear();
        buffer.reserve(limit);
        let outcome = decompressor
            .decompress_to_buffer(frame, &mut buffer)
            .and_then(|length| target.write_all(&buffer).map(|()| length as u64));
        *slot = Some((decompressor, buffer));
        outcome
    })
}

fn read_folder(folder: &Path) -> Result<Vec<PathBuf>, StoreError> {
    fs::read_dir(folder)
        .and_then(|entries| entries.map(|entry| entry.map(|entry| entry.path())).collect())
        .map_err(StoreError::io("read", folder))
}

/// Copies a frame's content, stopping one byte past the stored size: a damaged frame must not fill
/// the disk.
fn copy_decoded(frame: impl Read, size_bytes: u64, target: &mut impl Write) -> io::Result<u64> {
    let decoder = zstd::stream::read::Decoder::new(frame)?;
    io::copy(&mut decoder.take(size_bytes.saturating_add(1)), target)
}

struct Tee<'a, W> {
    target: &'a mut W,
    hasher: blake3::Hasher,
}

impl<W: Write> Write for Tee<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.target.write(bytes)?;
        self.hasher.update(bytes.get(..written).unwrap_or_default());
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.target.flush()
    }
}
