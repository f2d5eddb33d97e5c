//! Readers that several adapters share: JSON as benchmark tools really write it, numbers as they
//! really spell them. Nothing here knows a format.

pub mod json;
pub mod number;
