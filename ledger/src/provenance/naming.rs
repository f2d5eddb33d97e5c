//! Names: spellings that mean the same engine, accelerator or quantization (schema/names.toml), role
//! aliases that name no model, programs that only pass requests on, and the question whether a file
//! name names a model.

use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::LazyLock;

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Names {
    engine: BTreeMap<String, Vec<String>>,
    accelerator: BTreeMap<String, Vec<String>>,
    quant: BTreeMap<String, Vec<String>>,
    roles: List,
    weight_tokens: Tokens,
    proxies: List,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    names: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Tokens {
    quant: Vec<String>,
    format: Vec<String>,
    shard: Vec<String>,
}

static NAMES: LazyLock<Names> =
    LazyLock::new(|| toml::from_str(include_str!("../../schema/names.toml")).unwrap_or_default());

/// Returns the ledger's spelling of a fingerprint text; a spelling the table does not know stays.
pub fn normalize(path: &str, given: &str) -> String {
    let table = match path {
        "engine.name" => &NAMES.engine,
        "topology.accelerators" => &NAMES.accelerator,
        "quant.weights" | "quant.kv_cache" => &NAMES.quant,
        _ => return given.to_owned(),
    };
    table
        .iter()
        .find(|(name, spellings)| *name == given || spellings.iter().any(|known| known == given))
        .map_or_else(|| given.to_owned(), |(name, _)| name.clone())
}

/// True for a served name that says what a model is for and not which it is.
pub fn is_role_alias(name: &str) -> bool {
    NAMES.roles.names.iter().any(|role| role.eq_ignore_ascii_case(name))
}

/// Returns the known proxy that a command line starts, if it starts one.
pub fn find_proxy(argv: &[String]) -> Option<&'static str> {
    let is_program = |word: &&String| !word.starts_with('-');
    // An interpreter names its script second, a module third (`python -m litellm`).
    let words: Vec<&str> = argv
        .iter()
        .take(4)
        .filter(is_program)
        .map(|word| word.rsplit('/').next().unwrap_or(word))
        .map(|word| word.trim_end_matches(".py").trim_end_matches(':'))
        .collect();
    let is_interpreter =
        |word: &str| word.starts_with("python") || matches!(word, "sh" | "bash" | "node");
    let programs =
        words.iter().take(1 + words.iter().take_while(|word| is_interpreter(word)).count());
    let known = &NAMES.proxies.names;
    programs.into_iter().find_map(|word| {
        let module = word.split('.').next().unwrap_or(word);
        known.iter().find(|proxy| *proxy == word || *proxy == module).map(String::as_str)
    })
}

fn tokens(text: &str) -> Vec<String> {
    text.split(['-', '_', '.', ' '])
        .filter(|token| !token.is_empty())
        .map(str::to_ascii_lowercase)
        .collect()
}

/// Says whether a file's stem (or a header's name) names a model: the last part of the id must be
/// its start up to a token boundary, and what remains must be quantization, format or shard tokens
/// (design section 5). `Llama-3-8B` is not `Llama-3-8B-Instruct-Q4_K_M`.
pub fn names_model(model_id: &str, stem: &str) -> bool {
    let wanted = tokens(model_id.rsplit('/').next().unwrap_or(model_id));
    let found = tokens(stem);
    !wanted.is_empty()
        && found
            .strip_prefix(wanted.as_slice())
            .is_some_and(|rest| rest.iter().all(|token| is_weight_token(token)))
}

fn is_weight_token(token: &str) -> bool {
    let Tokens { quant, format, shard } = &NAMES.weight_tokens;
    quant.iter().chain(format).chain(shard).any(|pattern| matches(pattern, token))
}

/// Matches a token against a pattern in which `*` stands for one or more digits.
fn matches(pattern: &str, token: &str) -> bool {
    let Some((before, after)) = pattern.split_once('*') else { return pattern == token };
    let Some(rest) = token.strip_prefix(before) else { return false };
    let digits = rest.chars().take_while(char::is_ascii_digit).count();
    digits > 0
        && (1..=digits).any(|count| rest.get(count..).is_some_and(|rest| matches(after, rest)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_name_names_a_model_only_up_to_quant_format_and_shard() {
        for (id, stem, expected) in [
            ("google/gemma-3-270m", "gemma-3-270m-q4_k_m", true),
            ("google/gemma-3-270m", "gemma_3 270M.Q4_K_M", true),
            ("meta/Llama-3-8B", "Llama-3-8B-Instruct-Q4_K_M", false),
            ("meta/Llama-3-8B-Instruct", "Llama-3-8B-Instruct-Q4_K_M", true),
            ("meta/Llama-3-8B", "Llama-3-80B-Q4_K_M", false),
            ("openai/gpt-oss-120b", "gemma-3-270m-q4_k_m", false),
            ("x/m", "m-00001-of-00003", true),
            ("x/Qwen3-Coder-30B-A3B-Instruct", "Qwen3-Coder-30B-A3B-Instruct-UD-Q4_K_XL", true),
            ("x/model-a", "model-a-exl3-4.0bpw", true),
        ] {
            assert_eq!(names_model(id, stem), expected, "{id} {stem}");
        }
    }

    #[test]
    fn spellings_of_one_engine_are_one_engine() {
        assert_eq!(normalize("engine.name", "vLLM"), "vllm");
        assert_eq!(normalize("engine.name", "my-fork"), "my-fork");
        assert_eq!(normalize("model.id", "vLLM"), "vLLM");
    }

    #[test]
    fn a_role_is_no_model() {
        assert!(is_role_alias("Default"));
        assert!(!is_role_alias("gpt-oss-120b"));
    }

    #[test]
    fn a_proxy_is_known_by_its_program() {
        let argv = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(
            find_proxy(&argv("/usr/bin/python3 /opt/bin/litellm --port 8000")),
            Some("litellm")
        );
        assert_eq!(find_proxy(&argv("nginx: master process /usr/sbin/nginx")), Some("nginx"));
        assert_eq!(
            find_proxy(&argv("/usr/bin/docker-proxy -host-port 8000")),
            Some("docker-proxy")
        );
        assert_eq!(find_proxy(&argv("llama-server -m nginx")), None);
        assert_eq!(
            find_proxy(&argv("python -m sglang_router.launch_router")),
            Some("sglang_router")
        );
    }
}
