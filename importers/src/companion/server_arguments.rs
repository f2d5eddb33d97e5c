//! Server arguments that a harness saved beside its result (`{"args": ["serve", …], …}`), and settings
//! that a script asked for (`{"power_cap_w": 100}`).
//!
//! An argument that is absent is not a setting that is off: a default belongs to the engine and its
//! version, and is recorded as such.

use crate::read::documents::documents;
use ledger::adapter::{Companion, ExtractError, Fact, FactKind, Observation, SourceFile};
use ledger::provenance::argv::read_arguments;
use serde_json::{Map, Value};

/// The companion.
#[derive(Debug)]
pub struct ServerArguments;

/// Options that are a field of their own in the fingerprint, read by `read_arguments`.
const FIELDS: &[&str] = &[
    "max_model_len",
    "context_length",
    "ctx_size",
    "tensor_parallel_size",
    "tp_size",
    "tp",
    "pipeline_parallel_size",
    "pp_size",
    "data_parallel_size",
    "dp_size",
    "quantization",
    "kv_cache_dtype",
    "nnodes",
];

/// Options that say where the server listens and what it is called; no condition of a measurement.
const NO_CONDITIONS: &[&str] =
    &["model", "model_path", "host", "port", "served_model_name", "api_key", "alias"];

const PREFIX_CACHING: &str = "conditions.prefix_caching";

impl Companion for ServerArguments {
    fn id(&self) -> &'static str {
        "server-arguments"
    }

    fn version(&self) -> u32 {
        1
    }

    fn title(&self) -> &'static str {
        "saved server arguments or requested settings"
    }

    fn detect(&self, file: &SourceFile<'_>) -> Option<String> {
        let outline = &file.outline;
        if outline.is_array || file.text.len() > 1 << 20 {
            return None;
        }
        if outline.has("args") && (outline.has("engine") || outline.has("server_start_id")) {
            return Some("it has args beside engine or server_start_id".to_owned());
        }
        let is_request = outline.keys.len() == 1 && outline.has("power_cap_w");
        is_request.then(|| "it asks for a power cap".to_owned())
    }

    fn observe(&self, files: &[SourceFile<'_>]) -> Result<Observation, ExtractError> {
        let mut observation = Observation::default();
        for file in files {
            for record in documents(file.text).records() {
                let saved: Map<String, Value> = record.parse()?;
                if let Some(cap) = saved.get("power_cap_w") {
                    let place = format!("{}: power_cap_w", file.name);
                    observation.facts.push(Fact::new(
                        FactKind::Requested,
                        "power.cap_w",
                        cap.clone(),
                        &place,
                    ));
                }
                arguments(&saved, file.name, &mut observation);
                default_prefix_caching(&saved, file.name, &mut observation);
            }
        }
        Ok(observation)
    }
}

fn arguments(saved: &Map<String, Value>, file: &str, observation: &mut Observation) {
    let Some(words) = saved.get("args").and_then(Value::as_array) else { return };
    let argv: Vec<String> = words.iter().filter_map(Value::as_str).map(str::to_owned).collect();
    for fact in read_arguments(&argv) {
        if let Some(option) = fact.option {
            let place = format!("{file}: args {option}");
            observation.facts.push(Fact::new(FactKind::Stated, fact.path, fact.value, &place));
        }
    }
    for (index, word) in argv.iter().enumerate() {
        let Some(option) = word.strip_prefix("--") else { continue };
        let (option, inline) =
            option.split_once('=').map_or((option, None), |(name, value)| (name, Some(value)));
        let name = option.replace('-', "_");
        if FIELDS.contains(&name.as_str()) || states_nothing(&name) {
            continue;
        }
        let next = argv.get(index + 1).map(String::as_str).filter(|next| !next.starts_with("--"));
        let value = inline.or(next).map_or(Value::Bool(true), typed);
        let (field, value) = match find_prefix_caching(&name) {
            Some(state) => (PREFIX_CACHING.to_owned(), state.into()),
            None => (format!("conditions.{name}"), value),
        };
        let place = format!("{file}: args --{option}");
        observation.facts.push(Fact::new(FactKind::Stated, &field, value, &place));
    }
    for (key, value) in saved {
        match key.as_str() {
            "prefix_caching_flag" => {
                let place = format!("{file}: prefix_caching_flag");
                let text = value.as_str().unwrap_or_default();
                let state = if text.contains("default: on") { "engine default: on" } else { text };
                observation.facts.push(Fact::new(FactKind::Stated, PREFIX_CACHING, state, &place));
            }
            "server_start_id" | "started_at" | "engine" | "revision" => {
                observation
                    .observed
                    .insert(format!("server_{}", key.trim_start_matches("server_")), value.clone());
            }
            _ => {}
        }
    }
}

/// States the engine's default where nothing says whether prefixes are cached: a flag that is absent
/// is not off (vllm-project/vllm#54227).
fn default_prefix_caching(saved: &Map<String, Value>, file: &str, observation: &mut Observation) {
    let is_stated = observation.facts.iter().any(|fact| fact.field == PREFIX_CACHING);
    if saved.contains_key("args") && !is_stated {
        let place = format!("{file}: args (no flag)");
        let state = "engine default";
        observation.facts.push(Fact::new(FactKind::Stated, PREFIX_CACHING, state, &place));
    }
}

/// vLLM's and SGLang's flags for one and the same condition.
fn find_prefix_caching(name: &str) -> Option<&'static str> {
    match name {
        "enable_prefix_caching" => Some("on"),
        "no_enable_prefix_caching" | "disable_radix_cache" => Some("off"),
        _ => None,
    }
}

/// True for names and addresses, and for secrets, which are kept nowhere but in the artifact.
fn states_nothing(name: &str) -> bool {
    let is_secret = name.ends_with("_key") || name.ends_with("_token") || name.contains("password");
    NO_CONDITIONS.contains(&name) || is_secret
}

fn typed(text: &str) -> Value {
    serde_json::from_str(text)
        .ok()
        .filter(|value: &Value| value.is_number() || value.is_boolean())
        .unwrap_or_else(|| text.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn observe(args: &[&str]) -> Observation {
        let text = serde_json::json!({"engine": "vllm", "args": args}).to_string();
        let file = SourceFile::new("server.json", &text);
        assert!(ServerArguments.detect(&file).is_some());
        ServerArguments.observe(&[file]).unwrap()
    }

    fn value(seen: &Observation, field: &str) -> Option<Value> {
        seen.facts.iter().find(|fact| fact.field == field).map(|fact| fact.value.clone())
    }

    #[test]
    fn an_absent_flag_is_the_default_and_never_off() {
        for (args, state) in [
            (&["serve", "org/M"][..], "engine default"),
            (&["--enable-prefix-caching"], "on"),
            (&["--no-enable-prefix-caching"], "off"),
            (&["--disable-radix-cache"], "off"),
        ] {
            assert_eq!(value(&observe(args), PREFIX_CACHING), Some(state.into()), "{args:?}");
        }
    }

    #[test]
    fn secrets_state_nothing() {
        let seen = observe(&["--hf-token", "hf_1", "--api-key=sk-1", "--seed", "-1"]);
        assert!(!format!("{seen:?}").contains("hf_1") && !format!("{seen:?}").contains("sk-1"));
        assert_eq!(value(&seen, "conditions.seed"), Some((-1).into()));
    }
}
