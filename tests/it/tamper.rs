//! `verify` finds every change and names it: rows, bits, files, triggers.

use crate::sandbox::{Sandbox, is_object};
use rusqlite::types::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;

/// Three runs, one with an object file of its own, a retraction and a note.
fn filled() -> Sandbox {
    let sandbox = Sandbox::new();
    for (name, seed) in [("a", 1), ("b", 2), ("c", 3)] {
        sandbox.run_folder(name, seed);
    }
    // Incompressible, so that its frame is larger than a database row may hold.
    let mut state = 1u64;
    let noise: Vec<u8> = (0..2 << 20)
        .map(|_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            state.to_be_bytes()[0]
        })
        .collect();
    sandbox.write("c/noise.bin", noise);
    let key = sandbox.record("a");
    sandbox.record("b");
    sandbox.record("c");
    sandbox.run(&["note", &key[..8], "seen", "--by", "lena"]).ok();
    sandbox.run(&["retract", &key[..8], "--reason", "why", "--by", "lena"]).ok();
    sandbox.run(&["verify", "--deep"]).ok().prints("clean: 5 entries");
    sandbox
}

/// Does with the database what a person with the sqlite3 program can do after dropping the triggers.
fn unguarded(sandbox: &Sandbox, statement: &str) {
    let database = sandbox.database();
    let mut query =
        database.prepare("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'").unwrap();
    let triggers: Vec<(String, String)> = query
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    for (name, _) in &triggers {
        database.execute_batch(&format!("DROP TRIGGER {name}")).unwrap();
    }
    database.execute_batch(statement).unwrap();
    for (_, sql) in &triggers {
        database.execute_batch(sql).unwrap();
    }
}

#[test]
fn the_log_refuses_update_delete_and_replace() {
    let sandbox = filled();
    let database = sandbox.database();
    for statement in [
        "UPDATE entry SET body = x'00' WHERE seq = 0",
        "DELETE FROM entry WHERE seq = 0",
        "INSERT OR REPLACE INTO entry (seq, id, kind, body) VALUES (0, zeroblob(32), 'run', x'00')",
        "INSERT OR REPLACE INTO entry (seq, id, kind, body) SELECT 99, id, kind, body FROM entry WHERE seq = 0",
        "UPDATE tlog_hash SET hash = zeroblob(32)",
        "DELETE FROM tlog_hash",
        "INSERT OR REPLACE INTO tlog_hash VALUES (0, zeroblob(32))",
        "UPDATE tree_head SET root = zeroblob(32)",
        "DELETE FROM tree_head",
        "INSERT OR REPLACE INTO tree_head VALUES (1, zeroblob(32))",
        "UPDATE blob SET data = x'00'",
        "DELETE FROM blob",
        "INSERT OR REPLACE INTO blob SELECT id, hash, 0, stored_hash, data FROM blob LIMIT 1",
        "INSERT OR REPLACE INTO blob SELECT 999, hash, 0, stored_hash, data FROM blob LIMIT 1",
    ] {
        let error = database.execute_batch(statement).unwrap_err().to_string();
        assert!(error.contains("never"), "{statement}: {error}");
    }
    sandbox.run(&["verify"]).ok();
}

#[test]
fn each_damage_is_named() {
    for (statement, code) in [
        (
            "UPDATE entry SET body = CAST(replace(CAST(body AS TEXT), 'tiny', 'evil') AS BLOB) WHERE seq = 1",
            "entry-altered",
        ),
        ("UPDATE entry SET kind = 'note' WHERE seq = 1", "entry-altered"),
        ("UPDATE entry SET id = zeroblob(32) WHERE seq = 1", "entry-altered"),
        ("DELETE FROM entry WHERE seq = 1", "entry-gone"),
        ("DELETE FROM entry WHERE seq = 4", "tree-altered"),
        ("UPDATE tlog_hash SET hash = zeroblob(32) WHERE idx = 2", "tree-altered"),
        ("DELETE FROM tlog_hash WHERE idx = 2", "tree-altered"),
        ("INSERT INTO tlog_hash VALUES (1000, zeroblob(32))", "tree-altered"),
        ("UPDATE tree_head SET root = zeroblob(32) WHERE size = 2", "head-altered"),
        ("DELETE FROM tree_head WHERE size = 5", "head-altered"),
        ("UPDATE blob SET size = size + 1 WHERE id = 1", "blob-missing"),
        ("DELETE FROM blob WHERE id = 2", "blob-missing"),
        ("UPDATE blob SET hash = zeroblob(32) WHERE id = 1", "blob-altered"),
        ("UPDATE blob SET stored_hash = zeroblob(32) WHERE id = 1", "stored-form-altered"),
        ("UPDATE blob SET data = zeroblob(length(data)) WHERE id = 1", "blob-altered"),
        (
            "DROP TRIGGER entry_is_never_updated; CREATE TRIGGER entry_is_never_updated BEFORE UPDATE ON entry WHEN 0 BEGIN SELECT 1; END",
            "schema-altered",
        ),
        ("CREATE TABLE more (x)", "schema-altered"),
    ] {
        let sandbox = filled();
        if statement.starts_with("DROP") {
            sandbox.database().execute_batch(statement).unwrap();
        } else {
            unguarded(&sandbox, statement);
        }
        let answer = sandbox.run(&["verify"]).fails(1).says("error[damage]");
        assert!(answer.stdout.contains(code), "{statement}\n{}", answer.stdout);
    }
}

#[test]
fn every_flipped_bit_of_the_truth_is_found() {
    let sandbox = filled();
    let pristine = fs::read(sandbox.path(".ledger/ledger.db")).unwrap();
    let mut found = 0;
    for (table, column) in [
        ("entry", "id"),
        ("entry", "kind"),
        ("entry", "body"),
        ("tlog_hash", "hash"),
        ("tree_head", "root"),
        ("blob", "hash"),
        ("blob", "stored_hash"),
        ("blob", "data"),
    ] {
        let (rows, lengths) = lengths(&sandbox, table, column);
        for (nth, (row, length)) in
            rows.iter().zip(&lengths).enumerate().filter(|(_, (_, length))| **length > 0).step_by(3)
        {
            for (byte, bit) in
                [(0, nth % 8), (length / 2, (nth + 3) % 8), (length - 1, (nth + 5) % 8)]
            {
                flip(&sandbox, table, column, *row, byte, bit);
                let answer = sandbox.run(&["verify"]);
                assert_eq!(
                    answer.code, 1,
                    "{table}.{column} row {row} byte {byte} bit {bit}: {}",
                    answer.stdout
                );
                found += 1;
                restore(&sandbox, &pristine);
            }
        }
    }
    assert!(found > 60, "{found}");
    sandbox.run(&["verify"]).ok();
}

fn restore(sandbox: &Sandbox, pristine: &[u8]) {
    for name in ["ledger.db-wal", "ledger.db-shm"] {
        let path = sandbox.path(".ledger").join(name);
        if path.exists() {
            fs::remove_file(path).unwrap();
        }
    }
    fs::write(sandbox.path(".ledger/ledger.db"), pristine).unwrap();
}

fn lengths(sandbox: &Sandbox, table: &str, column: &str) -> (Vec<i64>, Vec<usize>) {
    let database = sandbox.database();
    let mut query = database
        .prepare(&format!(
            "SELECT rowid, coalesce(length(CAST({column} AS BLOB)), 0) FROM {table} ORDER BY rowid"
        ))
        .unwrap();
    let found: Vec<(i64, i64)> = query
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    found.into_iter().map(|(row, length)| (row, usize::try_from(length).unwrap())).unzip()
}

fn flip(sandbox: &Sandbox, table: &str, column: &str, row: i64, byte: usize, bit: usize) {
    let value: Value = sandbox
        .database()
        .query_row(&format!("SELECT {column} FROM {table} WHERE rowid = {row}"), [], |found| {
            found.get(0)
        })
        .unwrap();
    let (mut bytes, is_text) = match value {
        Value::Blob(bytes) => (bytes, false),
        Value::Text(text) => (text.into_bytes(), true),
        Value::Null | Value::Integer(_) | Value::Real(_) => {
            panic!("{table}.{column} is no text and no blob")
        }
    };
    bytes[byte] ^= 1 << bit;
    let literal = ledger::id::to_hex(&bytes);
    let literal =
        if is_text { format!("CAST(x'{literal}' AS TEXT)") } else { format!("x'{literal}'") };
    unguarded(sandbox, &format!("UPDATE {table} SET {column} = {literal} WHERE rowid = {row}"));
}

#[test]
fn a_torn_object_is_found_told_and_healed_by_recording_again() {
    for damage in ["zero", "short", "flip", "gone"] {
        let sandbox = filled();
        let object = sandbox.listing().into_iter().find(|path| is_object(path)).unwrap();
        let mut bytes = fs::read(&object).unwrap();
        fs::set_permissions(&object, fs::Permissions::from_mode(0o644)).unwrap();
        match damage {
            "zero" => bytes.clear(),
            "short" => bytes.truncate(bytes.len() / 2),
            _ => {
                let third = bytes.len() / 3;
                bytes[third] ^= 1;
            }
        }
        fs::write(&object, bytes).unwrap();
        if damage == "gone" {
            fs::remove_file(&object).unwrap();
        }
        let hash = object.rsplit('/').next().unwrap().trim_end_matches(".zst").to_owned();
        sandbox.run(&["verify"]).fails(1).prints(&hash);
        sandbox.run(&["cat", &hash]).fails(1).says("is damaged");
        sandbox
            .run(&["record", "c"])
            .ok()
            .says("already recorded")
            .says("repaired 1 damaged objects");
        sandbox.run(&["verify"]).ok();
    }
}

#[test]
fn a_damaged_row_is_healed_by_recording_again() {
    let sandbox = filled();
    unguarded(&sandbox, "UPDATE blob SET data = zeroblob(length(data)) WHERE id = 1");
    sandbox.run(&["verify"]).fails(1);
    sandbox.run(&["record", "a"]).fails(2);
    sandbox.run(&["record", "b"]).ok();
    let healed = Sandbox::new();
    healed.run_folder("a", 1);
    healed.record("a");
    unguarded(&healed, "UPDATE blob SET data = zeroblob(length(data)) WHERE id = 1");
    healed.run(&["record", "a"]).ok().says("repaired 1 damaged objects");
    healed.run(&["verify"]).ok().prints("note: stored-form-altered");
    healed.run(&["verify", "--deep"]).ok();
}

#[test]
fn editing_the_source_changes_nothing_in_the_ledger() {
    let sandbox = filled();
    sandbox.write("c/result.json", "{}");
    sandbox.run(&["verify", "--deep"]).ok();
}

#[test]
fn deep_finds_a_number_that_is_not_in_the_artifacts() {
    // A forger who rewrites body, id, tree and heads is found by the artifacts.
    let sandbox = Sandbox::new();
    sandbox.run_folder("a", 1);
    sandbox.record("a");
    let body: Vec<u8> =
        sandbox.database().query_row("SELECT body FROM entry", [], |row| row.get(0)).unwrap();
    let text = String::from_utf8(body).unwrap();
    let forged = text.replacen("\"p50\":57.5", "\"p50\":5.75", 1);
    assert_ne!(text, forged);
    let id = blake3::hash(forged.as_bytes());
    let hex = ledger::id::to_hex;
    unguarded(
        &sandbox,
        &format!("UPDATE entry SET body = x'{}', id = x'{}'", hex(forged.as_bytes()), id.to_hex()),
    );
    sandbox
        .run(&["verify", "--deep"])
        .fails(1)
        .prints("metric-differs")
        .prints("`ttft_ms@concurrency=1`");
}
