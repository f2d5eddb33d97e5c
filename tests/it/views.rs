//! Views answer from the log, in every format, and refuse to guess.

use crate::sandbox::{Sandbox, manifest};

#[test]
fn latest_is_by_measurement_time_and_not_by_arrival() {
    let sandbox = Sandbox::new();
    for (name, hour, seed) in [("a", "10:20", 1), ("b", "10:00", 2)] {
        sandbox.run_folder(name, seed);
        sandbox.write(
            &format!("{name}/run.toml"),
            manifest("tiny").replace("10:00:00", &format!("{hour}:00")),
        );
    }
    let newest = sandbox.record("a");
    let late_arrival = sandbox.record("b");
    let rows = sandbox.run(&["latest", "--format", "json"]).ok().json();
    assert_eq!(rows[0]["key"], newest.as_str());
    assert_eq!(rows[0]["runs"], 2);
    let history = sandbox.run(&["history"]).ok();
    let place = |key: &str| history.stdout.find(&key[..8]).unwrap();
    assert!(place(&late_arrival) < place(&newest));
}

#[test]
fn every_view_has_every_format_and_json_is_alone_on_stdout() {
    let sandbox = Sandbox::new();
    sandbox.run_folder("a", 1);
    let key = sandbox.record("a");
    for command in [
        vec!["latest"],
        vec!["list"],
        vec!["history"],
        vec!["show", &key],
        vec!["verify"],
        vec!["weights"],
    ] {
        sandbox.run(&[command.as_slice(), &["--format", "json"]].concat()).ok().json();
        sandbox.run(&[command.as_slice(), &["--format", "md"]].concat()).ok();
    }
    sandbox
        .run(&["latest", "--format", "csv"])
        .ok()
        .prints("candidate,config,task,hardware")
        .prints("\r\n");
    sandbox.run(&["latest", "--format", "md"]).ok().prints("| --- |");
}

#[test]
fn the_archive_can_be_asked_as_of_a_day() {
    let sandbox = Sandbox::new();
    sandbox.run_folder("a", 1);
    let key = sandbox.record("a");
    let retract = sandbox
        .command(&["retract", &key[..8], "--reason", "why", "--by", "lena"])
        .env("LEDGER_CLOCK", "2026-12-03T00:00:00Z")
        .output()
        .unwrap();
    assert!(retract.status.success());
    sandbox.run(&["history", "--as-of", "2026-11-30T00:00:00Z"]).ok().says("no run matches");
    let day = sandbox.run(&["history", "--as-of", "2026-12-02T00:00:00Z"]).ok().prints(&key[..8]);
    assert!(!day.stdout.contains("withdrawn"));
    sandbox.run(&["history", "--as-of", "2026-12-04T00:00:00Z"]).ok().prints("withdrawn");
    sandbox.run(&["history", "--as-of", "yesterday"]).fails(2).says("is no time");
}

#[test]
fn a_hostile_label_cannot_move_the_terminal() {
    let sandbox = Sandbox::new();
    sandbox.run_folder("a", 1);
    sandbox.write("a/run.toml", manifest("x\\u001b[2J|<script>"));
    let key = sandbox.record("a");
    for arguments in [vec!["latest"], vec!["list"], vec!["show", &key], vec!["history"]] {
        assert!(!sandbox.run(&arguments).ok().stdout.contains('\u{1b}'), "{arguments:?}");
    }
    let markdown = sandbox.run(&["latest", "--format", "md"]).ok();
    assert!(markdown.stdout.contains("\\|\\<script\\>"), "{}", markdown.stdout);
}

#[test]
fn a_head_kept_elsewhere_holds_the_ledger_to_its_past() {
    let sandbox = Sandbox::new();
    sandbox.run_folder("a", 1);
    sandbox.record("a");
    let head = sandbox.run(&["head"]).ok().stdout.trim().to_owned();
    sandbox.run_folder("b", 2);
    sandbox.record("b");
    sandbox.run(&["verify", "--expect", &head]).ok();
    // A ledger made anew with another number is consistent in itself, and not the one of the head.
    let forged = Sandbox::new();
    forged.run_folder("a", 3);
    forged.record("a");
    forged.run(&["verify"]).ok();
    forged
        .run(&["verify", "--expect", &head])
        .fails(1)
        .prints("not those of the head kept elsewhere");
    forged.run(&["verify", "--expect", "2 00"]).fails(2).says("is no tree head");
}

#[test]
fn provenance_check_prints_each_rule() {
    let sandbox = Sandbox::new();
    sandbox.run_folder("a", 1);
    sandbox
        .run(&["provenance", "check", "a/provenance.json", "--run", "a/run.toml"])
        .ok()
        .prints("verified, grade mapped")
        .prints("rule 5  pass");
    let bare = sandbox.run(&["provenance", "check", "a/provenance.json"]).fails(3);
    bare.prints("rule 4  FAIL  no model id is claimed");
}

#[test]
fn adapters_say_what_a_file_is() {
    let sandbox = Sandbox::new();
    sandbox.run_folder("a", 1);
    sandbox.run(&["adapters"]).ok().prints("llama-bench").prints("nvidia-smi-csv");
    sandbox
        .run(&["adapters", "explain", "a/result.json"])
        .ok()
        .prints("vllm-bench-serve")
        .prints("n=8")
        .prints("label model.id = tiny");
    sandbox.run(&["adapters", "explain", "a/server.log"]).fails(1).prints("none that is known");
}

#[test]
fn completions_and_man_pages_follow_from_the_command_tree() {
    let sandbox = Sandbox::new();
    sandbox.run(&["completions", "bash"]).ok().prints("--provenance");
    sandbox.run(&["man", "man"]).ok();
    assert!(sandbox.path("man/ledger-record.1").exists());
}

#[test]
fn reindex_fills_what_was_lost() {
    let sandbox = Sandbox::new();
    sandbox.run_folder("a", 1);
    sandbox.record("a");
    sandbox
        .database()
        .execute_batch("DELETE FROM latest; UPDATE run SET candidate = 'forged'")
        .unwrap();
    sandbox.run(&["verify"]).fails(1).prints("index-stale");
    sandbox.run(&["reindex"]).ok();
    sandbox.run(&["verify"]).ok();
    sandbox.run(&["latest"]).ok().prints("tiny");
}
