//! Real result files of other people's tools, where a folder with them is named by `LEDGER_SHARED`: each
//! is read by exactly one adapter and gives the values that an independent program read. Without the
//! folder these tests hold nothing; the fixtures hold the same traps always.

#![expect(clippy::unreadable_literal, reason = "values are those of the files, digit by digit")]

use crate::sandbox::shared;
use ledger::adapter::{Extraction, SourceFile};
use ledger::cell::Cell;
use ledger::decode::decode;
use ledger::metric::Statistic;
use std::fs;
use std::path::{Path, PathBuf};

/// Reads a file with the one adapter that knows it.
#[track_caller]
fn extract(path: &Path) -> (String, Extraction) {
    let bytes = fs::read(path).unwrap();
    let decoded = decode(&bytes).unwrap();
    let name = path.file_name().unwrap().to_string_lossy().into_owned();
    let file = SourceFile::new(&name, &decoded.text);
    let formats = importers::formats();
    let known: Vec<_> =
        formats.adapters.iter().filter(|adapter| adapter.detect(&file).is_some()).collect();
    let names: Vec<&str> = known.iter().map(|adapter| adapter.id()).collect();
    assert_eq!(names.len(), 1, "{}: {names:?}", path.display());
    (names[0].to_owned(), known[0].extract(&file).unwrap())
}

#[track_caller]
fn value(cell: &Cell, metric: &str, statistic: Statistic) -> f64 {
    let found = cell.find_metric(metric).unwrap_or_else(|| panic!("no {metric} in {}", cell.id()));
    found.given[&statistic].value
}

#[track_caller]
fn close(found: f64, expected: f64) {
    assert!((found - expected).abs() <= 1e-9 * expected.abs(), "{found} {expected}");
}

#[test]
fn llama_bench_files_give_the_expected_values() {
    let Some(folder) = shared() else { return };
    let folder = folder.join("real/perf");
    let (adapter, epyc) = extract(&folder.join("llama-bench/b4461-cpu-epyc.json"));
    assert_eq!(adapter, "llama-bench");
    let cells = &epyc.runs[0].cells;
    assert_eq!(cells[0].id(), "test=pp512");
    close(value(&cells[0], "prefill_tok_s", Statistic::Mean), 190.571656);
    close(value(&cells[0], "prefill_tok_s", Statistic::Std), 48.625709);
    assert_eq!(cells[0].find_metric("prefill_tok_s").unwrap().samples.len(), 10);
    close(value(&cells[1], "decode_tok_s", Statistic::Mean), 38.210778);
    close(value(&cells[1], "decode_tok_s", Statistic::Std), 1.475639);
    let (_, mixed) = extract(&folder.join("llama-bench/b6865-stderr-mixed-in.jsonl"));
    assert_eq!(mixed.runs[0].cells.len(), 6);
    assert!(
        mixed.cautions.iter().any(|caution| caution.message.starts_with("4 lines of other text"))
    );
    let (_, swept) = extract(&folder.join("llama-bench/b9xxx-fit-loadmode-ubatch.jsonl"));
    let ids: std::collections::BTreeSet<String> =
        swept.runs[0].cells.iter().map(Cell::id).collect();
    assert_eq!(ids.len(), swept.runs[0].cells.len());
    let (_, cut) =
        extract(&folder.join("_generated/llama-bench-b11434-second-model-missing-unclosed.json"));
    assert_eq!(cut.runs[0].cells.len(), 2);
    assert!(cut.cautions.iter().any(|caution| caution.code.as_str() == "truncated-record"));
    let (_, twice) = extract(&folder.join("_generated/llama-bench-b11434-two-runs-appended.json"));
    assert_eq!(twice.runs.len(), 2);
    for encoded in [
        "llama-bench-utf16le-bom-crlf.json",
        "llama-bench-utf8-bom-crlf.json",
        "llama-bench-nan-stddev.json",
    ] {
        let (adapter, _) = extract(&folder.join("_derived").join(encoded));
        assert_eq!(adapter, "llama-bench");
    }
}

#[test]
fn vllm_files_give_the_expected_values() {
    let Some(folder) = shared() else { return };
    let folder = folder.join("real/perf/vllm");
    let (adapter, partial) = extract(&folder.join("serve-2026-08-partial-failure-198of300.json"));
    assert_eq!(adapter, "vllm-bench-serve");
    let cell = &partial.runs[0].cells[0];
    assert_eq!(
        (cell.requests.asked, cell.requests.completed, cell.requests.failed),
        (Some(300), Some(198), Some(102))
    );
    assert_eq!(cell.id(), "concurrency=25,rate=1.5");
    close(value(cell, "output_tok_s", Statistic::Value), 170.35187306748796);
    close(value(cell, "ttft_ms", Statistic::Mean), 1333.185407429354);
    close(value(cell, "ttft_ms", Statistic::P99), 3762.0503598316286);
    close(value(cell, "tpot_ms", Statistic::Mean), 175.02661734631218);
    close(value(cell, "e2e_ms", Statistic::Mean), 60249.72193719695);
    close(value(cell, "duration_s", Statistic::Value), 485.94123744800163);
    let (_, old) = extract(&folder.join("serve-2025-09-endpoint_type.json"));
    let cell = &old.runs[0].cells[0];
    close(value(cell, "output_tok_s", Statistic::Value), 8706.430638022452);
    close(value(cell, "total_tok_s", Statistic::Value), 10340.471054089283);
    close(value(cell, "ttft_ms", Statistic::P50), 227.45685300014884);
    assert_eq!(cell.requests.failed, Some(0));
    assert_eq!(cell.requests.failed_origin, ledger::cell::CountOrigin::Derived);
    for dead in ["serve-0.25.1-all-failed.json", "serve-2024-11-crash-17of1000.json"] {
        let (_, dead) = extract(&folder.join(dead));
        assert!(dead.runs[0].cells[0].metrics.is_empty());
    }
    let (_, speculative) = extract(&folder.join("serve-2026-08-spec-decode.json"));
    let share = value(&speculative.runs[0].cells[0], "spec_accept_rate", Statistic::Value);
    assert!((0.0..=1.0).contains(&share));
    let (_, appended) = extract(&folder.join("../_derived/vllm-append-result-3-records.json"));
    assert_eq!(appended.runs.len(), 3);
    let (_, summary) = extract(&folder.join("sweep-0.25.1-summary.json"));
    assert_eq!(summary.runs.len(), 2);
    let (_, detailed) = extract(&folder.join("benchmark_serving-2025-details-gt_c4.json"));
    assert!(!detailed.runs[0].cells[0].metrics.is_empty());
    extract(&folder.join("benchmark_serving-2025-colon-key.json"));
    extract(&folder.join("serve-2026-08-ok.json"));
}

#[test]
fn inferencemax_raw_points_are_vllm_records_whose_mean_is_that_of_their_samples() {
    let Some(folder) = shared() else { return };
    let (_, raw) = extract(&folder.join("real/perf/inferencemax/raw_dsr1_sglang_conc4.json"));
    let cell = &raw.runs[0].cells[0];
    let ttft =
        cell.find_metric("ttft_ms").or(cell.find_metric("time_to_first_visible_ms")).unwrap();
    let mean = ttft.samples.iter().sum::<f64>() / ttft.samples.len() as f64;
    close(mean, 962.9514460502833);
    close(value(cell, "output_tok_s", Statistic::Value), 327.75310993241874);
}

#[test]
fn sglang_files_give_the_expected_values() {
    let Some(folder) = shared() else { return };
    let folder = folder.join("real/perf");
    let (adapter, seven) = extract(&folder.join("sglang/bench_serving-0.4-appended-7runs.jsonl"));
    assert_eq!(adapter, "sglang-bench-serving");
    assert_eq!(seven.runs.len(), 7);
    let cell = &seven.runs[0].cells[0];
    assert_eq!(cell.requests.completed, Some(3000));
    close(value(cell, "output_tok_s", Statistic::Value), 4520.698730654741);
    close(value(cell, "ttft_ms", Statistic::P50), 91282.20983641222);
    close(value(cell, "request_s", Statistic::Value), 8.779089958793994);
    close(value(cell, "duration_s", Statistic::Value), 341.72106836596504);
    let (_, info) = extract(&folder.join("sglang/bench_serving-0.5.5-server_info.jsonl"));
    let run = &info.runs[0];
    close(value(&run.cells[0], "output_tok_s", Statistic::Value), 7420.0782262057355);
    close(value(&run.cells[0], "ttft_ms", Statistic::Mean), 618.0076370667666);
    close(value(&run.cells[0], "ttft_ms", Statistic::P99), 812.4071975052324);
    let version = run.facts.iter().find(|fact| fact.field == "engine.version").unwrap();
    assert_eq!(version.value, "0.5.5.post3");
    assert_eq!(extract(&folder.join("sglang/bench_serving-0.4-online.jsonl")).1.runs.len(), 7);
    extract(&folder.join("sglang/bench_serving-0.5.5-pd.jsonl"));
    let (_, cut) = extract(&folder.join("_derived/sglang-truncated-last-line.jsonl"));
    assert!(cut.cautions.iter().any(|caution| caution.code.as_str() == "truncated-record"));
}

#[test]
fn anvil_capacity_files_give_the_expected_values() {
    let Some(folder) = shared() else { return };
    let folder = folder.join("real/eval/anvil");
    let (adapter, ok) = extract(&folder.join("capacity_v4_ok.json"));
    assert_eq!(adapter, "anvil-capacity");
    let run = &ok.runs[0];
    let cell = &run.cells[0];
    assert_eq!(
        (cell.requests.asked, cell.requests.completed, cell.requests.failed),
        (Some(3), Some(3), Some(0))
    );
    assert_eq!(cell.tokens.prompt_nominal, Some(4096));
    assert_eq!(cell.tokens.prompt_mean, Some(2960.0));
    close(value(cell, "output_tok_s", Statistic::Value), 107.89581980765361);
    close(value(cell, "ttft_ms", Statistic::P50), 1670.3684000021894);
    close(value(cell, "time_to_first_output_ms", Statistic::P50), 335.50889999605715);
    close(value(cell, "decode_tok_s", Statistic::P50), 130.7115725526395);
    close(value(cell, "prefix_cache_hit_rate", Statistic::Value), 0.9513513513513514);
    assert_eq!(run.measured_at.as_deref(), Some("2026-08-02T02:15:49Z"));
    assert_eq!(
        cell.find_metric("ttft_ms").unwrap().protocol.as_deref(),
        Some("capacity-v4-reasoning")
    );
    let (_, one) = extract(&folder.join("capacity_v3_1-of-12-completed.json"));
    assert_eq!(one.runs[0].cells[0].requests.completed, Some(1));
    assert!(
        extract(&folder.join("capacity_v3_all-failed.json")).1.runs[0].cells[0].metrics.is_empty()
    );
    for name in [
        "capacity_v0_dup-run-id_fast.json",
        "capacity_v0_dup-run-id_heavy.json",
        "capacity_v2.json",
        "capacity_v3_240k.json",
        "capacity_v4_one-failed.json",
    ] {
        extract(&folder.join(name));
    }
}

#[test]
fn no_other_real_file_is_taken_by_the_wrong_adapter_and_none_panics() {
    let Some(folder) = shared() else { return };
    let mut files = Vec::new();
    collect(&folder.join("real"), &mut files);
    assert!(files.len() > 200, "{}", files.len());
    let formats = importers::formats();
    for path in files {
        let Ok(bytes) = fs::read(&path) else { continue };
        let Ok(decoded) = decode(&bytes) else { continue };
        let name = path.to_string_lossy().into_owned();
        let file = SourceFile::new(&name, &decoded.text);
        let known: Vec<_> =
            formats.adapters.iter().filter(|adapter| adapter.detect(&file).is_some()).collect();
        assert!(known.len() <= 1, "{name}");
        if let Some(adapter) = known.first() {
            let id = adapter.id();
            let home = [
                "llama-bench",
                "vllm",
                "sglang",
                "inferencemax",
                "anvil",
                "_generated",
                "_derived",
                "findings",
                "misc",
            ];
            assert!(home.iter().any(|part| name.contains(part)), "{name} read as {id}");
            let _read = adapter.extract(&file);
        }
        for companion in
            formats.companions.iter().filter(|companion| companion.detect(&file).is_some())
        {
            let _seen = companion.observe(std::slice::from_ref(&file));
        }
    }
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap().filter_map(Result::ok) {
        if entry.path().is_dir() {
            collect(&entry.path(), files);
        } else {
            files.push(entry.path());
        }
    }
}
