//! The four labels that people group runs by. They are chosen by people and can be corrected; they
//! prove nothing and are no part of a run's key.

use serde::{Deserialize, Serialize};

/// What a run is a run of.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Subject {
    /// The recipe under test: `qwen3-32b-nvfp4`.
    pub candidate: String,
    /// Its variant: `tp2-fp8kv`.
    pub config: String,
    /// The workload: `serve-random-1k-1k`.
    pub task: String,
    /// The machine class: `rtxpro6000x2`.
    pub hardware: String,
}

impl Subject {
    /// The names of the labels, in order.
    pub const LABELS: [&'static str; 4] = ["candidate", "config", "task", "hardware"];

    /// Returns the labels with their names, in order.
    pub fn labels(&self) -> [(&'static str, &str); 4] {
        [
            ("candidate", self.candidate.as_str()),
            ("config", self.config.as_str()),
            ("task", self.task.as_str()),
            ("hardware", self.hardware.as_str()),
        ]
    }
}

/// Which subjects a question is about: every label that is given must be equal.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SubjectFilter {
    /// Wanted candidate.
    pub candidate: Option<String>,
    /// Wanted config.
    pub config: Option<String>,
    /// Wanted task.
    pub task: Option<String>,
    /// Wanted hardware.
    pub hardware: Option<String>,
}

impl SubjectFilter {
    /// Returns the wanted labels in the order of [`Subject::LABELS`].
    pub fn labels(&self) -> [Option<&str>; 4] {
        [
            self.candidate.as_deref(),
            self.config.as_deref(),
            self.task.as_deref(),
            self.hardware.as_deref(),
        ]
    }

    /// True when no label is given.
    pub fn is_empty(&self) -> bool {
        self.labels().iter().all(Option::is_none)
    }
}
