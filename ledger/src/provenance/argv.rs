//! What a command line of a serving engine says about the fingerprint. Only what is written is a
//! fact of the command line; a default that the engine documents is a derived value and says so.

use serde_json::Value;

/// One fingerprint field that a command line states.
#[derive(Debug, Clone, PartialEq)]
pub struct ArgumentFact {
    /// Path of the field.
    pub path: &'static str,
    /// Its value.
    pub value: Value,
    /// The option that states it, or `None` where a default follows from its absence.
    pub option: Option<String>,
}

/// Options of vLLM, SGLang, llama.cpp and TensorRT-LLM that state a field: field, spellings.
const COUNTS: &[(&str, &[&str])] = &[
    (
        "context.tokens",
        &["--max-model-len", "--context-length", "--ctx-size", "-c", "--max_seq_len"],
    ),
    (
        "topology.tensor_parallel",
        &["--tensor-parallel-size", "-tp", "--tp-size", "--tp", "--tp_size"],
    ),
    ("topology.pipeline_parallel", &["--pipeline-parallel-size", "-pp", "--pp-size", "--pp_size"]),
    ("topology.data_parallel", &["--data-parallel-size", "-dp", "--dp-size", "--dp"]),
    ("topology.hosts", &["--nnodes"]),
];

const TEXTS: &[(&str, &[&str])] = &[
    ("quant.weights", &["--quantization", "-q"]),
    ("quant.kv_cache", &["--kv-cache-dtype", "--cache-type-k", "-ctk"]),
];

/// Fields whose absence means one of a thing for every engine above.
const ONE_BY_DEFAULT: [&str; 4] = [
    "topology.tensor_parallel",
    "topology.pipeline_parallel",
    "topology.data_parallel",
    "topology.hosts",
];

/// Reads the fields that a command line states.
///
/// llama-bench's `-p`, `-n`, `-pp` are no server options: its command line states only the KV cache.
pub fn read_arguments(argv: &[String]) -> Vec<ArgumentFact> {
    let program = argv.first().map_or("", |word| word.rsplit('/').next().unwrap_or(word));
    let is_bench = program == "llama-bench";
    let mut facts = Vec::new();
    for (path, options) in COUNTS.iter().filter(|_| !is_bench) {
        if let Some((option, value)) = find_option(argv, options)
            && let Some(count) = parse_count(value).filter(|count| *count > 0)
        {
            facts.push(ArgumentFact { path, value: count.into(), option: Some(option.to_owned()) });
        }
    }
    for (path, options) in TEXTS {
        if let Some((option, value)) = find_option(argv, options) {
            facts.push(ArgumentFact { path, value: value.into(), option: Some(option.to_owned()) });
        }
    }
    for path in ONE_BY_DEFAULT {
        if !facts.iter().any(|fact| fact.path == path) {
            facts.push(ArgumentFact { path, value: 1.into(), option: None });
        }
    }
    facts
}

/// Finds the last occurrence of an option, as `--option value` or `--option=value`.
fn find_option<'a>(argv: &'a [String], options: &[&str]) -> Option<(&'a str, &'a str)> {
    argv.iter().enumerate().rev().find_map(|(index, word)| {
        if options.contains(&word.as_str()) {
            return Some((word.as_str(), argv.get(index + 1)?.as_str()));
        }
        let (option, value) = word.split_once('=')?;
        options.contains(&option).then_some((option, value))
    })
}

/// Reads `32768`, `32k` (1,000), `32K` (1,024) as vLLM's `human_readable_int` does.
fn parse_count(text: &str) -> Option<u64> {
    let (digits, factor) = match text.chars().last()? {
        'k' => (text.strip_suffix('k')?, 1000),
        'K' => (text.strip_suffix('K')?, 1024),
        'm' => (text.strip_suffix('m')?, 1_000_000),
        'M' => (text.strip_suffix('M')?, 1 << 20),
        _ => (text, 1),
    };
    digits.parse::<u64>().ok()?.checked_mul(factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<(&'static str, Value, Option<String>)> {
        let argv: Vec<String> = text.split(' ').map(str::to_owned).collect();
        read_arguments(&argv).into_iter().map(|fact| (fact.path, fact.value, fact.option)).collect()
    }

    #[test]
    fn written_options_and_defaults_are_told_apart() {
        let facts = read("vllm serve x --max-model-len=32K -tp 2 --kv-cache-dtype fp8_e4m3");
        assert!(facts.contains(&("context.tokens", 32768.into(), Some("--max-model-len".into()))));
        assert!(facts.contains(&("topology.tensor_parallel", 2.into(), Some("-tp".into()))));
        assert!(facts.contains(&("topology.hosts", 1.into(), None)));
    }

    #[test]
    fn the_last_of_two_options_wins_as_it_does_for_the_engine() {
        assert!(read("llama-server -c 4096 -c 8192").contains(&(
            "context.tokens",
            8192.into(),
            Some("-c".into())
        )));
    }
}
