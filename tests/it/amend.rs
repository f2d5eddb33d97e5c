//! Appending to what is recorded: nothing that was written changes, and everything shows.

use crate::sandbox::{Sandbox, manifest};

#[test]
fn a_retracted_run_keeps_its_address_and_counts_no_more() {
    let sandbox = Sandbox::new();
    sandbox.run_folder("a", 1);
    let older = sandbox.record("a");
    sandbox.run_folder("b", 2);
    sandbox.write("b/run.toml", manifest("tiny").replace("10:00:00", "10:20:00"));
    let newer = sandbox.record("b");
    sandbox.run(&["latest"]).ok().prints(&newer[..8]);
    sandbox
        .run(&["retract", &newer[..8], "--reason", "", "--by", "lena"])
        .fails(2)
        .says("a reason is missing");
    sandbox
        .run(&["retract", &newer[..8], "--reason", "2,437 tokens against 512", "--by", " "])
        .fails(2)
        .says("--by");
    let dry = sandbox
        .run(&["retract", &newer[..8], "--reason", "why", "--by", "lena", "--dry-run"])
        .ok()
        .key();
    let done = sandbox
        .run(&[
            "retract",
            &newer[..8],
            "--reason",
            "why",
            "--by",
            "lena",
            "--replaced-by",
            &older[..8],
        ])
        .ok()
        .key();
    assert_eq!(dry.len(), done.len());
    sandbox.run(&["latest"]).ok().prints(&older[..8]);
    let shown = sandbox.run(&["show", &newer[..8]]).ok();
    let shown = shown.prints("state      retracted").prints("because why");
    assert!(shown.stdout.contains(&format!("replaced by {older}")));
    sandbox.run(&["history", "--candidate", "tiny"]).ok().prints(&newer[..8]).prints("withdrawn");
    sandbox
        .run(&["retract", &newer[..8], "--reason", "again", "--by", "lena"])
        .fails(2)
        .says("retracted already");
    sandbox.run(&["record", "b"]).fails(2).says("was retracted");
    sandbox.run(&["verify"]).ok().prints("clean: 3 entries");
}

#[test]
fn a_correction_changes_labels_and_only_labels() {
    let sandbox = Sandbox::new();
    sandbox.run_folder("a", 1);
    let key = sandbox.record("a");
    sandbox
        .run(&["correct", &key[..8], "--candidate", "tiny", "--reason", "x", "--by", "lena"])
        .fails(2)
        .says("has these labels already");
    sandbox
        .run(&["correct", &key[..8], "--candidate", "tiny-q4", "--reason", "typo", "--by", "lena"])
        .ok();
    sandbox.run(&["latest", "--candidate", "tiny"]).ok().says("no verified run matches");
    sandbox.run(&["latest", "--candidate", "tiny-q4"]).ok().prints(&key[..8]);
    sandbox
        .run(&["show", &key])
        .ok()
        .prints("candidate=tiny-q4")
        .prints("candidate tiny -> tiny-q4 because typo");
    sandbox.run(&["verify", "--deep"]).ok();
}

#[test]
fn a_note_attaches_a_forgotten_file() {
    let sandbox = Sandbox::new();
    sandbox.run_folder("a", 1);
    let key = sandbox.record("a");
    sandbox.write("dmesg.txt", "Xid 79\n");
    sandbox
        .run(&[
            "note",
            &key[..8],
            "Xid an hour later",
            "--by",
            "lena",
            "--topic",
            "incident",
            "--attach",
            "dmesg.txt",
        ])
        .ok();
    let shown = sandbox.run(&["show", &key]).ok().prints("incident").prints("dmesg.txt (");
    let blob =
        shown.stdout.split("dmesg.txt (").nth(1).unwrap().split(')').next().unwrap().to_owned();
    let content = sandbox.run(&["cat", &blob]).ok();
    assert_eq!(content.stdout, "Xid 79\n");
    assert_eq!(blake3::hash(b"Xid 79\n").to_hex().as_str(), blob);
    sandbox.run(&["verify"]).ok();
}

#[test]
fn a_weight_set_under_two_names_is_a_finding_and_a_binding_is_shown() {
    let sandbox = Sandbox::new();
    sandbox.run_folder("a", 1);
    let key = sandbox.record("a");
    let answer = sandbox.run(&["weights", "--format", "json"]).ok().json();
    let digest = answer[0]["weight_set"].as_str().unwrap().to_owned();
    sandbox.run_folder("b", 2);
    sandbox.write("b/run.toml", manifest("other").replace("acme/tiny-llama", "acme/renamed"));
    sandbox
        .run(&["record", "b"])
        .fails(3)
        .says("requested acme/renamed, loaded tiny-llama-q4_k_m.gguf");
    sandbox
        .run(&["weights", "bind", &digest, "acme/renamed", "--because", "x", "--by", "lena"])
        .fails(2)
        .says("names no revision");
    sandbox
        .run(&[
            "weights",
            "bind",
            &digest,
            "acme/renamed@r1",
            "--because",
            "renamed upstream",
            "--by",
            "lena",
        ])
        .ok();
    let other = sandbox.run(&["record", "b"]).ok().key();
    assert_ne!(other, key);
    let listed = sandbox
        .run(&["weights"])
        .fails(1)
        .prints("one weight set, 2 names")
        .prints("acme/renamed@r1 by lena");
    assert!(listed.stdout.contains("acme/renamed, acme/tiny-llama"));
    sandbox.run(&["verify", "--deep"]).ok();
}
