//! The verb `record`: a folder that a benchmark wrote becomes a run. First a plan, which reads and
//! judges and stores nothing; then a commit, which appends plans in one transaction or not at all.

mod assemble;
mod batch;
mod cautions;
mod commit;
mod extract;
mod files;
mod known;
mod measured;

pub use batch::record_batch;
pub use commit::{Recorded, commit};

use crate::adapter::Formats;
use crate::clock::Clock;
use crate::entry::{BindingBody, RunBody};
use crate::finding::Finding;
use crate::id::{BlobId, RunKey};
use crate::store::{PreparedBlob, Store, StoreError};
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

/// What a person asks to record.
#[derive(Debug, Clone, Default)]
pub struct RecordRequest {
    /// The folder (or single file) that the benchmark wrote.
    pub source: PathBuf,
    /// The manifest, when it is not `run.toml` in the folder.
    pub manifest: Option<PathBuf>,
    /// Provenance documents: one captured around the run, or one before and one after; when none is
    /// given, `provenance.json` in the folder.
    pub provenance: Vec<PathBuf>,
    /// Labels given beside the manifest, by name.
    pub labels: BTreeMap<String, String>,
    /// Fingerprint fields given beside the manifest: path and value (JSON, or else a text).
    pub settings: Vec<(String, String)>,
    /// Measurement time given beside the manifest, RFC 3339.
    pub measured_at: Option<String>,
    /// The adapter to use, when content reads as several formats.
    pub adapter: Option<String>,
    /// Result files to read, by path in the folder; when empty, every file that an adapter knows.
    pub results: Vec<String>,
    /// Which record of a result file to take, from 1, when it holds several runs.
    pub pick: Option<usize>,
    /// Why the attempt failed, for one without metrics.
    pub failed: Option<String>,
    /// The retracted run that this one replaces.
    pub replaces: Option<RunKey>,
}

/// What stays the same for all runs of one call.
#[derive(Debug, Clone, Copy)]
pub struct Surroundings<'a> {
    /// Formats that are known.
    pub formats: Formats,
    /// The clock.
    pub clock: Clock,
    /// Bindings of weight sets to models that people recorded, with their entry ids in hex.
    pub bindings: &'a [(String, BindingBody)],
    /// Name and version of the program, for the entry.
    pub tool: &'a str,
}

/// A file of a plan: small ones are in memory until they are known to be new.
#[derive(Debug)]
pub enum PlannedBlob {
    /// Hashed, not compressed yet.
    Bytes(BlobId, Vec<u8>),
    /// Hashed and compressed in one pass.
    Prepared(PreparedBlob),
}

impl PlannedBlob {
    /// Returns its id.
    pub const fn id(&self) -> BlobId {
        match self {
            Self::Bytes(id, _) => *id,
            Self::Prepared(blob) => blob.id,
        }
    }
}

/// What planning came to.
#[derive(Debug)]
pub enum Planned {
    /// A run that can be appended, if it is not there yet.
    Run(Box<Plan>),
    /// The same files with the same manifest and provenance were recorded before by this program, so
    /// that the run would be the same.
    Known {
        /// Its key.
        key: RunKey,
        /// Every file it names, so that a damaged one is mended.
        blobs: Vec<PlannedBlob>,
    },
}

/// A run that can be appended.
#[derive(Debug)]
pub struct Plan {
    /// What the person gave as source, for messages.
    pub source: PathBuf,
    /// Its key.
    pub key: RunKey,
    /// The entry.
    pub body: RunBody,
    /// Every file it names.
    pub blobs: Vec<PlannedBlob>,
}

/// Which exit class a refusal belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefusalClass {
    /// The input is wrong.
    Input,
    /// The weights are not proved.
    Unverified,
}

/// Why a run is not recorded. Nothing was stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// What the person gave as source.
    pub source: PathBuf,
    /// Its class.
    pub class: RefusalClass,
    /// Everything that stands against it.
    pub findings: Vec<Finding>,
}

impl Refusal {
    /// Makes a refusal of wrong input.
    pub fn input(source: impl Into<PathBuf>, findings: Vec<Finding>) -> Self {
        Self { source: source.into(), class: RefusalClass::Input, findings }
    }
}

/// Why planning or committing stopped.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The run was refused.
    #[error("run was not recorded: {} findings stand against it", .0.findings.len())]
    Refused(Refusal),
    /// A file could not be read.
    #[error("cannot read `{}`", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The store refused.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Reads and judges a run. `store` is where large files are compressed to; without one (a dry run on
/// no ledger) they are hashed only. `advance` is called with the number of bytes read.
///
/// # Errors
/// [`RecordError::Refused`] with every finding, or what reading says.
pub fn plan(
    request: &RecordRequest,
    surroundings: &Surroundings<'_>,
    store: Option<&Store>,
    advance: &mut dyn FnMut(u64),
) -> Result<Planned, RecordError> {
    let refuse = |findings| RecordError::Refused(Refusal::input(&request.source, findings));
    let gathered = files::gather(request, store, advance)?;
    if let Some(store) = store
        && let Some(key) = known::find_known(store, request, &gathered, surroundings)?
    {
        return Ok(Planned::Known { key, blobs: gathered.into_blobs() });
    }
    let extracted = extract::extract(request, &gathered, &surroundings.formats).map_err(refuse)?;
    assemble::assemble(request, surroundings, gathered, extracted)
        .map(|plan| Planned::Run(Box::new(plan)))
}

/// Counts the runs that the result files of a request hold.
///
/// # Errors
/// As [`plan`].
pub fn count_runs(request: &RecordRequest, formats: &Formats) -> Result<usize, RecordError> {
    let gathered = files::gather(request, None, &mut |_| {})?;
    extract::count_runs(request, &gathered, formats)
        .map_err(|findings| RecordError::Refused(Refusal::input(&request.source, findings)))
}
