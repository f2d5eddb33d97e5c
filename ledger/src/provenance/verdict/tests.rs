use super::*;
use crate::provenance::document::parse;
use serde_json::json;

const SET: &str = "c000000000000000000000000000000000000000000000000000000000000001";

fn sample() -> Value {
    json!({
        "schema": "ledger-provenance/v1", "captured_at": "2026-08-02T03:00:00Z", "tool": "ledger 0.1.0",
        "host": {"name": "h", "os": "linux", "boot_id": "boot-1", "cpu": "EPYC"},
        "listener": {"port": 8080, "address": "127.0.0.1", "pid": 41},
        "process": {"pid": 41, "started_at": "2026-08-02T01:00:00Z", "exe": "/opt/llama-server", "exe_blake3": null,
            "cwd": null, "argv": ["llama-server", "-m", "gemma-3-270m-q4_k_m.gguf", "-c", "4096"], "container": null},
        "weights": [{"path": "/m/gemma-3-270m-q4_k_m.gguf", "bytes": 3, "blake3": SET, "inode": 9, "seen": "mapped",
            "hf": null, "header": {"quant": "Q4_K_M"}}],
        "engine": {"name": "llama-server", "version": "b1", "digest": "b3:00"},
    })
}

fn judge(documents: &[Value], model_id: &str, revision: Option<&str>) -> Verdict {
    let documents: Vec<Document> =
        documents.iter().map(|value| parse(value.to_string().as_bytes()).unwrap()).collect();
    let at = |text: &str| crate::clock::parse(text).unwrap();
    let window =
        RunWindow { started: at("2026-08-02T02:00:00Z"), ended: at("2026-08-02T02:10:00Z") };
    let claim = Claim { model_id: Some(model_id.into()), revision: revision.map(Into::into) };
    check(&documents, &claim, &[], Some(window))
}

fn failed(verdict: &Verdict) -> Vec<(u8, &str)> {
    verdict.failed_rules().map(|rule| (rule.number, rule.fact.as_str())).collect()
}

fn with(path: &str, value: Value) -> Value {
    let mut document = sample();
    *document.pointer_mut(path).unwrap() = value;
    document
}

#[test]
fn an_honest_server_is_verified_and_fills_the_fingerprint() {
    let verdict = judge(&[sample()], "google/gemma-3-270m", None);
    assert_eq!(failed(&verdict), []);
    assert_eq!(verdict.grade, Grade::Mapped);
    let get = |path: &str| verdict.facts.iter().find(|fact| fact.path == path).unwrap();
    assert_eq!(get("engine.name").value, "llama.cpp");
    assert_eq!(get("quant.weights").value, "q4_k_m");
    assert_eq!(get("context.tokens").at, "argument -c of pid 41");
    assert_eq!(get("topology.accelerators").value, json!(["cpu:EPYC"]));
    assert_eq!(get("topology.tensor_parallel").kind, SourceKind::Derived);
}

#[test]
fn an_alias_is_reported_with_what_was_loaded() {
    let verdict = judge(&[sample()], "openai/gpt-oss-120b", None);
    assert_eq!(
        failed(&verdict),
        [(4, "requested openai/gpt-oss-120b, loaded gemma-3-270m-q4_k_m.gguf")]
    );
}

#[test]
fn an_http_answer_is_a_label() {
    let mut document = with("/process", Value::Null);
    document["labels"] = json!({"served_names": ["gpt-oss-120b"]});
    let verdict = judge(&[document], "google/gemma-3-270m", None);
    assert!(failed(&verdict).iter().any(|(number, _)| *number == 1));
    assert_eq!(verdict.grade, Grade::Labelled);
}

#[test]
fn a_proxy_is_never_the_process_that_holds_the_weights() {
    let behind = judge(&[with("/listener/pid", json!(7))], "google/gemma-3-270m", None);
    assert!(failed(&behind)[0].1.contains("the listener is a proxy or a router"));
    let litellm = with("/process/argv", json!(["python3", "/opt/litellm", "--port", "8080"]));
    let verdict = judge(&[litellm], "google/gemma-3-270m", None);
    assert!(failed(&verdict)[0].1.contains("`litellm`"));
}

#[test]
fn no_digest_no_proof() {
    let verdict = judge(&[with("/weights/0/blake3", Value::Null)], "google/gemma-3-270m", None);
    assert_eq!(failed(&verdict), [(3, "0 of 1 weight files are hashed")]);
    let none = judge(&[with("/weights", json!([]))], "google/gemma-3-270m", None);
    assert!(failed(&none).contains(&(3, "no weight file was found")));
}

#[test]
fn a_file_replaced_after_loading_proves_nothing() {
    let mut document = sample();
    document["weights"][0]["replaced"] = json!(true);
    let verdict = judge(&[document], "google/gemma-3-270m", None);
    assert!(failed(&verdict)[0].1.contains("was replaced on disk"));
}

#[test]
fn a_restart_between_the_captures_voids_them() {
    let later = with("/process/started_at", json!("2026-08-02T02:05:00Z"));
    let verdict = judge(&[sample(), later], "google/gemma-3-270m", None);
    assert!(failed(&verdict)[0].1.starts_with("the process restarted between the captures"));
}

#[test]
fn a_process_younger_than_the_run_did_not_serve_it() {
    let young = with("/process/started_at", json!("2026-08-02T02:05:00Z"));
    let verdict = judge(&[young], "google/gemma-3-270m", None);
    assert_eq!(failed(&verdict)[0].0, 5);
}

#[test]
fn a_capture_before_the_run_ended_does_not_show_that_the_process_outlived_it() {
    let early = with("/captured_at", json!("2026-08-02T01:30:00Z"));
    let verdict = judge(std::slice::from_ref(&early), "google/gemma-3-270m", None);
    assert!(failed(&verdict)[0].1.contains("nothing shows that the process outlived it"));
    assert!(judge(&[early, sample()], "google/gemma-3-270m", None).is_verified());
}

#[test]
fn a_snapshot_must_be_the_model_and_the_revision_that_is_stated() {
    let commit = "9f31c2ab9f31c2ab9f31c2ab9f31c2ab9f31c2ab";
    let document = with("/weights/0/hf", json!({"repo": "google/gemma-3-270m", "commit": commit}));
    assert!(
        judge(std::slice::from_ref(&document), "google/gemma-3-270m", Some(commit)).is_verified()
    );
    let other = judge(std::slice::from_ref(&document), "google/gemma-3-270m", Some("main"));
    assert!(failed(&other)[0].1.contains("revision main is stated"));
    let alias = judge(&[document], "google/gemma-3-1b", None);
    assert!(failed(&alias)[0].1.starts_with("requested google/gemma-3-1b"));
}

#[test]
fn a_person_can_bind_a_weight_set_once() {
    let document = parse(sample().to_string().as_bytes()).unwrap();
    let binding = BindingBody {
        v: 1,
        weight_set: weight_set(&document).unwrap(),
        model_id: "acme/secret".into(),
        revision: "r1".into(),
        because: "converted by hand".into(),
        by: "lena".into(),
        recorded_at: String::new(),
    };
    let claim = Claim { model_id: Some("acme/secret".into()), revision: Some("r1".into()) };
    let window = RunWindow { started: document.captured_at, ended: document.captured_at };
    let verdict = check(&[document], &claim, &[("e1".into(), binding)], Some(window));
    assert_eq!(failed(&verdict), []);
    assert_eq!(verdict.bindings, ["e1"]);
}

#[test]
fn a_role_is_refused_as_identity() {
    let verdict = judge(&[sample()], "default", None);
    assert!(failed(&verdict)[0].1.contains("is a role, not a model"));
}

#[test]
fn the_grade_follows_from_what_was_seen() {
    for (seen, grade) in [("mapped", Grade::Mapped), ("argument", Grade::Resolved)] {
        let verdict = judge(&[with("/weights/0/seen", json!(seen))], "google/gemma-3-270m", None);
        assert_eq!(verdict.grade, grade);
    }
    let mut young = with("/weights/0/seen", json!("argument"));
    young["weights"][0]["changed_at"] = json!("2026-08-02T01:30:00Z");
    let verdict = judge(&[young], "google/gemma-3-270m", None);
    assert_eq!(verdict.grade, Grade::Labelled);
    // A grade below `resolved` is never verified.
    assert!(failed(&verdict)[0].1.contains("changed after the process started"));
}
