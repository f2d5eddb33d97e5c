//! The provenance document `ledger-provenance/v1` (schema/provenance.schema.json). Other tools may
//! write it; unknown keys are refused, so that a typo never passes for a proof, except under
//! `extra`.

use crate::canonical;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The value of `schema` that this version reads.
pub const SCHEMA: &str = "ledger-provenance/v1";

/// A provenance document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Document {
    /// Always [`SCHEMA`].
    pub schema: String,
    /// When the process was looked at.
    pub captured_at: DateTime<Utc>,
    /// What wrote the document.
    pub tool: String,
    /// The machine.
    pub host: Host,
    /// The socket that listens, when the capture started from one.
    pub listener: Option<Listener>,
    /// The process: the root of the tree that holds the weights.
    pub process: Option<Process>,
    /// Processes below it that hold weights.
    #[serde(default)]
    pub children: Vec<Child>,
    /// The weight files.
    #[serde(default)]
    pub weights: Vec<WeightFile>,
    /// The engine.
    #[serde(default)]
    pub engine: Engine,
    /// Names the server gives itself: labels, never evidence.
    #[serde(default)]
    pub labels: Labels,
    /// Accelerators of the process.
    #[serde(default)]
    pub accelerators: Vec<Accelerator>,
    /// Places of which the content was masked.
    #[serde(default)]
    pub masked: Vec<String>,
    /// Whether the engine's own tensor digests equal the hashed files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_digests: Option<MemoryDigests>,
    /// Anything else a writer wants to keep.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub extra: Map<String, Value>,
}

/// The machine a document was captured on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Host {
    /// Its name.
    pub name: String,
    /// Its operating system.
    pub os: String,
    /// Changes with every boot.
    pub boot_id: String,
    /// Name of its processor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<String>,
}

/// A socket that listens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Listener {
    /// TCP port.
    pub port: u16,
    /// Address it is bound to.
    pub address: String,
    /// The process that holds the socket.
    pub pid: u32,
}

/// The measured process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Process {
    /// Process id.
    pub pid: u32,
    /// When it started.
    pub started_at: DateTime<Utc>,
    /// Its executable.
    pub exe: String,
    /// BLAKE3 of the executable, in hex.
    pub exe_blake3: Option<String>,
    /// Its working directory.
    pub cwd: Option<String>,
    /// Its command line, secrets masked.
    pub argv: Vec<String>,
    /// Its container, if it runs in one.
    pub container: Option<String>,
}

/// A process below the measured one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Child {
    /// Process id.
    pub pid: u32,
    /// When it started.
    pub started_at: DateTime<Utc>,
    /// Its command line or title, secrets masked.
    pub argv: Vec<String>,
}

/// How a weight file was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Seen {
    /// Mapped into memory, device and inode being those of the hashed file.
    Mapped,
    /// Held open.
    Open,
    /// Named by the command line.
    Argument,
    /// Part of the snapshot that the command line resolves to.
    HfSnapshot,
}

/// A Hugging Face snapshot.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HfSnapshot {
    /// `org/name`.
    pub repo: String,
    /// Commit of the snapshot folder.
    pub commit: String,
}

/// What a weight file says about itself; a label too.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Header {
    /// `gguf` or `safetensors`.
    pub format: Option<String>,
    /// Architecture.
    pub architecture: Option<String>,
    /// Quantization of the weights.
    pub quant: Option<String>,
    /// Name of the model.
    pub name: Option<String>,
}

/// One weight file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WeightFile {
    /// Where it lies.
    pub path: String,
    /// Length in bytes.
    pub bytes: u64,
    /// BLAKE3, in hex.
    pub blake3: Option<String>,
    /// SHA-256, in hex.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// Inode.
    pub inode: Option<u64>,
    /// How it was seen.
    pub seen: Seen,
    /// The snapshot it belongs to.
    pub hf: Option<HfSnapshot>,
    /// What it says about itself.
    pub header: Option<Header>,
    /// When its content or inode last changed; after the process start, the name proves nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed_at: Option<DateTime<Utc>>,
    /// True when the mapping's file was deleted or replaced on disk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaced: Option<bool>,
    /// Whether the digest was read anew or taken from a cache: `read`, `cached`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash_source: Option<String>,
}

impl WeightFile {
    /// Returns the last part of the path.
    pub fn file_name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }
}

/// The engine, as far as it is known.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Engine {
    /// `vllm`, `llama.cpp`, ….
    pub name: Option<String>,
    /// Its version.
    pub version: Option<String>,
    /// Container image id or digest of the executable or package.
    pub digest: Option<String>,
}

/// Names the server gives itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Labels {
    /// Names it answers to.
    pub served_names: Vec<String>,
}

/// An accelerator.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Accelerator {
    /// Its name.
    pub name: String,
    /// UUID or address on the bus.
    pub uuid: Option<String>,
    /// Power cap in watts.
    pub power_cap_w: Option<f64>,
}

/// A comparison of the engine's tensor digests with the hashed files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemoryDigests {
    /// Bytes of tensors that are equal.
    pub matched_bytes: u64,
    /// Bytes of all tensors.
    pub total_bytes: u64,
}

/// Why bytes are no provenance document.
#[derive(Debug, thiserror::Error)]
pub enum DocumentError {
    /// It is no JSON, holds a key twice, or a field is missing, unknown or of another type.
    #[error("not a provenance document: {0}")]
    Json(String),
    /// `schema` says something else.
    #[error("`schema` is `{found}`, this program reads `{SCHEMA}`")]
    Schema {
        /// What it says.
        found: String,
    },
}

/// Reads a document.
///
/// # Errors
/// [`DocumentError`] with line and column of what is wrong.
pub fn parse(bytes: &[u8]) -> Result<Document, DocumentError> {
    let value = canonical::parse(bytes).map_err(|error| DocumentError::Json(error.to_string()))?;
    let found = value.get("schema").and_then(Value::as_str).unwrap_or("missing");
    if found != SCHEMA {
        return Err(DocumentError::Schema { found: found.to_owned() });
    }
    // From the bytes again, because errors of a typed read then carry line and column.
    serde_json::from_slice(bytes).map_err(|error| DocumentError::Json(error.to_string()))
}

/// Derives the id of a server start:
/// `printf 'ledger-start v1\n%s\n%s\n%s\n' BOOT_ID PID STARTED_AT | b3sum`, the time as RFC 3339
/// in UTC with microseconds.
pub fn server_start(document: &Document) -> Option<String> {
    let process = document.process.as_ref()?;
    let started = crate::clock::stamp(process.started_at);
    let text = format!("ledger-start v1\n{}\n{}\n{started}\n", document.host.boot_id, process.pid);
    Some(blake3::hash(text.as_bytes()).to_hex().to_string())
}

/// Derives the digest of the weight set: BLAKE3 of one line a file, `BLAKE3 BYTES NAME\n`, sorted;
/// `None` unless every file has a digest. The path is no part of it, so that one set keeps its name
/// when it is moved.
pub fn weight_set(document: &Document) -> Option<String> {
    let mut lines = document
        .weights
        .iter()
        .map(|file| {
            Some(format!("{} {} {}\n", file.blake3.as_deref()?, file.bytes, file.file_name()))
        })
        .collect::<Option<Vec<_>>>()?;
    lines.sort();
    lines.dedup();
    if lines.is_empty() {
        return None;
    }
    Some(blake3::hash(lines.concat().as_bytes()).to_hex().to_string())
}
