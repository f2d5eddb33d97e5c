//! Readers that several adapters share: JSON documents as benchmark tools really leave them, fields
//! and numbers as they really spell them, tables by the names of their columns. They keep line and
//! byte positions, so that what is reported can be found in the file, and never repair silently:
//! whatever is skipped, cut or rewritten is counted and located. Nothing here knows a format.

pub mod documents;
pub mod fields;
pub mod json;
pub mod number;
pub mod table;
