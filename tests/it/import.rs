//! Other people's numbers: stored whole, read by the same adapters, advisory for ever.

use crate::sandbox::{Sandbox, vllm_result};
use serde_json::Value;

const FROM: [&str; 4] = ["--source", "forum", "--published", "2026-07-31"];

fn import(sandbox: &Sandbox, file: &str) -> crate::sandbox::Answer {
    sandbox.run(&[&["import", file][..], &FROM].concat())
}

#[test]
fn one_file_imported_twice_is_one_prior() {
    let sandbox = Sandbox::new();
    sandbox.write("result.json", vllm_result(1, 8).to_string());
    let first =
        import(&sandbox, "result.json").ok().says("vllm-bench-serve, 1 rows, 1 cells, advisory");
    let later = sandbox
        .command(&["import", "result.json", "--source", "forum", "--url", "https://example.org"])
        .env("LEDGER_CLOCK", "2026-12-02T00:00:00Z")
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&later.stdout).trim(), first.key());
    assert!(String::from_utf8_lossy(&later.stderr).contains("already imported"));
    let priors = sandbox.run(&["priors", "--format", "json"]).ok().json();
    assert_eq!(priors.as_array().unwrap().len(), 1);
    sandbox.run(&["verify", "--deep"]).ok();
}

#[test]
fn a_prior_key_is_what_b3sum_yields() {
    let sandbox = Sandbox::new();
    sandbox.write("numbers.txt", "abc");
    let key = import(&sandbox, "numbers.txt").ok().key();
    // printf 'ledger-tree v1\n6437b3ac38465133ffb63b75273a8db548c558465d79db03fd359c6cd5bd9d85 3 numbers.txt\n' | b3sum,
    // then printf 'ledger-prior v1\n%s\nforum\n' ROOT | b3sum (b3sum 1.8)
    assert_eq!(key, PRIOR_KEY);
}

const PRIOR_KEY: &str = "187a21639b7cf0ff3b67509b9597ab6bc61fc372a1a5c4186d1fafd20c11208c";

#[test]
fn record_and_import_yield_the_same_cells() {
    let sandbox = Sandbox::new();
    sandbox.run_folder("run", 3);
    let key = sandbox.record("run");
    let recorded = sandbox.run(&["show", &key, "--format", "json"]).ok().json();
    import(&sandbox, "run/result.json").ok();
    let priors = sandbox.run(&["priors", "--format", "json"]).ok().json();
    assert_eq!(priors[0]["rows"][0]["cells"], recorded["run"]["cells"]);
    assert!(!recorded["run"]["cells"].as_array().unwrap().is_empty());
}

#[test]
fn a_prior_is_in_no_view_of_runs() {
    let sandbox = Sandbox::new();
    sandbox.write("result.json", vllm_result(1, 8).to_string());
    let key = import(&sandbox, "result.json").ok().key();
    for view in ["latest", "list", "history"] {
        let shown = sandbox.run(&[view, "--format", "json"]).ok().json();
        assert_eq!(shown, Value::Array(Vec::new()), "{view}");
    }
    sandbox.run(&["show", &key]).fails(2).says("names no run");
    sandbox.run(&["priors"]).ok().prints("advisory").prints("15 fields");
}

#[test]
fn what_cannot_be_parsed_is_kept_and_says_why() {
    let sandbox = Sandbox::new();
    sandbox.write("post.txt", "it is fast, trust me");
    sandbox.write("cut.json", &vllm_result(1, 8).to_string()[..400]);
    sandbox.write("empty.json", "");
    for (file, why) in [
        ("post.txt", "unparsed: no adapter knows its content"),
        ("cut.json", "unparsed: "),
        ("empty.json", "unparsed: file is empty"),
    ] {
        import(&sandbox, file).ok().says(why);
    }
    let priors = sandbox.run(&["priors", "--format", "json"]).ok().json();
    let priors = priors.as_array().unwrap();
    assert_eq!(priors.len(), 3);
    assert!(priors.iter().all(|prior| prior["rows"] == Value::Array(Vec::new())));
    sandbox.run(&["import", "post.txt", "--source", "forum", "--strict"]).fails(1);
    let raw =
        sandbox.run(&["cat", "943095f74992ea6a2d322e27b7f70c5ff2740bb2eeb3c123a0a962ab3b51f8a1"]);
    assert_eq!(raw.stdout, "it is fast, trust me");
    sandbox.run(&["priors"]).ok().prints("unparsed: file is empty");
}

const MAP: &str = "name = 'bench'\nkind = 'csv'\n[cell]\nconcurrency = 'clients'\n[state]\n'model.id' = 'model'\n\
    [[metric]]\nname = 'ttft_ms'\nat = 'ttft'\nunit = 's'\nstatistic = 'mean'\n";

#[test]
fn a_map_reads_what_no_adapter_knows() {
    let sandbox = Sandbox::new();
    sandbox.write("map.toml", MAP);
    sandbox.write("bench.csv", "model,clients,ttft\nacme/a,1,0.25\nacme/a,4,0.5\n");
    let given = ["import", "bench.csv", "--source", "blog", "--map", "map.toml"];
    sandbox.run(&given).ok().says("map, 2 rows, 2 cells, advisory");
    let priors = sandbox.run(&["priors", "--model", "ACME", "--format", "json"]).ok().json();
    let cell = &priors[0]["rows"][1]["cells"][0];
    assert_eq!(
        (&cell["id"], &cell["metrics"][0]["given"]["mean"]),
        (&"concurrency=4".into(), &500.0.into())
    );
    sandbox.run(&["verify", "--deep"]).ok();
    sandbox.run(&["priors", "--model", "other"]).ok().says("no prior matches");
}

#[test]
fn a_map_that_matches_nothing_stores_nothing() {
    let sandbox = Sandbox::new();
    sandbox.write("map.toml", MAP);
    sandbox.write("bench.csv", "model,clients,latency\nacme/a,1,0.25\n");
    let given = ["import", "bench.csv", "--source", "blog", "--map", "map.toml"];
    sandbox
        .run(&given)
        .fails(2)
        .says("columns that are not there: ttft")
        .says("nothing was stored");
    sandbox.run(&["priors"]).ok().says("no prior matches");
    sandbox.write("map.toml", MAP.replace("ttft_ms", "ttft_mss"));
    sandbox.run(&given).fails(2).says("`ttft_mss` is no metric");
}

#[test]
fn what_is_wrong_with_a_source_is_said() {
    let sandbox = Sandbox::new();
    sandbox.write("a.txt", "x");
    sandbox.run(&["import", "a.txt", "--source", "a\nb"]).fails(2).says("no name of a source");
    let day = |day| ["import", "a.txt", "--source", "s", "--published", day];
    sandbox.run(&day("yesterday")).fails(2).says("is no day");
    sandbox.run(&day("2027-01-01")).fails(2).says("lies in the future");
    sandbox.run(&["import", "gone.txt", "--source", "s"]).fails(2).says("cannot read `gone.txt`");
    sandbox
        .run(&["import", "a.txt", "--source", "s", "--adapter", "vllm-bench-serv"])
        .fails(2)
        .says("did you mean `vllm-bench-serve`");
    assert!(!sandbox.path(".ledger").exists());
}

#[test]
fn a_dry_import_prints_the_key_and_stores_nothing() {
    let sandbox = Sandbox::new();
    sandbox.write("result.json", vllm_result(1, 8).to_string());
    let dry = sandbox.run(&["import", "result.json", "--source", "forum", "--dry-run"]).ok();
    assert!(!sandbox.path(".ledger").exists());
    assert_eq!(import(&sandbox, "result.json").ok().key(), dry.key());
}

#[test]
fn many_files_are_imported_in_one_commit() {
    let sandbox = Sandbox::new();
    for index in 0..30 {
        sandbox.write(&format!("all/{index}.json"), vllm_result(index, 4).to_string());
    }
    import(&sandbox, "all")
        .ok()
        .says("imported 30 files as priors, 0 were already imported, 0 could not");
    let heads: i64 = sandbox
        .database()
        .query_row("SELECT count(*) FROM tree_head WHERE size IN (1, 30)", [], |row| row.get(0))
        .unwrap();
    assert!(heads >= 1);
}

#[test]
fn an_altered_prior_is_found() {
    let sandbox = Sandbox::new();
    sandbox.write("result.json", vllm_result(1, 8).to_string());
    import(&sandbox, "result.json").ok();
    let database = sandbox.database();
    database
        .execute_batch("DROP TRIGGER blob_is_never_deleted; DELETE FROM blob WHERE size > 500")
        .unwrap();
    drop(database);
    sandbox.run(&["verify"]).fails(1).prints("artifact `result.json` is gone");
}
