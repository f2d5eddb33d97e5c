//! What lies beside an Ollama answer: the table of `ollama ps`, which shows the context in force, and
//! the count of prompt tokens that were sent.

use crate::read::documents::documents;
use ledger::adapter::{Companion, ExtractError, Fact, FactKind, Observation, SourceFile};
use ledger::finding::{Code, Finding};
use serde_json::{Map, Value};

/// The companion.
#[derive(Debug)]
pub struct OllamaContext;

impl Companion for OllamaContext {
    fn id(&self) -> &'static str {
        "ollama-context"
    }

    fn version(&self) -> u32 {
        1
    }

    fn title(&self) -> &'static str {
        "`ollama ps` table or sent prompt count"
    }

    fn detect(&self, file: &SourceFile<'_>) -> Option<String> {
        let header = file.outline.first_line;
        let is_table = header.starts_with("NAME")
            && header.contains("CONTEXT")
            && header.contains("PROCESSOR");
        if is_table {
            return Some("its header is that of `ollama ps`".to_owned());
        }
        file.outline.has("prompt_tokens_sent").then(|| "it has prompt_tokens_sent".to_owned())
    }

    fn observe(&self, files: &[SourceFile<'_>]) -> Result<Observation, ExtractError> {
        let mut observation = Observation::default();
        for file in files {
            if file.outline.is_json {
                for record in documents(file.text).records() {
                    let sent: Map<String, Value> = record.parse()?;
                    if let Some(count) = sent.get("prompt_tokens_sent").and_then(Value::as_u64) {
                        observation.observed.insert("prompt_tokens_sent".to_owned(), count.into());
                    }
                }
            } else if let Some(tokens) = context_column(file.text) {
                let place = format!("{}: CONTEXT", file.name);
                observation.facts.push(Fact::new(
                    FactKind::Observed,
                    "context.tokens",
                    tokens,
                    &place,
                ));
            } else {
                let message = format!("`{}` shows no context", file.name);
                observation.cautions.push(Finding::caution(
                    Code::ValueLeftOut,
                    "context.tokens",
                    message,
                ));
            }
        }
        Ok(observation)
    }
}

/// Reads the first number under CONTEXT.
fn context_column(table: &str) -> Option<u64> {
    let mut lines = table.lines();
    let start = lines.next()?.find("CONTEXT")?;
    let cell = lines.next()?.get(start..)?;
    cell.split_whitespace().next()?.parse().ok()
}
