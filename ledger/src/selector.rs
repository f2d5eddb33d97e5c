//! How people name runs in a question: `3fa9c1d2`, eight or more digits of a key, or
//! `candidate=…,config=…,task=…,hardware=…`, which gathers every run of the matching subjects.
//! Parsing asks nothing; [`gather`] asks the store and returns rows with their bodies.

use crate::entry::{Body, RunBody};
use crate::store::{RunRow, Store, StoreError};
use crate::subject::{Subject, SubjectFilter};
use std::fmt;

/// A person's way to name runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selector {
    /// Digits of one run's key, as typed.
    Key(String),
    /// Labels that every run must have.
    Labels(SubjectFilter),
}

/// Why a text is no selector.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SelectorError {
    /// A label that does not exist.
    #[error("`{label}` in `{typed}` is no label: candidate, config, task and hardware are")]
    UnknownLabel {
        /// What was typed.
        typed: String,
        /// The name that is no label.
        label: String,
    },
    /// A part that is no `label=value`.
    #[error("`{part}` in `{typed}` is no `label=value`")]
    NoValue {
        /// What was typed.
        typed: String,
        /// The part.
        part: String,
    },
    /// A label that is given twice.
    #[error("`{label}` stands twice in `{typed}`")]
    Twice {
        /// What was typed.
        typed: String,
        /// The label.
        label: String,
    },
}

impl Selector {
    /// Reads a selector as a person typed it. A text without `=` is taken for digits of a key, and
    /// whether it is one is the store's answer.
    ///
    /// # Errors
    /// [`SelectorError`] names the part that is no label with a value.
    pub fn parse(typed: &str) -> Result<Self, SelectorError> {
        if !typed.contains('=') {
            return Ok(Self::Key(typed.to_owned()));
        }
        let mut filter = SubjectFilter::default();
        for part in typed.split(',') {
            let (label, value) = part
                .split_once('=')
                .filter(|(_, value)| !value.trim().is_empty())
                .ok_or_else(|| SelectorError::NoValue { typed: typed.into(), part: part.into() })?;
            let slot = slot(&mut filter, label.trim()).ok_or_else(|| {
                SelectorError::UnknownLabel { typed: typed.into(), label: label.trim().into() }
            })?;
            if slot.replace(value.trim().to_owned()).is_some() {
                let label = label.trim().to_owned();
                return Err(SelectorError::Twice { typed: typed.into(), label });
            }
        }
        Ok(Self::Labels(filter))
    }
}

fn slot<'filter>(
    filter: &'filter mut SubjectFilter,
    label: &str,
) -> Option<&'filter mut Option<String>> {
    match label {
        "candidate" => Some(&mut filter.candidate),
        "config" => Some(&mut filter.config),
        "task" => Some(&mut filter.task),
        "hardware" => Some(&mut filter.hardware),
        _ => None,
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Key(digits) => formatter.write_str(digits),
            Self::Labels(filter) => {
                let given = Subject::LABELS.iter().zip(filter.labels());
                let parts: Vec<String> = given
                    .filter_map(|(label, value)| value.map(|value| format!("{label}={value}")))
                    .collect();
                formatter.write_str(&parts.join(","))
            }
        }
    }
}

/// A run that a selector named.
#[derive(Debug, Clone, PartialEq)]
pub struct Gathered {
    /// The run as the index knows it, with its labels and retraction as they stand now.
    pub row: RunRow,
    /// Its body as it was recorded.
    pub body: RunBody,
}

/// Returns the runs that a selector names, in order of measurement; retracted and failed ones are
/// among them, because whether they count is the question's business.
///
/// # Errors
/// What the store says: no such run, an ambiguous prefix with every key it could mean, an entry
/// that cannot be read. Labels that match nothing are an empty answer.
pub fn gather(store: &Store, selector: &Selector) -> Result<Vec<Gathered>, StoreError> {
    let rows = match selector {
        Selector::Key(digits) => vec![store.resolve_run(digits)?],
        Selector::Labels(filter) => store.find_runs(filter)?,
    };
    rows.into_iter().map(|row| load(store, row)).collect()
}

fn load(store: &Store, row: RunRow) -> Result<Gathered, StoreError> {
    match store.read_body(row.seq)? {
        Body::Run(body) => Ok(Gathered { row, body: *body }),
        Body::Correction(_)
        | Body::Retraction(_)
        | Body::Note(_)
        | Body::Binding(_)
        | Body::Prior(_) => Err(StoreError::Entry { seq: row.seq, problem: "it is no run".into() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_without_labels_is_a_key() {
        assert_eq!(Selector::parse("3fa9c1d2"), Ok(Selector::Key("3fa9c1d2".into())));
    }

    #[test]
    fn labels_come_in_any_order_and_print_in_theirs() {
        let selector = Selector::parse("task=chat, candidate=qwen=tp2").unwrap();
        assert_eq!(selector.to_string(), "candidate=qwen=tp2,task=chat");
    }

    #[test]
    fn what_is_no_label_with_a_value_is_named() {
        let problem = |typed: &str| Selector::parse(typed).unwrap_err().to_string();
        assert!(problem("model=x").contains("`model` in `model=x` is no label"));
        assert!(problem("candidate=").contains("`candidate=` in"));
        assert!(problem("candidate=a,candidate=b").contains("`candidate` stands twice"));
        assert!(problem("candidate=a,").contains("`` in `candidate=a,`"));
    }
}
