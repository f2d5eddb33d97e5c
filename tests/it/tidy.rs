//! What a reviewer would ask, asked by a test: sizes, module docs, and lists that must stay equal.

use ledger::finding::Code;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn sources() -> Vec<PathBuf> {
    let mut found = Vec::new();
    for folder in [
        "src",
        "ledger/src",
        "importers/src",
        "tests/it",
        "ledger/tests",
        "importers/tests",
        "ledger/examples",
    ] {
        walk(&root().join(folder), &mut found);
    }
    found
}

fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.filter_map(Result::ok) {
        let path = entry.path();
        if path.is_dir() {
            walk(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn files_hold_one_idea_and_say_which() {
    for path in sources() {
        let text = fs::read_to_string(&path).unwrap();
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        let lines = code.lines().count();
        let is_test = path.starts_with(root().join("tests"));
        assert!(lines <= if is_test { 700 } else { 720 }, "{} has {lines} lines", path.display());
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        assert!(
            !["util", "utils", "helpers", "common", "types", "imp", "misc"]
                .contains(&name.as_str()),
            "{}",
            path.display()
        );
        let has_docs = text.starts_with("//!") || path.ends_with("tests.rs");
        assert!(has_docs, "{} does not say what it owns", path.display());
        for mark in ["todo!(", "unimplemented!(", "FIXME", "XXX"] {
            let is_this = path.ends_with("tidy.rs");
            assert!(is_this || !text.contains(mark), "{} has {mark}", path.display());
        }
    }
}

#[test]
fn every_test_file_is_listed() {
    let listed = read("tests/it/main.rs");
    for entry in fs::read_dir(root().join("tests/it")).unwrap().filter_map(Result::ok) {
        let name = entry.path().file_stem().unwrap().to_string_lossy().into_owned();
        assert!(name == "main" || listed.contains(&format!("mod {name};")), "{name} is not listed");
    }
}

#[test]
fn every_finding_code_is_documented_and_no_other() {
    let text = read("schema/README.md");
    let documented: BTreeSet<&str> =
        text.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next()).collect();
    let known: BTreeSet<&str> = Code::ALL.iter().map(|code| code.as_str()).collect();
    assert_eq!(documented, known);
}

#[test]
fn every_command_has_an_example_and_is_in_the_readme() {
    let readme = read("README.md");
    let output =
        std::process::Command::new(env!("CARGO_BIN_EXE_ledger")).arg("--help").output().unwrap();
    let help = String::from_utf8_lossy(&output.stdout).into_owned();
    let commands = help.split("Commands:").nth(1).unwrap().split("Options:").next().unwrap();
    let names: Vec<&str> = commands
        .lines()
        .filter_map(|line| line.strip_prefix("  ")?.split_whitespace().next())
        .collect();
    assert!(names.len() > 15, "{names:?}");
    for name in names.into_iter().filter(|name| *name != "help") {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_ledger"))
            .args([name, "--help"])
            .output()
            .unwrap();
        let page = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(page.contains("Example:"), "{name} has no example");
        assert!(
            readme.contains(&format!("`ledger {name}")),
            "README does not name `ledger {name}`"
        );
    }
}

#[test]
fn every_fixture_has_its_line() {
    let text = read("fixtures/README.md");
    for group in fs::read_dir(root().join("fixtures"))
        .unwrap()
        .filter_map(Result::ok)
        .filter(|entry| entry.path().is_dir())
    {
        for fixture in fs::read_dir(group.path()).unwrap().filter_map(Result::ok) {
            let name = format!(
                "{}/{}",
                group.file_name().to_string_lossy(),
                fixture.file_name().to_string_lossy()
            );
            assert!(text.contains(&name), "{name} has no line in fixtures/README.md");
        }
    }
}

#[test]
fn schemas_are_json_and_describe_what_is_printed() {
    for entry in fs::read_dir(root().join("schema")).unwrap().filter_map(Result::ok) {
        let path = entry.path();
        if path.extension().is_some_and(|extension| extension == "json") {
            let text = fs::read_to_string(&path).unwrap();
            let schema: serde_json::Value = serde_json::from_str(&text).unwrap();
            assert_eq!(
                schema["$schema"],
                "https://json-schema.org/draft/2020-12/schema",
                "{}",
                path.display()
            );
            assert!(schema["description"].is_string(), "{}", path.display());
        }
    }
}

#[test]
fn the_repository_speaks_of_the_project_alone() {
    for path in [
        "README.md",
        "ARCHITECTURE.md",
        "CONTRIBUTING.md",
        "CHANGELOG.md",
        "fixtures/README.md",
        "schema/README.md",
    ] {
        let text = read(path);
        for word in ["/work/", "/opt/re", "TODO"] {
            assert!(!text.contains(word), "{path} has {word}");
        }
    }
}
