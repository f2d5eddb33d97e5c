//! The port through which formats reach the ledger. The core owns these traits and knows no format;
//! the package `ledger-importers` implements them. An adapter reads one file, says whether it knows
//! it and why, and extracts runs; a companion reads the files beside a result (telemetry, counters,
//! server arguments) and states facts about the run.

use crate::cell::{Cell, Check};
use crate::finding::Finding;
use crate::outline::{Outline, outline};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Debug;

/// A file as an adapter sees it: decoded text, never the hashed bytes.
#[derive(Debug, Clone)]
pub struct SourceFile<'a> {
    /// Path inside the artifact tree, escaped for printing.
    pub name: &'a str,
    /// The text, decoded, without a byte order mark; line ends as in the file.
    pub text: &'a str,
    /// A first look at the text, made once.
    pub outline: Outline<'a>,
}

impl<'a> SourceFile<'a> {
    /// Takes a first look at a text.
    pub fn new(name: &'a str, text: &'a str) -> Self {
        Self { name, text, outline: outline(text) }
    }
}

/// What a statement about a fingerprint field is worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FactKind {
    /// A setting that was in force: must agree with every other statement of the field.
    Stated,
    /// A measurement or a probe of what was in force; wins over what was requested, and a
    /// difference to a declared value is a caution.
    Observed,
    /// A setting that was asked for.
    Requested,
    /// A name somebody chose (served name, client's `--model`): kept beside, never evidence.
    Label,
}

/// A statement about one fingerprint field or label.
#[derive(Debug, Clone, PartialEq)]
pub struct Fact {
    /// Path of the field: `engine.version`, `conditions.max_tokens`, `model.id`.
    pub field: String,
    /// The value as JSON; `"unknown"` where the file says that it does not know.
    pub value: Value,
    /// Where it stands: a JSON path, a line, a CSV column. The file name is added by the recorder.
    pub place: String,
    /// What the statement is worth.
    pub kind: FactKind,
}

impl Fact {
    /// Makes a statement.
    pub fn new(kind: FactKind, field: &str, value: impl Into<Value>, place: &str) -> Self {
        Self { field: field.to_owned(), value: value.into(), place: place.to_owned(), kind }
    }
}

/// One run found in a file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ExtractedRun {
    /// Which record of the file it is, for people: `line 2 (concurrency 32)`; empty when the file
    /// holds one run.
    pub locus: String,
    /// First and one past the last byte of the record in the decoded text, when a file holds
    /// several.
    pub span: Option<(usize, usize)>,
    /// The cells.
    pub cells: Vec<Cell>,
    /// Statements about fingerprint fields.
    pub facts: Vec<Fact>,
    /// Gates, preflights and probes.
    pub checks: Vec<Check>,
    /// When the measurement started, RFC 3339 with an offset where the file gives one; without an
    /// offset where the file holds local time of an unknown zone.
    pub measured_at: Option<String>,
    /// Facts about the run that are no fingerprint field (`request_rate`, `was_cancelled`,
    /// `prefix_cache_hit_rate`), kept with the run.
    pub observed: BTreeMap<String, Value>,
    /// Cautions about the run as a whole.
    pub cautions: Vec<Finding>,
}

/// Everything one file yields.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Extraction {
    /// The runs, in file order. Several runs are never merged.
    pub runs: Vec<ExtractedRun>,
    /// Cautions about the file (skipped lines, cut records).
    pub cautions: Vec<Finding>,
}

impl Extraction {
    /// Wraps the only run of a file.
    pub fn single(run: ExtractedRun) -> Self {
        Self { runs: vec![run], cautions: Vec::new() }
    }
}

/// Why a file that an adapter knows cannot be read.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ExtractError {
    /// The text is not what the format demands.
    #[error("line {line}, column {column}: {problem}")]
    Malformed {
        /// Line from 1.
        line: usize,
        /// Column from 1; 0 when only the line is known.
        column: usize,
        /// What is wrong.
        problem: String,
    },
    /// A field has an impossible value or is missing.
    #[error("field `{field}`: {problem}")]
    Field {
        /// JSON path or column.
        field: String,
        /// What is wrong.
        problem: String,
    },
    /// The text ends before the format's end.
    #[error("the text ends in the middle of a record, after {complete} complete ones: {problem}")]
    Cut {
        /// Complete records before the cut.
        complete: usize,
        /// What is missing.
        problem: String,
    },
}

/// A mistake of a format that the adapter guards against, with the fixture that springs it.
#[derive(Debug, Clone, Copy)]
pub struct Trap {
    /// One sentence.
    pub what: &'static str,
    /// What the adapter does about it.
    pub guard: &'static str,
}

/// Reads result files of one format.
pub trait Adapter: Debug + Sync {
    /// Stable name: `vllm-bench-serve`.
    fn id(&self) -> &'static str;

    /// Version of the extraction; raised when the same file would yield other values.
    fn version(&self) -> u32;

    /// What people call the format.
    fn title(&self) -> &'static str;

    /// The mistakes it guards against.
    fn traps(&self) -> &'static [Trap];

    /// Says why the file is of this format, or `None`. Reads content, never the name.
    fn detect(&self, file: &SourceFile<'_>) -> Option<String>;

    /// Extracts every run of the file.
    ///
    /// # Errors
    /// [`ExtractError`] when the file is of this format and cannot be read.
    fn extract(&self, file: &SourceFile<'_>) -> Result<Extraction, ExtractError>;
}

/// What a companion learned.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Observation {
    /// Statements about fingerprint fields; `place` starts with the file name.
    pub facts: Vec<Fact>,
    /// Facts kept with the run.
    pub observed: BTreeMap<String, Value>,
    /// Gates, preflights and probes.
    pub checks: Vec<Check>,
    /// Cautions.
    pub cautions: Vec<Finding>,
}

/// Reads the files beside a result: telemetry, counters, server arguments, preflights.
pub trait Companion: Debug + Sync {
    /// Stable name: `nvidia-smi-csv`.
    fn id(&self) -> &'static str;

    /// Version of the extraction.
    fn version(&self) -> u32;

    /// What it reads.
    fn title(&self) -> &'static str;

    /// Says why the file is one of its kind, or `None`.
    fn detect(&self, file: &SourceFile<'_>) -> Option<String>;

    /// Reads all files of its kind in one artifact tree together (counters before and after).
    ///
    /// # Errors
    /// [`ExtractError`] when a file of its kind cannot be read.
    fn observe(&self, files: &[SourceFile<'_>]) -> Result<Observation, ExtractError>;
}

/// Every format the caller knows, handed to `record`, `import` and `verify --deep`.
#[derive(Debug, Clone, Copy)]
pub struct Formats {
    /// Result formats.
    pub adapters: &'static [&'static dyn Adapter],
    /// Companion formats.
    pub companions: &'static [&'static dyn Companion],
    /// Formats of publications (leaderboards, model cards, tables): read by `import` only, because
    /// they hold claims about several things that somebody else measured.
    pub publications: &'static [&'static dyn Adapter],
    /// Reads a person's description of a format nobody foresaw.
    pub read_map: MapReader,
}

/// Turns the bytes of a map into the adapter it describes, or says everything that is wrong with it.
pub type MapReader = fn(&[u8]) -> Result<Box<dyn Adapter>, Vec<String>>;

impl Formats {
    /// Knows nothing: for what is recorded without a result, and for tests of the store.
    pub const NONE: Self = Self {
        adapters: &[],
        companions: &[],
        publications: &[],
        read_map: |_bytes| Err(Vec::new()),
    };

    /// Finds an adapter of results by its id.
    pub fn find_adapter(&self, id: &str) -> Option<&'static dyn Adapter> {
        self.adapters.iter().copied().find(|adapter| adapter.id() == id)
    }

    /// Finds an adapter of results or publications by its id.
    pub fn find_importable(&self, id: &str) -> Option<&'static dyn Adapter> {
        self.importable().find(|adapter| adapter.id() == id)
    }

    /// Returns everything that `import` reads.
    pub fn importable(&self) -> impl Iterator<Item = &'static dyn Adapter> {
        self.adapters.iter().chain(self.publications).copied()
    }
}
