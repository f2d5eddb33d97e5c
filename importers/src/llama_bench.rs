//! llama.cpp `llama-bench -o json|jsonl` (versions b4461 of 2025-01 to b11434 of 2026-10; written by
//! `tools/llama-bench/llama-bench.cpp`, `get_fields`).
//!
//! ```text
//! llama-bench -m model.gguf -p 512 -n 128 -r 5 -o json > result.json
//! ```
//!
//! A row is one test. `avg_ts` is the mean of the rates of the repetitions, not tokens over time, so
//! the samples are used; the standard deviation of one repetition is printed as 0 and means unknown.

use crate::read::json::{self, Documents};
use crate::read::number::{to_count, to_number};
use ledger::adapter::{
    Adapter, ExtractError, ExtractedRun, Extraction, Fact, FactKind, SourceFile, Trap,
};
use ledger::cell::{Cell, Metric, Parameter};
use ledger::finding::{Code, Finding, Severity};
use ledger::metric::{Statistic, Unit};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The adapter.
#[derive(Debug)]
pub struct LlamaBench;

type Row = Map<String, Value>;

/// Fields that are results or stand for themselves; everything else is a setting of the test.
const NO_SETTINGS: &[&str] = &[
    "build_commit",
    "build_number",
    "cpu_info",
    "gpu_info",
    "backends",
    "model_filename",
    "model_type",
    "model_size",
    "model_n_params",
    "n_prompt",
    "n_gen",
    "n_depth",
    "test_time",
    "avg_ns",
    "stddev_ns",
    "avg_ts",
    "stddev_ts",
    "samples_ns",
    "samples_ts",
    "test",
    "type_k",
    "type_v",
];

/// Words that stand in `build_commit` where no commit is known.
const NO_COMMIT: &[&str] = &["", "unknown", "none", "vendored", "dev", "local", "release", "HEAD"];

impl Adapter for LlamaBench {
    fn id(&self) -> &'static str {
        "llama-bench"
    }

    fn version(&self) -> u32 {
        1
    }

    fn title(&self) -> &'static str {
        "llama.cpp llama-bench JSON"
    }

    fn traps(&self) -> &'static [Trap] {
        &[
            Trap {
                what: "`avg_ts` is the mean of the repetitions' rates and not tokens over time",
                guard: "samples are used, `avg_ts` is kept as given",
            },
            Trap {
                what: "one repetition prints a standard deviation of 0",
                guard: "it is left out and said to be unknown",
            },
            Trap {
                what: "a pp+tg row mixes prefill and decode",
                guard: "it is `combined_tok_s`, never decode or prefill",
            },
            Trap {
                what: "rows that differ only in a setting look like repeats",
                guard: "settings that differ between rows become coordinates of the cell",
            },
            Trap {
                what: "backend logs and crash lines stand around the JSON",
                guard: "they are counted and said; a crash is a caution",
            },
            Trap {
                what: "a second model that fails to load leaves the array open",
                guard: "complete rows are kept, the cut is said",
            },
        ]
    }

    fn detect(&self, file: &SourceFile<'_>) -> Option<String> {
        let keys = ["build_commit", "avg_ts", "avg_ns", "n_prompt", "n_gen"];
        file.outline.has_all(&keys).then(|| format!("its first record has {}", keys.join(", ")))
    }

    fn extract(&self, file: &SourceFile<'_>) -> Result<Extraction, ExtractError> {
        let found = json::split(file.text);
        let runs = group(&found)?;
        if runs.is_empty() {
            return Err(ExtractError::Cut { complete: 0, problem: "no complete row".to_owned() });
        }
        let count = runs.len();
        let runs = runs
            .into_iter()
            .enumerate()
            .map(|(index, part)| run(&part, if count > 1 { Some(index + 1) } else { None }))
            .collect::<Result<_, _>>()?;
        Ok(Extraction { runs, cautions: json::cautions(&found) })
    }
}

struct Part {
    rows: Vec<Row>,
    line: usize,
    span: (usize, usize),
}

/// Groups rows into runs: rows on lines of their own are one run, each array is a run.
fn group(found: &Documents<'_>) -> Result<Vec<Part>, ExtractError> {
    let mut parts: Vec<Part> = Vec::new();
    let mut lines: Option<Part> = None;
    for document in &found.documents {
        if document.text.starts_with('[') {
            let rows: Vec<Row> = json::parse(document)?;
            if !rows.is_empty() {
                parts.push(Part { rows, line: document.line, span: document.span });
            }
            continue;
        }
        let row: Row = json::parse(document)?;
        let is_row = row.contains_key("avg_ts");
        let is_repeat =
            lines.as_ref().is_some_and(|part| part.rows.iter().any(|known| same_test(known, &row)));
        if is_repeat {
            parts.extend(lines.take());
        }
        if is_row {
            let part = lines.get_or_insert(Part {
                rows: Vec::new(),
                line: document.line,
                span: document.span,
            });
            part.rows.push(row);
            part.span.1 = document.span.1;
        }
    }
    parts.extend(lines);
    Ok(parts)
}

/// True when two rows are the same test of the same model with the same settings: a second run that
/// was appended.
fn same_test(one: &Row, other: &Row) -> bool {
    let is_identity = |key: &str| {
        !matches!(
            key,
            "test_time"
                | "avg_ns"
                | "stddev_ns"
                | "avg_ts"
                | "stddev_ts"
                | "samples_ns"
                | "samples_ts"
        )
    };
    one.iter().filter(|(key, _)| is_identity(key)).all(|(key, value)| other.get(key) == Some(value))
}

fn text<'a>(row: &'a Row, key: &str) -> &'a str {
    row.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn count(row: &Row, key: &str) -> u64 {
    row.get(key).and_then(to_count).unwrap_or(0)
}

fn number(row: &Row, key: &str) -> Option<f64> {
    row.get(key).and_then(to_number)
}

/// Returns the test's name as llama-bench writes it: `pp512`, `tg128`, `pp512+tg128`, ` @ d4096`.
pub fn test_name(prompt: u64, output: u64, depth: u64) -> String {
    let name = match (prompt, output) {
        (prompt, 0) => format!("pp{prompt}"),
        (0, output) => format!("tg{output}"),
        (prompt, output) => format!("pp{prompt}+tg{output}"),
    };
    if depth > 0 { format!("{name}@d{depth}") } else { name }
}

fn run(part: &Part, number_of_run: Option<usize>) -> Result<ExtractedRun, ExtractError> {
    let rows = &part.rows;
    let Some(first) = rows.first() else { return Ok(ExtractedRun::default()) };
    let (shared, varying) = settings(rows);
    let mut run = ExtractedRun {
        locus: number_of_run.map_or_else(String::new, |n| {
            format!("run {n}, from line {}, {} rows", part.line, rows.len())
        }),
        span: Some(part.span),
        measured_at: rows
            .iter()
            .map(|row| text(row, "test_time"))
            .filter(|time| !time.is_empty())
            .min()
            .map(str::to_owned),
        ..ExtractedRun::default()
    };
    for row in rows {
        let cell = cell(row, &varying)?;
        if run.cells.iter().any(|known| known.id() == cell.id()) {
            return Err(ExtractError::Field {
                field: "n_prompt, n_gen".to_owned(),
                problem: format!("two rows are the same test `{}`", cell.id()),
            });
        }
        run.cells.push(cell);
    }
    state(&mut run, rows, first, shared);
    Ok(run)
}

/// Splits the settings of all rows into those that are equal and those that differ.
fn settings(rows: &[Row]) -> (BTreeMap<String, Value>, Vec<String>) {
    let mut shared = BTreeMap::new();
    let mut varying = Vec::new();
    let Some(first) = rows.first() else { return (shared, varying) };
    for (key, value) in first.iter().filter(|(key, _)| !NO_SETTINGS.contains(&key.as_str())) {
        if rows.iter().all(|row| row.get(key) == Some(value)) {
            shared.insert(key.clone(), value.clone());
        } else {
            varying.push(key.clone());
        }
    }
    for key in ["model_filename", "type_k", "type_v"] {
        if rows.iter().any(|row| row.get(key) != first.get(key)) {
            varying.push(key.to_owned());
        }
    }
    (shared, varying)
}

fn cell(row: &Row, varying: &[String]) -> Result<Cell, ExtractError> {
    let (prompt, output, depth) =
        (count(row, "n_prompt"), count(row, "n_gen"), count(row, "n_depth"));
    let mut cell = Cell::default();
    cell.parameters.insert("test".to_owned(), test_name(prompt, output, depth).into());
    for key in varying {
        if let Some(value) = row.get(key) {
            cell.parameters.insert(key.clone(), parameter(value));
        }
    }
    let name = match (prompt, output) {
        (_, 0) => "prefill_tok_s",
        (0, _) => "decode_tok_s",
        _ => "combined_tok_s",
    };
    let samples: Vec<f64> = row
        .get("samples_ts")
        .and_then(Value::as_array)
        .map(|samples| samples.iter().filter_map(to_number).collect())
        .unwrap_or_default();
    let mean = number(row, "avg_ts");
    if mean.is_none() && samples.is_empty() {
        return Err(ExtractError::Field {
            field: "avg_ts".to_owned(),
            problem: "is no number".to_owned(),
        });
    }
    let repetitions = samples.len();
    let mut metric = Metric::new(name).with_samples(Unit::Canonical, samples).with_given(
        Statistic::Mean,
        Unit::Canonical,
        mean,
        "avg_ts",
    );
    match number(row, "stddev_ts") {
        Some(std) if repetitions > 1 || std > 0.0 => {
            metric = metric.with_given(Statistic::Std, Unit::Canonical, Some(std), "stddev_ts");
            if let Some(given) = metric.given.get_mut(&Statistic::Std) {
                given.ddof = Some(1);
            }
        }
        _ => cell.cautions.push(Finding::caution(
            Code::SpreadUnknown,
            "",
            "one repetition has no spread; the 0 that is printed means unknown",
        )),
    }
    cell.push(metric);
    cell.tokens.prompt_nominal = Some(prompt).filter(|prompt| *prompt > 0);
    cell.tokens.prompt_mean = cell.tokens.prompt_nominal.map(|prompt| prompt as f64);
    cell.tokens.output_limit = Some(output).filter(|output| *output > 0);
    cell.tokens.output_mean = cell.tokens.output_limit.map(|output| output as f64);
    Ok(cell)
}

fn parameter(value: &Value) -> Parameter {
    match value.as_u64() {
        Some(count) => Parameter::Count(count),
        None => Parameter::Text(value.as_str().map_or_else(|| value.to_string(), str::to_owned)),
    }
}

fn state(run: &mut ExtractedRun, rows: &[Row], first: &Row, shared: BTreeMap<String, Value>) {
    let mut fact = |kind, field: &str, value: Value, key: &str| {
        run.facts.push(Fact::new(kind, field, value, &format!("[0].{key}")));
    };
    fact(FactKind::Stated, "engine.name", "llama.cpp".into(), "build_number");
    let commit = text(first, "build_commit");
    let build = count(first, "build_number");
    let is_known = !NO_COMMIT.contains(&commit)
        && commit.chars().all(|c| c.is_ascii_hexdigit())
        && commit.len() >= 7;
    let version =
        if is_known && build > 0 { format!("b{build}-{commit}") } else { commit.to_owned() };
    if is_known {
        fact(FactKind::Stated, "engine.version", version.into(), "build_commit");
    }
    let gpus: Vec<&str> =
        text(first, "gpu_info").split(", ").filter(|gpu| !gpu.is_empty()).collect();
    if !gpus.is_empty() {
        fact(FactKind::Label, "topology.accelerators", Value::from(gpus), "gpu_info");
    }
    let (key_type, value_type) = (text(first, "type_k"), text(first, "type_v"));
    let same_type =
        |row: &Row| text(row, "type_k") == key_type && text(row, "type_v") == value_type;
    if !key_type.is_empty() && rows.iter().all(same_type) {
        let cache = if key_type == value_type {
            key_type.to_owned()
        } else {
            format!("{key_type}/{value_type}")
        };
        fact(FactKind::Stated, "quant.kv_cache", cache.into(), "type_k");
    }
    // llama-bench gives each test a context of just its tokens (`to_llama_cparams`, n_ctx).
    let context = rows
        .iter()
        .map(|row| count(row, "n_prompt") + count(row, "n_gen") + count(row, "n_depth"))
        .max();
    if let Some(context) = context.filter(|tokens| *tokens > 0) {
        fact(FactKind::Stated, "context.tokens", context.into(), "n_prompt + n_gen + n_depth");
    }
    fact(FactKind::Stated, "conditions.harness.name", "llama-bench".into(), "build_commit");
    for (key, value) in
        shared.into_iter().filter(|(_, value)| !value.is_null() && !value.is_object())
    {
        fact(FactKind::Stated, &format!("conditions.{key}"), value, &key);
    }
    for (field, key) in [
        ("model.file", "model_filename"),
        ("model.type", "model_type"),
        ("cpu", "cpu_info"),
        ("backends", "backends"),
    ] {
        fact(FactKind::Label, field, text(first, key).into(), key);
    }
    if !is_known {
        let message = format!("`{commit}` is no commit: the engine build is unknown");
        run.cautions.push(Finding::new(
            Code::EngineBuildUnknown,
            Severity::Caution,
            "engine.version",
            message,
        ));
    }
    run.observed.insert(
        "model_size_bytes".to_owned(),
        first.get("model_size").cloned().unwrap_or_default(),
    );
    run.observed.insert(
        "model_parameters".to_owned(),
        first.get("model_n_params").cloned().unwrap_or_default(),
    );
    run.observed.insert("build_commit".to_owned(), commit.into());
}
