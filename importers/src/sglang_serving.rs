//! SGLang `bench_serving` JSONL (0.3.0 to 0.5.x; writer `python/sglang/bench_serving.py`), which always
//! appends: one record a line, several runs in one file are usual.
//!
//! ```text
//! python -m sglang.bench_serving --backend sglang --max-concurrency 32 --output-file result.jsonl
//! ```
//!
//! Times are milliseconds, `request_rate` may be a bare `Infinity`, failures are not recorded at all.

use crate::read::documents::{Record as Line, documents};
use crate::read::number::{loose, loose_count, to_number};
use ledger::adapter::{
    Adapter, ExtractError, ExtractedRun, Extraction, Fact, FactKind, SourceFile, Trap,
};
use ledger::cell::{Cell, Metric};
use ledger::finding::{Code, Finding, Severity};
use ledger::metric::{Statistic, Unit};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The adapter.
#[derive(Debug)]
pub struct SglangServing;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Record {
    backend: Option<String>,
    dataset_name: Option<String>,
    request_rate: Value,
    #[serde(deserialize_with = "loose_count")]
    max_concurrency: Option<u64>,
    #[serde(deserialize_with = "loose_count")]
    random_input_len: Option<u64>,
    #[serde(deserialize_with = "loose_count")]
    random_output_len: Option<u64>,
    #[serde(deserialize_with = "loose")]
    random_range_ratio: Option<f64>,
    #[serde(deserialize_with = "loose")]
    duration: Option<f64>,
    #[serde(deserialize_with = "loose_count")]
    completed: Option<u64>,
    #[serde(deserialize_with = "loose_count")]
    total_input_tokens: Option<u64>,
    #[serde(deserialize_with = "loose_count")]
    total_output_tokens: Option<u64>,
    server_info: Option<Map<String, Value>>,
    ttfts: Vec<Option<f64>>,
    #[serde(flatten)]
    rest: BTreeMap<String, Value>,
}

impl Record {
    fn rate(&self) -> Option<f64> {
        to_number(&self.request_rate)
    }

    fn number(&self, key: &str) -> Option<f64> {
        self.rest.get(key).and_then(to_number)
    }
}

impl Adapter for SglangServing {
    fn id(&self) -> &'static str {
        "sglang-bench-serving"
    }

    fn version(&self) -> u32 {
        1
    }

    fn title(&self) -> &'static str {
        "SGLang bench_serving JSONL"
    }

    fn traps(&self) -> &'static [Trap] {
        &[
            Trap {
                what: "a second run of the day is appended to the first one's file",
                guard: "every line is a run of its own, never merged",
            },
            Trap { what: "`request_rate` is a bare Infinity", guard: "it is read as unbounded" },
            Trap {
                what: "a killed writer cuts the last line",
                guard: "whole lines are kept, the cut is located",
            },
            Trap {
                what: "`random_input_len` is the maximum of the prompts",
                guard: "it is planned, the mean comes from the token totals",
            },
            Trap {
                what: "failures are not recorded",
                guard: "requests asked for stay unknown, not equal to completed",
            },
        ]
    }

    fn detect(&self, file: &SourceFile<'_>) -> Option<String> {
        let outline = &file.outline;
        let is_serving =
            outline.has("total_output_tokens_retokenized") || outline.has("mean_e2e_latency_ms");
        (is_serving && outline.has("completed")).then(|| {
            "its first record has total_output_tokens_retokenized or mean_e2e_latency_ms".to_owned()
        })
    }

    fn extract(&self, file: &SourceFile<'_>) -> Result<Extraction, ExtractError> {
        let found = documents(file.text);
        found.require_readable()?;
        let mut runs = Vec::new();
        for record in found.records() {
            runs.push(run(&record)?);
        }
        if runs.is_empty() {
            return Err(ExtractError::Cut { complete: 0, problem: "no complete line".to_owned() });
        }
        if runs.len() == 1
            && let Some(run) = runs.first_mut()
        {
            run.locus.clear();
        }
        Ok(Extraction { runs, cautions: found.cautions() })
    }
}

fn run(line: &Line<'_>) -> Result<ExtractedRun, ExtractError> {
    let record: Record = line.parse()?;
    let what = match (record.max_concurrency, record.rate()) {
        (Some(concurrency), _) => format!("concurrency {concurrency}"),
        (None, Some(rate)) => format!("rate {rate}"),
        (None, None) => "rate unbounded".to_owned(),
    };
    let mut run = ExtractedRun {
        locus: format!("line {} ({what})", line.line),
        span: Some(line.span),
        cells: vec![cell(&record)],
        ..ExtractedRun::default()
    };
    state(&mut run, &record);
    if line.non_finite > 0 {
        run.observed.insert("nonfinite_tokens".to_owned(), line.non_finite.into());
    }
    Ok(run)
}

fn cell(record: &Record) -> Cell {
    let mut cell = Cell::default();
    if let Some(concurrency) = record.max_concurrency {
        cell.parameters.insert("concurrency".to_owned(), concurrency.into());
    }
    if let Some(rate) = record.rate() {
        cell.parameters.insert("rate".to_owned(), rate.to_string().into());
    }
    cell.requests.completed = record.completed;
    let completed = record.completed.filter(|completed| *completed > 0);
    let mean = |total: Option<u64>| Some(total? as f64 / completed? as f64);
    cell.tokens.prompt_total = record.total_input_tokens;
    cell.tokens.output_total = record.total_output_tokens;
    cell.tokens.prompt_mean = mean(record.total_input_tokens);
    cell.tokens.output_mean = mean(record.total_output_tokens);
    let is_fixed = record.random_range_ratio == Some(1.0);
    cell.tokens.prompt_nominal = record.random_input_len.filter(|_| is_fixed);
    cell.tokens.output_limit = record.random_output_len;
    if record.completed == Some(0) || record.total_output_tokens == Some(0) {
        cell.push_missing("output_tok_s", "nothing was generated");
        return cell;
    }
    rates(record, &mut cell);
    latencies(record, &mut cell);
    cell
}

fn rates(record: &Record, cell: &mut Cell) {
    for (metric, key) in [
        ("output_tok_s", "output_throughput"),
        ("input_tok_s", "input_throughput"),
        ("total_tok_s", "total_throughput"),
        ("request_s", "request_throughput"),
        ("goodput_s", "request_goodput"),
        ("peak_output_tok_s", "max_output_tokens_per_s"),
        ("measured_concurrency", "concurrency"),
        ("spec_accept_length", "accept_length"),
    ] {
        let value = record.number(key);
        cell.push(Metric::new(metric).with_given(Statistic::Value, Unit::Canonical, value, key));
    }
    // 0.3.0 prints no request rate; it follows from the counts beside it.
    if cell.find_metric("request_s").is_none()
        && let (Some(completed), Some(duration)) =
            (record.completed, record.duration.filter(|s| *s > 0.0))
    {
        cell.push(Metric::new("request_s").with_given(
            Statistic::Value,
            Unit::Canonical,
            Some(completed as f64 / duration),
            "completed / duration",
        ));
    }
    cell.push(Metric::new("duration_s").with_given(
        Statistic::Value,
        Unit::Seconds,
        record.duration,
        "duration",
    ));
}

fn latencies(record: &Record, cell: &mut Cell) {
    const STATISTICS: [(&str, Statistic); 6] = [
        ("mean", Statistic::Mean),
        ("median", Statistic::P50),
        ("std", Statistic::Std),
        ("p90", Statistic::P90),
        ("p95", Statistic::P95),
        ("p99", Statistic::P99),
    ];
    for (name, part) in
        [("ttft_ms", "ttft"), ("tpot_ms", "tpot"), ("itl_ms", "itl"), ("e2e_ms", "e2e_latency")]
    {
        let mut metric =
            STATISTICS.iter().fold(Metric::new(name), |metric, (prefix, statistic)| {
                let key = format!("{prefix}_{part}_ms");
                metric.with_given(*statistic, Unit::Milliseconds, record.number(&key), &key)
            });
        if let Some(std) = metric.given.get_mut(&Statistic::Std) {
            std.ddof = Some(0);
        }
        if name == "ttft_ms" {
            metric = metric.with_samples(Unit::Seconds, record.ttfts.iter().copied().flatten());
        }
        cell.push(metric);
    }
}

fn state(run: &mut ExtractedRun, record: &Record) {
    let mut fact = |kind, field: &str, value: Value, place: &str| {
        run.facts.push(Fact::new(kind, field, value, place));
    };
    fact(FactKind::Stated, "conditions.harness.name", "sglang bench_serving".into(), "backend");
    if let Some(backend) = &record.backend {
        fact(FactKind::Stated, "conditions.endpoint_mode", backend.as_str().into(), "backend");
    }
    if let Some(dataset) = &record.dataset_name {
        fact(FactKind::Stated, "conditions.dataset_name", dataset.as_str().into(), "dataset_name");
    }
    let rate = match (&record.request_rate, record.rate()) {
        (_, Some(rate)) => rate.into(),
        (Value::String(text), None) if text == "trace" => "trace".into(),
        _ => Value::from("unbounded"),
    };
    run.observed.insert("request_rate".to_owned(), rate.clone());
    fact(FactKind::Stated, "conditions.request_rate", rate, "request_rate");
    for (key, value) in [
        ("random_input_len", record.random_input_len.map(Value::from)),
        ("random_output_len", record.random_output_len.map(Value::from)),
        ("random_range_ratio", record.random_range_ratio.map(Value::from)),
    ] {
        if let Some(value) = value {
            fact(FactKind::Stated, &format!("conditions.{key}"), value, key);
        }
    }
    let Some(server) = &record.server_info else { return };
    server_facts(run, server);
}

/// `server_info` is the only place in any serving format that names the engine's version.
fn server_facts(run: &mut ExtractedRun, server: &Map<String, Value>) {
    let text = |key: &str| server.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
    for (field, key, kind) in [
        ("engine.version", "version", FactKind::Stated),
        ("model.path", "model_path", FactKind::Label),
        ("served_name", "served_model_name", FactKind::Label),
        ("model.weight_version", "weight_version", FactKind::Label),
        ("quant.weights", "quantization", FactKind::Stated),
        ("quant.kv_cache", "kv_cache_dtype", FactKind::Stated),
    ] {
        if let Some(value) = text(key) {
            run.facts.push(Fact::new(kind, field, value, &format!("server_info.{key}")));
        }
    }
    if text("version").is_some() {
        run.facts.push(Fact::new(FactKind::Stated, "engine.name", "sglang", "server_info.version"));
    }
    for (field, key) in [
        ("context.tokens", "context_length"),
        ("topology.tensor_parallel", "tp_size"),
        ("topology.pipeline_parallel", "pp_size"),
        ("topology.data_parallel", "dp_size"),
        ("topology.hosts", "nnodes"),
    ] {
        if let Some(count) = server.get(key).and_then(Value::as_u64).filter(|count| *count > 0) {
            run.facts.push(Fact::new(
                FactKind::Stated,
                field,
                count,
                &format!("server_info.{key}"),
            ));
        }
    }
    if server.contains_key("prefill") && server.contains_key("decode") {
        let message =
            "prefill and decode ran on separate servers; no one of them is named as the engine";
        run.cautions.push(Finding::new(Code::PartialRun, Severity::Note, "engine", message));
    }
}
