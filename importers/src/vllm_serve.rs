//! `vllm bench serve --save-result` (before mid-2025 `benchmark_serving.py`; writer
//! `vllm/benchmarks/serve.py`), with and without `--save-detailed`.
//!
//! ```text
//! vllm bench serve --model M --num-prompts 200 --max-concurrency 16 --save-result --save-detailed
//! ```
//!
//! Summary times are milliseconds, detailed arrays seconds. The client drops failed requests before
//! it computes anything, writes 0.0 for latencies when nothing completed, and knows the model only by
//! the name it was told.

mod cell;
mod file;

use crate::read::documents::documents;
use file::ServeFile;
use ledger::adapter::{
    Adapter, ExtractError, ExtractedRun, Extraction, Fact, FactKind, SourceFile, Trap,
};
use serde_json::Value;

/// The adapter.
#[derive(Debug)]
pub struct VllmServe;

impl Adapter for VllmServe {
    fn id(&self) -> &'static str {
        "vllm-bench-serve"
    }

    fn version(&self) -> u32 {
        1
    }

    fn title(&self) -> &'static str {
        "vLLM bench serve JSON"
    }

    fn traps(&self) -> &'static [Trap] {
        &[
            Trap {
                what: "when nothing completed every latency is 0.0",
                guard: "no metric is taken; the run is a failed one",
            },
            Trap {
                what: "older files have no `failed`",
                guard: "it follows from num_prompts - completed and is marked as derived",
            },
            Trap {
                what: "hidden reasoning makes TTFT the whole thinking phase and TPOT impossibly small",
                guard: "TTFT becomes `time_to_first_visible_ms`, TPOT and ITL are missing",
            },
            Trap {
                what: "`spec_decode_acceptance_rate` is a percentage",
                guard: "the fraction is computed from the counts beside it",
            },
            Trap { what: "`model_id` is what the client was told", guard: "it is kept as a label" },
            Trap {
                what: "`date` is local time of a zone that is not named",
                guard: "it is passed on without an offset",
            },
        ]
    }

    fn detect(&self, file: &SourceFile<'_>) -> Option<String> {
        let outline = &file.outline;
        let is_serve = outline.has_all(&["model_id", "completed", "request_throughput"])
            && (outline.has("num_prompts") || outline.has("total_input_tokens"));
        let is_seconds = outline.has("median_ttft") || outline.has("mean_ttft");
        let is_sglang = outline.has("total_output_tokens_retokenized");
        (is_serve && !is_seconds && !is_sglang)
            .then(|| "its first record has model_id, completed and request_throughput".to_owned())
    }

    fn extract(&self, file: &SourceFile<'_>) -> Result<Extraction, ExtractError> {
        let found = documents(file.text);
        found.require_readable()?;
        let mut runs = Vec::new();
        for record in found.records() {
            let serve: ServeFile = record.parse()?;
            let mut run = run(&serve)?;
            run.locus = format!("line {} ({})", record.line, describe(&serve));
            run.span = Some(record.span);
            runs.push(run);
        }
        if runs.is_empty() {
            return Err(ExtractError::Cut {
                complete: 0,
                problem: "no complete record".to_owned(),
            });
        }
        if runs.len() == 1
            && let Some(run) = runs.first_mut()
        {
            run.locus.clear();
        }
        Ok(Extraction { runs, cautions: found.cautions() })
    }
}

fn describe(record: &ServeFile) -> String {
    match (record.count("max_concurrency"), record.rate()) {
        (Some(concurrency), _) => format!("concurrency {concurrency}"),
        (None, Some(rate)) => format!("rate {rate}"),
        (None, None) => "rate unbounded".to_owned(),
    }
}

fn run(record: &ServeFile) -> Result<ExtractedRun, ExtractError> {
    let mut run = ExtractedRun {
        cells: vec![cell::cell(record)?],
        measured_at: record.date.as_deref().and_then(local_time),
        ..ExtractedRun::default()
    };
    let mut fact = |kind, field: &str, value: Value| {
        let key = field.rsplit('.').next().unwrap_or(field);
        run.facts.push(Fact::new(kind, field, value, key));
    };
    fact(FactKind::Label, "model.id", record.model_id.as_str().into());
    if let Some(tokenizer) = &record.tokenizer_id {
        fact(FactKind::Label, "tokenizer", tokenizer.as_str().into());
    }
    fact(FactKind::Stated, "conditions.harness.name", "vllm bench serve".into());
    if let Some(mode) = record.endpoint_type.as_ref().or(record.backend.as_ref()) {
        fact(FactKind::Stated, "conditions.endpoint_mode", mode.as_str().into());
    }
    let rate = record.rate().map_or_else(|| Value::from("unbounded"), Value::from);
    fact(FactKind::Stated, "conditions.request_rate", rate);
    if let Some(burstiness) = record.number("burstiness") {
        fact(FactKind::Stated, "conditions.burstiness", burstiness.into());
    }
    // Keys that `--metadata K=V` put at the top level, and settings of later versions.
    for (key, value) in &record.rest {
        match key.as_str() {
            "seed" | "dataset_name" | "corpus_sha" | "temperature" | "max_tokens"
            | "ignore_eos"
                if !value.is_null() =>
            {
                let field = if key == "corpus_sha" { "corpus" } else { key };
                fact(FactKind::Stated, &format!("conditions.{field}"), value.clone());
            }
            _ => {
                let is_plain = !value.is_array() && !value.is_object() && !value.is_null();
                if is_plain && !is_result(key) {
                    run.observed.insert(key.clone(), value.clone());
                }
            }
        }
    }
    // Equal digests of two runs say that the output was byte-identical, whatever the speed.
    if let Some(digest) = &record.output_digest {
        run.observed.insert("output_digest".to_owned(), digest.as_str().into());
    }
    if let Some(label) = record.label.as_ref().filter(|label| !label.is_empty()) {
        run.observed.insert("label".to_owned(), label.as_str().into());
    }
    if record.number("spec_decode_acceptance_rate").is_some() {
        run.observed.insert("spec_accept_rate_unit".to_owned(), "percent".into());
    }
    Ok(run)
}

/// True for a key of the summary that is a metric and stands in the cell already.
fn is_result(key: &str) -> bool {
    key.ends_with("_ms")
        || key.ends_with("_throughput")
        || key.starts_with("request_goodput")
        || key.starts_with("spec_decode_")
        || matches!(
            key,
            "max_output_tokens_per_s"
                | "rtfx"
                | "request_rate"
                | "burstiness"
                | "max_concurrency"
                | "num_prompts"
                | "completed"
                | "failed"
                | "duration"
                | "total_input_tokens"
                | "total_output_tokens"
                | "random_input_len"
                | "random_output_len"
        )
}

/// Turns `20260816-160853` into `2026-08-16T16:08:53`, local time of an unnamed zone.
fn local_time(date: &str) -> Option<String> {
    let part = |from: usize, to: usize| date.get(from..to);
    let is_stamp = date.len() == 15 && part(8, 9) == Some("-");
    if !is_stamp {
        return None;
    }
    Some(format!(
        "{}-{}-{}T{}:{}:{}",
        part(0, 4)?,
        part(4, 6)?,
        part(6, 8)?,
        part(9, 11)?,
        part(11, 13)?,
        part(13, 15)?
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_without_zone_stays_without_one() {
        assert_eq!(local_time("20260816-160853").as_deref(), Some("2026-08-16T16:08:53"));
        assert_eq!(local_time("2026-08-16"), None);
    }
}
