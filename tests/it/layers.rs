//! Imports run in one direction only. Inside the core a module may use modules of its own layer's
//! earlier rooms and of the layers below; the list here is the map of ARCHITECTURE.md.

use std::fs;
use std::path::{Path, PathBuf};

/// Rooms of `ledger/src` in order: a room may use only rooms that stand before it.
const ROOMS: &[&str] = &[
    "id",
    "canonical",
    "text",
    "quantity",
    "clock",
    "finding",
    "outline",
    "decode",
    "stats", // 0: no domain word
    "metric",
    "subject",
    "tree",
    "cell",
    "fingerprint",
    "statement",
    "entry",
    "summary",
    "adapter",
    "manifest",
    "provenance",
    "validity", // 1: domain, pure
    "collect",
    "probe",
    "store", // 2: the world
    "selector",
    "restore",
    "import",
    "verify",
    "amend",
    "record", // 3: verbs
];

fn sources(folder: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    walk(&Path::new(env!("CARGO_MANIFEST_DIR")).join(folder), &mut found);
    assert!(!found.is_empty(), "{folder}");
    found
}

fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap().filter_map(Result::ok) {
        let path = entry.path();
        if path.is_dir() {
            walk(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// The part of a file before its tests.
fn code(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap();
    text.split("#[cfg(test)]").next().unwrap_or_default().to_owned()
}

/// The room a file of the core belongs to.
fn room(path: &Path) -> String {
    let inside =
        path.strip_prefix(Path::new(env!("CARGO_MANIFEST_DIR")).join("ledger/src")).unwrap();
    let first = inside.components().next().unwrap().as_os_str().to_string_lossy().into_owned();
    first.trim_end_matches(".rs").to_owned()
}

fn place(room: &str) -> usize {
    ROOMS
        .iter()
        .position(|known| *known == room)
        .unwrap_or_else(|| panic!("`{room}` is in no room of the list"))
}

#[test]
fn the_core_looks_down_only() {
    for path in sources("ledger/src") {
        let own = room(&path);
        if own == "lib" || path.ends_with("tests.rs") {
            continue;
        }
        for (number, line) in code(&path).lines().enumerate() {
            for used in line.split("crate::").skip(1) {
                assert!(
                    !used.starts_with('{'),
                    "{}:{} groups `use crate::{{…}}`, which this test cannot read",
                    path.display(),
                    number + 1
                );
                let used: String =
                    used.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
                let is_prose = line.trim_start().starts_with("//");
                assert!(
                    is_prose || used == own || place(&used) < place(&own),
                    "{}:{}: `{own}` uses `{used}`, which stands above it",
                    path.display(),
                    number + 1
                );
            }
        }
    }
}

#[test]
fn only_the_store_knows_sqlite_and_only_durable_makes_files_in_a_ledger() {
    for path in sources("ledger/src") {
        let text = code(&path);
        if room(&path) != "store" {
            assert!(!text.contains("rusqlite"), "{}", path.display());
        }
        if path.ends_with("tests.rs") {
            continue;
        }
        let may_create = path.ends_with("store/durable.rs") || path.ends_with("restore.rs");
        for word in ["File::create", "fs::write(", "fs::create_dir", "fs::rename"] {
            assert!(may_create || !text.contains(word), "{} has {word}", path.display());
        }
    }
}

#[test]
fn adapters_do_not_know_each_other() {
    for path in sources("importers/src") {
        let inside = path
            .strip_prefix(Path::new(env!("CARGO_MANIFEST_DIR")).join("importers/src"))
            .unwrap()
            .to_owned();
        let own = inside
            .components()
            .next()
            .unwrap()
            .as_os_str()
            .to_string_lossy()
            .trim_end_matches(".rs")
            .to_owned();
        if own == "lib" {
            continue;
        }
        for used in code(&path).split("crate::").skip(1) {
            let used: String =
                used.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            assert!(used == "read" || used == own, "{} uses {used}", path.display());
        }
    }
}

#[test]
fn only_the_context_reads_the_environment() {
    for path in
        sources("src").into_iter().chain(sources("ledger/src")).chain(sources("importers/src"))
    {
        let is_context = path.ends_with("src/context.rs");
        assert!(is_context || !code(&path).contains("env::var"), "{}", path.display());
    }
}
