//! What the numbers mean: the metric table of schema/metrics.toml, statistics, and the one place
//! where units are converted. A metric name carries its unit and stands for one definition; two
//! tools that use one word for two quantities get two names.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::LazyLock;

/// Which way is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// More is better.
    Higher,
    /// Less is better.
    Lower,
    /// Neither is better by itself.
    None,
}

/// What sort of quantity it is; decides how repeats are pooled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A time.
    Latency,
    /// Something per second.
    Rate,
    /// k of n.
    Proportion,
    /// A number of things.
    Count,
    /// A value without noise.
    Exact,
}

/// What one sample of it belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// One value a request.
    Request,
    /// One value a run or a repetition.
    System,
    /// One value an item of a quality task.
    Item,
}

/// One metric of the table.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Definition {
    /// Canonical unit of stored values: `ms`, `tok/s`, `fraction`, …
    pub unit: String,
    /// Which way is better.
    pub direction: Direction,
    /// What sort of quantity it is.
    pub kind: Kind,
    /// What one sample belongs to.
    pub scope: Scope,
    /// True when output length distorts it, so that unequal workloads cannot be compared by it.
    pub sensitive: bool,
    /// One sentence that says how it is computed.
    pub definition: String,
}

static TABLE: LazyLock<BTreeMap<String, Definition>> =
    LazyLock::new(|| toml::from_str(include_str!("../schema/metrics.toml")).unwrap_or_default());

/// Returns the whole metric table, by name.
pub fn table() -> &'static BTreeMap<String, Definition> {
    &TABLE
}

/// Finds the definition of a metric name.
pub fn find_definition(name: &str) -> Option<&'static Definition> {
    TABLE.get(name)
}

/// A statistic over the samples of one metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Statistic {
    /// Arithmetic mean.
    Mean,
    /// 50th percentile (median).
    P50,
    /// 90th percentile.
    P90,
    /// 95th percentile.
    P95,
    /// 99th percentile.
    P99,
    /// 99.9th percentile.
    #[serde(rename = "p99.9")]
    P999,
    /// Smallest sample.
    Min,
    /// Largest sample.
    Max,
    /// Standard deviation; whether of the sample or the population is kept beside it.
    Std,
    /// The only value there is: a rate or a total of the whole cell.
    Value,
}

impl Statistic {
    /// Every statistic in the order tables show them.
    pub const ALL: &[Self] = &[
        Self::Value,
        Self::Mean,
        Self::P50,
        Self::P90,
        Self::P95,
        Self::P99,
        Self::P999,
        Self::Min,
        Self::Max,
        Self::Std,
    ];

    /// Returns the name used in files and citations.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Mean => "mean",
            Self::P50 => "p50",
            Self::P90 => "p90",
            Self::P95 => "p95",
            Self::P99 => "p99",
            Self::P999 => "p99.9",
            Self::Min => "min",
            Self::Max => "max",
            Self::Std => "std",
            Self::Value => "value",
        }
    }

    /// Reads a statistic's name; `median` is `p50`, `avg` is `mean`.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "median" => Some(Self::P50),
            "avg" => Some(Self::Mean),
            _ => Self::ALL.iter().copied().find(|statistic| statistic.as_str() == text),
        }
    }
}

impl fmt::Display for Statistic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The unit a file gives a number in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Seconds.
    Seconds,
    /// Milliseconds.
    Milliseconds,
    /// Microseconds.
    Microseconds,
    /// Nanoseconds.
    Nanoseconds,
    /// Parts of one.
    Fraction,
    /// Parts of a hundred.
    Percent,
    /// Already the canonical unit of the metric (`tok/s`, `req/s`, `W`, `B`, `1`, …).
    Canonical,
}

impl Unit {
    /// Converts a number of this unit to the canonical unit of a metric; `None` when the two
    /// measure different things.
    ///
    /// Times convert to `ms` (latencies) or `s` (durations), percentages to fractions.
    pub fn to_canonical(self, value: f64, canonical: &str) -> Option<f64> {
        let milliseconds = |per_ms: f64| match canonical {
            "ms" => Some(value * per_ms),
            "s" => Some(value * per_ms / 1e3),
            _ => None,
        };
        match self {
            Self::Seconds if canonical == "s" => Some(value),
            Self::Seconds => milliseconds(1e3),
            Self::Milliseconds => milliseconds(1.0),
            Self::Microseconds => milliseconds(1e-3),
            Self::Nanoseconds => milliseconds(1e-6),
            Self::Fraction => (canonical == "fraction").then_some(value),
            Self::Percent => (canonical == "fraction").then_some(value / 100.0),
            Self::Canonical => Some(value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_metric_table_parses_and_names_carry_their_unit() {
        assert!(table().len() > 30);
        for (name, definition) in table() {
            assert!(!name.ends_with("_ms") || definition.unit == "ms", "{name}");
            assert!(!name.ends_with("_tok_s") || definition.unit == "tok/s", "{name}");
        }
    }

    #[test]
    fn units_convert_in_one_place() {
        assert_eq!(Unit::Seconds.to_canonical(1.5, "ms"), Some(1500.0));
        assert_eq!(Unit::Nanoseconds.to_canonical(2e6, "ms"), Some(2.0));
        assert_eq!(Unit::Milliseconds.to_canonical(1500.0, "s"), Some(1.5));
        assert_eq!(Unit::Microseconds.to_canonical(2500.0, "ms"), Some(2.5));
        assert_eq!(Unit::Percent.to_canonical(10.99, "fraction"), Some(0.1099));
        assert_eq!(Unit::Percent.to_canonical(1.0, "ms"), None);
        assert_eq!(Unit::Seconds.to_canonical(1.0, "tok/s"), None);
    }

    #[test]
    fn a_statistic_has_one_name() {
        for statistic in Statistic::ALL {
            assert_eq!(Statistic::parse(statistic.as_str()), Some(*statistic));
        }
        assert_eq!(Statistic::parse("median"), Some(Statistic::P50));
    }
}
