//! First step of a plan: the files of the run, hashed. The manifest and the provenance document may
//! lie in the folder; they are what people say about the run, not artifacts of it, and are kept as
//! blobs of their own.

use super::{PlannedBlob, RecordError, RecordRequest, Refusal};
use crate::collect::{self, CollectError, FoundFile};
use crate::finding::{Code, Finding};
use crate::id::BlobId;
use crate::store::{STREAM_LIMIT, Store};
use crate::tree::{Artifact, Tree};
use std::fs;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// A document beside the artifacts.
#[derive(Debug)]
pub(super) struct Document {
    /// What messages call it.
    pub(super) name: String,
    /// Its bytes.
    pub(super) bytes: Vec<u8>,
}

/// Everything that was read.
#[derive(Debug)]
pub(super) struct Gathered {
    /// Artifacts with their place in `blobs`.
    pub(super) artifacts: Vec<Artifact>,
    /// The files, in the same order.
    pub(super) blobs: Vec<PlannedBlob>,
    /// The manifest.
    pub(super) manifest: Option<Document>,
    /// Provenance documents in the order they were captured.
    pub(super) provenance: Vec<Document>,
}

impl Gathered {
    /// Returns every blob that a run of these files names.
    pub(super) fn into_blobs(self) -> Vec<PlannedBlob> {
        let tree = Tree::new(self.artifacts);
        let mut blobs = self.blobs;
        blobs.push(bytes_blob(tree.manifest().into_bytes()));
        for document in self.provenance.into_iter().chain(self.manifest) {
            blobs.push(bytes_blob(document.bytes));
        }
        blobs
    }
}

/// Takes bytes as a blob.
pub(super) fn bytes_blob(bytes: Vec<u8>) -> PlannedBlob {
    PlannedBlob::Bytes(BlobId::of(&bytes), bytes)
}

const MANIFEST: &str = "run.toml";
const PROVENANCE: &str = "provenance.json";

/// Lists, reads and hashes.
pub(super) fn gather(
    request: &RecordRequest,
    store: Option<&Store>,
    advance: &mut dyn FnMut(u64),
) -> Result<Gathered, RecordError> {
    let refuse = |findings| RecordError::Refused(Refusal::input(&request.source, findings));
    let found = collect::list_files(&request.source).map_err(|error| match error {
        CollectError::Io { path, source } => RecordError::Io { path, source },
        CollectError::Refused { findings } => refuse(findings),
    })?;
    let manifest_path = document_paths(request, request.manifest.as_slice(), MANIFEST);
    let provenance_paths = document_paths(request, &request.provenance, PROVENANCE);
    let documents: Vec<PathBuf> = manifest_path
        .iter()
        .chain(&provenance_paths)
        .filter_map(|path| fs::canonicalize(path).ok())
        .collect();
    let mut gathered = Gathered {
        artifacts: Vec::new(),
        blobs: Vec::new(),
        manifest: manifest_path.first().map(|path| read_document(path)).transpose()?,
        provenance: provenance_paths
            .iter()
            .map(|path| read_document(path))
            .collect::<Result<_, _>>()?,
    };
    let mut changed = Vec::new();
    for file in found.iter().filter(|file| !documents.contains(&file.source)) {
        match read(file, store, advance).map_err(|source| io_error(&file.source, source))? {
            Some((blob, size_bytes)) => {
                gathered.artifacts.push(Artifact {
                    path: file.path.clone(),
                    size_bytes,
                    blob: blob.id(),
                });
                gathered.blobs.push(blob);
            }
            None => changed.push(Finding::refusal(
                Code::FileChanged,
                file.printable_path(),
                "file changed while it was read; record it when nothing writes to it",
            )),
        }
    }
    if gathered.artifacts.is_empty() && changed.is_empty() {
        changed.push(Finding::refusal(Code::EmptyFolder, "", "folder holds no artifact"));
    }
    if changed.is_empty() { Ok(gathered) } else { Err(refuse(changed)) }
}

/// Given documents, or the one of the usual name in the folder.
fn document_paths(request: &RecordRequest, given: &[PathBuf], usual: &str) -> Vec<PathBuf> {
    if !given.is_empty() {
        return given.to_vec();
    }
    let path = request.source.join(usual);
    if path.is_file() { vec![path] } else { Vec::new() }
}

fn io_error(path: &Path, source: io::Error) -> RecordError {
    RecordError::Io { path: path.to_owned(), source }
}

fn read_document(path: &Path) -> Result<Document, RecordError> {
    let bytes = fs::read(path).map_err(|source| io_error(path, source))?;
    let name = path.file_name().map(|name| crate::text::escape_path(name.as_bytes()));
    Ok(Document { name: name.unwrap_or_default(), bytes })
}

/// Largest result file that is read whole, in bytes.
const RESULT_LIMIT: u64 = 1 << 30;

/// A large file is read whole only if its start looks like JSON: traces and logs are streamed.
fn may_be_result(file: &FoundFile) -> io::Result<bool> {
    if file.size_bytes() > RESULT_LIMIT {
        return Ok(false);
    }
    let mut head = Vec::new();
    file.open()?.take(64 << 10).read_to_end(&mut head)?;
    let text = head.utf8_chunks().next().map_or("", |chunk| chunk.valid());
    let is_marked = head.starts_with(&[0xff, 0xfe]) || head.starts_with(&[0xfe, 0xff]);
    Ok(is_marked || crate::outline::find_json(text.trim_start_matches('\u{feff}')).is_some())
}

/// Reads one file; `None` when it changed meanwhile.
fn read(
    file: &FoundFile,
    store: Option<&Store>,
    advance: &mut dyn FnMut(u64),
) -> io::Result<Option<(PlannedBlob, u64)>> {
    if file.size_bytes() <= STREAM_LIMIT || may_be_result(file)? {
        let Some(bytes) = file.read()? else { return Ok(None) };
        advance(bytes.len() as u64);
        let size_bytes = bytes.len() as u64;
        return Ok(Some((PlannedBlob::Bytes(BlobId::of(&bytes), bytes), size_bytes)));
    }
    let mut opened = file.open()?;
    let blob = match store {
        Some(store) => PlannedBlob::Prepared(store.prepare_stream(&mut opened, advance)?),
        None => PlannedBlob::Bytes(hash(&mut opened, advance)?, Vec::new()),
    };
    Ok(opened.is_unchanged()?.then(|| (blob, file.size_bytes())))
}

/// Hashes a large file without keeping it, for a dry run.
fn hash(source: &mut impl Read, advance: &mut dyn FnMut(u64)) -> io::Result<BlobId> {
    let mut hasher = blake3::Hasher::new();
    let mut buffer = vec![0u8; 1 << 20];
    loop {
        let length = source.read(&mut buffer)?;
        let Some(chunk) = buffer.get(..length).filter(|chunk| !chunk.is_empty()) else { break };
        hasher.update_rayon(chunk);
        advance(length as u64);
    }
    Ok(BlobId::from_bytes(*hasher.finalize().as_bytes()))
}
