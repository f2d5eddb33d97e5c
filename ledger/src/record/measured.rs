//! When a run was measured, and from where to where its process must have lived.

use super::RecordRequest;
use super::extract::Extracted;
use crate::clock;
use crate::finding::{Code, Finding, Severity};
use crate::manifest::Manifest;
use crate::metric::Statistic;
use crate::provenance::verdict::RunWindow;
use chrono::{DateTime, Duration, NaiveDateTime, Utc};

/// A measurement may be stamped this much ahead of the recording machine's clock.
const FUTURE_SLACK_S: i64 = 120;

/// When the run was measured, and where that was read.
pub(super) struct MeasuredAt {
    /// The moment.
    pub(super) at: DateTime<Utc>,
    /// Where it was read.
    pub(super) source: String,
    /// What is doubtful about it.
    pub(super) caution: Option<Finding>,
}

/// Measurement time: what a person states, else what the artifacts state, else, for an attempt that
/// failed, the moment of recording.
pub(super) fn read_time(
    request: &RecordRequest,
    manifest: &Manifest,
    extracted: &Extracted,
    (now, is_failed): (DateTime<Utc>, bool),
) -> Result<MeasuredAt, Finding> {
    let missing = |message: &str| Finding::refusal(Code::MissingField, "measured_at", message);
    let stated =
        request.measured_at.as_ref().map(|text| (text.clone(), "--measured-at".to_owned()));
    let stated = stated.or_else(|| manifest.measured_at.clone());
    let measured = if let Some((text, source)) = stated {
        let at = clock::parse(&text).map_err(|error| {
            Finding::refusal(
                Code::BadValue,
                "measured_at",
                format!("`{text}` is no RFC 3339 time: {error}"),
            )
        })?;
        MeasuredAt { at, source, caution: None }
    } else if let Some(text) = &extracted.run.measured_at {
        read_artifact_time(text, extracted).ok_or_else(|| {
            missing("the time in the artifacts cannot be read; give `measured_at`")
        })?
    } else if is_failed {
        MeasuredAt { at: now, source: "time of recording".to_owned(), caution: None }
    } else {
        return Err(missing(
            "`measured_at` is stated nowhere; give it in run.toml or with `--measured-at`",
        ));
    };
    let slack = if measured.caution.is_some() {
        Duration::hours(14)
    } else {
        Duration::seconds(FUTURE_SLACK_S)
    };
    if measured.at > now + slack {
        let message = format!("measurement time {} lies in the future", clock::stamp(measured.at));
        return Err(Finding::refusal(Code::FutureTime, "measured_at", message)
            .with(clock::stamp(measured.at), measured.source)
            .with(clock::stamp(now), "clock of this machine"));
    }
    Ok(measured)
}

fn read_artifact_time(text: &str, extracted: &Extracted) -> Option<MeasuredAt> {
    let source = extracted.results.first().map_or_else(String::new, |result| result.path.clone());
    if let Ok(at) = clock::parse(text) {
        return Some(MeasuredAt { at, source, caution: None });
    }
    let local = NaiveDateTime::parse_from_str(text, "%Y-%m-%dT%H:%M:%S%.f").ok()?;
    let message =
        format!("`{text}` is local time of a zone that the file does not name; read as UTC");
    let caution = Finding::new(Code::ReportsDisagree, Severity::Note, "measured_at", message);
    Some(MeasuredAt { at: local.and_utc(), source, caution: Some(caution) })
}

/// From the measurement time to the end of the longest cell. A file that gives no offset may be off
/// by its zone, so only the time that a person or an offset fixes is held against the process.
pub(super) fn window(measured: &MeasuredAt, extracted: &Extracted) -> Option<RunWindow> {
    let longest = extracted
        .run
        .cells
        .iter()
        .filter_map(|cell| cell.find_metric("duration_s")?.given.get(&Statistic::Value))
        .map(|given| given.value)
        .filter(|seconds| seconds.is_finite() && *seconds >= 0.0)
        .fold(0.0, f64::max);
    let length = std::time::Duration::try_from_secs_f64(longest).ok()?;
    let ended = measured.at.checked_add_signed(Duration::from_std(length).ok()?)?;
    Some(RunWindow { started: measured.at, ended })
}
