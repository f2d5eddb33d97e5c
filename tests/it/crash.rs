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
