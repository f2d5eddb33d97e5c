//! One row of `llama-bench`, whatever form it was printed in, and what its fields are: identity,
//! workload, measurement, or a setting. Fields of future builds count as settings.

use crate::read::documents::Record;
use crate::read::fields::{Fields, to_flag, to_text};
use ledger::adapter::ExtractError;
use ledger::finding::Finding;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Everything a text holds, before it becomes runs.
#[derive(Debug, Default)]
pub(super) struct Reading {
    /// One sheet an execution of the tool.
    pub(super) sheets: Vec<Sheet>,
    /// Cautions about the file.
    pub(super) cautions: Vec<Finding>,
    /// Accelerators named by banner lines, with their line; used where rows name none.
    pub(super) accelerators: Vec<(usize, String)>,
}

/// The rows of one execution, in file order.
#[derive(Debug, Default)]
pub(super) struct Sheet {
    pub(super) rows: Vec<Row>,
    pub(super) cautions: Vec<Finding>,
}

/// One row.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) fields: Map<String, Value>,
    /// What stands in front of a field's name in places: `line 3`.
    pub(super) base: String,
    pub(super) line: usize,
    pub(super) span: (usize, usize),
}

/// What was run: prompt tokens, generated tokens, tokens already in the context.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Test {
    pub(super) prompt: u64,
    pub(super) output: u64,
    pub(super) depth: u64,
}

/// Fields that make rows rows of different runs.
pub(super) const IDENTITY: [&str; 11] = [
    "build_commit",
    "build_number",
    "cpu_info",
    "gpu_info",
    "backends",
    "model_filename",
    "model_type",
    "model_size",
    "model_n_params",
    "size",
    "params",
];

const WORKLOAD_AND_MEASUREMENT: [&str; 11] = [
    "n_prompt",
    "n_gen",
    "n_depth",
    "test",
    "test_time",
    "avg_ns",
    "stddev_ns",
    "avg_ts",
    "stddev_ts",
    "samples_ns",
    "samples_ts",
];

/// Fields that CSV and SQL print as `0` and `1`, JSON as booleans.
const FLAGS: [&str; 9] = [
    "cpu_strict",
    "no_kv_offload",
    "use_mmap",
    "use_direct_io",
    "embeddings",
    "no_host",
    "repack",
    "mul_mat_q",
    "f16_kv",
];

/// Fields whose text may look like a number.
const TEXTS: [&str; 3] = ["cpu_mask", "tensor_split", "devices"];

pub(super) const REQUIRED: [&str; 4] = ["build_commit", "n_prompt", "n_gen", "avg_ts"];

/// True for a row, or for a wrapper's record that holds one as `bench_raw`.
pub(super) fn is_row_object(record: &Record<'_>) -> bool {
    record
        .parse()
        .is_ok_and(|fields: Map<String, Value>| is_row(find_row(&fields).unwrap_or(&fields)))
}

/// True when the fields of a row are there.
pub(super) fn is_row(fields: &Map<String, Value>) -> bool {
    REQUIRED.iter().all(|name| fields.contains_key(*name))
}

/// Finds the row inside a wrapper's record (lhl/strix-halo-testing `llm-bench`).
pub(super) fn find_row(record: &Map<String, Value>) -> Option<&Map<String, Value>> {
    record.get("bench_raw").and_then(Value::as_object)
}

impl Row {
    /// The row's fields, which know their place.
    pub(super) fn fields(&self) -> Fields<'_> {
        Fields::new(&self.fields, self.base.as_str())
    }

    /// The values that must be equal for two rows to belong to one run.
    pub(super) fn identity(&self) -> Vec<Option<String>> {
        IDENTITY.iter().map(|name| self.fields.get(*name).and_then(to_text)).collect()
    }

    /// The row's settings, each in the one spelling that all forms share.
    pub(super) fn settings(&self) -> BTreeMap<&str, Value> {
        let names = self.fields.iter().filter(|(name, value)| is_setting(name) && !value.is_null());
        names.map(|(name, value)| (name.as_str(), normalize(name, value))).collect()
    }

    /// What was run.
    ///
    /// # Errors
    /// [`ExtractError::Field`] when a count is no count or both are zero.
    pub(super) fn test(&self) -> Result<Test, ExtractError> {
        let fields = self.fields();
        let count = |name| fields.count(name).map(Option::unwrap_or_default);
        let test =
            Test { prompt: count("n_prompt")?, output: count("n_gen")?, depth: count("n_depth")? };
        if test.prompt == 0 && test.output == 0 {
            return Err(ExtractError::Field {
                field: fields.place("n_prompt"),
                problem: "n_prompt and n_gen are both 0: nothing was run".to_owned(),
            });
        }
        Ok(test)
    }
}

impl Test {
    /// The tool's own name without spaces: `pp512`, `tg128`, `pp512+tg128@d4096`.
    pub(super) fn label(self) -> String {
        let phases = match (self.prompt, self.output) {
            (prompt, 0) => format!("pp{prompt}"),
            (0, output) => format!("tg{output}"),
            (prompt, output) => format!("pp{prompt}+tg{output}"),
        };
        if self.depth == 0 { phases } else { format!("{phases}@d{}", self.depth) }
    }

    /// Reads a name of the Markdown table; older builds put spaces inside: `pp 512`.
    pub(super) fn parse(name: &str) -> Option<Self> {
        let name: String = name.split_whitespace().collect();
        let (phases, depth) = match name.split_once("@d") {
            Some((phases, depth)) => (phases, depth.parse().ok()?),
            None => (name.as_str(), 0),
        };
        let mut test = Self { prompt: 0, output: 0, depth };
        for phase in phases.split('+') {
            if let Some(prompt) = phase.strip_prefix("pp") {
                test.prompt = prompt.parse().ok()?;
            } else {
                test.output = phase.strip_prefix("tg")?.parse().ok()?;
            }
        }
        Some(test)
    }
}

fn is_setting(name: &str) -> bool {
    !IDENTITY.contains(&name) && !WORKLOAD_AND_MEASUREMENT.contains(&name)
}

/// Brings a setting to one spelling: flags to booleans, numbers to numbers, `flash_attn` to words
/// (a boolean until b9049, then 0, 1, and -1 for automatic).
fn normalize(name: &str, value: &Value) -> Value {
    let text = to_text(value).unwrap_or_default();
    if name == "flash_attn" {
        return match text.as_str() {
            "true" | "1" => "on".into(),
            "false" | "0" => "off".into(),
            "-1" => "auto".into(),
            _ => text.into(),
        };
    }
    if FLAGS.contains(&name) {
        return to_flag(value).map_or_else(|| value.clone(), Value::Bool);
    }
    if TEXTS.contains(&name) || value.is_object() || value.is_array() {
        return value.clone();
    }
    match text.as_str() {
        "true" => 1.into(),
        "false" => 0.into(),
        _ => parse_scalar(&text),
    }
}

fn parse_scalar(text: &str) -> Value {
    let whole = text.parse::<i64>().ok().map(Value::from);
    let number = || text.parse::<f64>().ok().and_then(serde_json::Number::from_f64);
    whole.or_else(|| number().map(Value::Number)).unwrap_or_else(|| text.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_test_is_named_by_its_counts() {
        let test = |prompt, output, depth| Test { prompt, output, depth }.label();
        assert_eq!(test(512, 0, 0), "pp512");
        assert_eq!(test(0, 128, 65_536), "tg128@d65536");
        assert_eq!(test(512, 128, 0), "pp512+tg128");
        for (name, parsed) in [
            ("pp 512", Test { prompt: 512, output: 0, depth: 0 }),
            ("pp32+tg4 @ d16", Test { prompt: 32, output: 4, depth: 16 }),
        ] {
            assert_eq!(Test::parse(name), Some(parsed));
        }
        for wrong in ["", "pp", "512", "pp512+x", "tg1@dx"] {
            assert_eq!(Test::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn every_form_spells_a_setting_the_same() {
        for (name, json, csv, expected) in [
            ("flash_attn", json!(true), json!("1"), json!("on")),
            ("flash_attn", json!(-1), json!("-1"), json!("auto")),
            ("no_kv_offload", json!(false), json!("0"), json!(false)),
            ("n_ubatch", json!(512), json!("512"), json!(512)),
            ("type_k", json!("q8_0"), json!("q8_0"), json!("q8_0")),
            ("tensor_split", json!("0.00"), json!("0.00"), json!("0.00")),
            ("a_new_flag", json!(true), json!("1"), json!(1)),
            ("defrag_thold", json!(-1.5), json!("-1.5"), json!(-1.5)),
        ] {
            assert_eq!(normalize(name, &json), expected, "{name}");
            assert_eq!(normalize(name, &csv), expected, "{name}");
        }
    }
}
