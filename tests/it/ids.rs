//! Every identity is recomputed outside the program: by a script of `b3sum` and `sqlite3` where they
//! are installed, and by BLAKE3 over the bytes that the design names always.

use crate::sandbox::Sandbox;
use std::process::Command;

fn b3(text: impl AsRef<[u8]>) -> String {
    blake3::hash(text.as_ref()).to_hex().to_string()
}

#[test]
fn every_identity_follows_from_the_bytes_it_names() {
    let sandbox = Sandbox::new();
    let folder = sandbox.run_folder("a", 1);
    let key = sandbox.record("a");
    let shown = sandbox.run(&["show", &key, "--format", "json"]).json();
    let run = &shown["run"];
    let file = |name: &str| std::fs::read(folder.join(name)).unwrap();
    let line = |name: &str| format!("{} {} {name}\n", b3(file(name)), file(name).len());
    let manifest = format!("ledger-tree v1\n{}{}", line("result.json"), line("server.log"));
    let root = b3(&manifest);
    assert_eq!(run["root"], root.as_str());
    assert_eq!(sandbox.run(&["cat", &root]).ok().stdout, manifest);
    // serde_json sorts keys, and no number here needs more than that to be canonical.
    let fingerprint = b3(run["fingerprint"].to_string().replace(":1.0", ":1"));
    assert_eq!(run["fingerprint_id"], fingerprint.as_str());
    assert_eq!(key, b3(format!("ledger-run v1\n{root}\n{fingerprint}\n")));
    let start = "ledger-start v1\nboot-1\n41\n2026-11-01T09:00:00.000000Z\n";
    assert_eq!(run["server_start"], b3(start).as_str());
    let set = format!("{} 3 tiny-llama-q4_k_m.gguf\n", crate::sandbox::WEIGHTS);
    assert_eq!(run["provenance"]["weight_set"], b3(set).as_str());
    let body: Vec<u8> =
        sandbox.database().query_row("SELECT body FROM entry", [], |row| row.get(0)).unwrap();
    assert_eq!(shown["entry"]["id"], b3(body).as_str());
}

#[test]
fn the_script_that_people_can_read_says_the_same() {
    let sandbox = Sandbox::new();
    sandbox.run_folder("a", 1);
    let key = sandbox.record("a");
    let has = |program: &str| {
        Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success())
    };
    if !has("b3sum") || !has("sqlite3") {
        // The test above holds the same identities; the script needs programs that not everyone has.
        return;
    }
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/recompute-key.sh");
    let output = Command::new("sh")
        .arg(script)
        .args([
            sandbox.path(".ledger").to_str().unwrap(),
            sandbox.path("a").to_str().unwrap(),
            &key,
        ])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains(&format!("run key      {key}")), "{text}");
}
