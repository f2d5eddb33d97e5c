//! Each trap of llama-bench is sprung by a fixture, and real files give the values that an
//! independent program read from them.

use super::{codes, extract, fixtures};
use ledger::adapter::{Adapter, ExtractedRun, Extraction, SourceFile};
use ledger::finding::Code;
use ledger::metric::Statistic;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// Says what a fixture must show; `true` when it does.
type Check = fn(&Extraction) -> bool;

fn ids(extraction: &Extraction) -> Vec<String> {
    extraction.runs.iter().flat_map(|run| &run.cells).map(ledger::cell::Cell::id).collect()
}

fn fact(run: &ExtractedRun, field: &str) -> Option<Value> {
    run.facts.iter().find(|fact| fact.field == field).map(|fact| fact.value.clone())
}

fn metric(extraction: &Extraction, cell: usize) -> &ledger::cell::Metric {
    &extraction.runs[0].cells[cell].metrics[0]
}

/// One line a trap, in the order of the adapter's own list: a part of its text, a fixture, and
/// what the guard makes of it.
const SPRUNG: &[(&str, &str, Check)] = &[
    // 1e9 * 64 tokens / 1,000,000 ns would be 64,000,000 tok/s.
    ("mean of per-repetition rates", "never-closed.json", |read| {
        metric(read, 0).samples == [7.0, 8.0]
    }),
    ("printed as 0", "one-repetition.json", |read| {
        codes(read) == [Code::SpreadUnknown] && !metric(read, 0).given.contains_key(&Statistic::Std)
    }),
    ("pp+tg row", "quote-in-path.sql", |read| {
        ids(read) == ["test=pp32+tg4@d16"] && metric(read, 0).name == "combined_tok_s"
    }),
    ("differ only in", "table.md", |read| {
        ids(read)
            == [
                "n_ubatch=512,test=pp512",
                "n_ubatch=1024,test=pp512",
                "n_ubatch=512,test=tg128@d4096",
            ]
    }),
    ("build_commit is", "unknown-build.json", |read| {
        codes(read) == [Code::EngineBuildUnknown] && fact(&read.runs[0], "engine.version").is_none()
    }),
    ("columns move", "appended-with-other-columns.csv", |read| {
        let flash = |run: usize| fact(&read.runs[run], "conditions.flash_attn");
        flash(0) == Some("on".into())
            && flash(1) == Some("auto".into())
            && fact(&read.runs[0], "conditions.use_mmap") == Some(false.into())
            && fact(&read.runs[0], "quant.kv_cache") == Some("q8_0/f16".into())
            && fact(&read.runs[0], "model.file") == Some("m/\"tiny\", q4.gguf".into())
    }),
    ("log lines before", "table-lines-inside.json", |read| {
        codes(read) == [Code::LeadingText, Code::LeadingText, Code::TrailingText]
            && ids(read) == ["test=pp64", "test=tg128"]
    }),
    ("never closed", "never-closed.json", |read| {
        codes(read) == [Code::TruncatedRecord] && ids(read).len() == 2
    }),
    ("used twice", "appended-with-other-columns.csv", |read| {
        read.runs.len() == 2 && read.runs[1].locus == "line 6 (tiny.gguf)"
    }),
    ("header without rows", "header-only.csv", |read| {
        ids(read).is_empty() && codes(read) == [Code::NoRequestCompleted]
    }),
    ("nan or -nan", "nan-spread.json", |read| {
        codes(read) == [Code::NonFiniteTokens, Code::SpreadUnknown]
            && metric(read, 0).given[&Statistic::Mean].value == 7.5
    }),
    ("SQL does not escape", "quote-in-path.sql", |read| {
        fact(&read.runs[0], "model.file") == Some("m/it's \"tiny\".gguf".into())
    }),
    ("U+FFFF", "mangled-path.json", |read| {
        codes(read) == [Code::ValueLeftOut]
            && fact(&read.runs[0], "model.file") == Some("unknown".into())
    }),
    ("plus-minus", "mojibake-no-footer.md", |read| {
        metric(read, 0).given[&Statistic::Std].value == 34.41
            && codes(read) == [Code::EngineBuildUnknown, Code::TruncatedRecord]
    }),
    ("without an accelerator", "one-repetition.json", |read| {
        fact(&read.runs[0], "topology.accelerators").is_none()
            && fact(&read.runs[0], "conditions.backends") == Some("CPU".into())
    }),
];

#[test]
fn every_trap_of_llama_bench_is_sprung_by_a_fixture() {
    let traps = importers::llama_bench::LlamaBench.traps();
    assert_eq!(traps.len(), SPRUNG.len());
    for (trap, (part, fixture, holds)) in traps.iter().zip(SPRUNG) {
        assert!(trap.what.contains(part), "{} has no fixture here", trap.what);
        let read = extract(&format!("llama-bench/{fixture}"));
        assert!(holds(&read), "{}: {fixture} reads as {read:#?}", trap.what);
    }
}

#[test]
fn a_wrapper_a_fork_and_a_banner_are_known_for_what_they_are() {
    let wrapped = extract("llama-bench/wrapped.jsonl");
    assert_eq!(wrapped.runs[0].facts[0].place, "line 1, bench_raw.build_commit");
    let fork = extract("llama-bench/fork.json");
    assert_eq!(fact(&fork.runs[0], "engine.name"), Some("ik_llama.cpp".into()));
    let banner = extract("llama-bench/banner-only.txt");
    assert_eq!(banner.runs[0].cautions[0].message, "banner without rows: the model failed to load");
    let table = extract("llama-bench/table.md");
    assert_eq!(fact(&table.runs[0], "topology.accelerators"), Some(Value::from(vec!["Card C"])));
}

#[test]
fn other_models_and_other_backends_are_other_runs() {
    let read = extract("llama-bench/two-models-two-backends.jsonl");
    let loci: Vec<&str> = read.runs.iter().map(|run| run.locus.as_str()).collect();
    assert_eq!(
        loci,
        ["lines 1 to 2 (tiny-q4_k_m.gguf)", "line 3 (other.gguf)", "line 4 (tiny-q4_k_m.gguf)"]
    );
    let text = fs::read_to_string(fixtures("formats/llama-bench/two-models-two-backends.jsonl"));
    let text = text.unwrap();
    let (start, end) = read.runs[1].span.unwrap();
    assert!(text.get(start..end).unwrap().contains("m/other.gguf"));
}

#[test]
fn a_page_that_shows_several_forms_is_no_result() {
    let csv = fs::read_to_string(fixtures("formats/llama-bench/header-only.csv")).unwrap();
    let json = fs::read_to_string(fixtures("formats/llama-bench/one-repetition.json")).unwrap();
    let page = format!("# Examples\n\n{csv}\n{json}");
    let error = importers::llama_bench::LlamaBench.extract(&SourceFile::new("x", &page));
    assert_eq!(
        error.unwrap_err().to_string(),
        "field `format`: rows stand here as JSON and CSV: a page about results, no result"
    );
}

/// Folder of real files of other people's tools, where the machine has one.
#[expect(clippy::disallowed_methods, reason = "tests may be told where real files lie")]
fn shared() -> Option<PathBuf> {
    std::env::var_os("LEDGER_SHARED").map(|folder| PathBuf::from(folder).join("real/perf"))
}

#[track_caller]
fn read_real(path: &Path) -> Extraction {
    let bytes = fs::read(path).unwrap();
    let decoded = ledger::decode::decode(&bytes).unwrap();
    let file = SourceFile::new("x", &decoded.text);
    assert_eq!(super::known(&file), ["llama-bench"], "{}", path.display());
    importers::llama_bench::LlamaBench.extract(&file).unwrap()
}

/// Rows of real files: file, cell, mean, standard deviation; from formats-perf.md and the tools'
/// own files, read by an independent program.
const REAL: &[(&str, &str, f64, Option<f64>)] = &[
    ("llama-bench/b8460-hip.csv", "test=pp512", 1_285.316_742, Some(11.756_527)),
    ("llama-bench/b8460-hip.csv", "test=tg128", 73.694_603, Some(0.017_821)),
    ("llama-bench/b9049-vulkan-fit.csv", "test=tg128", 50.593_345, Some(0.110_595)),
    ("llama-bench/long-context-p4k-64k.csv", "test=pp32768", 644.819_733, Some(0.400_062)),
    ("llama-bench/md-gb10-b9536.txt", "test=pp512", 3_021.76, Some(34.41)),
    ("llama-bench/md-gb10-b9536.txt", "test=tg128", 77.35, Some(0.13)),
    ("_derived/llama-bench-md-utf16le-bom-crlf.txt", "test=tg128", 77.35, Some(0.13)),
    ("_derived/llama-bench-md-plusminus-mojibake-cp437.txt", "test=tg128", 77.35, Some(0.13)),
    ("_derived/llama-bench-nan-stddev.json", "test=pp512", 190.571_656, None),
    ("_generated/llama-bench-b11434.sql", "test=pp32+tg4", 21_296.638_994, Some(381.261_231)),
    ("_generated/llama-bench-b11434.csv", "test=pp64@d16", 21_628.603_99, Some(2_194.892_656)),
    ("_generated/llama-bench-b11434.json", "test=pp64", 21_498.238_946, Some(13_256.779_071)),
    ("llama-bench/b6865-rocm-gpt-oss-20b.jsonl", "test=tg128@d65536", 34.758_679, None),
    (
        "llama-bench/b9xxx-fit-loadmode-ubatch.jsonl",
        "n_ubatch=1024,test=pp2048",
        201.487_218,
        Some(2.189_448),
    ),
];

#[test]
fn real_rows_give_the_values_an_independent_program_read() {
    let Some(folder) = shared() else { return };
    for (name, id, mean, std) in REAL {
        let read = read_real(&folder.join(name));
        let mut cells = read.runs.iter().flat_map(|run| &run.cells);
        let cell = cells.find(|cell| cell.id() == *id).unwrap_or_else(|| panic!("{name} {id}"));
        let given = &cell.metrics[0].given;
        assert_eq!(given[&Statistic::Mean].value, *mean, "{name} {id}");
        assert_eq!(given.get(&Statistic::Std).map(|std| std.value), *std, "{name} {id}");
    }
}

#[test]
fn real_failures_wrappers_and_mixtures_are_read_as_what_they_are() {
    let Some(folder) = shared() else { return };
    for failed in ["header-only-model-failed.csv", "md-rocm-banner-only.log"] {
        let read = read_real(&folder.join("llama-bench").join(failed));
        assert_eq!(codes(&read), [Code::NoRequestCompleted], "{failed}");
    }
    let wrapped = read_real(&folder.join("llama-bench/wrapper-bench_raw.jsonl"));
    let rows: Vec<usize> = wrapped.runs.iter().map(|run| run.cells.len()).collect();
    assert_eq!(rows, [52, 52]);
    let merged =
        read_real(&folder.join("_generated/llama-bench-b11434-json-and-md-merged-2to1.txt"));
    assert_eq!(ids(&merged), ["test=pp16", "test=tg4"]);
    let twice = read_real(&folder.join("_generated/llama-bench-b11434-two-runs-appended.csv"));
    assert_eq!(twice.runs.len(), 2);
    let page = fs::read_to_string(folder.join("_generated/llama-bench-README-b11434.md")).unwrap();
    assert!(importers::llama_bench::LlamaBench.extract(&SourceFile::new("x", &page)).is_err());
}

#[test]
fn three_forms_of_one_path_with_a_quote_read_alike_or_say_why_not() {
    let Some(folder) = shared() else { return };
    let read = |ending: &str| {
        let name = format!("_generated/llama-bench-b11434-quote-nonascii-path.{ending}");
        read_real(&folder.join(name))
    };
    let path = Some(Value::from("../it's \"tiny\" \u{fc}.gguf"));
    assert_eq!(fact(&read("csv").runs[0], "model.file"), path);
    assert_eq!(fact(&read("sql").runs[0], "model.file"), path);
    assert!(codes(&read("json")).contains(&Code::ValueLeftOut));
}
