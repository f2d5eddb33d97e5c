//! Arguments as names and values, however they were written: `--max-model-len 32768`,
//! `--max-model-len=32768`, `{"max_model_len": 32768}`.

use crate::read::fields::to_text;
use serde_json::{Map, Value};

/// Parts of a name whose value is a secret.
const SECRET: [&str; 4] = ["key", "token", "password", "secret"];

/// Names with such a part that hold no secret.
const NO_SECRET: [&str; 4] =
    ["tokenizer", "max-num-batched-tokens", "max-tokens", "max-total-tokens"];

/// One argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Argument {
    /// The name with dashes inside and none in front; empty for a positional argument.
    pub(super) name: String,
    /// Its value, if it has one.
    pub(super) value: Option<String>,
}

/// Reads a list of words. A word behind a name is its value unless it looks like a name itself; a
/// negative number does not.
pub(super) fn parse_list(words: &[&str]) -> Vec<Argument> {
    let mut arguments = Vec::new();
    let mut words = words.iter().copied().peekable();
    while let Some(word) = words.next() {
        if !is_name(word) {
            arguments.push(Argument { name: String::new(), value: Some(word.to_owned()) });
        } else if let Some((name, value)) = word.split_once('=') {
            arguments.push(Argument { name: plain(name), value: Some(value.to_owned()) });
        } else {
            let value = words.next_if(|next| !is_name(next)).map(str::to_owned);
            arguments.push(Argument { name: plain(word), value });
        }
    }
    arguments
}

/// Reads an object of flags. `true` is a flag without a value, `false` and `null` one that was not
/// given.
pub(super) fn parse_flags(flags: &Map<String, Value>) -> Vec<Argument> {
    let given = flags.iter().filter(|(_, value)| !value.is_null() && **value != Value::Bool(false));
    let argument = |(name, value): (&String, &Value)| {
        let text = to_text(value).unwrap_or_else(|| value.to_string());
        let value = (*value != Value::Bool(true)).then_some(text);
        Argument { name: plain(name), value }
    };
    given.map(argument).collect()
}

/// Writes arguments as one would type them, secrets masked.
pub(super) fn masked(arguments: &[Argument]) -> Vec<String> {
    let spell = |argument: &Argument| match (argument.name.as_str(), &argument.value) {
        ("", value) => value.clone().unwrap_or_default(),
        (name, Some(_)) if is_secret(name) => format!("--{name}=***"),
        (name, Some(value)) => format!("--{name}={value}"),
        (name, None) => format!("--{name}"),
    };
    arguments.iter().map(spell).collect()
}

fn is_name(word: &str) -> bool {
    word.starts_with('-') && word.len() > 1 && word.parse::<f64>().is_err()
}

fn plain(name: &str) -> String {
    name.trim_start_matches('-').replace('_', "-")
}

fn is_secret(name: &str) -> bool {
    SECRET.iter().any(|part| name.contains(part)) && !NO_SECRET.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_read_however_they_are_written() {
        let words = ["serve", "org/Model", "--enforce-eager", "--seed", "-1", "--max_num_seqs=8"];
        assert_eq!(
            masked(&parse_list(&words)),
            ["serve", "org/Model", "--enforce-eager", "--seed=-1", "--max-num-seqs=8"]
        );
        let flags =
            serde_json::json!({"enforce_eager": true, "seed": -1, "lora": false, "x": null});
        assert_eq!(
            masked(&parse_flags(flags.as_object().unwrap())),
            ["--enforce-eager", "--seed=-1"]
        );
    }

    #[test]
    fn secrets_are_masked() {
        let words = ["--api-key", "sk-1", "--hf-token=hf_2", "--tokenizer", "org/T"];
        assert_eq!(
            masked(&parse_list(&words)),
            ["--api-key=***", "--hf-token=***", "--tokenizer=org/T"]
        );
    }
}
