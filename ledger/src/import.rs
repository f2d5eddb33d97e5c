//! The verb `import`: somebody else's file becomes a prior, stored whole and first, with the rows it
//! yields. A prior is advisory for ever: no view of runs, no baseline and no recommendation takes
//! it. A file that cannot be read is kept and marked `unparsed` with the reason. The time of import
//! is no part of its identity, so that one file imported twice is one prior.

use crate::adapter::{Adapter, ExtractedRun, Extraction, Fact, FactKind, Formats, SourceFile};
use crate::clock::{Clock, stamp};
use crate::collect::FoundFile;
use crate::decode::{Decoded, Encoding, decode};
use crate::entry::{
    BODY_VERSION, Body, PriorBody, PriorRow, PriorSource, PriorStatement, ResultFile,
};
use crate::finding::{Code, Finding, Severity};
use crate::id::{BlobId, PriorKey};
use crate::store::{Append, PreparedBlob, Store, StoreError, prepare_bytes};
use crate::summary::summarize;
use crate::tree::{Artifact, Tree};
use crate::validity;
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

/// Files that are read and compressed together; bounds memory.
const CHUNK: usize = 256;

/// A person's own description of a format, with its adapter.
#[derive(Debug, Clone, Copy)]
pub struct Mapped<'a> {
    /// Reads what the map describes.
    pub adapter: &'a dyn Adapter,
    /// The map as it was written, kept beside the prior.
    pub bytes: &'a [u8],
}

/// How files are to be read.
#[derive(Debug, Clone, Copy)]
pub enum Reader<'a> {
    /// By what their content shows.
    Detect,
    /// By this adapter.
    Named(&'static dyn Adapter),
    /// By a map.
    Map(Mapped<'a>),
}

/// What is the same for all files of one call.
#[derive(Debug, Clone, Copy)]
pub struct ImportRequest<'a> {
    /// Where the files come from.
    pub source: &'a PriorSource,
    /// How they are read.
    pub reader: Reader<'a>,
    /// Formats that are known.
    pub formats: Formats,
    /// The clock.
    pub clock: Clock,
    /// Name and version of the program, for the entry.
    pub tool: &'a str,
}

/// What became of one file.
#[derive(Debug, Clone, PartialEq)]
pub struct Imported {
    /// The prior as it is stored, or as it would be.
    pub body: PriorBody,
    /// True when the ledger held it before this call.
    pub was_known: bool,
}

/// Why nothing was imported.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// Files were refused; nothing was stored.
    #[error("nothing was imported: {} things stand against it", .0.len())]
    Refused(Vec<Finding>),
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

struct Planned {
    body: PriorBody,
    blobs: Vec<(BlobId, Vec<u8>)>,
}

/// Reads files and says what would be imported; stores nothing.
///
/// # Errors
/// [`ImportError::Refused`] with every file that is refused: it changed while it was read, or reads
/// as several formats.
pub fn preview(
    files: &[FoundFile],
    request: &ImportRequest<'_>,
) -> Result<Vec<PriorBody>, ImportError> {
    Ok(plan_all(files, request)?.into_iter().map(|planned| planned.body).collect())
}

/// Imports files, each as a prior of its own, in one transaction: all of them, or none.
///
/// # Errors
/// As [`preview`], or what the store says.
pub fn import(
    store: &mut Store,
    files: &[FoundFile],
    request: &ImportRequest<'_>,
) -> Result<Vec<Imported>, ImportError> {
    let append = store.begin()?;
    let mut outcomes = Vec::with_capacity(files.len());
    let mut refusals = Vec::new();
    for chunk in files.chunks(CHUNK) {
        match plan_all(chunk, request) {
            Ok(planned) => outcomes.extend(append_all(&append, planned)?),
            Err(ImportError::Refused(found)) => refusals.extend(found),
            Err(error) => return Err(error),
        }
    }
    if !refusals.is_empty() {
        return Err(ImportError::Refused(refusals));
    }
    append.commit()?;
    Ok(outcomes)
}

fn append_all(append: &Append<'_>, planned: Vec<Planned>) -> Result<Vec<Imported>, StoreError> {
    let prepared: Vec<(PriorBody, Vec<PreparedBlob>)> = planned
        .into_par_iter()
        .map(|Planned { body, blobs }| {
            let blobs = blobs
                .into_iter()
                .map(|(id, bytes)| {
                    prepare_bytes(id, &bytes).map_err(StoreError::io("compress", body.path.clone()))
                })
                .collect::<Result<_, _>>()?;
            Ok((body, blobs))
        })
        .collect::<Result<_, StoreError>>()?;
    let mut outcomes = Vec::with_capacity(prepared.len());
    for (body, blobs) in prepared {
        append.store_blobs(blobs)?;
        let key: PriorKey = body.key.parse().map_err(|_bad| StoreError::Entry {
            seq: 0,
            problem: format!("`{}` is no prior key", body.key),
        })?;
        let was_known = append.find_prior(&key)?.is_some();
        if !was_known {
            append.append(&[Body::Prior(Box::new(body.clone()))])?;
        }
        outcomes.push(Imported { body, was_known });
    }
    Ok(outcomes)
}

fn plan_all(files: &[FoundFile], request: &ImportRequest<'_>) -> Result<Vec<Planned>, ImportError> {
    let outcomes: Vec<Result<Planned, ImportError>> =
        files.par_iter().map(|file| plan(file, request)).collect();
    let mut planned = Vec::with_capacity(outcomes.len());
    let mut refusals = Vec::new();
    for outcome in outcomes {
        match outcome {
            Ok(one) => planned.push(one),
            Err(ImportError::Refused(found)) => refusals.extend(found),
            Err(error) => return Err(error),
        }
    }
    if refusals.is_empty() { Ok(planned) } else { Err(ImportError::Refused(refusals)) }
}

fn plan(file: &FoundFile, request: &ImportRequest<'_>) -> Result<Planned, ImportError> {
    let path = file.printable_path();
    let bytes = file
        .read()
        .map_err(|source| ImportError::Io { path: file.source.clone(), source })?
        .ok_or_else(|| {
            let message = "file changed while it was read; import it when nothing writes to it";
            ImportError::Refused(vec![Finding::refusal(Code::FileChanged, &path, message)])
        })?;
    let blob = BlobId::of(&bytes);
    let tree =
        Tree::new(vec![Artifact { path: file.path.clone(), size_bytes: bytes.len() as u64, blob }]);
    let root = tree.root();
    let read = read(&path, &bytes, blob, request)?;
    let manifest = tree.manifest().into_bytes();
    let mut blobs = vec![(BlobId::of(&manifest), manifest), (blob, bytes)];
    let map = match request.reader {
        Reader::Map(map) => {
            blobs.push((BlobId::of(map.bytes), map.bytes.to_vec()));
            Some(BlobId::of(map.bytes).to_string())
        }
        Reader::Detect | Reader::Named(_) => None,
    };
    let body = PriorBody {
        v: BODY_VERSION,
        key: PriorKey::derive(&root, &request.source.name).to_string(),
        root: root.to_string(),
        source: request.source.clone(),
        recorded_at: stamp(request.clock.now()),
        tool: request.tool.to_owned(),
        path,
        blob: blob.to_string(),
        read_as: read.read_as,
        map,
        unparsed: read.unparsed,
        rows: read.rows,
        findings: read.findings,
    };
    Ok(Planned { body, blobs })
}

/// What a file yields.
#[derive(Debug, Default)]
struct Yield {
    read_as: Option<ResultFile>,
    unparsed: Option<String>,
    rows: Vec<PriorRow>,
    findings: Vec<Finding>,
}

impl Yield {
    fn unparsed(reason: impl Into<String>) -> Self {
        Self { unparsed: Some(reason.into()), ..Self::default() }
    }
}

fn read(
    path: &str,
    bytes: &[u8],
    blob: BlobId,
    request: &ImportRequest<'_>,
) -> Result<Yield, ImportError> {
    let Decoded { text, encoding } = match decode(bytes) {
        Ok(decoded) => decoded,
        Err(error) => return Ok(Yield::unparsed(error.to_string())),
    };
    if text.trim().is_empty() {
        return Ok(Yield::unparsed("file is empty"));
    }
    let file = SourceFile::new(path, &text);
    let Some(adapter) = choose(&file, request)? else {
        return Ok(Yield::unparsed(
            "no adapter knows its content; name one with `--adapter`, or describe it with `--map`",
        ));
    };
    let read_as = ResultFile {
        path: path.to_owned(),
        blob: blob.to_string(),
        adapter: adapter.id().to_owned(),
        version: adapter.version(),
        encoding: encoding.as_str().to_owned(),
    };
    let mut read = match adapter.extract(&file) {
        Err(error) => Yield::unparsed(format!("{} cannot be read: {error}", adapter.title())),
        Ok(extraction) => rows(extraction),
    };
    // Who writes a map says that numbers are there; a file without them is a mistake in the map.
    if let (Reader::Map(_), Some(reason)) = (request.reader, &read.unparsed) {
        let finding = Finding::refusal(Code::NoResult, path, reason.clone());
        return Err(ImportError::Refused(vec![finding]));
    }
    if encoding != Encoding::Utf8 {
        let message = format!("`{path}` was read as {}", encoding.as_str());
        read.findings.push(Finding::new(Code::EncodingConverted, Severity::Note, path, message));
    }
    Ok(Yield { read_as: Some(read_as), ..read })
}

fn choose<'a>(
    file: &SourceFile<'_>,
    request: &ImportRequest<'a>,
) -> Result<Option<&'a dyn Adapter>, ImportError> {
    match request.reader {
        Reader::Named(adapter) => return Ok(Some(adapter)),
        Reader::Map(map) => return Ok(Some(map.adapter)),
        Reader::Detect => {}
    }
    let known: Vec<(&'static dyn Adapter, String)> = request
        .formats
        .importable()
        .filter_map(|adapter| Some((adapter, adapter.detect(file)?)))
        .collect();
    match known.as_slice() {
        [] => Ok(None),
        [(adapter, _)] => Ok(Some(*adapter)),
        several => {
            let message = format!(
                "`{}` reads as {} formats; name one with `--adapter`",
                file.name,
                several.len()
            );
            let finding = Finding::refusal(Code::FormatAmbiguous, file.name, message);
            let finding = several
                .iter()
                .fold(finding, |finding, (adapter, why)| finding.with(adapter.id(), why));
            Err(ImportError::Refused(vec![finding]))
        }
    }
}

/// Turns what an adapter extracted into rows, judged by the same rules as runs.
fn rows(extraction: Extraction) -> Yield {
    let mut findings = extraction.cautions;
    let rows: Vec<PriorRow> = extraction
        .runs
        .into_iter()
        .map(|run| row(run, &mut findings))
        .filter(|row| row.cells.iter().any(|cell| !cell.metrics.is_empty() || cell.items.is_some()))
        .collect();
    let unparsed = rows.is_empty().then(|| "it holds no number that is known".to_owned());
    Yield { read_as: None, unparsed, rows, findings }
}

fn row(mut run: ExtractedRun, findings: &mut Vec<Finding>) -> PriorRow {
    let context = run
        .facts
        .iter()
        .find(|fact| fact.field == "context.tokens")
        .and_then(|fact| fact.value.as_u64());
    let locus = run.locus;
    let mut found = run.cautions;
    found.extend(validity::judge(&mut run.cells, context));
    findings.extend(found.into_iter().map(|mut finding| {
        if !locus.is_empty() {
            finding.subject = format!("{locus}: {}", finding.subject);
        }
        finding
    }));
    PriorRow {
        locus,
        measured_at: run.measured_at,
        stated: state(run.facts),
        observed: run.observed,
        cells: run.cells.iter().map(summarize).collect(),
    }
}

/// Of several statements on one field the strongest is kept: seen, then in force, then asked for,
/// then a mere name.
fn state(facts: Vec<Fact>) -> BTreeMap<String, PriorStatement> {
    let mut stated: BTreeMap<String, (u8, PriorStatement)> = BTreeMap::new();
    for fact in facts {
        let (strength, kind) = match fact.kind {
            FactKind::Observed => (3, "observed"),
            FactKind::Stated => (2, "stated"),
            FactKind::Requested => (1, "requested"),
            FactKind::Label => (0, "label"),
        };
        if stated.get(&fact.field).is_some_and(|(held, _)| *held >= strength) {
            continue;
        }
        let statement =
            PriorStatement { value: fact.value, place: fact.place, kind: kind.to_owned() };
        stated.insert(fact.field, (strength, statement));
    }
    stated.into_iter().map(|(field, (_, statement))| (field, statement)).collect()
}

/// Extracts the rows of a stored prior again.
///
/// # Errors
/// A reason: the bytes cannot be read, or the adapter of its time is not in this program.
pub fn read_again(
    store: &Store,
    prior: &PriorBody,
    formats: &Formats,
) -> Result<Vec<PriorRow>, String> {
    let Some(read_as) = &prior.read_as else { return Ok(Vec::new()) };
    let blob: BlobId = prior.blob.parse().map_err(|_bad| "its file has no id".to_owned())?;
    let bytes = store.read_blob(&blob).map_err(|error| error.to_string())?;
    let decoded = decode(&bytes).map_err(|error| error.to_string())?;
    let file = SourceFile::new(&read_as.path, &decoded.text);
    let extract = |adapter: &dyn Adapter| match adapter.extract(&file) {
        Ok(extraction) => rows(extraction).rows,
        Err(_unparsed) => Vec::new(),
    };
    if let Some(map) = &prior.map {
        let map: BlobId = map.parse().map_err(|_bad| "its map has no id".to_owned())?;
        let bytes = store.read_blob(&map).map_err(|error| error.to_string())?;
        let adapter = (formats.read_map)(&bytes).map_err(|problems| problems.join("; "))?;
        return Ok(extract(&*adapter));
    }
    let adapter = formats
        .find_importable(&read_as.adapter)
        .filter(|adapter| adapter.version() == read_as.version)
        .ok_or_else(|| {
            format!(
                "adapter {} version {} is not in this program",
                read_as.adapter, read_as.version
            )
        })?;
    Ok(extract(adapter))
}
