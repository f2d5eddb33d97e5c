//! The only door to time. The library never asks what time it is; it is handed a clock, so that
//! tests and replays (`--as-of`) see the moment they name.

use chrono::{DateTime, SecondsFormat, Utc};

/// Tells the current moment.
#[derive(Debug, Clone, Copy)]
pub enum Clock {
    /// The machine's clock.
    System,
    /// Always the same moment.
    Fixed(DateTime<Utc>),
}

impl Clock {
    /// Returns the current moment in UTC.
    #[expect(clippy::disallowed_methods, reason = "this is the one place that asks the time")]
    pub fn now(self) -> DateTime<Utc> {
        match self {
            Self::System => Utc::now(),
            Self::Fixed(moment) => moment,
        }
    }
}

/// Writes a moment as the ledger stores it: RFC 3339, UTC, microseconds, `Z`.
pub fn stamp(moment: DateTime<Utc>) -> String {
    moment.to_rfc3339_opts(SecondsFormat::Micros, true)
}

/// Reads an RFC 3339 moment with any offset.
///
/// # Errors
/// The text of chrono's error, for a finding.
pub fn parse(text: &str) -> Result<DateTime<Utc>, chrono::ParseError> {
    DateTime::parse_from_rfc3339(text).map(|moment| moment.with_timezone(&Utc))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_reads_back_as_the_same_moment() {
        let moment = parse("2026-08-02T04:15:49.123456+02:00").unwrap();
        assert_eq!(stamp(moment), "2026-08-02T02:15:49.123456Z");
        assert_eq!(Clock::Fixed(moment).now(), moment);
    }
}
