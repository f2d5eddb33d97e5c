//! One answer of Ollama's `/api/chat` or `/api/generate` (`api/types.go`, `Metrics`): durations are
//! nanoseconds, counts are tokens that the engine evaluated, which may be fewer than were sent.

use crate::read::json;
use crate::read::number::{loose, loose_count};
use ledger::adapter::{
    Adapter, ExtractError, ExtractedRun, Extraction, Fact, FactKind, SourceFile, Trap,
};
use ledger::cell::{Cell, Metric, Request, RequestStatus};
use ledger::finding::{Code, Finding};
use ledger::metric::{Statistic, Unit};
use serde::Deserialize;

/// The adapter.
#[derive(Debug)]
pub struct OllamaResponse;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Answer {
    model: String,
    created_at: Option<String>,
    response: Option<String>,
    message: Option<Message>,
    done_reason: Option<String>,
    #[serde(deserialize_with = "loose")]
    total_duration: Option<f64>,
    #[serde(deserialize_with = "loose_count")]
    prompt_eval_count: Option<u64>,
    #[serde(deserialize_with = "loose")]
    prompt_eval_duration: Option<f64>,
    #[serde(deserialize_with = "loose_count")]
    eval_count: Option<u64>,
    #[serde(deserialize_with = "loose")]
    eval_duration: Option<f64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Message {
    content: String,
}

impl Adapter for OllamaResponse {
    fn id(&self) -> &'static str {
        "ollama-response"
    }

    fn version(&self) -> u32 {
        1
    }

    fn title(&self) -> &'static str {
        "Ollama API answer"
    }

    fn traps(&self) -> &'static [Trap] {
        &[
            Trap {
                what: "durations are nanoseconds without saying so",
                guard: "they are converted in one place",
            },
            Trap {
                what: "`length` can mean the output limit and not the context",
                guard: "it is said as the output limit; a cut prompt is seen from the token counts",
            },
        ]
    }

    fn detect(&self, file: &SourceFile<'_>) -> Option<String> {
        let keys = ["model", "eval_count", "eval_duration"];
        file.outline.has_all(&keys).then(|| format!("its object has {}", keys.join(", ")))
    }

    fn extract(&self, file: &SourceFile<'_>) -> Result<Extraction, ExtractError> {
        let found = json::split(file.text);
        let mut runs = Vec::new();
        for document in &found.documents {
            let mut run = run(&json::parse(document)?);
            run.locus = format!("line {}", document.line);
            run.span = Some(document.span);
            runs.push(run);
        }
        if runs.is_empty() {
            return Err(ExtractError::Cut {
                complete: 0,
                problem: "no complete answer".to_owned(),
            });
        }
        Ok(Extraction { runs, cautions: json::cautions(&found) })
    }
}

fn run(answer: &Answer) -> ExtractedRun {
    let mut cell = Cell::default();
    let content = answer
        .response
        .as_deref()
        .or(answer.message.as_ref().map(|message| message.content.as_str()));
    let is_cut = answer.done_reason.as_deref() == Some("length");
    cell.requests.asked = Some(1);
    cell.requests.completed = Some(1);
    cell.requests.failed = Some(0);
    cell.requests.truncated = Some(u64::from(is_cut));
    cell.requests.empty = content.map(|content| u64::from(content.trim().is_empty()));
    cell.tokens.prompt_mean = answer.prompt_eval_count.map(|count| count as f64);
    cell.tokens.output_mean = answer.eval_count.map(|count| count as f64);
    cell.tokens.prompt_total = answer.prompt_eval_count;
    cell.tokens.output_total = answer.eval_count;
    cell.request_rows.push(Request {
        status: RequestStatus::Ok,
        prompt_tokens: answer.prompt_eval_count,
        output_tokens: answer.eval_count,
        truncated: Some(is_cut),
    });
    for (metric, count, duration) in [
        ("prefill_tok_s", answer.prompt_eval_count, answer.prompt_eval_duration),
        ("decode_tok_s", answer.eval_count, answer.eval_duration),
    ] {
        let rate = count
            .zip(duration)
            .filter(|(_, ns)| *ns > 0.0)
            .map(|(count, ns)| count as f64 / (ns / 1e9));
        cell.push(Metric::new(metric).with_samples(Unit::Canonical, rate));
    }
    cell.push(Metric::new("duration_s").with_given(
        Statistic::Value,
        Unit::Nanoseconds,
        answer.total_duration,
        "total_duration",
    ));
    if is_cut {
        cell.cautions.push(Finding::caution(
            Code::OutputLimitReached,
            "",
            "the answer reached the output limit",
        ));
    }
    let mut run = ExtractedRun {
        cells: vec![cell],
        measured_at: answer.created_at.clone(),
        ..ExtractedRun::default()
    };
    run.facts.push(Fact::new(FactKind::Label, "model.id", answer.model.as_str(), "model"));
    run.facts.push(Fact::new(FactKind::Stated, "engine.name", "ollama", "eval_duration"));
    if let Some(count) = answer.prompt_eval_count {
        run.observed.insert("prompt_tokens_evaluated".to_owned(), count.into());
    }
    run
}
