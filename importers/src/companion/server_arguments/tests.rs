use super::*;
use serde_json::json;

fn observe(text: &str) -> Observation {
    let file = SourceFile { name: "server.json", text };
    assert!(ServerArguments.detect(&file).is_some());
    ServerArguments.observe(&[file]).unwrap()
}

fn value(seen: &Observation, field: &str) -> Option<Value> {
    seen.facts.iter().find(|fact| fact.field == field).map(|fact| fact.value.clone())
}

#[test]
fn every_setting_of_the_command_line_is_stated() {
    let seen = observe(
        r#"{"engine": "vllm", "revision": "rev-a", "args": ["serve", "org/Larch-8B",
            "--enforce-eager", "--gpu-memory-utilization", "0.8", "--max-num-seqs", "8",
            "--max-model-len", "32K", "--tensor-parallel-size=2", "--port", "8000"]}"#,
    );
    for (field, expected) in [
        ("engine.name", json!("vllm")),
        ("conditions.enforce_eager", json!(true)),
        ("conditions.gpu_memory_utilization", json!(0.8)),
        ("conditions.max_num_seqs", json!(8)),
        ("context.tokens", json!(32_768)),
        ("topology.tensor_parallel", json!(2)),
        ("model.id", json!("org/Larch-8B")),
    ] {
        assert_eq!(value(&seen, field), Some(expected), "{field}");
    }
    let place = &seen.facts.iter().find(|fact| fact.field == "context.tokens").unwrap().place;
    assert_eq!(place, "server.json, args --max-model-len");
    assert_eq!(seen.facts.iter().filter(|fact| fact.kind == FactKind::Label).count(), 1);
}

#[test]
fn an_absent_flag_is_the_default_and_never_off() {
    let seen = observe(r#"{"server_start_id": "start-1", "args": ["serve", "org/M"]}"#);
    assert_eq!(value(&seen, "conditions.prefix_caching"), Some(json!("default")));
    assert_eq!(seen.observed["server_start_id"], "start-1");
    for (flag, word) in [
        ("--enable-prefix-caching", "on"),
        ("--no-enable-prefix-caching", "off"),
        ("--disable-radix-cache", "off"),
    ] {
        let seen = observe(&json!({"args": [flag]}).to_string());
        assert_eq!(value(&seen, "conditions.prefix_caching"), Some(json!(word)), "{flag}");
    }
}

#[test]
fn flags_as_an_object_read_the_same() {
    let seen = observe(r#"{"flags": {"max_model_len": 4096, "enforce_eager": false}}"#);
    assert_eq!(value(&seen, "context.tokens"), Some(json!(4096)));
    assert_eq!(value(&seen, "conditions.enforce_eager"), None);
}

#[test]
fn a_start_without_a_command_line_states_no_settings() {
    let seen = observe(r#"{"server_start_id": "start-1", "started_at": "2026-08-28T09:55:00Z"}"#);
    assert!(seen.facts.is_empty());
    assert_eq!(seen.observed["server_started_at"], "2026-08-28T09:55:00Z");
}

#[test]
fn results_are_no_server_arguments() {
    for text in [r#"{"args": {"rate": 1}}"#, r#"{"args": [1]}"#, r#"{"completed": 1}"#, "[]"] {
        let file = SourceFile { name: "x.json", text };
        assert_eq!(ServerArguments.detect(&file), None, "{text}");
    }
}
