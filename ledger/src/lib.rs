//! The core of `ledger`, an append-only evidence store for LLM inference benchmarks.
//!
//! The library prints nothing, reads no environment and asks no clock but the one it is given.
//! Modules are layered; ARCHITECTURE.md has the map and `tests/it/layers.rs` holds it true.

pub mod adapter;
pub mod amend;
pub mod canonical;
pub mod cell;
pub mod clock;
pub mod collect;
pub mod decode;
pub mod entry;
pub mod finding;
pub mod fingerprint;
pub mod id;
pub mod import;
pub mod manifest;
pub mod metric;
pub mod outline;
pub mod probe;
pub mod provenance;
pub mod quantity;
pub mod record;
pub mod restore;
pub mod selector;
pub mod statement;
pub mod stats;
pub mod store;
pub mod subject;
pub mod summary;
pub mod text;
pub mod tree;
pub mod validity;
pub mod verify;
