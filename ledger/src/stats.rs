//! Pure functions on slices of numbers; no domain word inside. Every formula names its source, and
//! "cannot tell" is a type, never a number that could be mistaken for an answer.

pub mod quantile;
