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
            } else {
                add_table(&mut observation, file);
            }
        }
        Ok(observation)
    }
}

/// Takes the context of the one loaded model. Which of several answered cannot be seen here.
fn add_table(observation: &mut Observation, file: &SourceFile<'_>) {
    let rows = context_column(file.text);
    if let [(line, Some(tokens))] = rows.as_slice() {
        let place = format!("{}: CONTEXT, line {line}", file.name);
        observation.facts.push(Fact::new(FactKind::Observed, "context.tokens", *tokens, &place));
        return;
    }
    let message = match rows.len() {
        0 | 1 => format!("`{}` shows no context", file.name),
        several => format!("`{}` shows {several} models; the context of none is taken", file.name),
    };
    observation.cautions.push(Finding::caution(Code::ValueLeftOut, "context.tokens", message));
}

/// Reads the number under CONTEXT of each row, with its line; older daemons print no such column.
fn context_column(table: &str) -> Vec<(usize, Option<u64>)> {
    let mut lines = table.lines().enumerate().skip_while(|(_, line)| line.trim().is_empty());
    let Some((_, header)) = lines.next() else { return Vec::new() };
    let start = header.find("CONTEXT");
    let rows = lines.filter(|(_, line)| !line.trim().is_empty());
    rows.map(|(index, row)| (index + 1, start.and_then(|start| number_at(row, start)))).collect()
}

/// Reads the number that begins at a column, counted in characters: a model's name need not be
/// ASCII.
fn number_at(row: &str, start: usize) -> Option<u64> {
    let rest: String = row.chars().skip(start).collect();
    rest.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "NAME       ID      SIZE      PROCESSOR    CONTEXT    UNTIL\n";

    fn observe(rows: &str) -> Observation {
        let text = format!("{HEADER}{rows}");
        let file = SourceFile::new("ps.txt", &text);
        assert!(OllamaContext.detect(&file).is_some());
        OllamaContext.observe(&[file]).unwrap()
    }

    #[test]
    fn the_context_of_the_loaded_model_is_observed() {
        let seen = observe("l\u{e4}rch:1b   0123    9.6 GB    100% GPU     4096       Forever\n\n");
        assert_eq!(seen.facts[0].value, 4096);
        assert_eq!(seen.facts[0].place, "ps.txt: CONTEXT, line 2");
    }

    #[test]
    fn several_loaded_models_or_none_state_nothing() {
        let row = "larch:14b  0123    9.6 GB    100% GPU     4096       Forever\n";
        for rows in [String::new(), row.repeat(2)] {
            let seen = observe(&rows);
            assert!(seen.facts.is_empty());
            assert_eq!(seen.cautions[0].code, Code::ValueLeftOut);
        }
    }
}
