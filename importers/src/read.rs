//! Readers every adapter shares: bytes to text, text to JSON documents, fields with tolerant types,
//! tables. They keep line and byte positions, so that what is reported can be found in the file,
//! and they never repair silently: whatever is skipped, cut or rewritten is counted and located.

pub mod decode;
pub mod documents;
pub mod fields;
pub mod json;
pub mod place;
pub mod table;
