//! What a script asked for, as a small JSON object: `{"power_cap_w": 100}`. A request is no
//! evidence that anything happened; it is kept beside what was observed, so that a setting that was
//! refused or ignored shows (NVIDIA/open-gpu-kernel-modules#483).

use crate::read::documents::single_object;
use crate::read::place::field_of;
use ledger::adapter::{Companion, ExtractError, Fact, FactKind, Observation, SourceFile};

/// Keys of such a file and the field each asks for. A file with any other key is another kind.
const SETTINGS: [(&str, &str); 7] = [
    ("power_cap_w", "power.cap_w"),
    ("power_limit_w", "power.cap_w"),
    ("context_tokens", "context.tokens"),
    ("kv_cache", "quant.kv_cache"),
    ("temperature", "conditions.temperature"),
    ("max_tokens", "conditions.max_tokens"),
    ("thinking", "conditions.thinking"),
];

/// The companion for requested settings.
#[derive(Debug, Clone, Copy)]
pub struct RequestedSettings;

impl Companion for RequestedSettings {
    fn id(&self) -> &'static str {
        "requested-settings"
    }

    fn version(&self) -> u32 {
        1
    }

    fn title(&self) -> &'static str {
        "settings a script asked for (JSON)"
    }

    fn detect(&self, file: &SourceFile<'_>) -> Option<String> {
        let object = single_object(file.text)?;
        let is_known = |key: &String| find_field(key).is_some();
        let is_settings = !object.is_empty() && object.keys().all(is_known);
        is_settings.then(|| "an object of requested settings only".to_owned())
    }

    fn observe(&self, files: &[SourceFile<'_>]) -> Result<Observation, ExtractError> {
        let mut seen = Observation::default();
        for file in files {
            for (key, value) in single_object(file.text).unwrap_or_default() {
                let Some(field) = find_field(&key) else { continue };
                let place = field_of(file.name, &key);
                seen.facts.push(Fact::new(FactKind::Requested, field, value, &place));
            }
        }
        Ok(seen)
    }
}

fn find_field(key: &str) -> Option<&'static str> {
    SETTINGS.iter().find(|(known, _)| *known == key).map(|(_, field)| *field)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_kept_as_a_request() {
        let file = SourceFile { name: "intent.json", text: "{\n  \"power_cap_w\": 100\n}\n" };
        assert!(RequestedSettings.detect(&file).is_some());
        let seen = RequestedSettings.observe(&[file]).unwrap();
        let expected =
            Fact::new(FactKind::Requested, "power.cap_w", 100, "intent.json, power_cap_w");
        assert_eq!(seen.facts, [expected]);
    }

    #[test]
    fn an_object_with_anything_else_is_another_file() {
        for text in ["{}", "{\"power_cap_w\": 100, \"completed\": 3}", "[{\"power_cap_w\": 1}]", ""]
        {
            let file = SourceFile { name: "x.json", text };
            assert_eq!(RequestedSettings.detect(&file), None, "{text}");
        }
    }
}
