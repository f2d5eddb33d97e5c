//! Results as data: a cell is one point of a run's workload grid and holds metrics, request counts,
//! token counts and item results. Adapters fill cells; validity rules and statistics read them.
//! Nothing here is stored; the stored form is in `crate::entry`.

use crate::finding::Finding;
use crate::metric::{Statistic, Unit, find_definition};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// One coordinate of a cell.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Parameter {
    /// A count: concurrency 16, prompt 4096.
    Count(u64),
    /// Anything else, as text: `test=pp512`, `rate=2.5`, `rate=unbounded`.
    Text(String),
}

impl fmt::Display for Parameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(count) => write!(f, "{count}"),
            Self::Text(text) => f.write_str(text),
        }
    }
}

impl From<u64> for Parameter {
    fn from(count: u64) -> Self {
        Self::Count(count)
    }
}

impl From<&str> for Parameter {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Parameter {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

/// A statistic that the file prints, in the canonical unit of its metric.
#[derive(Debug, Clone, PartialEq)]
pub struct Given {
    /// The value in the metric's canonical unit.
    pub value: f64,
    /// The key as the file writes it (`mean_ttft_ms`).
    pub key: String,
    /// Degrees taken off in a standard deviation: 1 for the sample's, 0 for the population's,
    /// `None` when the tool does not say or the statistic is another.
    pub ddof: Option<u8>,
}

/// Why a metric that the format knows has no value here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Missing {
    /// The metric.
    pub metric: String,
    /// One sentence: `all 8 requests failed`, `not streamed`.
    pub reason: String,
}

/// One metric of one cell.
#[derive(Debug, Clone, PartialEq)]
pub struct Metric {
    /// A name of schema/metrics.toml.
    pub name: String,
    /// One value a request or repetition, canonical unit, in completion order; empty when the file
    /// has statistics only.
    pub samples: Vec<f64>,
    /// What the file prints, by statistic.
    pub given: BTreeMap<Statistic, Given>,
    /// Contract version of the definition where a tool changed it (`capacity-v3`); two protocols
    /// never compare.
    pub protocol: Option<String>,
}

impl Metric {
    /// Makes an empty metric.
    pub fn new(name: &str) -> Self {
        Self { name: name.to_owned(), samples: Vec::new(), given: BTreeMap::new(), protocol: None }
    }

    /// Adds samples, converting them to the canonical unit.
    ///
    /// Samples of a unit that does not fit the metric are not taken; the table test of the adapter
    /// would see them missing.
    #[must_use]
    pub fn with_samples(mut self, unit: Unit, samples: impl IntoIterator<Item = f64>) -> Self {
        let canonical = canonical_unit(&self.name);
        self.samples
            .extend(samples.into_iter().filter_map(|sample| unit.to_canonical(sample, canonical)));
        self
    }

    /// Adds a statistic the file prints, converting it to the canonical unit; `None` adds nothing.
    #[must_use]
    pub fn with_given(
        mut self,
        statistic: Statistic,
        unit: Unit,
        value: Option<f64>,
        key: &str,
    ) -> Self {
        let converted =
            value.and_then(|value| unit.to_canonical(value, canonical_unit(&self.name)));
        if let Some(value) = converted {
            self.given.insert(statistic, Given { value, key: key.to_owned(), ddof: None });
        }
        self
    }

    /// True when the file held nothing for this metric.
    pub fn is_empty(&self) -> bool {
        self.samples.is_empty() && self.given.is_empty()
    }
}

fn canonical_unit(metric: &str) -> &'static str {
    find_definition(metric).map_or("", |definition| definition.unit.as_str())
}

/// Where a count comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CountOrigin {
    /// The file states it.
    #[default]
    Reported,
    /// It follows from other counts of the file.
    Derived,
}

/// How many requests were asked for and what became of them. `None` means the file cannot say,
/// never zero.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RequestCounts {
    /// Requests planned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asked: Option<u64>,
    /// Requests that returned an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completed: Option<u64>,
    /// Requests that failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed: Option<u64>,
    /// Requests cancelled or cut by a time limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cancelled: Option<u64>,
    /// Answers that ended at the token limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub truncated: Option<u64>,
    /// Answers without any content.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub empty: Option<u64>,
    /// Retries beyond the first attempt of each request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retries: Option<u64>,
    /// Whether `failed` is stated or follows from `asked - completed`.
    pub failed_origin: CountOrigin,
    /// Failures by class (`overload admission`, `empty output`, `budget exhaustion`, …).
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub classes: BTreeMap<String, u64>,
}

/// Prompt and output tokens of a cell: planned, requested and seen are three facts.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TokenCounts {
    /// Prompt tokens planned per request (`--random-input-len`, `context_tokens`).
    pub prompt_nominal: Option<u64>,
    /// Mean prompt tokens seen per completed request.
    pub prompt_mean: Option<f64>,
    /// Output token cap per request.
    pub output_limit: Option<u64>,
    /// Mean output tokens seen per completed request.
    pub output_mean: Option<f64>,
    /// Output tokens of all completed requests.
    pub output_total: Option<u64>,
    /// Prompt tokens of all completed requests.
    pub prompt_total: Option<u64>,
    /// Whether reasoning tokens are counted as output; `None` when the file cannot say.
    pub reasoning_counted: Option<bool>,
    /// Tokens per request that arrived before the first visible chunk.
    pub hidden: Vec<u64>,
}

/// How one request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestStatus {
    /// An answer came back.
    Ok,
    /// It failed.
    Failed,
    /// It was cancelled or cut by a time limit.
    Cancelled,
}

/// One request of a cell, where the file keeps them.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// How it ended.
    pub status: RequestStatus,
    /// Prompt tokens.
    pub prompt_tokens: Option<u64>,
    /// Output tokens.
    pub output_tokens: Option<u64>,
    /// True when it ended at the token limit; `None` when the file cannot say.
    pub truncated: Option<bool>,
}

/// The outcome of a check or an item; the six are never folded into two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CheckStatus {
    /// It held.
    Pass,
    /// It did not hold.
    Fail,
    /// It ran and nobody scored it.
    Unscored,
    /// It was not run.
    NotRun,
    /// Something before it stopped it.
    Blocked,
    /// It does not concern this run.
    NotApplicable,
}

/// One item of a quality task, one attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// Name of the item, stable across runs of the same suite.
    pub id: String,
    /// Attempt number from 1.
    pub attempt: u32,
    /// Outcome.
    pub status: CheckStatus,
    /// True when the answer ended at the token limit; `None` when the tool cannot say.
    pub truncated: Option<bool>,
    /// Class of failure as the file names it (`reasoning_budget_exhausted`).
    pub failure_class: Option<String>,
}

/// A gate, preflight or probe of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Check {
    /// Its name.
    pub name: String,
    /// Its outcome.
    pub status: CheckStatus,
    /// Why, or the detail the tool printed; empty when nothing is said.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// One point of the workload grid.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Cell {
    /// Coordinates by name: `concurrency`, `prompt`, `output`, `rate`, `depth`, `test`, `suite`, ….
    pub parameters: BTreeMap<String, Parameter>,
    /// Metrics with a value.
    pub metrics: Vec<Metric>,
    /// Metrics the format knows and this file cannot give, with the reason.
    pub missing: Vec<Missing>,
    /// Request counts.
    pub requests: RequestCounts,
    /// Token counts.
    pub tokens: TokenCounts,
    /// The requests themselves, in completion order, where the file keeps them. A metric of scope
    /// `request` with as many samples belongs to them one by one (failed ones left out on both
    /// sides).
    pub request_rows: Vec<Request>,
    /// Items of a quality task.
    pub items: Vec<Item>,
    /// What the adapter has to say about this cell; the subject is filled in by the recorder when
    /// empty.
    pub cautions: Vec<Finding>,
}

impl Cell {
    /// Returns the cell's id: its coordinates as `name=value` joined by commas, sorted by name;
    /// `all` where there is none.
    pub fn id(&self) -> String {
        cell_id(&self.parameters)
    }

    /// Adds a metric if it holds anything.
    pub fn push(&mut self, metric: Metric) {
        if !metric.is_empty() {
            self.metrics.push(metric);
        }
    }

    /// Notes that a metric has no value here, and why.
    pub fn push_missing(&mut self, metric: &str, reason: impl Into<String>) {
        self.missing.push(Missing { metric: metric.to_owned(), reason: reason.into() });
    }

    /// Finds a metric by name.
    pub fn find_metric(&self, name: &str) -> Option<&Metric> {
        self.metrics.iter().find(|metric| metric.name == name)
    }
}

/// Joins coordinates to a cell id.
pub fn cell_id(parameters: &BTreeMap<String, Parameter>) -> String {
    if parameters.is_empty() {
        return "all".to_owned();
    }
    parameters.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_is_named_by_its_coordinates() {
        let mut cell = Cell::default();
        assert_eq!(cell.id(), "all");
        cell.parameters.insert("prompt".into(), 512.into());
        cell.parameters.insert("concurrency".into(), 16.into());
        assert_eq!(cell.id(), "concurrency=16,prompt=512");
    }

    #[test]
    fn given_seconds_become_milliseconds() {
        let metric = Metric::new("ttft_ms").with_given(
            Statistic::Mean,
            Unit::Seconds,
            Some(0.25),
            "mean_ttft",
        );
        assert_eq!(metric.given[&Statistic::Mean].value, 250.0);
        assert!(
            Metric::new("ttft_ms").with_given(Statistic::Mean, Unit::Seconds, None, "x").is_empty()
        );
    }
}
