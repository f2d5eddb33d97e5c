//! anvil-serving capacity evidence (`anvil-serving.benchmark/v1`; writer
//! `anvil_serving/benchmarking/cli.py`), protocols none, capacity-v2, capacity-v3 and
//! capacity-v4-reasoning.
//!
//! Context is what was planned; prompts are shorter by a quarter. Version 3 times decode from the
//! first visible token and counts the hidden ones, so versions never compare: the protocol is part of
//! the metric.

use crate::read::documents::documents;
use crate::read::number::{loose, loose_count, to_number};
use ledger::adapter::{
    Adapter, ExtractError, ExtractedRun, Extraction, Fact, FactKind, SourceFile, Trap,
};
use ledger::cell::{Cell, CountOrigin, Metric, Request, RequestStatus};
use ledger::finding::{Code, Finding};
use ledger::metric::{Statistic, Unit};
use serde::Deserialize;
use serde_json::{Map, Value};

/// The adapter.
#[derive(Debug)]
pub struct AnvilCapacity;

const SCHEMA: &str = "anvil-serving.benchmark/v1";

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Capacity {
    run_id: Option<String>,
    base_url: Option<String>,
    model: String,
    engine: Option<String>,
    gpu: Option<String>,
    #[serde(deserialize_with = "loose_count")]
    requests: Option<u64>,
    #[serde(deserialize_with = "loose_count")]
    completed: Option<u64>,
    #[serde(deserialize_with = "loose_count")]
    failed: Option<u64>,
    failures: Vec<Map<String, Value>>,
    #[serde(deserialize_with = "loose_count")]
    concurrency: Option<u64>,
    #[serde(deserialize_with = "loose_count")]
    context_tokens: Option<u64>,
    #[serde(deserialize_with = "loose_count")]
    max_context_tokens: Option<u64>,
    #[serde(deserialize_with = "loose_count")]
    max_tokens: Option<u64>,
    #[serde(deserialize_with = "loose_count")]
    context_seed: Option<u64>,
    serve_flags: Map<String, Value>,
    started_at: Option<String>,
    #[serde(deserialize_with = "loose")]
    wall_clock_ms: Option<f64>,
    measurement_protocol: Option<String>,
    request_timings: Vec<Timing>,
    metrics: Map<String, Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Timing {
    #[serde(deserialize_with = "loose")]
    ttft_ms: Option<f64>,
    #[serde(deserialize_with = "loose")]
    e2e_ms: Option<f64>,
    #[serde(deserialize_with = "loose")]
    decode_tok_s: Option<f64>,
    #[serde(deserialize_with = "loose")]
    effective_prefill_tok_s: Option<f64>,
    #[serde(deserialize_with = "loose")]
    time_to_first_output_ms: Option<f64>,
    #[serde(deserialize_with = "loose_count")]
    prompt_tokens: Option<u64>,
    #[serde(deserialize_with = "loose_count")]
    output_tokens: Option<u64>,
}

impl Adapter for AnvilCapacity {
    fn id(&self) -> &'static str {
        "anvil-capacity"
    }

    fn version(&self) -> u32 {
        1
    }

    fn title(&self) -> &'static str {
        "anvil-serving capacity evidence"
    }

    fn traps(&self) -> &'static [Trap] {
        &[
            Trap {
                what: "`context_tokens` is planned, prompts are shorter",
                guard: "it is nominal; the mean comes from the requests",
            },
            Trap {
                what: "decode of capacity-v3 counts hidden tokens it did not time",
                guard: "the protocol is part of the metric",
            },
            Trap {
                what: "one survivor of twelve has healthy numbers",
                guard: "k of n stands beside them",
            },
            Trap {
                what: "a warm prefix cache inflates prefill",
                guard: "the hit rate is kept and a warm cache is a caution",
            },
        ]
    }

    fn detect(&self, file: &SourceFile<'_>) -> Option<String> {
        let is_capacity = file.outline.find_text("schema") == Some(SCHEMA);
        is_capacity.then(|| format!("its `schema` is {SCHEMA}"))
    }

    fn extract(&self, file: &SourceFile<'_>) -> Result<Extraction, ExtractError> {
        let found = documents(file.text);
        found.require_readable()?;
        let mut runs = Vec::new();
        for record in found.records() {
            let capacity: Capacity = record.parse()?;
            let mut run = run(&capacity);
            run.locus = format!("line {}", record.line);
            run.span = Some(record.span);
            runs.push(run);
        }
        if runs.is_empty() {
            return Err(ExtractError::Cut {
                complete: 0,
                problem: "no complete record".to_owned(),
            });
        }
        Ok(Extraction { runs, cautions: found.cautions() })
    }
}

fn run(capacity: &Capacity) -> ExtractedRun {
    let mut run = ExtractedRun {
        cells: vec![cell(capacity)],
        measured_at: capacity.started_at.clone(),
        ..ExtractedRun::default()
    };
    let mut fact = |kind, field: &str, value: Value, place: &str| {
        run.facts.push(Fact::new(kind, field, value, place));
    };
    fact(FactKind::Label, "model.id", capacity.model.as_str().into(), "model");
    for (field, value) in [("engine", &capacity.engine), ("gpu", &capacity.gpu)] {
        if let Some(value) = value {
            fact(FactKind::Label, field, value.as_str().into(), field);
        }
    }
    fact(FactKind::Stated, "conditions.harness.name", "anvil-serving".into(), "schema");
    if let Some(protocol) = &capacity.measurement_protocol {
        fact(
            FactKind::Stated,
            "conditions.protocol",
            protocol.as_str().into(),
            "measurement_protocol",
        );
    }
    for (field, value) in
        [("max_tokens", capacity.max_tokens), ("context_seed", capacity.context_seed)]
    {
        if let Some(value) = value {
            fact(FactKind::Stated, &format!("conditions.{field}"), value.into(), field);
        }
    }
    for (flag, value) in capacity.serve_flags.iter().filter(|(_, value)| !value.is_null()) {
        fact(
            FactKind::Stated,
            &format!("conditions.{flag}"),
            value.clone(),
            &format!("serve_flags.{flag}"),
        );
    }
    for (key, value) in [("run_id", &capacity.run_id), ("base_url", &capacity.base_url)] {
        if let Some(value) = value {
            run.observed.insert(key.to_owned(), value.as_str().into());
        }
    }
    if let Some(limit) = capacity.max_context_tokens {
        run.observed.insert("max_context_tokens".to_owned(), limit.into());
    }
    if let Some(rate) = capacity.metrics.get("prefix_cache_hit_avg").and_then(to_number) {
        let state = if rate > 0.5 {
            "warm"
        } else if rate > 0.05 {
            "partial"
        } else {
            "cold"
        };
        run.observed.insert("cache_state".to_owned(), state.into());
        run.observed.insert("prefix_cache_hit_rate".to_owned(), rate.into());
        if state == "warm" {
            let message =
                format!("{:.1} % of the prompt tokens came from the prefix cache", rate * 100.0);
            run.cautions.push(Finding::caution(Code::WarmCache, "", message));
        }
    }
    run
}

fn cell(capacity: &Capacity) -> Cell {
    let mut cell = Cell::default();
    for (name, value) in
        [("concurrency", capacity.concurrency), ("context", capacity.context_tokens)]
    {
        if let Some(value) = value {
            cell.parameters.insert(name.to_owned(), value.into());
        }
    }
    count(capacity, &mut cell);
    for timing in &capacity.request_timings {
        cell.request_rows.push(Request {
            status: RequestStatus::Ok,
            prompt_tokens: timing.prompt_tokens,
            output_tokens: timing.output_tokens,
            truncated: None,
        });
    }
    tokens(capacity, &mut cell);
    if cell.requests.completed == Some(0) {
        cell.push_missing("output_tok_s", "no request completed");
        return cell;
    }
    metrics(capacity, &mut cell);
    cell
}

fn count(capacity: &Capacity, cell: &mut Cell) {
    let requests = &mut cell.requests;
    requests.asked = capacity.requests;
    requests.completed = capacity.completed;
    requests.failed = capacity.failed;
    if let (None, Some(asked), Some(completed)) =
        (capacity.failed, capacity.requests, capacity.completed)
    {
        requests.failed = Some(asked.saturating_sub(completed));
        requests.failed_origin = CountOrigin::Derived;
    }
    for failure in &capacity.failures {
        let class = failure.get("error_type").and_then(Value::as_str).unwrap_or("unclassified");
        *requests.classes.entry(class.to_owned()).or_insert(0) += 1;
    }
}

fn tokens(capacity: &Capacity, cell: &mut Cell) {
    let whole = |key: &str| capacity.metrics.get(key).and_then(crate::read::number::to_count);
    let completed = capacity.completed.filter(|completed| *completed > 0);
    cell.tokens.prompt_nominal = capacity.context_tokens;
    cell.tokens.output_limit = capacity.max_tokens;
    cell.tokens.output_total = whole("output_tokens");
    cell.tokens.prompt_total = whole("prompt_tokens");
    let mean = |total: Option<u64>| Some(total? as f64 / completed? as f64);
    cell.tokens.output_mean = mean(cell.tokens.output_total);
    cell.tokens.prompt_mean = mean(cell.tokens.prompt_total);
    let is_reasoning = capacity.measurement_protocol.as_deref() == Some("capacity-v4-reasoning");
    cell.tokens.reasoning_counted = is_reasoning.then_some(true);
}

/// Metric, key prefix of the summary, samples of the requests.
type Source = (&'static str, &'static str, fn(&Timing) -> Option<f64>);

const SOURCES: [Source; 5] = [
    ("ttft_ms", "ttft_{}_ms", |timing| timing.ttft_ms),
    ("e2e_ms", "e2e_{}_ms", |timing| timing.e2e_ms),
    ("decode_tok_s", "decode_tok_s_{}", |timing| timing.decode_tok_s),
    ("prefill_tok_s", "effective_prefill_tok_s_{}", |timing| timing.effective_prefill_tok_s),
    ("time_to_first_output_ms", "time_to_first_output_{}_ms", |timing| {
        timing.time_to_first_output_ms
    }),
];

fn metrics(capacity: &Capacity, cell: &mut Cell) {
    let given = |key: &str| capacity.metrics.get(key).and_then(to_number);
    let rate = given("throughput_tok_s");
    cell.push(Metric::new("output_tok_s").with_given(
        Statistic::Value,
        Unit::Canonical,
        rate,
        "metrics.throughput_tok_s",
    ));
    let hit = given("prefix_cache_hit_avg");
    cell.push(Metric::new("prefix_cache_hit_rate").with_given(
        Statistic::Value,
        Unit::Fraction,
        hit,
        "metrics.prefix_cache_hit_avg",
    ));
    let wall = capacity.wall_clock_ms;
    cell.push(Metric::new("duration_s").with_given(
        Statistic::Value,
        Unit::Milliseconds,
        wall,
        "wall_clock_ms",
    ));
    for (name, key, take) in SOURCES {
        let mut metric = Metric::new(name)
            .with_samples(Unit::Canonical, capacity.request_timings.iter().filter_map(take));
        for (statistic, word) in [(Statistic::P50, "p50"), (Statistic::P95, "p95")] {
            let key = key.replace("{}", word);
            metric = metric.with_given(
                statistic,
                Unit::Canonical,
                given(&key),
                &format!("metrics.{key}"),
            );
        }
        metric.protocol =
            Some(capacity.measurement_protocol.clone().unwrap_or_else(|| "capacity-v1".to_owned()));
        cell.push(metric);
    }
}
