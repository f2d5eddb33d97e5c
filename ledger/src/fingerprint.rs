//! The fairness fingerprint: everything that must be equal for two numbers to stand side by side.
//! A fixed table of required fields, each a value or the literal `"unknown"`, and `conditions` for
//! whatever else must match. Its id is BLAKE3 of its canonical JSON. This module owns the table,
//! the nesting and the difference of two fingerprints; where values come from is
//! [`crate::statement`]'s business.

use crate::canonical::{self, CanonicalError};
use crate::id::FingerprintId;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// The literal that stands for a value nobody knows. It equals nothing, itself included.
pub const UNKNOWN: &str = "unknown";

/// The prefix of free conditions.
pub const CONDITIONS: &str = "conditions.";

/// What a field holds when it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldType {
    /// A non-empty text.
    Text,
    /// A whole number of at least one.
    Count,
    /// A list of texts.
    TextList,
    /// Watts, a list of watts (one a card), or `"none"`.
    PowerCap,
}

/// One required field.
#[derive(Debug, Clone, Copy)]
pub struct FieldDefinition {
    /// Its path: `quant.weights`.
    pub path: &'static str,
    /// What it holds.
    pub holds: FieldType,
    /// Where it can be read when a person does not give it.
    pub read_from: &'static str,
}

const fn field(path: &'static str, holds: FieldType, read_from: &'static str) -> FieldDefinition {
    FieldDefinition { path, holds, read_from }
}

/// The required fields of design section 4.
pub const FIELDS: &[FieldDefinition] = &[
    field("model.id", FieldType::Text, "provenance"),
    field("model.revision", FieldType::Text, "provenance"),
    field("engine.name", FieldType::Text, "artifacts or provenance"),
    field("engine.version", FieldType::Text, "artifacts or provenance"),
    field("engine.digest", FieldType::Text, "provenance"),
    field("quant.weights", FieldType::Text, "process command line, GGUF header or config.json"),
    field("quant.kv_cache", FieldType::Text, "process command line, GGUF header or config.json"),
    field("context.tokens", FieldType::Count, "process command line"),
    field("topology.accelerators", FieldType::TextList, "probe"),
    field("topology.tensor_parallel", FieldType::Count, "process command line"),
    field("topology.pipeline_parallel", FieldType::Count, "process command line"),
    field("topology.data_parallel", FieldType::Count, "process command line"),
    field("topology.hosts", FieldType::Count, "process command line"),
    field("placement", FieldType::TextList, "probe"),
    field("power.cap_w", FieldType::PowerCap, "probe"),
];

/// Finds the definition of a required field.
pub fn find_field(path: &str) -> Option<&'static FieldDefinition> {
    FIELDS.iter().find(|field| field.path == path)
}

/// True for a path that a fingerprint may hold.
pub fn is_field(path: &str) -> bool {
    find_field(path).is_some() || is_condition(path)
}

fn is_condition(path: &str) -> bool {
    path.strip_prefix(CONDITIONS).is_some_and(|name| {
        !name.is_empty()
            && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-'))
    })
}

/// Says what is wrong with a field's value, or nothing.
pub fn find_problem(path: &str, value: &Value) -> Option<String> {
    if value.as_str() == Some(UNKNOWN) {
        return None;
    }
    let holds = find_field(path).map(|field| field.holds);
    let (fits, wanted) = match holds {
        Some(FieldType::Text) => (is_text(value), "a text that is not empty"),
        Some(FieldType::Count) => {
            (value.as_u64().is_some_and(|n| n > 0), "a whole number above zero")
        }
        Some(FieldType::TextList) => (is_text_list(value), "a list of texts that is not empty"),
        Some(FieldType::PowerCap) => (is_power_cap(value), "watts, a list of watts, or \"none\""),
        None => (is_condition_value(value), "a number, text, boolean or list of them"),
    };
    (!fits).then(|| format!("expected {wanted} or \"unknown\", found `{value}`"))
}

fn is_text(value: &Value) -> bool {
    value.as_str().is_some_and(|text| !text.trim().is_empty())
}

fn is_text_list(value: &Value) -> bool {
    value.as_array().is_some_and(|items| !items.is_empty() && items.iter().all(is_text))
}

fn is_power_cap(value: &Value) -> bool {
    let is_cap = |cap: &Value| {
        cap.as_f64().is_some_and(|watts| watts > 0.0) || cap == "none" || cap == UNKNOWN
    };
    is_cap(value)
        || value.as_array().is_some_and(|caps| !caps.is_empty() && caps.iter().all(is_cap))
}

fn is_condition_value(value: &Value) -> bool {
    match value {
        Value::Array(items) => {
            items.iter().all(|item| !item.is_array() && is_condition_value(item))
        }
        Value::Object(_) | Value::Null => false,
        Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    }
}

/// True when a value is unknown, wholly or in one of its parts.
pub fn is_unknown(value: &Value) -> bool {
    value == UNKNOWN || value.as_array().is_some_and(|items| items.iter().any(is_unknown))
}

/// A complete fingerprint: every required field and any conditions, by path.
#[derive(Debug, Clone, PartialEq)]
pub struct Fingerprint {
    fields: BTreeMap<String, Value>,
}

/// Why a JSON object is no fingerprint.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FingerprintError {
    /// A required field is missing.
    #[error("field `{path}` is missing")]
    Missing {
        /// Its path.
        path: String,
    },
    /// A field is not known.
    #[error("field `{path}` is not known")]
    Unknown {
        /// Its path.
        path: String,
    },
    /// A field holds something else.
    #[error("field `{path}`: {problem}")]
    Value {
        /// Its path.
        path: String,
        /// What is wrong.
        problem: String,
    },
}

impl Fingerprint {
    /// Takes fields by path.
    ///
    /// # Errors
    /// [`FingerprintError`] for the first field that is missing, not known or holds something else.
    pub fn new(fields: BTreeMap<String, Value>) -> Result<Self, FingerprintError> {
        for (path, value) in &fields {
            if !is_field(path) {
                return Err(FingerprintError::Unknown { path: path.clone() });
            }
            if let Some(problem) = find_problem(path, value) {
                return Err(FingerprintError::Value { path: path.clone(), problem });
            }
        }
        match FIELDS.iter().find(|field| !fields.contains_key(field.path)) {
            Some(field) => Err(FingerprintError::Missing { path: field.path.to_owned() }),
            None => Ok(Self { fields }),
        }
    }

    /// Returns the fields by path.
    pub fn fields(&self) -> &BTreeMap<String, Value> {
        &self.fields
    }

    /// Returns the value of a field; absent conditions have none.
    pub fn find(&self, path: &str) -> Option<&Value> {
        self.fields.get(path)
    }

    /// Returns a field as text, if it is one.
    pub fn find_text(&self, path: &str) -> Option<&str> {
        self.find(path).and_then(Value::as_str)
    }

    /// Returns the nested object that is stored and hashed; conditions keep dotted names.
    pub fn to_json(&self) -> Value {
        let mut object = Map::new();
        for (path, value) in &self.fields {
            match path.split_once('.') {
                Some((group, name)) => {
                    let group = object.entry(group).or_insert_with(|| Value::Object(Map::new()));
                    if let Value::Object(members) = group {
                        members.insert(name.to_owned(), value.clone());
                    }
                }
                None => {
                    object.insert(path.clone(), value.clone());
                }
            }
        }
        Value::Object(object)
    }

    /// Reads the nested object back.
    ///
    /// # Errors
    /// As [`Fingerprint::new`].
    pub fn from_json(object: &Value) -> Result<Self, FingerprintError> {
        let mut fields = BTreeMap::new();
        for (group, value) in object.as_object().into_iter().flatten() {
            if let Value::Object(members) = value {
                let nested = members.iter();
                fields
                    .extend(nested.map(|(name, value)| (format!("{group}.{name}"), value.clone())));
            } else {
                fields.insert(group.clone(), value.clone());
            }
        }
        Self::new(fields)
    }

    /// Returns the id: BLAKE3 of the canonical JSON of [`Fingerprint::to_json`].
    ///
    /// # Errors
    /// [`CanonicalError`] when a condition holds an integer beyond 2^53-1.
    pub fn id(&self) -> Result<FingerprintId, CanonicalError> {
        let bytes = canonical::to_bytes(&self.to_json())?;
        Ok(FingerprintId::from_bytes(*blake3::hash(&bytes).as_bytes()))
    }

    /// Returns the paths of fields whose value is unknown.
    pub fn unknown_fields(&self) -> Vec<&str> {
        self.fields
            .iter()
            .filter(|(_, value)| is_unknown(value))
            .map(|(path, _)| path.as_str())
            .collect()
    }
}

/// A field in which two fingerprints are not known to be equal.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    /// Its path.
    pub path: String,
    /// The base's value; `None` where the base has no such condition, which is unknown.
    pub base: Option<Value>,
    /// The candidate's value.
    pub candidate: Option<Value>,
}

impl Difference {
    /// True when at least one side is not known, so that nobody can say whether they differ.
    pub fn is_unknown(&self) -> bool {
        [&self.base, &self.candidate].into_iter().any(|side| side.as_ref().is_none_or(is_unknown))
    }
}

/// Lists every field in which two fingerprints are not known to be equal, by path. An unknown
/// value differs from everything, and an absent condition is unknown.
pub fn diff(base: &Fingerprint, candidate: &Fingerprint) -> Vec<Difference> {
    let paths: BTreeSet<&String> = base.fields.keys().chain(candidate.fields.keys()).collect();
    paths
        .into_iter()
        .map(|path| Difference {
            path: path.clone(),
            base: base.fields.get(path).cloned(),
            candidate: candidate.fields.get(path).cloned(),
        })
        .filter(|difference| difference.is_unknown() || !same(difference))
        .collect()
}

fn same(difference: &Difference) -> bool {
    match (&difference.base, &difference.candidate) {
        (Some(base), Some(candidate)) => is_equal(base, candidate),
        _ => false,
    }
}

/// Compares two values; numbers by magnitude, so that `300` equals `300.0`.
pub fn is_equal(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one.as_f64() == other.as_f64(),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len()
                && one.iter().zip(other).all(|(one, other)| is_equal(one, other))
        }
        _ => one == other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    pub(crate) fn sample() -> BTreeMap<String, Value> {
        let object = json!({
            "model": {"id": "acme/tiny", "revision": "b3:00"},
            "engine": {"name": "vllm", "version": "0.25.1", "digest": "unknown"},
            "quant": {"weights": "bf16", "kv_cache": "auto"},
            "context": {"tokens": 4096},
            "topology": {"accelerators": ["cpu:x"], "tensor_parallel": 1, "pipeline_parallel": 1,
                "data_parallel": 1, "hosts": 1},
            "placement": ["host"], "power": {"cap_w": "none"},
            "conditions": {"harness.name": "vllm bench serve", "temperature": 0},
        });
        Fingerprint::from_json(&object).unwrap().fields
    }

    #[test]
    fn a_fingerprint_nests_and_reads_back() {
        let fingerprint = Fingerprint::new(sample()).unwrap();
        let json = fingerprint.to_json();
        assert_eq!(json["conditions"]["harness.name"], "vllm bench serve");
        assert_eq!(Fingerprint::from_json(&json).unwrap(), fingerprint);
    }

    #[test]
    fn unknown_never_equals_unknown() {
        let fingerprint = Fingerprint::new(sample()).unwrap();
        let differences = diff(&fingerprint, &fingerprint);
        assert_eq!(differences.len(), 1);
        assert_eq!(differences[0].path, "engine.digest");
        assert!(differences[0].is_unknown());
    }

    #[test]
    fn an_absent_condition_is_unknown() {
        let mut fields = sample();
        fields.remove("conditions.temperature");
        let without = Fingerprint::new(fields).unwrap();
        let paths: Vec<String> = diff(&Fingerprint::new(sample()).unwrap(), &without)
            .into_iter()
            .map(|difference| difference.path)
            .collect();
        assert_eq!(paths, ["conditions.temperature", "engine.digest"]);
    }

    #[test]
    fn a_field_that_is_missing_not_known_or_of_another_type_is_named() {
        for (path, value, expected) in [
            ("power.cap_w", json!(-5), "field `power.cap_w`: expected watts"),
            ("context.tokens", json!(0), "field `context.tokens`: expected a whole number"),
            ("model.name", json!("x"), "field `model.name` is not known"),
            ("conditions.a b", json!("x"), "field `conditions.a b` is not known"),
        ] {
            let mut fields = sample();
            fields.insert(path.into(), value);
            let error = Fingerprint::new(fields).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
        let mut fields = sample();
        fields.remove("placement");
        assert!(Fingerprint::new(fields).is_err());
    }

    #[test]
    fn the_id_is_what_b3sum_prints_of_the_canonical_json() {
        // printf '%s' '{"conditions":{},…}' | b3sum, see fixtures/README.md for the way it was made
        let fingerprint = Fingerprint::new(sample()).unwrap();
        let bytes = canonical::to_bytes(&fingerprint.to_json()).unwrap();
        assert!(
            bytes.starts_with(
                br#"{"conditions":{"harness.name":"vllm bench serve","temperature":0},"#
            )
        );
        let mut other = sample();
        other.insert("context.tokens".into(), json!(8192));
        let other = Fingerprint::new(other).unwrap();
        assert_ne!(fingerprint.id().unwrap(), other.id().unwrap());
    }
}
