//! How answers are rendered.

pub(crate) mod findings;
pub(crate) mod run;
pub(crate) mod table;

use chrono::{DateTime, SecondsFormat, Utc};

/// Writes microseconds since 1970 as a person reads a time: `2026-08-02 14:10Z`.
pub(crate) fn time(micros: i64) -> String {
    DateTime::<Utc>::from_timestamp_micros(micros)
        .map_or_else(|| "?".to_owned(), |moment| moment.format("%Y-%m-%d %H:%MZ").to_string())
}

/// Writes microseconds since 1970 as RFC 3339.
pub(crate) fn stamp(micros: i64) -> String {
    DateTime::<Utc>::from_timestamp_micros(micros).map_or_else(
        || "?".to_owned(),
        |moment| moment.to_rfc3339_opts(SecondsFormat::Micros, true),
    )
}
