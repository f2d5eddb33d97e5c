//! Ollama: the final answer of `/api/chat` or `/api/generate`, alone, one a line, or behind the
//! chunks of a stream.
//!
//! Writer upstream: `api/types.go` `ChatResponse`, `GenerateResponse`, `Metrics`. Durations are
//! NANOSECONDS, taken by the server: no network, no client, and no time to first token. `eval_count`
//! counts hidden reasoning too. `prompt_eval_count` is what the model evaluated, which may be less
//! than what was sent: the daemon cuts a prompt to its window and answers 200
//! (ollama/ollama#17889). `model` is a tag that somebody typed.

use crate::read::documents::{Record, documents};
use crate::read::fields::Fields;
use ledger::adapter::{
    Adapter, ExtractError, ExtractedRun, Extraction, Fact, FactKind, SourceFile, Trap,
};
use ledger::cell::{Cell, Metric, Request, RequestStatus};
use ledger::finding::{Code, Finding};
use ledger::metric::{Statistic, Unit};
use serde_json::{Map, Value};

/// The adapter of Ollama responses.
#[derive(Debug, Clone, Copy)]
pub struct OllamaResponse;

const TRAPS: &[Trap] = &[
    Trap {
        what: "durations are nanoseconds",
        guard: "converted; a rate is tokens / seconds of its own phase",
    },
    Trap {
        what: "the daemon cuts a long prompt to its window and answers normally",
        guard: "prompt_eval_count is kept as the tokens evaluated, never taken for the tokens sent",
    },
    Trap {
        what: "done_reason `length` is the output limit, not the context",
        guard: "counted as truncated and said as a reached output limit, nothing else",
    },
    Trap {
        what: "a prompt served from the cache has no prompt_eval_count or no duration",
        guard: "prefill_tok_s is missing, not infinite",
    },
    Trap {
        what: "eval_count counts reasoning that the answer does not show",
        guard: "the cell says that reasoning is counted where a thinking text is there",
    },
    Trap {
        what: "a stream repeats the model and a piece of text a line before the final record",
        guard: "only records that are done are answers",
    },
    Trap {
        what: "loading or unloading a model answers with done and no counts",
        guard: "no measurement, not a request of zero tokens",
    },
];

/// One record of the file that is the end of a request.
struct Answer {
    fields: Map<String, Value>,
    line: usize,
}

impl Adapter for OllamaResponse {
    fn id(&self) -> &'static str {
        "ollama-response"
    }

    fn version(&self) -> u32 {
        1
    }

    fn title(&self) -> &'static str {
        "Ollama /api/chat and /api/generate responses"
    }

    fn traps(&self) -> &'static [Trap] {
        TRAPS
    }

    fn detect(&self, file: &SourceFile<'_>) -> Option<String> {
        // A stream begins with chunks that hold no counts.
        if !file.outline.has_all(&["model", "done"]) {
            return None;
        }
        let is_final = |record: Record<'_>| {
            record.parse().is_ok_and(|fields: Map<String, Value>| is_answer(&fields))
        };
        let reason = "a record with `done`, `eval_count` and `eval_duration`";
        documents(file.text).records().any(is_final).then(|| reason.to_owned())
    }

    fn extract(&self, file: &SourceFile<'_>) -> Result<Extraction, ExtractError> {
        let found = documents(file.text);
        found.require_readable()?;
        let answers = read_answers(&found.records().collect::<Vec<_>>())?;
        if answers.is_empty() {
            let problem = "no record of the file is a finished answer".to_owned();
            return Err(ExtractError::Field { field: "done".to_owned(), problem });
        }
        let mut groups: Vec<Vec<Answer>> = Vec::new();
        for answer in answers {
            let group = groups.iter_mut().find(|group| {
                group.first().is_some_and(|first| first.fields.get("model") == answer.model())
            });
            match group {
                Some(group) => group.push(answer),
                None => groups.push(vec![answer]),
            }
        }
        let several = groups.len() > 1;
        let runs = groups.iter().map(|group| build_run(group, several));
        Ok(Extraction { runs: runs.collect::<Result<_, _>>()?, cautions: found.cautions() })
    }
}

impl Answer {
    fn fields(&self) -> Fields<'_> {
        Fields::new(&self.fields, format!("line {}", self.line))
    }

    fn model(&self) -> Option<&Value> {
        self.fields.get("model")
    }
}

fn is_answer(record: &Map<String, Value>) -> bool {
    record.get("done") == Some(&Value::Bool(true))
        && record.contains_key("eval_count")
        && record.contains_key("eval_duration")
        && (record.contains_key("message") || record.contains_key("response"))
}

fn read_answers(records: &[Record<'_>]) -> Result<Vec<Answer>, ExtractError> {
    let mut answers = Vec::new();
    for record in records {
        let fields: Map<String, Value> = record.parse()?;
        if is_answer(&fields) {
            answers.push(Answer { fields, line: record.line });
        }
    }
    Ok(answers)
}

fn build_run(answers: &[Answer], several: bool) -> Result<ExtractedRun, ExtractError> {
    let mut run = ExtractedRun { cells: vec![build_cell(answers)?], ..ExtractedRun::default() };
    let Some(first) = answers.first() else { return Ok(run) };
    let fields = first.fields();
    run.measured_at = started_at(&fields)?;
    run.facts.push(Fact::new(FactKind::Stated, "engine.name", "ollama", &fields.place("done")));
    if let Some(model) = fields.text("model")? {
        if several {
            run.locus = format!("line {} ({})", first.line, ledger::text::printable(&model));
        }
        run.facts.push(Fact::new(FactKind::Label, "model.id", model, &fields.place("model")));
    }
    let evaluated = answers.iter().map(|answer| answer.fields().count("prompt_eval_count"));
    let evaluated: Vec<u64> =
        evaluated.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect();
    if let Some(value) = one_or_all(&evaluated) {
        run.observed.insert("prompt_tokens_evaluated".to_owned(), value);
    }
    Ok(run)
}

/// One number for one request, a list in file order for several.
fn one_or_all(counts: &[u64]) -> Option<Value> {
    match counts {
        [] => None,
        [only] => Some((*only).into()),
        several => Some(several.into()),
    }
}

/// `created_at` is written when the answer ends; the request began `total_duration` before.
fn started_at(fields: &Fields<'_>) -> Result<Option<String>, ExtractError> {
    let (Some(created), Some(total_ns)) =
        (fields.text("created_at")?, fields.count("total_duration")?)
    else {
        return Ok(None);
    };
    let started = ledger::clock::parse(&created).ok().and_then(|ended| {
        let total_ns = i64::try_from(total_ns).ok()?;
        ended.checked_sub_signed(chrono::TimeDelta::nanoseconds(total_ns))
    });
    Ok(started.map(ledger::clock::stamp))
}

fn build_cell(answers: &[Answer]) -> Result<Cell, ExtractError> {
    let mut cell = Cell::default();
    for answer in answers {
        cell.request_rows.push(read_request(&answer.fields())?);
    }
    add_rate(&mut cell, answers, "prefill_tok_s", "prompt_eval_count", "prompt_eval_duration")?;
    add_rate(&mut cell, answers, "decode_tok_s", "eval_count", "eval_duration")?;
    if let [only] = answers {
        let total_ns = only.fields().number("total_duration")?;
        let value = Statistic::Value;
        let duration = Metric::new("duration_s");
        cell.push(duration.with_given(value, Unit::Nanoseconds, total_ns, "total_duration"));
    }
    add_counts(&mut cell, answers);
    Ok(cell)
}

fn read_request(fields: &Fields<'_>) -> Result<Request, ExtractError> {
    let reason = fields.text("done_reason")?;
    Ok(Request {
        status: RequestStatus::Ok,
        prompt_tokens: fields.count("prompt_eval_count")?,
        output_tokens: fields.count("eval_count")?,
        truncated: reason.map(|reason| reason == "length"),
    })
}

/// Adds a rate with one sample a request, or says why it is missing: a metric with samples for
/// some requests only would pair them with the wrong ones.
fn add_rate(
    cell: &mut Cell,
    answers: &[Answer],
    name: &str,
    count: &str,
    duration: &str,
) -> Result<(), ExtractError> {
    let mut rates = Vec::new();
    for answer in answers {
        let fields = answer.fields();
        let tokens = fields.count(count)?.filter(|tokens| *tokens > 0);
        let duration_ns = fields.number(duration)?.filter(|duration_ns| *duration_ns > 0.0);
        let (Some(tokens), Some(duration_ns)) = (tokens, duration_ns) else {
            cell.push_missing(name, format!("{count} or {duration} is absent or 0"));
            return Ok(());
        };
        rates.push(tokens as f64 * 1e9 / duration_ns);
    }
    cell.push(Metric::new(name).with_samples(Unit::Canonical, rates));
    Ok(())
}

fn add_counts(cell: &mut Cell, answers: &[Answer]) {
    let rows = &cell.request_rows;
    let sum = |read: fn(&Request) -> Option<u64>| rows.iter().map(read).sum::<Option<u64>>();
    let (prompt, output) = (sum(|row| row.prompt_tokens), sum(|row| row.output_tokens));
    let requests = rows.len() as f64;
    let truncated: Option<Vec<bool>> = rows.iter().map(|row| row.truncated).collect();
    let truncated = truncated
        .map(|flags| flags.into_iter().filter(|is_truncated| *is_truncated).count() as u64);
    cell.requests.asked = Some(rows.len() as u64);
    cell.requests.completed = Some(rows.len() as u64);
    cell.requests.truncated = truncated;
    cell.requests.empty = Some(answers.iter().filter(|answer| is_empty(answer)).count() as u64);
    cell.tokens.prompt_total = prompt;
    cell.tokens.output_total = output;
    cell.tokens.prompt_mean = prompt.map(|tokens| tokens as f64 / requests);
    cell.tokens.output_mean = output.map(|tokens| tokens as f64 / requests);
    cell.tokens.reasoning_counted = answers.iter().any(has_thinking).then_some(true);
    if let Some(cut) = truncated.filter(|cut| *cut > 0) {
        let message = format!("{cut} of {} answers ended at the output limit", rows.len());
        cell.cautions.push(Finding::caution(Code::OutputLimitReached, "", message));
    }
}

fn find_text<'a>(answer: &'a Answer, in_message: &str, at_top: &str) -> Option<&'a str> {
    let message = answer.fields.get("message").and_then(|message| message.get(in_message));
    message.or_else(|| answer.fields.get(at_top)).and_then(Value::as_str)
}

/// A stream's final record carries no text, so only an answer that says something else is empty:
/// text fields that are there and blank, no tool call, and no tokens.
fn is_empty(answer: &Answer) -> bool {
    let is_blank =
        find_text(answer, "content", "response").is_none_or(|text| text.trim().is_empty());
    is_blank && answer.fields.get("eval_count").and_then(Value::as_u64) == Some(0)
}

fn has_thinking(answer: &Answer) -> bool {
    find_text(answer, "thinking", "thinking").is_some_and(|text| !text.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn answer(reason: &str, prompt: u64, output: u64) -> Value {
        json!({"model": "larch:14b", "created_at": "2026-08-20T09:00:10Z", "done": true,
            "message": {"role": "assistant", "content": "x"}, "done_reason": reason,
            "total_duration": 10_000_000_000_u64, "prompt_eval_count": prompt,
            "prompt_eval_duration": 800_000_000, "eval_count": output,
            "eval_duration": 3_200_000_000_u64})
    }

    fn extract(records: &[Value]) -> Extraction {
        let lines: Vec<String> = records.iter().map(Value::to_string).collect();
        let text = lines.join("\n");
        let file = SourceFile::new("response.json", &text);
        assert!(OllamaResponse.detect(&file).is_some());
        OllamaResponse.extract(&file).unwrap()
    }

    #[test]
    fn rates_are_tokens_per_second_of_their_own_phase() {
        let extraction = extract(&[answer("stop", 2050, 120)]);
        let run = &extraction.runs[0];
        let cell = &run.cells[0];
        // 120 tokens in 3.2 s; 2050 tokens in 0.8 s.
        assert_eq!(cell.find_metric("decode_tok_s").unwrap().samples, [37.5]);
        assert_eq!(cell.find_metric("prefill_tok_s").unwrap().samples, [2562.5]);
        assert_eq!(run.observed["prompt_tokens_evaluated"], 2050);
        assert_eq!(run.measured_at.as_deref(), Some("2026-08-20T09:00:00.000000Z"));
        assert_eq!(cell.requests.truncated, Some(0));
        assert!(cell.cautions.is_empty());
    }

    #[test]
    fn a_length_end_is_the_output_limit_only() {
        let extraction = extract(&[answer("length", 10, 32), answer("stop", 10, 30)]);
        let cell = &extraction.runs[0].cells[0];
        assert_eq!((cell.requests.completed, cell.requests.truncated), (Some(2), Some(1)));
        let codes: Vec<_> = cell.cautions.iter().map(|caution| caution.code).collect();
        assert_eq!(codes, [Code::OutputLimitReached]);
        assert_eq!(cell.cautions[0].message, "1 of 2 answers ended at the output limit");
    }

    #[test]
    fn chunks_of_a_stream_and_a_load_are_no_answers() {
        let chunk = json!({"model": "larch:14b", "message": {"content": "x"}, "done": false});
        let load =
            json!({"model": "larch:14b", "response": "", "done": true, "done_reason": "load"});
        let extraction = extract(&[load, chunk.clone(), chunk, answer("stop", 5, 5)]);
        assert_eq!(extraction.runs[0].cells[0].requests.completed, Some(1));
    }

    #[test]
    fn a_cached_prompt_has_no_prefill_rate() {
        let mut cached = answer("stop", 5, 5);
        cached.as_object_mut().unwrap().remove("prompt_eval_duration");
        let extraction = extract(&[cached]);
        let cell = &extraction.runs[0].cells[0];
        assert!(cell.find_metric("prefill_tok_s").is_none());
        assert_eq!(cell.missing[0].metric, "prefill_tok_s");
    }

    #[test]
    fn two_models_are_two_runs() {
        let mut other = answer("stop", 5, 5);
        other["model"] = "elm:7b".into();
        let extraction = extract(&[answer("stop", 5, 5), other, answer("stop", 6, 5)]);
        assert_eq!(extraction.runs.len(), 2);
        assert_eq!(extraction.runs[0].locus, "line 1 (larch:14b)");
        assert_eq!(extraction.runs[0].observed["prompt_tokens_evaluated"], json!([5, 6]));
    }
}
