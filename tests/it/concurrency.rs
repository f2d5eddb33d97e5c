//! Many recorders on one ledger: all succeed, or say why.

use crate::sandbox::Sandbox;
use std::collections::BTreeSet;
use std::process::Stdio;

#[test]
fn two_dozen_recorders_on_an_empty_ledger_lose_nothing() {
    let sandbox = Sandbox::new();
    let runs = 24;
    for n in 0..runs {
        // Run 19 holds the same bytes as run 7.
        sandbox.run_folder(&format!("r{n}"), if n == 19 { 8 } else { n + 1 });
    }
    let children: Vec<_> = (0..runs)
        .map(|n| {
            let mut command = sandbox.command(&["record", &format!("r{n}")]);
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
        })
        .collect();
    let mut keys = BTreeSet::new();
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        keys.insert(String::from_utf8_lossy(&output.stdout).trim().to_owned());
    }
    assert_eq!(keys.len(), 23);
    sandbox.run(&["verify", "--deep"]).ok().prints("clean: 23 entries");
    let leftovers: Vec<String> =
        sandbox.listing().into_iter().filter(|path| path.contains("incoming")).collect();
    assert_eq!(leftovers, Vec::<String>::new());
}

#[test]
fn batches_and_single_runs_share_a_ledger() {
    let sandbox = Sandbox::new();
    for batch in 0..3 {
        for n in 0..15 {
            sandbox.run_folder(&format!("b{batch}/r{n}"), batch * 100 + n + 1);
        }
    }
    let children: Vec<_> = (0..3)
        .map(|batch| {
            let mut command = sandbox.command(&["record", "--each", &format!("b{batch}")]);
            command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
        })
        .collect();
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    sandbox.run(&["verify"]).ok().prints("clean: 45 entries");
}
