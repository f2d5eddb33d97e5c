//! The command line of a server, written down as JSON: `args` as a list, or `flags` as an object,
//! with a `server_start_id` where the writer has one.
//!
//! What a server was started with is what was in force. A flag that is absent is the engine's
//! default: stored as `default`, never as off (vllm-project/vllm#54227: prefix caching is on by
//! default). Secrets are masked before anything is kept.

mod arguments;
mod settings;

use crate::read::documents::single_object;
use crate::read::fields::Fields;
use crate::read::place::field_of;
use arguments::{Argument, masked, parse_flags, parse_list};
use ledger::adapter::{Companion, ExtractError, Fact, FactKind, Observation, SourceFile};
use serde_json::{Map, Value};

/// The companion for server arguments.
#[derive(Debug, Clone, Copy)]
pub struct ServerArguments;

impl Companion for ServerArguments {
    fn id(&self) -> &'static str {
        "server-arguments"
    }

    fn version(&self) -> u32 {
        1
    }

    fn title(&self) -> &'static str {
        "server command line (JSON)"
    }

    fn detect(&self, file: &SourceFile<'_>) -> Option<String> {
        let object = single_object(file.text)?;
        let key = find_arguments(&object)?;
        Some(format!("an object with server arguments under `{key}`"))
    }

    fn observe(&self, files: &[SourceFile<'_>]) -> Result<Observation, ExtractError> {
        let mut seen = Observation::default();
        for file in files {
            let object = single_object(file.text).unwrap_or_default();
            add_server(&mut seen, file.name, &object)?;
        }
        Ok(seen)
    }
}

/// Names the key that holds the arguments: a list of texts, or an object of scalars. A bare
/// `server_start_id` is a server without a known command line.
fn find_arguments(object: &Map<String, Value>) -> Option<&'static str> {
    let is_text_list =
        |value: &Value| value.as_array().is_some_and(|items| items.iter().all(Value::is_string));
    let is_flags = |value: &Value| {
        value.as_object().is_some_and(|flags| flags.values().all(|flag| !flag.is_object()))
    };
    if object.get("args").is_some_and(is_text_list) {
        return Some("args");
    }
    if object.get("flags").is_some_and(is_flags) {
        return Some("flags");
    }
    object.contains_key("server_start_id").then_some("server_start_id")
}

fn add_server(
    seen: &mut Observation,
    file: &str,
    object: &Map<String, Value>,
) -> Result<(), ExtractError> {
    let fields = Fields::new(object, "");
    for (key, name) in [("server_start_id", "server_start_id"), ("started_at", "server_started_at")]
    {
        seen.observed.extend(fields.text(key)?.map(|text| (name.to_owned(), Value::from(text))));
    }
    if let Some(engine) = fields.text("engine")? {
        let place = field_of(file, "engine");
        seen.facts.push(Fact::new(FactKind::Stated, "engine.name", engine, &place));
    }
    let Some((key, arguments)) = read_arguments(object) else { return Ok(()) };
    let place = field_of(file, key);
    seen.facts.extend(settings::state(&arguments, &place));
    seen.observed.insert("server_arguments".to_owned(), masked(&arguments).into());
    Ok(())
}

fn read_arguments(object: &Map<String, Value>) -> Option<(&'static str, Vec<Argument>)> {
    match find_arguments(object)? {
        "args" => {
            let words = object.get("args")?.as_array()?.iter().filter_map(Value::as_str);
            Some(("args", parse_list(&words.collect::<Vec<_>>())))
        }
        "flags" => Some(("flags", parse_flags(object.get("flags")?.as_object()?))),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
