//! Every authored fixture: known to exactly one adapter, its cells as a snapshot, and each trap sprung.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test that cannot go on must fail"
)]

use ledger::adapter::{Extraction, Fact, FactKind, Observation, SourceFile};
use ledger::decode::decode;
use ledger::finding::Code;
use ledger::metric::Statistic;
use proptest::prelude::*;
use serde_json::json;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

#[path = "formats/llama_bench.rs"]
mod llama_bench;

fn fixtures(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures").join(folder)
}

fn known(file: &SourceFile<'_>) -> Vec<&'static str> {
    importers::formats()
        .adapters
        .iter()
        .filter(|adapter| adapter.detect(file).is_some())
        .map(|adapter| adapter.id())
        .collect()
}

#[track_caller]
fn extract(path: &str) -> Extraction {
    let path = fixtures("formats").join(path);
    let text = fs::read_to_string(&path).unwrap();
    let name = path.file_name().unwrap().to_string_lossy().into_owned();
    let file = SourceFile::new(&name, &text);
    let ids = known(&file);
    assert_eq!(ids.len(), 1, "{name}: {ids:?}");
    assert_eq!(path.parent().unwrap().file_name().unwrap().to_string_lossy(), ids[0], "{name}");
    importers::formats().find_adapter(ids[0]).unwrap().extract(&file).unwrap()
}

fn codes(extraction: &Extraction) -> Vec<Code> {
    let run = extraction.runs[0].cautions.iter();
    let cells = extraction.runs[0].cells.iter().flat_map(|cell| &cell.cautions);
    extraction.cautions.iter().chain(run).chain(cells).map(|caution| caution.code).collect()
}

#[test]
fn every_fixture_is_known_to_exactly_one_adapter_and_gives_these_cells() {
    let mut told = String::new();
    let mut paths = Vec::new();
    for group in fs::read_dir(fixtures("formats")).unwrap().filter_map(Result::ok) {
        for file in fs::read_dir(group.path()).unwrap().filter_map(Result::ok) {
            paths.push(format!(
                "{}/{}",
                group.file_name().to_string_lossy(),
                file.file_name().to_string_lossy()
            ));
        }
    }
    paths.sort();
    for path in paths {
        let extraction = extract(&path);
        writeln!(told, "{path}: {} runs", extraction.runs.len()).unwrap();
        for cell in extraction.runs.iter().flat_map(|run| &run.cells) {
            let metrics: Vec<String> = cell
                .metrics
                .iter()
                .map(|metric| {
                    format!(
                        "{}{}",
                        metric.name,
                        if metric.samples.is_empty() {
                            String::new()
                        } else {
                            format!(" n={}", metric.samples.len())
                        }
                    )
                })
                .collect();
            writeln!(told, "  {} [{}]", cell.id(), metrics.join(", ")).unwrap();
        }
    }
    insta::assert_snapshot!(told);
}

#[test]
fn llama_bench_traps_are_guarded() {
    let tests = extract("llama-bench/three-tests.json");
    let cells = &tests.runs[0].cells;
    assert!(cells[0].find_metric("prefill_tok_s").is_some());
    assert!(cells[1].find_metric("decode_tok_s").is_some());
    // A pp+tg row is neither prefill nor decode.
    assert_eq!(cells[2].metrics[0].name, "combined_tok_s");
    assert_eq!(cells[0].metrics[0].samples, [100.0, 102.0, 98.0]);
    let crashed = codes(&extract("llama-bench/log-lines-and-crash.jsonl"));
    assert_eq!(crashed, [Code::LeadingText, Code::TrailingText, Code::ProcessEndedAbnormally]);
    let one = extract("llama-bench/one-repetition.json");
    assert_eq!(codes(&one), [Code::SpreadUnknown]);
    assert!(!one.runs[0].cells[0].metrics[0].given.contains_key(&Statistic::Std));
    let swept = extract("llama-bench/differ-in-ubatch.jsonl");
    assert_eq!(swept.runs[0].cells[1].id(), "n_ubatch=256,test=pp512");
    let cut = extract("llama-bench/never-closed.json");
    assert_eq!((cut.runs[0].cells.len(), codes(&cut)), (2, vec![Code::TruncatedRecord]));
    assert_eq!(extract("llama-bench/appended-twice.json").runs.len(), 2);
    let unknown = extract("llama-bench/unknown-build.json");
    assert_eq!(codes(&unknown), [Code::EngineBuildUnknown]);
    assert!(!unknown.runs[0].facts.iter().any(|fact| fact.field == "engine.version"));
}

#[test]
fn vllm_traps_are_guarded() {
    let detailed = extract("vllm-bench-serve/detailed.json");
    let cell = &detailed.runs[0].cells[0];
    assert_eq!(cell.find_metric("ttft_ms").unwrap().samples, [52.0, 54.0, 54.0, 60.0]);
    assert_eq!(cell.find_metric("itl_ms").unwrap().samples.len(), 60);
    assert_eq!(detailed.runs[0].measured_at.as_deref(), Some("2026-08-16T16:08:53"));
    // printf 'NaN is no number\\n%.0s' 1 2 3 4 | b3sum
    let digest = blake3::hash("NaN is no number\n".repeat(4).as_bytes()).to_hex().to_string();
    assert_eq!(detailed.runs[0].observed["output_digest"], digest.as_str());
    let old = extract("vllm-bench-serve/old-without-failed.json");
    assert_eq!(old.runs[0].cells[0].requests.failed, Some(496));
    assert!(extract("vllm-bench-serve/all-failed.json").runs[0].cells[0].metrics.is_empty());
    let hidden = extract("vllm-bench-serve/hidden-reasoning.json");
    let cell = &hidden.runs[0].cells[0];
    assert!(cell.find_metric("ttft_ms").is_none() && cell.find_metric("tpot_ms").is_none());
    assert_eq!(cell.tokens.hidden, [884; 4]);
    assert!(cell.find_metric("time_to_first_visible_ms").is_some());
    let speculative = extract("vllm-bench-serve/spec-decode-percent.json");
    let share = speculative.runs[0].cells[0].find_metric("spec_accept_rate").unwrap();
    assert_eq!(share.given[&Statistic::Value].value, 0.25);
    let label = detailed.runs[0].facts.iter().find(|fact| fact.field == "model.id").unwrap();
    assert_eq!(label.kind, FactKind::Label);
    assert!(
        codes(&extract("vllm-bench-serve/statistic-disagrees.json"))
            .contains(&Code::StatisticDisagrees)
    );
}

#[test]
fn sglang_traps_are_guarded() {
    let appended = extract("sglang-bench-serving/appended-and-cut.jsonl");
    let loci: Vec<&str> = appended.runs.iter().map(|run| run.locus.as_str()).collect();
    assert_eq!(loci, ["line 1 (concurrency 8)", "line 2 (concurrency 32)"]);
    assert_eq!(appended.cautions[0].code, Code::TruncatedRecord);
    let one = extract("sglang-bench-serving/one-run.jsonl");
    let cell = &one.runs[0].cells[0];
    // The maximum of the prompts is planned, and nobody says how many requests were asked for.
    assert_eq!((cell.tokens.prompt_nominal, cell.tokens.prompt_mean), (None, Some(500.0)));
    assert_eq!(cell.requests.asked, None);
    assert_eq!(one.runs[0].observed["request_rate"], "unbounded");
}

#[test]
fn anvil_and_ollama_traps_are_guarded() {
    let warm = extract("anvil-capacity/v4-warm-cache.json");
    let cell = &warm.runs[0].cells[0];
    assert_eq!((cell.tokens.prompt_nominal, cell.tokens.prompt_mean), (Some(4096), Some(2960.0)));
    assert_eq!(
        cell.find_metric("decode_tok_s").unwrap().protocol.as_deref(),
        Some("capacity-v4-reasoning")
    );
    assert!(codes(&warm).contains(&Code::WarmCache));
    let one = extract("anvil-capacity/one-of-twelve.json");
    assert_eq!(one.runs[0].cells[0].requests.classes["TimeoutError"], 11);
    let answer = extract("ollama-response/cut-at-output-limit.json");
    let cell = &answer.runs[0].cells[0];
    assert_eq!(cell.find_metric("decode_tok_s").unwrap().samples, [40.0]);
    assert_eq!(codes(&answer), [Code::OutputLimitReached]);
}

#[test]
fn every_trap_of_ollama_is_sprung_by_a_fixture() {
    let streamed = extract("ollama-response/stream.jsonl");
    let cell = &streamed.runs[0].cells[0];
    // 120 tokens in 3.2 s; 2050 in 0.8 s. The chunks before the last record are no answers.
    assert_eq!(cell.find_metric("decode_tok_s").unwrap().samples, [37.5]);
    assert_eq!(cell.find_metric("prefill_tok_s").unwrap().samples, [2562.5]);
    assert_eq!((cell.requests.completed, streamed.runs[0].cells.len()), (Some(1), 1));
    assert_eq!(streamed.runs[0].observed["prompt_tokens_evaluated"], 2050);
    let cached = extract("ollama-response/cached-prompt-and-thinking.json");
    let cell = &cached.runs[0].cells[0];
    assert_eq!(cell.missing[0].metric, "prefill_tok_s");
    assert_eq!(cell.tokens.reasoning_counted, Some(true));
    let loaded = extract("ollama-response/loaded-then-answered.jsonl");
    assert_eq!(loaded.runs[0].cells[0].requests.asked, Some(2));
    assert_eq!(codes(&loaded), [Code::OutputLimitReached]);
}

fn observe(names: &[&str]) -> Observation {
    let texts: Vec<String> = names
        .iter()
        .map(|name| fs::read_to_string(fixtures("companions").join(name)).unwrap())
        .collect();
    let files: Vec<SourceFile<'_>> =
        names.iter().zip(&texts).map(|(name, text)| SourceFile::new(name, text)).collect();
    let companion = importers::formats()
        .companions
        .iter()
        .find(|companion| companion.detect(&files[0]).is_some())
        .unwrap();
    companion.observe(&files).unwrap()
}

fn find<'a>(observation: &'a Observation, field: &str) -> &'a Fact {
    observation.facts.iter().find(|fact| fact.field == field).unwrap_or_else(|| panic!("{field}"))
}

#[test]
fn the_power_cap_is_the_observed_one() {
    let seen = observe(&["power-read-back.csv"]);
    // Two cards are two caps, and what cannot be read is unknown, never zero.
    assert_eq!(find(&seen, "power.cap_w").value, json!([140.0, "unknown"]));
    assert_eq!(find(&seen, "placement").value, json!(["GPU-1", "GPU-2"]));
    assert_eq!(seen.cautions[0].code, Code::ClockDrift);
    assert_eq!(seen.observed["gpu0_sm_clock_min_mhz"], 1000.0);
    let asked = observe(&["power-asked.json"]);
    assert_eq!(find(&asked, "power.cap_w").kind, FactKind::Requested);
}

#[test]
fn a_failed_preflight_beside_a_result_makes_it_untrustworthy() {
    let seen = observe(&["preflight-failed.json"]);
    assert_eq!(seen.cautions[0].code, Code::Forced);
    let told: Vec<String> =
        seen.checks.iter().map(|check| format!("{} {:?}", check.name, check.status)).collect();
    assert_eq!(told, ["preflight tools Pass", "preflight recall NotRun", "preflight Fail"]);
}

#[test]
fn counters_arguments_and_tables_state_what_was_in_force() {
    let cache = observe(&["scrape-after.txt", "scrape-before.txt"]);
    assert_eq!(cache.observed["prefix_cache_hit_rate"], 0.9);
    assert_eq!(find(&cache, "conditions.cache_state").value, "warm");
    assert_eq!(observe(&["scrape-before.txt"]).cautions[0].code, Code::CacheStateUnknown);
    let server = observe(&["server.json"]);
    assert_eq!(find(&server, "conditions.enforce_eager").value, true);
    assert_eq!(find(&server, "conditions.max_num_seqs").value, 8);
    assert_eq!(find(&server, "context.tokens").value, 4096);
    assert_eq!(find(&server, "conditions.prefix_caching").value, "engine default: on");
    assert_eq!(find(&observe(&["ollama-ps.txt"]), "context.tokens").value, 4096);
}

fn all_texts() -> Vec<String> {
    let mut texts = Vec::new();
    for group in fs::read_dir(fixtures("formats")).unwrap().filter_map(Result::ok) {
        for file in fs::read_dir(group.path()).unwrap().filter_map(Result::ok) {
            texts.push(fs::read_to_string(file.path()).unwrap());
        }
    }
    for file in fs::read_dir(fixtures("companions")).unwrap().filter_map(Result::ok) {
        texts.push(fs::read_to_string(file.path()).unwrap());
    }
    texts.sort();
    texts
}

/// Runs everything that reads a file over a text; nothing may panic.
fn read_all_ways(text: &str) {
    let file = SourceFile::new("x", text);
    for adapter in importers::formats().adapters {
        let _why = adapter.detect(&file);
        let _read = adapter.extract(&file);
    }
    for companion in importers::formats().companions {
        let _why = companion.detect(&file);
        let _seen = companion.observe(std::slice::from_ref(&file));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_bytes_make_a_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        if let Ok(decoded) = decode(&bytes) {
            read_all_ways(&decoded.text);
        }
    }

    #[test]
    fn no_change_of_a_fixture_makes_a_reader_panic(
        which in 0usize..100,
        cut in 0.0f64..1.0,
        at in 0.0f64..1.0,
        word in prop::sample::select(vec!["NaN", "-1", "1e400", "null", "{", "]", "\"", "[[[[", "18446744073709551616", "\u{1f600}", ","]),
    ) {
        let texts = all_texts();
        let text = &texts[which % texts.len()];
        let chars: Vec<char> = text.chars().collect();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "shares of a length")]
        let place = |share: f64| (share * chars.len() as f64) as usize;
        let kept = &chars[..place(0.5 + cut / 2.0)];
        let (head, tail) = kept.split_at(place(at).min(kept.len()));
        let changed: String = head.iter().copied().chain(word.chars()).chain(tail.iter().copied()).collect();
        read_all_ways(&changed);
    }
}
