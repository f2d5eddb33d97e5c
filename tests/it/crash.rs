//! `kill -9` at any moment leaves the ledger as it was before or as it is after.

use crate::sandbox::Sandbox;
use std::process::Stdio;
use std::time::Duration;

#[test]
fn a_killed_record_is_whole_or_absent_and_every_acknowledged_key_is_there() {
    let sandbox = Sandbox::new();
    let rounds = 40;
    for round in 0..rounds {
        let folder = sandbox.run_folder(&format!("r{round}"), round + 1);
        std::fs::write(folder.join("trace.bin"), vec![u8::try_from(round).unwrap(); 1 << 20])
            .unwrap();
    }
    let mut acknowledged = Vec::new();
    for round in 0..rounds {
        let mut child = sandbox
            .command(&["record", &format!("r{round}")])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // From before the database is open to after the commit.
        std::thread::sleep(Duration::from_micros(round * 700));
        let _may_have_ended = child.kill();
        let output = child.wait_with_output().unwrap();
        acknowledged.extend(String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned));
    }
    // The first kills may have come before there was a ledger.
    sandbox.run(&["record", "r0"]).ok();
    sandbox.run(&["verify", "--deep"]).ok();
    let listed = sandbox.run(&["list", "--format", "json"]).ok().stdout;
    for key in acknowledged {
        assert!(listed.contains(&key), "{key} was acknowledged and is gone");
    }
    for round in 0..rounds {
        sandbox.run(&["record", &format!("r{round}")]).ok();
    }
    sandbox.run(&["verify", "--deep"]).ok().prints(&format!("clean: {rounds} entries"));
}

#[test]
fn a_file_system_that_refuses_is_told_and_leaves_the_ledger_usable() {
    let sandbox = Sandbox::new();
    sandbox.run_folder("a", 1);
    sandbox.record("a");
    let folder = sandbox.run_folder("b", 2);
    let mut state = 3u64;
    let noise: Vec<u8> = std::iter::repeat_with(|| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        state.to_be_bytes()[0]
    })
    .take(900_000)
    .collect();
    std::fs::write(folder.join("noise.bin"), noise).unwrap();
    // No file may grow beyond 400 blocks of 512 bytes, and the signal that says so is ignored.
    let script =
        format!("trap '' XFSZ; ulimit -f 400; exec '{}' record b", env!("CARGO_BIN_EXE_ledger"));
    let output = std::process::Command::new("sh")
        .args(["-c", &script])
        .current_dir(sandbox.path("."))
        .env_remove("LEDGER_DIR")
        .env("LEDGER_CLOCK", crate::sandbox::NOW)
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(4), "{told}");
    assert!(told.contains("nothing was stored"), "{told}");
    sandbox.run(&["verify"]).ok().prints("clean: 1 entries");
    sandbox.run(&["record", "b"]).ok();
    sandbox.run(&["verify", "--deep"]).ok().prints("clean: 2 entries");
}
