//! Situations from real bug reports, each with its right answer. The situations are authored here anew
//! (synthetic numbers); where `LEDGER_SHARED` names a folder with the collected cases, their own inputs are
//! run too, against their expected.json, through one table of reason codes.

use crate::sandbox::{Answer, Sandbox, manifest, provenance};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

/// Reason codes of the collected cases and what the ledger calls them: a code, or words of the message.
const REASONS: &[(&str, &str)] = &[
    ("completion_below_limit", "completion-below-limit"),
    ("no_request_completed", "no-request-completed"),
    ("ambiguous_runs", "holds 2 runs"),
    ("leading_text", "leading-text"),
    ("trailing_text", "trailing-text"),
    ("process_ended_abnormally", "process-ended-abnormally"),
    ("engine_build_unknown", "engine-build-unknown"),
    ("tokens_without_chunks", "tokens-without-chunks"),
    ("tpot_below_itl", "tpot-below-itl"),
    ("tpot_itl_disagree", "tpot-below-itl"),
    ("same_measurement_as_existing", "same-measurement"),
    ("truncated_text", "is cut at byte"),
    ("encoding_unmarked", "UTF-16 without a byte order mark"),
    ("prompt_truncated", "prompt-truncated"),
    ("output_limit_reached", "output-limit-reached"),
    ("warm_cache", "cache_state = warm"),
    ("declared_not_observed:power_cap_w", "declared-not-observed"),
    ("clock_drift", "clock-drift"),
    ("unknown:power_cap_w", "unknown-field"),
    ("object_damaged", "blob-"),
    ("repaired", "repaired 1 damaged"),
];

fn cases() -> Option<PathBuf> {
    crate::sandbox::shared().map(|folder| folder.join("cases"))
}

fn says(reason: &str) -> &'static str {
    REASONS
        .iter()
        .find(|(known, _)| *known == reason)
        .unwrap_or_else(|| panic!("{reason} is in no table"))
        .1
}

/// A sandbox folder with a manifest, a provenance document, and inputs of a case.
/// As [`place`], for llama-bench, whose rows state the KV cache and the build.
fn place_bench(sandbox: &Sandbox, name: &str, case: &Path, inputs: &[&str]) {
    place(sandbox, name, case, inputs, "");
    sandbox.write(
        &format!("{name}/run.toml"),
        manifest(name).replace("[quant]\nkv_cache = \"auto\"\n", ""),
    );
    let mut document = provenance();
    document["process"]["argv"] = json!(["llama-bench", "-m", "tiny-llama-q4_k_m.gguf"]);
    document["engine"]["version"] = Value::Null;
    sandbox.write(&format!("{name}/provenance.json"), document.to_string());
}

fn place(sandbox: &Sandbox, name: &str, case: &Path, inputs: &[&str], more: &str) {
    // Each input is a measurement of its own, so each gets a candidate of its own.
    sandbox.write(&format!("{name}/run.toml"), manifest(name) + more);
    let mut document = provenance();
    document["process"]["argv"] = json!(["llama-server", "-m", "tiny-llama-q4_k_m.gguf"]);
    sandbox.write(&format!("{name}/provenance.json"), document.to_string());
    for input in inputs {
        let bytes = fs::read(case.join("inputs").join(input)).unwrap();
        sandbox.write(&format!("{name}/{input}"), bytes);
    }
}

const CONTEXT: &str = "\n[context]\ntokens = 8192\n";
const ENGINE: &str = "\n[context]\ntokens = 8192\n[engine]\nname = \"vllm\"\nversion = \"x\"\n";

fn record(sandbox: &Sandbox, name: &str) -> Answer {
    sandbox.run(&["record", name])
}

fn cell(sandbox: &Sandbox, key: &str) -> Value {
    sandbox.run(&["show", key, "--format", "json"]).json()["run"]["cells"][0].clone()
}

/// Checks an accepted answer against the reasons of a step, and that they are kept in the record.
#[track_caller]
fn accepted(sandbox: &Sandbox, answer: Answer, step: &Value) -> String {
    let answer = answer.ok();
    let key = answer.key();
    let page = sandbox.run(&["show", &key]).ok().stdout;
    for reason in step["reasons"].as_array().unwrap() {
        let wanted = says(reason.as_str().unwrap());
        assert!(
            answer.stderr.contains(wanted) || page.contains(wanted),
            "{reason}: {}\n{page}",
            answer.stderr
        );
        assert!(page.contains(wanted), "{reason} is not kept in the record:\n{page}");
    }
    key
}

fn expected(case: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(case.join("expected.json")).unwrap()).unwrap()
}

#[test]
fn case_01_mostly_failed_runs_are_evidence_with_k_of_n() {
    let Some(case) = cases().map(|cases| cases.join("01-vllm-mostly-failed-run")) else { return };
    let steps = expected(&case)["steps"].clone();
    let sandbox = Sandbox::new();
    for (n, file) in ["old-format-3-of-500.json", "new-format-198-of-300.json", "all-failed.json"]
        .iter()
        .enumerate()
    {
        let name = format!("c{n}");
        place(&sandbox, &name, &case, &[file], CONTEXT);
        let key = accepted(&sandbox, record(&sandbox, &name), &steps[n]);
        let stored = &steps[n]["stored"];
        let cell = cell(&sandbox, &key);
        assert_eq!(cell["requests"]["completed"], stored["completed"], "{file}");
        if stored["failed"].is_number() {
            assert_eq!(cell["requests"]["failed"], stored["failed"]);
            assert_eq!(cell["requests"]["failed_origin"], stored["failed_origin"]);
        } else {
            assert_eq!(cell["metrics"], json!([]));
        }
    }
}

#[test]
fn case_02_appended_runs_are_listed_and_never_merged() {
    let Some(case) = cases().map(|cases| cases.join("02-sglang-several-runs-one-file")) else {
        return;
    };
    let sandbox = Sandbox::new();
    place(&sandbox, "a", &case, &["sglang_0415_64_random.jsonl"], CONTEXT);
    let answer = record(&sandbox, "a")
        .fails(2)
        .says(says("ambiguous_runs"))
        .says("line 1 (concurrency 8)")
        .says("line 2 (concurrency 32)");
    answer.says("the record on line 3 is cut after 411 bytes").says("--pick 2");
    place(&sandbox, "b", &case, &["two-runs-no-final-newline.jsonl"], CONTEXT);
    let both = sandbox.run(&["record", "b", "--split"]).ok();
    assert_eq!(both.stdout.lines().count(), 2);
    let shown = sandbox.run(&["show", &both.key(), "--format", "json"]).json();
    assert_eq!(shown["run"]["observed"]["request_rate"], "unbounded");
    assert_eq!(shown["run"]["observed"]["nonfinite_tokens"], 1);
}

#[test]
fn case_03_noise_and_combined_rows_are_told_apart() {
    let Some(case) = cases().map(|cases| cases.join("03-llama-bench-noise-and-labels")) else {
        return;
    };
    let steps = expected(&case)["steps"].clone();
    let sandbox = Sandbox::new();
    place_bench(&sandbox, "a", &case, &["stdout-mixed.json"]);
    let key = accepted(&sandbox, record(&sandbox, "a"), &steps[0]);
    assert_eq!(cell(&sandbox, &key)["parameters"]["test"], "tg99");
    place_bench(&sandbox, "b", &case, &["pp-tg-and-combined.jsonl"]);
    let key = record(&sandbox, "b").ok().key();
    let shown = sandbox.run(&["show", &key, "--format", "json"]).json();
    let tests: Vec<&str> = shown["run"]["cells"]
        .as_array()
        .unwrap()
        .iter()
        .map(|cell| cell["parameters"]["test"].as_str().unwrap())
        .collect();
    assert_eq!(json!(tests), steps[1]["stored"]["tests"]);
    let decode = shown["run"]["cells"]
        .as_array()
        .unwrap()
        .iter()
        .find(|cell| cell["parameters"]["test"] == "tg128")
        .unwrap();
    assert_eq!(decode["metrics"][0]["name"], "decode_tok_s");
    let mean = decode["metrics"][0]["computed"]["mean"].as_f64().unwrap();
    assert!((mean - steps[2]["stored"]["value"].as_f64().unwrap()).abs() < 1e-5);
    // 395 tok/s of the combined row is neither decode nor prefill.
    sandbox.run(&["latest", "--candidate", "b"]).ok().prints("decode_tok_s@test=tg128 88.1");
    place_bench(&sandbox, "c", &case, &["unknown-build.jsonl"]);
    let answer = record(&sandbox, "c");
    assert!(
        answer.code == 2 || answer.stderr.contains("engine-build-unknown"),
        "{}",
        answer.stderr
    );
}

#[test]
fn case_04_hidden_reasoning_is_no_ttft_and_no_decode_speed() {
    let Some(case) = cases().map(|cases| cases.join("04-hidden-reasoning-tokens")) else { return };
    let steps = expected(&case)["steps"].clone();
    let sandbox = Sandbox::new();
    for (n, file) in
        ["serve-detailed-hidden.json", "serve-detailed-streamed.json", "serve-summary-only.json"]
            .iter()
            .enumerate()
    {
        let name = format!("c{n}");
        place(&sandbox, &name, &case, &[file], CONTEXT);
        let key = accepted(&sandbox, record(&sandbox, &name), &steps[n]);
        let cell = cell(&sandbox, &key);
        let metric = |name: &str| {
            cell["metrics"]
                .as_array()
                .unwrap()
                .iter()
                .find(|metric| metric["name"] == name)
                .cloned()
        };
        match n {
            0 => {
                assert_eq!(metric("time_to_first_visible_ms").unwrap()["computed"]["mean"], 9587.5);
                assert!(metric("ttft_ms").is_none() && metric("tpot_ms").is_none());
                assert_eq!(cell["tokens"]["hidden"], json!([859, 859, 859, 859]));
            }
            1 => assert!(
                (metric("ttft_ms").unwrap()["computed"]["mean"].as_f64().unwrap() - 251.0).abs()
                    < 1e-6
            ),
            _ => assert!(metric("tpot_ms").is_none() && metric("itl_ms").is_none()),
        }
    }
}

#[test]
fn case_05_encodings_are_read_as_what_they_say() {
    let Some(case) = cases().map(|cases| cases.join("05-windows-utf16-and-bom")) else { return };
    let steps = expected(&case)["steps"].clone();
    let sandbox = Sandbox::new();
    for (n, file) in
        ["llama-bench-utf16le.json", "llama-bench-utf8bom.json", "llama-bench-plain.json"]
            .iter()
            .enumerate()
    {
        place_bench(&sandbox, &format!("c{n}"), &case, &[file]);
        let key = accepted(&sandbox, record(&sandbox, &format!("c{n}")), &steps[n]);
        let shown = sandbox.run(&["show", &key, "--format", "json"]).json();
        assert_eq!(shown["run"]["results"][0]["encoding"], steps[n]["stored"]["encoding"]);
        let input = fs::read(case.join("inputs").join(file)).unwrap();
        assert_eq!(shown["run"]["results"][0]["blob"], blake3::hash(&input).to_hex().as_str());
    }
    for (n, file) in [(3, "cut-utf16le.json"), (4, "utf16le-no-bom.json")] {
        place(&sandbox, file, &case, &[file], CONTEXT);
        record(&sandbox, file).fails(2).says(says(steps[n]["reasons"][0].as_str().unwrap()));
    }
}

#[test]
fn case_07_a_prompt_cut_in_silence_is_seen_from_the_counts() {
    let Some(case) = cases().map(|cases| cases.join("07-ollama-context-cut-silently")) else {
        return;
    };
    let steps = expected(&case)["steps"].clone();
    let sandbox = Sandbox::new();
    let ollama = |sandbox: &Sandbox, name: &str, inputs: &[&str], more: &str| {
        place(sandbox, name, &case, inputs, more);
        let document = provenance().to_string().replace("llama.cpp", "ollama");
        sandbox.write(&format!("{name}/provenance.json"), document);
    };
    // What was declared and what the table shows disagree: refused with both.
    ollama(
        &sandbox,
        "declared",
        &["request.json", "sent-prompt.json", "ps.txt", "response-cut.json"],
        "\n[context]\ntokens = 8192\n",
    );
    let mut bare = provenance();
    bare["process"]["argv"] = json!(["ollama", "serve"]);
    bare["engine"]["name"] = "ollama".into();
    let bare = bare.to_string();
    sandbox.write("declared/provenance.json", &bare);
    record(&sandbox, "declared")
        .fails(2)
        .says("`context.tokens` is stated differently")
        .says("ps.txt: CONTEXT")
        .says("4096");
    for (n, name, more) in [
        (0, "response-cut.json", ""),
        (1, "response-full.json", CONTEXT),
        (2, "response-limit-not-context.json", CONTEXT),
    ] {
        let inputs: &[&str] = if n == 0 {
            &["sent-prompt.json", "ps.txt", "response-cut.json"]
        } else if n == 1 {
            &["sent-prompt.json", "response-full.json"]
        } else {
            &["response-limit-not-context.json"]
        };
        let folder = format!("c{n}");
        ollama(&sandbox, &folder, inputs, more);
        sandbox.write(&format!("{folder}/provenance.json"), &bare);
        let answer = record(&sandbox, &folder).ok();
        let shown = sandbox.run(&["show", &answer.key(), "--format", "json"]).json();
        for reason in steps[n]["reasons"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|reason| *reason != "declared_not_observed:context")
        {
            assert!(
                answer.stderr.contains(says(reason.as_str().unwrap())),
                "{name} {reason}: {}",
                answer.stderr
            );
        }
        if n == 0 {
            assert_eq!(shown["run"]["fingerprint"]["context"]["tokens"], 4096);
            assert_eq!(shown["run"]["validity"], "untrustworthy");
            assert_eq!(shown["run"]["observed"]["prompt_tokens_sent"], 7912);
        }
        assert_eq!(answer.stderr.contains("prompt-truncated"), n == 0, "{}", answer.stderr);
    }
}

#[test]
fn case_10_cache_state_is_observed_and_absent_is_not_off() {
    let Some(case) = cases().map(|cases| cases.join("10-warm-prefix-cache-same-seed")) else {
        return;
    };
    let steps = expected(&case)["steps"].clone();
    let sandbox = Sandbox::new();
    let runs = [
        ("run1-cold.json", "metrics-before-run1.txt", "metrics-after-run1.txt"),
        ("run2-same-seed-warm.json", "metrics-after-run1.txt", "metrics-after-run2.txt"),
        ("run3-other-seed.json", "metrics-after-run2.txt", "metrics-after-run3.txt"),
    ];
    for (n, (result, before, after)) in runs.iter().enumerate() {
        let name = format!("c{n}");
        place(
            &sandbox,
            &name,
            &case,
            &[result, before, after, "server.json"],
            "\n[engine]\nversion = \"x\"\n",
        );
        let document = provenance()
            .to_string()
            .replace(
                "\"argv\":[\"llama-server\",\"-m\",\"tiny-llama-q4_k_m.gguf\",\"-c\",\"4096\"]",
                "\"argv\":[\"vllm\",\"serve\"]",
            )
            .replace("\"version\":\"b1\"", "\"version\":null");
        sandbox.write(&format!("{name}/provenance.json"), document);
        let answer = record(&sandbox, &name).ok();
        let shown = sandbox.run(&["show", &answer.key(), "--format", "json"]).json();
        let rate = shown["run"]["observed"]["prefix_cache_hit_rate"].as_f64().unwrap();
        assert!(
            (rate - steps[n]["stored"]["prefix_cache_hit_rate"].as_f64().unwrap()).abs() < 1e-4
        );
        let state = if n == 1 { "warm" } else { "cold" };
        assert_eq!(shown["run"]["fingerprint"]["conditions"]["cache_state"], state);
        assert_eq!(
            shown["run"]["fingerprint"]["conditions"]["prefix_caching"],
            "engine default: on"
        );
        assert_eq!(answer.stderr.contains("warm-cache"), n == 1);
    }
}

#[test]
fn case_11_the_power_cap_is_the_one_that_was_read_back() {
    let Some(case) = cases().map(|cases| cases.join("11-power-cap-asked-not-applied")) else {
        return;
    };
    let steps = expected(&case)["steps"].clone();
    for (n, telemetry, cap) in [
        (0, "nvidia-smi-gpu0.csv", json!(140.0)),
        (1, "nvidia-smi-two-cards.csv", json!([100.0, 140.0])),
        (2, "nvidia-smi-laptop.csv", json!("unknown")),
    ] {
        let sandbox = Sandbox::new();
        place(&sandbox, "a", &case, &["serve.json", "intent.json", telemetry], ENGINE);
        let mut document = provenance();
        document["host"]["cpu"] = Value::Null;
        document["process"]["argv"] = json!(["vllm", "serve"]);
        document["engine"] = json!({"name": null, "version": null, "digest": "b3:00"});
        sandbox.write("a/provenance.json", document.to_string());
        sandbox.write(
            "a/run.toml",
            manifest("a") + ENGINE + "[topology]\naccelerators = [\"card\"]\n",
        );
        let key = accepted(&sandbox, record(&sandbox, "a"), &steps[n]);
        let shown = sandbox.run(&["show", &key, "--format", "json"]).json();
        let stored = &shown["run"]["fingerprint"]["power"]["cap_w"];
        assert_eq!(
            stored.to_string().replace(".0", ""),
            cap.to_string().replace(".0", ""),
            "{telemetry}"
        );
        assert_eq!(shown["run"]["circumstances"]["settings"][0]["requested"], 100);
    }
}

#[test]
fn case_12_other_concurrency_and_slowing_flags_are_in_the_fingerprint() {
    let Some(case) = cases().map(|cases| cases.join("12-handicapped-baseline")) else { return };
    let sandbox = Sandbox::new();
    place(&sandbox, "a", &case, &["vllm.json", "vllm-server.json"], ENGINE);
    let mut document = provenance();
    document["engine"] = json!({"name": null, "version": null, "digest": "b3:00"});
    document["process"]["argv"] = json!(["vllm", "serve"]);
    sandbox.write("a/provenance.json", document.to_string());
    let key = record(&sandbox, "a").ok().key();
    let shown = sandbox.run(&["show", &key, "--format", "json"]).json();
    let conditions = &shown["run"]["fingerprint"]["conditions"];
    assert_eq!(conditions["enforce_eager"], true);
    assert_eq!(conditions["gpu_memory_utilization"], 0.8);
    assert_eq!(conditions["max_num_seqs"], 8);
    assert_eq!(shown["run"]["cells"][0]["id"], "concurrency=1");
    let names: Vec<&str> = shown["run"]["cells"][0]["metrics"]
        .as_array()
        .unwrap()
        .iter()
        .map(|metric| metric["name"].as_str().unwrap())
        .collect();
    assert!(names.contains(&"output_tok_s") && !names.contains(&"decode_tok_s"), "{names:?}");
}

#[test]
fn case_13_acceptance_is_a_fraction_of_the_counts() {
    let Some(case) = cases().map(|cases| cases.join("13-speculation-on-easy-text")) else { return };
    let steps = expected(&case)["steps"].clone();
    let sandbox = Sandbox::new();
    for (n, file) in ["prose-spec.json", "repeat-spec.json"].iter().enumerate() {
        let name = format!("c{n}");
        place(&sandbox, &name, &case, &[file], CONTEXT);
        let key = record(&sandbox, &name).ok().key();
        let shown = sandbox.run(&["show", &key, "--format", "json"]).json();
        let metrics = shown["run"]["cells"][0]["metrics"].as_array().unwrap().clone();
        let rate = metrics.iter().find(|metric| metric["name"] == "spec_accept_rate").unwrap()["given"]["value"].as_f64().unwrap();
        assert!((rate - steps[n]["stored"]["acceptance_rate"].as_f64().unwrap()).abs() < 1e-5);
        assert!(shown["run"]["fingerprint"]["conditions"]["corpus"].is_string());
        assert_eq!(shown["run"]["observed"]["spec_accept_rate_unit"], "percent");
    }
}

#[test]
fn case_14_two_dozen_recorders_of_the_collected_runs_lose_nothing() {
    let Some(case) = cases().map(|cases| cases.join("14-many-recorders-at-once")) else { return };
    let sandbox = Sandbox::new();
    for n in 0..24 {
        let name = format!("r{n}");
        // Runs 7 and 19 are the same bytes, so their folders must hold the same manifest.
        let candidate = if n == 19 { "r7".to_owned() } else { name.clone() };
        sandbox.write(&format!("{name}/run.toml"), manifest(&candidate) + CONTEXT);
        sandbox.write(
            &format!("{name}/provenance.json"),
            provenance().to_string().replace("\"-c\",\"4096\"", "\"--x\",\"1\""),
        );
        sandbox.write(
            &format!("{name}/result.json"),
            fs::read(case.join(format!("inputs/runs/run-{n:02}.json"))).unwrap(),
        );
    }
    let children: Vec<_> = (0..24)
        .map(|n| {
            sandbox
                .command(&["record", &format!("r{n}")])
                .stdout(std::process::Stdio::piped())
                .spawn()
                .unwrap()
        })
        .collect();
    let mut keys = std::collections::BTreeSet::new();
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success());
        keys.insert(output.stdout);
    }
    assert_eq!(keys.len(), 23);
    sandbox.run(&["verify", "--deep"]).ok().prints("clean: 23 entries");
}

#[test]
fn case_16_bytes_decide_and_not_size_and_time() {
    let Some(case) = cases().map(|cases| cases.join("16-stale-hash-same-size-and-mtime")) else {
        return;
    };
    let steps = expected(&case)["steps"].clone();
    let sandbox = Sandbox::new();
    let time = fs::FileTimes::new()
        .set_modified(std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_780_000_000));
    for (n, version) in ["v1", "v2"].iter().enumerate() {
        let bytes = fs::read(case.join("inputs").join(version).join("result.json")).unwrap();
        sandbox.write("a/result.json", bytes);
        fs::File::options()
            .write(true)
            .open(sandbox.path("a/result.json"))
            .unwrap()
            .set_times(time)
            .unwrap();
        // The inputs are no results of a known format; they are kept as evidence of an attempt.
        sandbox.write("a/run.toml", manifest("a"));
        let key = sandbox.run(&["record", "a", "--failed", "no format"]).ok().key();
        let tree = sandbox.run(&["show", &key, "--format", "json"]).json()["run"]["root"]
            .as_str()
            .unwrap()
            .to_owned();
        sandbox
            .run(&["cat", &tree])
            .ok()
            .prints(steps[n]["stored"]["artifact_blake3"].as_str().unwrap());
    }
    sandbox.run(&["verify"]).ok().prints("clean: 2 entries");
}

#[test]
fn case_17_a_damaged_object_is_told_and_healed() {
    let Some(case) = cases().map(|cases| cases.join("17-torn-or-edited-object")) else { return };
    let sandbox = Sandbox::new();
    place(&sandbox, "a", &case, &["result.json"], CONTEXT);
    // Large enough to be a file of its own.
    let mut state = 7u64;
    let noise: Vec<u8> = std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[0]
    })
    .take(2 << 20)
    .collect();
    sandbox.write("a/noise.bin", noise);
    record(&sandbox, "a").ok();
    let object =
        sandbox.listing().into_iter().find(|path| crate::sandbox::is_object(path)).unwrap();
    for mode in ["zero", "short", "flip"] {
        let script = case.join("inputs/break.sh");
        let status =
            std::process::Command::new("bash").arg(script).arg(mode).arg(&object).status().unwrap();
        assert!(status.success());
        sandbox.run(&["verify"]).fails(1).prints(says("object_damaged"));
        record(&sandbox, "a").ok().says(says("repaired"));
        sandbox.run(&["verify"]).ok();
    }
    sandbox.write("a/result.json", "{}");
    sandbox.run(&["verify"]).ok();
}
