//! Weight provenance: the document that says which weights a process had loaded, and the rules that
//! decide whether it proves it. No I/O: the walk that writes documents is elsewhere, and a document
//! may come from another tool.

pub mod argv;
pub mod document;
pub mod naming;
pub mod verdict;
