//! How many prompt tokens a client sent, counted with its own tokenizer:
//! `{"tokenizer": "larch-14b", "prompt_tokens_sent": 7912}`. Beside the count a server says it
//! evaluated, it shows a prompt that was cut without a word (ollama/ollama#17889).

use crate::read::documents::single_object;
use crate::read::fields::Fields;
use ledger::adapter::{Companion, ExtractError, Observation, SourceFile};

const KEY: &str = "prompt_tokens_sent";

/// The companion for the count of sent prompt tokens.
#[derive(Debug, Clone, Copy)]
pub struct SentPrompt;

impl Companion for SentPrompt {
    fn id(&self) -> &'static str {
        "sent-prompt"
    }

    fn version(&self) -> u32 {
        1
    }

    fn title(&self) -> &'static str {
        "count of prompt tokens a client sent (JSON)"
    }

    fn detect(&self, file: &SourceFile<'_>) -> Option<String> {
        let object = single_object(file.text)?;
        object.contains_key(KEY).then(|| format!("an object with `{KEY}`"))
    }

    fn observe(&self, files: &[SourceFile<'_>]) -> Result<Observation, ExtractError> {
        let mut seen = Observation::default();
        for file in files {
            let object = single_object(file.text).unwrap_or_default();
            let fields = Fields::new(&object, file.name);
            if let Some(tokens) = fields.count(KEY)? {
                seen.observed.insert(KEY.to_owned(), tokens.into());
            }
            if let Some(tokenizer) = fields.text("tokenizer")? {
                seen.observed.insert("prompt_tokenizer".to_owned(), tokenizer.into());
            }
        }
        Ok(seen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_count_is_kept_with_the_run() {
        let text = "{\"tokenizer\": \"larch\", \"prompt_tokens_sent\": 7912}";
        let file = SourceFile { name: "sent.json", text };
        assert!(SentPrompt.detect(&file).is_some());
        let seen = SentPrompt.observe(&[file]).unwrap();
        assert_eq!(seen.observed[KEY], 7912);
        assert!(seen.facts.is_empty());
    }

    #[test]
    fn a_count_that_is_none_is_an_error() {
        let file = SourceFile { name: "sent.json", text: "{\"prompt_tokens_sent\": -1}" };
        let error = SentPrompt.observe(&[file]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "field `sent.json.prompt_tokens_sent`: a whole number was expected, `-1` stands there"
        );
    }
}
