//! The main job: a folder becomes a run, and comes back byte for byte.

use crate::sandbox::{Sandbox, manifest, provenance, vllm_result};
use std::fs;
use std::os::unix::ffi::OsStrExt;

#[test]
fn a_folder_becomes_a_run_with_its_numbers() {
    let sandbox = Sandbox::new();
    sandbox.run_folder("r", 1);
    let answer = sandbox.run(&["record", "r"]).ok().says("made a ledger in").says("recorded ");
    let key = answer.key();
    assert_eq!(key.len(), 64);
    let shown = sandbox.run(&["show", &key[..8], "--format", "json"]).ok().json();
    assert_eq!(shown["key"], key.as_str());
    assert_eq!(shown["run"]["cells"][0]["id"], "concurrency=1");
    assert_eq!(shown["run"]["cells"][0]["requests"]["completed"], 8);
    assert_eq!(shown["run"]["provenance"]["requested"], "acme/tiny-llama");
    assert_eq!(shown["run"]["provenance"]["loaded"][0], "tiny-llama-q4_k_m.gguf");
    assert_eq!(shown["run"]["sources"]["context.tokens"]["at"], "argument -c of pid 41");
    assert_eq!(shown["run"]["sources"]["context.tokens"]["kind"], "command-line");
    assert_eq!(shown["run"]["sources"]["topology.tensor_parallel"]["kind"], "derived");
    sandbox.run(&["latest"]).ok().prints("tiny").prints(&key[..8]).prints("n=1");
    sandbox.run(&["verify", "--deep"]).ok().prints("clean: 1 entries");
}

#[test]
fn statistics_come_from_the_samples() {
    let sandbox = Sandbox::new();
    sandbox.run_folder("r", 1);
    let key = sandbox.record("r");
    let shown = sandbox.run(&["show", &key, "--format", "json"]).json();
    let metric = |name: &str| {
        let metrics = shown["run"]["cells"][0]["metrics"].as_array().unwrap().clone();
        metrics.into_iter().find(|metric| metric["name"] == name).unwrap()
    };
    // ttfts of seed 1: 57, 53, 66, 62, 58, 54, 50, 63 ms; median (57 + 58) / 2.
    let ttft = metric("ttft_ms");
    assert_eq!(ttft["n"], 8);
    assert!((ttft["computed"]["p50"].as_f64().unwrap() - 57.5).abs() < 1e-9);
    assert!((ttft["computed"]["max"].as_f64().unwrap() - 66.0).abs() < 1e-9);
    assert_eq!(metric("itl_ms")["n"], 120);
}

#[test]
fn the_same_run_twice_is_one_run() {
    let sandbox = Sandbox::new();
    sandbox.run_folder("r", 1);
    let key = sandbox.record("r");
    let again = sandbox.run(&["record", "r"]).ok().says("already recorded");
    assert_eq!(again.key(), key);
    sandbox.run(&["verify"]).ok().prints("clean: 1 entries");
}

#[test]
fn artifacts_come_back_byte_for_byte_under_their_names() {
    let sandbox = Sandbox::new();
    let folder = sandbox.run_folder("r", 1);
    let odd = std::ffi::OsStr::from_bytes(b"log\xff\n.txt");
    fs::write(folder.join(odd), b"\x00\x01").unwrap();
    sandbox.write("r/deep/er/trace.bin", vec![7u8; 3 << 20]);
    let key = sandbox.record("r");
    sandbox.run(&["extract", &key[..12], "back"]).ok();
    for (path, expected) in [
        ("result.json", vllm_result(1, 8).to_string().into_bytes()),
        ("deep/er/trace.bin", vec![7u8; 3 << 20]),
    ] {
        assert_eq!(fs::read(sandbox.path("back").join(path)).unwrap(), expected, "{path}");
    }
    assert_eq!(fs::read(sandbox.path("back").join(odd)).unwrap(), b"\x00\x01");
    sandbox.run(&["extract", &key[..12], "back"]).fails(2).says("exists");
    sandbox.run(&["show", &key]).ok().prints("result.json read by vllm-bench-serve");
    sandbox.run(&["cat", &format!("{key}:server.log")]).ok().prints("INFO started");
}

#[test]
fn the_key_does_not_depend_on_clock_or_place() {
    let (one, other) = (Sandbox::new(), Sandbox::new());
    one.run_folder("here", 3);
    other.run_folder("elsewhere/there", 3);
    let key = one.record("here");
    let later = other
        .command(&["record", "elsewhere/there"])
        .env("LEDGER_CLOCK", "2027-01-01T00:00:00Z")
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&later.stdout).trim(), key);
}

#[test]
fn a_dry_run_prints_the_key_and_stores_nothing() {
    let sandbox = Sandbox::new();
    sandbox.run_folder("r", 1);
    let dry = sandbox.run(&["record", "r", "--dry-run"]).ok().says("nothing was stored").key();
    assert_eq!(sandbox.listing(), Vec::<String>::new());
    assert_eq!(sandbox.record("r"), dry);
}

#[test]
fn many_folders_are_recorded_in_one_commit_or_not_at_all() {
    let sandbox = Sandbox::new();
    for n in 0..40 {
        sandbox.run_folder(&format!("all/r{n:02}"), n + 1);
    }
    sandbox.write("all/r07/run.toml", "candidate = \"x\"\n");
    sandbox.run(&["record", "--each", "all"]).fails(2).says("r07").says("nothing was stored");
    sandbox.run(&["list"]).ok().says("no run matches");
    sandbox.write("all/r07/run.toml", manifest("tiny"));
    let answer = sandbox.run(&["record", "--each", "all"]).ok().says("recorded 40 runs");
    assert_eq!(answer.stdout.lines().count(), 40);
    sandbox
        .run(&["record", "--each", "all"])
        .ok()
        .says("recorded 0 runs, 40 were already recorded");
    sandbox.run(&["verify", "--deep"]).ok().prints("clean: 40 entries");
}

#[test]
fn a_failed_attempt_is_evidence_and_never_a_result() {
    let sandbox = Sandbox::new();
    sandbox.run_folder("good", 1);
    sandbox.record("good");
    sandbox.write("bad/server.log", "needed 703 MiB, 514 MiB free\nout of memory\n");
    sandbox.write(
        "bad/run.toml",
        manifest("tiny").replace("2026-11-01", "2026-11-02")
            + "\n[failure]\nreason = \"out of memory\"\ncause = \"resource-exhaustion\"\nprompt_tokens = 19118\noutput_tokens = 5120\n",
    );
    let key = sandbox
        .run(&["record", "bad", "--failed", "died under the first client request"])
        .ok()
        .key();
    sandbox.run(&["latest"]).ok().prints("failed since");
    sandbox.run(&["list", "--failed"]).ok().prints(&key[..8]).prints("failed: resource-exhaustion");
    sandbox.run(&["list", "--prompt-below", "20000"]).ok().prints(&key[..8]);
    sandbox.run(&["list", "--prompt-below", "19000"]).ok().says("no run matches");
    sandbox.run(&["list", "--cause", "model"]).ok().says("no run matches");
    sandbox.run(&["list", "--search", "514 mib"]).ok().says("no run matches");
    sandbox.run(&["list", "--search", "first client request"]).ok().prints(&key[..8]);
    sandbox
        .run(&["show", &key])
        .ok()
        .prints("died under the first client request")
        .prints("failed attempt; no result");
}

#[test]
fn metrics_are_no_failed_attempt() {
    let sandbox = Sandbox::new();
    sandbox.run_folder("r", 1);
    sandbox
        .run(&["record", "r", "--failed", "I did not like it"])
        .fails(2)
        .says("record it without `--failed`");
}

#[test]
fn a_run_in_which_nothing_completed_is_a_failed_one() {
    let sandbox = Sandbox::new();
    sandbox.run_folder("r", 1);
    let mut result = vllm_result(1, 0);
    result["num_prompts"] = 8.into();
    for key in ["completed", "total_output_tokens", "output_throughput"] {
        result[key] = 0.into();
    }
    result["mean_ttft_ms"] = 0.0.into();
    sandbox.write("r/result.json", result.to_string());
    let key = sandbox.run(&["record", "r"]).ok().says("0 of 8 requests completed").key();
    sandbox.run(&["latest"]).ok().says("no verified run matches");
    let shown = sandbox.run(&["show", &key, "--format", "json"]).json();
    assert_eq!(shown["run"]["outcome"], "failed");
    assert_eq!(shown["run"]["cells"][0]["metrics"], serde_json::json!([]));
}

#[test]
fn circumstances_are_kept_and_shown() {
    let sandbox = Sandbox::new();
    sandbox.run_folder("r", 1);
    let more = r#"
[run]
evidence = "client"
path = "routed"
campaign = "2026-11 promotion"
attempt = 2
clients = ["aider on laptop, reasoning high"]
operating_contract = "one user, exclusive cards"
tenancy = "isolated"
ruled_out = ["memory pressure: 40 GiB free throughout"]
cache_state = "cold"
reasoning_counted = false
capacity_configured = "C16"
capacity_reported = "565,898 KV tokens"
capacity_measured = 1.08
cost_minutes = 43
headroom_bytes = 94
reserve_floor_bytes = 100
state_before = "no GPU process"
state_after = "restored"
non_claims = ["not a soak"]

[[settings]]
name = "max_tokens"
requested = 50000
effective = 32768

[[waivers]]
gate = "reserve"
scope = "this promotion"
by = "lena"
reason = "3 GiB are enough"

[[incidents]]
at = "2026-11-01T10:30:00Z"
what = "Xid 79 on card 1"

[[checks]]
name = "needle 985K"
status = "pass"

[[checks]]
name = "endurance"
status = "not-run"
reason = "no time"

[identities]
draft = "acme/draft@0123"
chat_template = "b3:aa"
"#;
    sandbox.write("r/run.toml", manifest("tiny") + more);
    let answer = sandbox.run(&["record", "r"]).ok();
    let answer = answer
        .says("asked for as 50000 and ran as 32768")
        .says("Xid 79")
        .says("94 bytes were left");
    let page = sandbox.run(&["show", &answer.key()]).ok();
    for text in [
        "client traffic, routed path",
        "2026-11 promotion",
        "one user, exclusive cards",
        "565,898 KV tokens",
        "not-run",
        "3 GiB are enough",
        "not a soak",
        "acme/draft@0123",
        "43 minutes",
        "max_tokens asked 50000 effective 32768",
    ] {
        assert!(page.stdout.contains(text), "{text}\n{}", page.stdout);
    }
    sandbox.run(&["list", "--differs"]).ok().prints(&answer.key()[..8]);
    sandbox.run(&["list", "--campaign", "2026-11 promotion"]).ok().prints(&answer.key()[..8]);
}

#[test]
fn several_runs_in_one_file_are_never_merged() {
    let sandbox = Sandbox::new();
    sandbox.run_folder("r", 1);
    let (mut one, mut two) = (vllm_result(1, 4), vllm_result(2, 4));
    one["max_concurrency"] = 8.into();
    two["max_concurrency"] = 32.into();
    sandbox.write("r/result.json", format!("{one}\n{two}"));
    sandbox
        .run(&["record", "r"])
        .fails(2)
        .says("holds 2 runs")
        .says("line 1 (concurrency 8)")
        .says("--pick 2");
    let answer = sandbox.run(&["record", "r", "--split"]).ok();
    assert_eq!(answer.stdout.lines().count(), 2);
    let second = answer.stdout.lines().nth(1).unwrap();
    sandbox
        .run(&["show", second])
        .ok()
        .prints("concurrency=32")
        .prints("result.json.record-2 read by");
    sandbox.run(&["cat", &format!("{second}:result.json")]).ok().prints("\"max_concurrency\":8");
    sandbox.run(&["verify", "--deep"]).ok();
}

#[test]
fn text_in_another_encoding_is_kept_and_read_as_what_it_says() {
    let text = vllm_result(1, 8).to_string();
    let wide: Vec<u8> =
        [0xfeff].into_iter().chain(text.encode_utf16()).flat_map(u16::to_le_bytes).collect();
    let sandbox = Sandbox::new();
    sandbox.run_folder("plain", 1);
    sandbox.run_folder("wide", 1);
    sandbox.write("wide/result.json", &wide);
    let plain = sandbox.record("plain");
    let answer = sandbox
        .run(&["record", "wide"])
        .ok()
        .says("read as utf-16le-bom")
        .says("it is one measurement, not a repeat");
    assert_ne!(answer.key(), plain);
    sandbox.run(&["extract", &answer.key(), "back"]).ok();
    assert_eq!(fs::read(sandbox.path("back/result.json")).unwrap(), wide);
    sandbox.write("wide/result.json", &wide[..wide.len() - 1]);
    sandbox.run(&["record", "wide"]).fails(2).says("is cut at byte");
}

#[test]
fn a_provenance_document_before_and_one_after_prove_more_than_one() {
    let sandbox = Sandbox::new();
    sandbox.run_folder("r", 1);
    let mut before = provenance();
    before["captured_at"] = "2026-11-01T09:30:00Z".into();
    sandbox.write("before.json", before.to_string());
    let after = sandbox.write("after.json", provenance().to_string());
    fs::remove_file(sandbox.path("r/provenance.json")).unwrap();
    sandbox
        .run(&["record", "r", "--provenance", "before.json"])
        .fails(3)
        .says("nothing shows that the process outlived it");
    let arguments =
        ["record", "r", "--provenance", "before.json", "--provenance", after.to_str().unwrap()];
    sandbox.run(&arguments).ok();
}
