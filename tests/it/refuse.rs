//! What is refused: with the exit status of the table, everything that is wrong named at once, and a
//! ledger that is as it was.

use crate::sandbox::{Sandbox, manifest, provenance, vllm_result};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::symlink;

/// Records a run whose provenance was changed, and expects exit 3 and the fact.
#[track_caller]
fn unverified(change: impl Fn(&mut Value), fact: &str) {
    let sandbox = Sandbox::new();
    sandbox.run_folder("good", 1);
    sandbox.record("good");
    let before = sandbox.run(&["head"]).stdout;
    sandbox.run_folder("r", 2);
    let mut document = provenance();
    change(&mut document);
    sandbox.write("r/provenance.json", document.to_string());
    sandbox
        .run(&["record", "r"])
        .fails(3)
        .says("error[unverified]")
        .says(fact)
        .says("nothing was stored");
    assert_eq!(sandbox.run(&["head"]).stdout, before);
    sandbox.run(&["verify"]).ok().prints("clean: 1 entries");
}

#[test]
fn no_provenance_no_number() {
    let sandbox = Sandbox::new();
    sandbox.run_folder("r", 1);
    fs::remove_file(sandbox.path("r/provenance.json")).unwrap();
    sandbox
        .run(&["record", "r"])
        .fails(3)
        .says("there is no provenance document")
        .says("--provenance");
    sandbox.run(&["list"]).ok().says("no run matches");
}

#[test]
fn an_alias_is_reported_with_what_was_loaded() {
    let sandbox = Sandbox::new();
    sandbox.run_folder("r", 1);
    sandbox.write("r/run.toml", manifest("x").replace("acme/tiny-llama", "openai/gpt-oss-120b"));
    sandbox
        .run(&["record", "r"])
        .fails(3)
        .says("requested openai/gpt-oss-120b, loaded tiny-llama-q4_k_m.gguf");
}

#[test]
fn each_rule_of_weight_provenance_can_fail() {
    unverified(
        |document| document["process"] = Value::Null,
        "an HTTP answer or a served name is a label",
    );
    unverified(
        |document| document["listener"]["pid"] = 7.into(),
        "the listener is a proxy or a router",
    );
    unverified(|document| document["process"]["argv"] = json!(["nginx"]), "`nginx`");
    unverified(
        |document| document["weights"][0]["blake3"] = Value::Null,
        "0 of 1 weight files are hashed",
    );
    unverified(|document| document["weights"] = json!([]), "no weight file was found");
    unverified(|document| document["weights"][0]["replaced"] = true.into(), "was replaced on disk");
    unverified(
        |document| document["process"]["started_at"] = "2026-11-01T10:30:00Z".into(),
        "after the run of",
    );
    unverified(
        |document| document["captured_at"] = "2026-11-01T09:30:00Z".into(),
        "nothing shows that the process outlived it",
    );
}

#[test]
fn a_document_that_is_none_is_wrong_input() {
    let sandbox = Sandbox::new();
    sandbox.run_folder("r", 1);
    for (text, says) in [
        ("{".to_owned(), "not a provenance document"),
        (r#"{"schema": "other/v1"}"#.to_owned(), "`schema` is `other/v1`"),
        (provenance().to_string().replace("\"weights\"", "\"weihgts\""), "unknown field `weihgts`"),
        (
            provenance().to_string().replacen(
                "\"tool\":\"test\"",
                "\"tool\":\"test\",\"tool\":\"x\"",
                1,
            ),
            "stands twice",
        ),
    ] {
        sandbox.write("r/provenance.json", text);
        sandbox.run(&["record", "r"]).fails(2).says(says);
    }
}

#[test]
fn a_role_is_no_model_and_a_branch_is_no_revision() {
    let sandbox = Sandbox::new();
    sandbox.run_folder("r", 1);
    sandbox.write("r/run.toml", manifest("x").replace("acme/tiny-llama", "default"));
    sandbox.run(&["record", "r"]).fails(3).says("`default` is a role, not a model");
    let mut document = provenance();
    document["weights"][0]["hf"] =
        json!({"repo": "acme/tiny-llama", "commit": "0123456789012345678901234567890123456789"});
    sandbox.write("r/provenance.json", document.to_string());
    sandbox
        .write("r/run.toml", manifest("x").replace("\n[quant]", "revision = \"main\"\n\n[quant]"));
    sandbox
        .run(&["record", "r"])
        .fails(3)
        .says("revision main is stated, the snapshot is 0123456789012345678901234567890123456789");
}

#[test]
fn contradictions_are_refused_with_every_value_and_its_source() {
    let sandbox = Sandbox::new();
    sandbox.run_folder("r", 1);
    let text = manifest("x") + "\n[context]\ntokens = 8192\n[conditions]\nburstiness = 2.0\n";
    sandbox.write("r/run.toml", text);
    sandbox
        .run(&["record", "r", "--set", "context.tokens=16384"])
        .fails(2)
        .says("`context.tokens` is stated differently by 3 sources")
        .says("run.toml:14")
        .says("argument -c of pid 41")
        .says("--set")
        .says("`conditions.burstiness` is stated differently by 2 sources");
}

#[test]
fn everything_that_is_missing_is_named_at_once() {
    let sandbox = Sandbox::new();
    sandbox.run_folder("r", 1);
    sandbox.write("r/run.toml", "candidate = \"x\"\n");
    sandbox
        .run(&["record", "r"])
        .fails(2)
        .says("label `config` is missing")
        .says("label `task`")
        .says("label `hardware`");
    let bare = "candidate = \"x\"\nconfig = \"x\"\ntask = \"x\"\nhardware = \"x\"\nmeasured_at = 2026-11-01T10:00:00Z\n[model]\nid = \"acme/tiny-llama\"\n";
    sandbox.write("r/run.toml", bare);
    sandbox.run(&["record", "r"]).fails(2).says("`quant.kv_cache` is stated nowhere");
}

#[test]
fn unknown_manifest_keys_name_the_nearest() {
    let sandbox = Sandbox::new();
    sandbox.run_folder("r", 1);
    sandbox
        .write("r/run.toml", manifest("x") + "\n[powr]\ncap_w = 3\n[run]\nevidense = \"client\"\n");
    sandbox
        .run(&["record", "r"])
        .fails(2)
        .says("did you mean `power`")
        .says("did you mean `evidence`")
        .says("run.toml:13");
}

#[test]
fn a_setting_inferred_from_a_measurement_is_refused() {
    let sandbox = Sandbox::new();
    sandbox.run_folder("r", 1);
    sandbox.write("r/run.toml", manifest("x") + "\n[conditions]\nspeculation = 2\n[sources]\n\"conditions.speculation\" = \"inferred\"\n");
    sandbox.run(&["record", "r"]).fails(2).says("was inferred from a measurement");
}

#[test]
fn a_measurement_of_tomorrow_is_refused() {
    let sandbox = Sandbox::new();
    sandbox.run_folder("r", 1);
    sandbox.write("r/run.toml", manifest("x").replace("2026-11-01", "2026-12-02"));
    sandbox.run(&["record", "r"]).fails(2).says("lies in the future");
}

#[test]
fn what_is_no_file_of_a_run_is_named() {
    let sandbox = Sandbox::new();
    let folder = sandbox.run_folder("r", 1);
    symlink("/etc/hostname", folder.join("out")).unwrap();
    symlink("gone", folder.join("nowhere")).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(folder.join("s")).unwrap();
    sandbox
        .run(&["record", "r"])
        .fails(2)
        .says("leads out of the folder")
        .says("leads nowhere")
        .says("a socket is no file");
    fs::create_dir(sandbox.path("empty")).unwrap();
    sandbox.run(&["record", "empty", "--failed", "x"]).fails(2).says("folder holds no file");
    sandbox.run(&["record", "absent"]).fails(2).says("there is no `absent`");
    assert!(
        !sandbox.path(".ledger/ledger.db").exists() || sandbox.run(&["list"]).stdout.is_empty()
    );
}

#[test]
fn a_result_that_no_adapter_knows_is_refused_with_the_list() {
    let sandbox = Sandbox::new();
    sandbox.run_folder("r", 1);
    sandbox.write("r/result.json", "{\"tokens_per_second\": 72}");
    sandbox
        .run(&["record", "r"])
        .fails(2)
        .says("none of 2 text files is a result of a known format")
        .says("--adapter")
        .says("llama-bench");
    sandbox
        .run(&["record", "r", "--adapter", "vllm-bench-serv"])
        .fails(2)
        .says("did you mean `vllm-bench-serve`");
    sandbox.write("r/result.json", "");
    sandbox.run(&["record", "r"]).fails(2).says("file is empty");
}

#[test]
fn a_cut_result_is_refused_with_its_place() {
    let sandbox = Sandbox::new();
    sandbox.run_folder("r", 1);
    let text = vllm_result(1, 8).to_string();
    sandbox.write("r/result.json", &text[..text.len() - 40]);
    sandbox.run(&["record", "r"]).fails(2).says("cannot be read");
    sandbox
        .write("r/result.json", text.replace("\"completed\":8", "\"completed\":8,\"ttfts\":[1]"));
    sandbox.run(&["record", "r"]).fails(2).says("cannot be read");
}

#[test]
fn one_artifact_is_the_evidence_of_one_run() {
    let sandbox = Sandbox::new();
    sandbox.run_folder("r", 1);
    let key = sandbox.record("r");
    sandbox.write("r/run.toml", manifest("other"));
    sandbox
        .run(&["record", "r"])
        .fails(2)
        .says("recorded under another subject")
        .says("candidate asked for");
    sandbox.write("r/run.toml", manifest("tiny") + "\n[conditions]\ntemperature = 1\n");
    sandbox.run(&["record", "r"]).fails(2).says("is already the evidence of run").says(&key[..8]);
    sandbox.run(&["retract", &key[..8], "--reason", "wrong temperature", "--by", "lena"]).ok();
    sandbox.run(&["record", "r", "--replaces", &key[..8]]).ok();
    sandbox.run(&["verify", "--deep"]).ok().prints("clean: 3 entries");
}

#[test]
fn usage_and_names_have_their_status() {
    let sandbox = Sandbox::new();
    sandbox.run(&["latest"]).fails(2).says("there is no ledger");
    sandbox.run(&["reckord"]).fails(2).says("unrecognized subcommand");
    sandbox.run_folder("r", 1);
    let key = sandbox.record("r");
    sandbox.run(&["show", "12345678"]).fails(2).says("names no run");
    sandbox.run(&["show", &key[..7]]).fails(2).says("type 8 or more");
    sandbox.write(
        "other.db/ledger.db",
        "not a database at all, but long enough to be read as one by mistake",
    );
    sandbox.run(&["--ledger", "other.db", "latest"]).fails(2).says("is not a ledger");
}
