//! `ollama ps`: a table of text columns that says which context window the daemon really opened,
//! which is neither what the model card nor what the request says (ollama/ollama#17427).
//!
//! ```text
//! NAME         ID              SIZE      PROCESSOR    CONTEXT    UNTIL
//! larch:14b    0123456789ab    9.6 GB    100% GPU     4096       4 minutes from now
//! ```

use crate::read::place::line_of;
use ledger::adapter::{Companion, ExtractError, Fact, FactKind, Observation, SourceFile};
use ledger::finding::{Code, Finding};
use serde_json::Value;

const COLUMNS: [&str; 5] = ["NAME", "ID", "SIZE", "PROCESSOR", "UNTIL"];

/// The companion for `ollama ps`.
#[derive(Debug, Clone, Copy)]
pub struct OllamaPs;

/// One loaded model.
struct Loaded {
    line: usize,
    name: String,
    digest: String,
    processor: String,
    /// Absent before Ollama 0.11.
    context_tokens: Option<u64>,
}

impl Companion for OllamaPs {
    fn id(&self) -> &'static str {
        "ollama-ps"
    }

    fn version(&self) -> u32 {
        1
    }

    fn title(&self) -> &'static str {
        "ollama ps"
    }

    fn detect(&self, file: &SourceFile<'_>) -> Option<String> {
        let mut lines = file.text.lines().take(20);
        lines.any(is_header).then(|| "the header NAME, ID, SIZE, PROCESSOR, UNTIL".to_owned())
    }

    fn observe(&self, files: &[SourceFile<'_>]) -> Result<Observation, ExtractError> {
        let mut seen = Observation::default();
        for file in files {
            let loaded = read_table(file.text);
            match loaded.as_slice() {
                [only] => add_model(&mut seen, file.name, only),
                [] => {}
                several => seen.cautions.push(several_models(file.name, several)),
            }
        }
        Ok(seen)
    }
}

fn is_header(line: &str) -> bool {
    let mut words = line.split_whitespace();
    line.starts_with("NAME") && COLUMNS.iter().all(|column| words.any(|word| word == *column))
}

fn read_table(text: &str) -> Vec<Loaded> {
    let mut lines = text.lines().enumerate().skip_while(|(_, line)| !is_header(line));
    let Some((_, header)) = lines.next() else { return Vec::new() };
    let rows = lines.filter(|(_, line)| !line.trim().is_empty());
    rows.filter_map(|(index, line)| read_row(header, line, index + 1)).collect()
}

fn read_row(header: &str, line: &str, number: usize) -> Option<Loaded> {
    let context = find_cell(header, line, "CONTEXT").and_then(|cell| cell.parse().ok());
    Some(Loaded {
        line: number,
        name: find_cell(header, line, "NAME")?,
        digest: find_cell(header, line, "ID")?,
        processor: find_cell(header, line, "PROCESSOR").unwrap_or_default(),
        context_tokens: context,
    })
}

/// Cells begin under their column's name and end where the next column begins; both are ASCII up
/// to the names of models, so columns are counted in characters.
fn find_cell(header: &str, line: &str, column: &str) -> Option<String> {
    let start = header.find(column)?;
    let next = header.get(start + column.len()..)?.trim_start();
    let end = if next.is_empty() { usize::MAX } else { header.len() - next.len() };
    let cell: String = line.chars().skip(start).take(end - start).collect();
    let cell = cell.trim();
    (!cell.is_empty()).then(|| cell.to_owned())
}

fn add_model(seen: &mut Observation, file: &str, loaded: &Loaded) {
    let place = line_of(file, loaded.line);
    if let Some(tokens) = loaded.context_tokens {
        let place = format!("{place}, CONTEXT");
        seen.facts.push(Fact::new(FactKind::Observed, "context.tokens", tokens, &place));
    }
    let name = loaded.name.as_str();
    seen.facts.push(Fact::new(FactKind::Label, "model.id", name, &format!("{place}, NAME")));
    for (key, text) in [("ollama.digest", &loaded.digest), ("ollama.processor", &loaded.processor)]
    {
        seen.observed.insert(key.to_owned(), Value::from(text.as_str()));
    }
}

/// Which of several loaded models answered cannot be seen here.
fn several_models(file: &str, loaded: &[Loaded]) -> Finding {
    let message = format!("{} models are loaded; the context of none is taken", loaded.len());
    let finding = Finding::caution(Code::ReportsDisagree, "context.tokens", message);
    loaded.iter().fold(finding, |finding, model| {
        let tokens = model.context_tokens.map_or_else(|| "unknown".to_owned(), |n| n.to_string());
        let name = ledger::text::printable(&model.name);
        finding.with(format!("{name}: {tokens}"), line_of(file, model.line))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str =
        "NAME         ID              SIZE      PROCESSOR          CONTEXT    UNTIL\n";

    fn observe(text: &str) -> Observation {
        let file = SourceFile { name: "ps.txt", text };
        assert!(OllamaPs.detect(&file).is_some());
        OllamaPs.observe(&[file]).unwrap()
    }

    #[test]
    fn the_context_that_was_opened_is_observed() {
        let row = "larch:14b    0123456789ab    9.6 GB    48%/52% CPU/GPU    4096       Forever\n";
        let seen = observe(&format!("{HEADER}{row}"));
        assert_eq!(seen.facts[0].value, 4096);
        assert_eq!(seen.facts[0].kind, FactKind::Observed);
        assert_eq!(seen.facts[0].place, "ps.txt, line 2, CONTEXT");
        assert_eq!(seen.facts[1].value, "larch:14b");
        assert_eq!(seen.observed["ollama.processor"], "48%/52% CPU/GPU");
    }

    #[test]
    fn two_loaded_models_state_no_context() {
        let row = "larch:14b    0123456789ab    9.6 GB    100% GPU           4096       Forever\n";
        let seen = observe(&format!("{HEADER}{row}{row}"));
        assert!(seen.facts.is_empty());
        assert_eq!(seen.cautions[0].values.len(), 2);
    }

    #[test]
    fn an_older_daemon_prints_no_context() {
        let seen = observe(
            "NAME         ID              SIZE      PROCESSOR    UNTIL\n\
             larch:14b    0123456789ab    9.6 GB    100% GPU     4 minutes from now\n",
        );
        assert!(seen.facts.iter().all(|fact| fact.field != "context.tokens"));
        assert_eq!(seen.observed["ollama.processor"], "100% GPU");
    }
}
