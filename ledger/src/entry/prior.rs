//! The body of a prior: somebody else's file, where it comes from, and the rows it yields. Nothing of
//! it is evidence; design invariant 10 keeps it out of every view of runs.

use super::{ResultFile, StoredCell};
use crate::finding::Finding;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// Where somebody else's numbers come from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PriorSource {
    /// Its name: `aider-polyglot`. Part of the prior's key.
    pub name: String,
    /// Where it was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The day it was published, `2026-07-31`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published_on: Option<String>,
}

/// What a foreign file says about one field.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PriorStatement {
    /// The value.
    pub value: Value,
    /// Where it stands in the file.
    pub place: String,
    /// What it is there: `stated`, `observed`, `requested` or `label`.
    pub kind: String,
}

/// One measured thing of a foreign file: a run of a harness, or a line of a table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PriorRow {
    /// Which record of the file it is; empty where the file holds one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub locus: String,
    /// When it was measured, as the file says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured_at: Option<String>,
    /// What it says about fingerprint fields, by path.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub stated: BTreeMap<String, PriorStatement>,
    /// Facts of the file that are no fingerprint field.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub observed: BTreeMap<String, Value>,
    /// Its numbers.
    pub cells: Vec<StoredCell>,
}

/// The body of a prior: a foreign file, stored whole, and the rows it yields. Advisory for ever.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PriorBody {
    /// Format version.
    pub v: u32,
    /// Prior key, in hex. Neither the time nor the way of import is part of it.
    pub key: String,
    /// Artifact root of the file, in hex.
    pub root: String,
    /// Where it comes from.
    pub source: PriorSource,
    /// When the ledger was told, RFC 3339 UTC. No part of the key.
    pub recorded_at: String,
    /// Which program wrote the entry.
    pub tool: String,
    /// Name of the file, escaped.
    pub path: String,
    /// Blob id of the file, in hex.
    pub blob: String,
    /// How it was read; absent for a file that could not be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_as: Option<ResultFile>,
    /// Blob id of the map that declared where its numbers stand, for a file without a known format.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub map: Option<String>,
    /// Why no row could be read, for a file that yields none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unparsed: Option<String>,
    /// What it says.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rows: Vec<PriorRow>,
    /// Cautions about it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<Finding>,
}
