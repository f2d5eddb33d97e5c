//! Properties: any tree of artifacts comes back byte for byte, its key depends on nothing but its
//! content, and what is appended in any order answers the same.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on must fail")]

use ledger::adapter::Formats;
use ledger::amend::{self, Statement};
use ledger::canonical;
use ledger::clock::{self, Clock};
use ledger::id::BlobId;
use ledger::record::{self, Planned, RecordRequest, Recorded, Surroundings};
use ledger::restore::{read_tree, restore};
use ledger::store::{Access, Store};
use ledger::subject::SubjectFilter;
use ledger::text::{escape_path, unescape_path};
use ledger::tree::{Artifact, Tree};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Names that a Linux file may have: any bytes but `/` and NUL.
fn name() -> impl Strategy<Value = Vec<u8>> {
    let byte = any::<u8>().prop_filter("no separator", |byte| *byte != b'/' && *byte != 0);
    proptest::collection::vec(byte, 1..12)
        .prop_filter("no dots alone", |name| name != b"." && name != b"..")
}

fn files() -> impl Strategy<Value = BTreeMap<Vec<u8>, Vec<u8>>> {
    let content = prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..300),
        (any::<u8>(), 1usize..100_000).prop_map(|(byte, length)| vec![byte; length]),
    ];
    proptest::collection::btree_map(name(), content, 1..6)
}

fn write(folder: &Path, files: &BTreeMap<Vec<u8>, Vec<u8>>, is_reversed: bool) {
    fs::create_dir_all(folder).unwrap();
    let mut order: Vec<_> = files.iter().collect();
    if is_reversed {
        order.reverse();
    }
    for (name, content) in order {
        fs::write(folder.join(OsStr::from_bytes(name)), content).unwrap();
    }
}

fn record(store: &mut Store, folder: &Path, candidate: &str, at: &str) -> Recorded {
    let labels = ["candidate", "config", "task", "hardware"]
        .map(|name| (name.to_owned(), candidate.to_owned()));
    let request = RecordRequest {
        source: folder.to_owned(),
        labels: labels.into(),
        measured_at: Some(at.to_owned()),
        failed: Some("a property".to_owned()),
        ..RecordRequest::default()
    };
    let surroundings = Surroundings {
        formats: Formats::NONE,
        clock: Clock::Fixed(clock::parse("2026-12-01T00:00:00Z").unwrap()),
        bindings: &[],
        tool: "test",
    };
    let plan: Planned = record::plan(&request, &surroundings, Some(store), &mut |_| {}).unwrap();
    record::commit(store, vec![plan]).unwrap().unwrap().remove(0)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_tree_comes_back_byte_for_byte_and_its_key_is_its_content(files in files()) {
        let folder = tempfile::tempdir().unwrap();
        let (mut store, _) = Store::open_or_create(&folder.path().join("a")).unwrap();
        write(&folder.path().join("one"), &files, false);
        let key = record(&mut store, &folder.path().join("one"), "x", "2026-11-01T00:00:00Z").key();
        let run = store.find_run(&key).unwrap().unwrap();
        let ledger::entry::Body::Run(body) = store.read_body(run.seq).unwrap() else { unreachable!() };
        let tree = read_tree(&store, &body.root).unwrap();
        restore(&store, &tree, &folder.path().join("back")).unwrap();
        for (name, content) in &files {
            prop_assert_eq!(&fs::read(folder.path().join("back").join(OsStr::from_bytes(name))).unwrap(), content);
        }
        prop_assert_eq!(tree.artifacts().len(), files.len());
        // Another ledger, another order of writing, another place.
        let (mut other, _) = Store::open_or_create(&folder.path().join("b")).unwrap();
        write(&folder.path().join("deep/two"), &files, true);
        prop_assert_eq!(record(&mut other, &folder.path().join("deep/two"), "x", "2026-11-01T00:00:00Z").key(), key);
    }

    #[test]
    fn two_names_never_become_one_and_every_name_comes_back(one in name(), other in name()) {
        prop_assert_eq!(escape_path(&one) == escape_path(&other), one == other);
        prop_assert_eq!(unescape_path(&escape_path(&one)), Some(one));
    }

    #[test]
    fn manifests_read_back(names in proptest::collection::btree_set(name(), 0..8), size in any::<u64>()) {
        let artifacts = names.into_iter().map(|path| Artifact { path, size_bytes: size, blob: BlobId::of(b"x") }).collect();
        let tree = Tree::new(artifacts);
        prop_assert_eq!(Tree::parse(&tree.manifest()), Ok(tree));
    }

    #[test]
    fn canonical_json_reads_back_and_is_stable(numbers in proptest::collection::vec(any::<f64>().prop_filter("finite", |n| n.is_finite()), 0..6), text in ".*") {
        let value = serde_json::json!({"numbers": numbers, text.clone(): text});
        // A whole number beyond 2^53-1 is refused, everything else is stable.
        if let Ok(bytes) = canonical::to_bytes(&value) {
            let again = canonical::to_bytes(&canonical::parse(&bytes).unwrap()).unwrap();
            prop_assert_eq!(bytes, again);
        }
    }

    #[test]
    fn the_order_of_appends_does_not_change_what_latest_says(order in Just((0..6usize).collect::<Vec<_>>()).prop_shuffle(), retract in 0..6usize) {
        let folder = tempfile::tempdir().unwrap();
        let mut answers = Vec::new();
        for (name, order) in [("a", (0..6).collect()), ("b", order)] {
            let (mut store, _) = Store::open_or_create(&folder.path().join(name)).unwrap();
            let mut keys = BTreeMap::new();
            for n in order {
                let run = folder.path().join(format!("{name}{n}"));
                write(&run, &BTreeMap::from([(b"log".to_vec(), vec![u8::try_from(n).unwrap()])]), false);
                keys.insert(n, record(&mut store, &run, "x", &format!("2026-11-0{}T00:00:00Z", n + 1)).key());
            }
            let row = store.find_run(&keys[&retract]).unwrap().unwrap();
            let statement = Statement { by: "lena".into(), reason: "why".into() };
            let clock = Clock::Fixed(clock::parse("2026-12-01T00:00:00Z").unwrap());
            let body = amend::retract(&row, &statement, None, clock).unwrap();
            amend::append(&mut store, body, Vec::new()).unwrap();
            let listed: Vec<_> = store.find_runs(&SubjectFilter::default()).unwrap().into_iter().map(|run| (run.key, run.retracted.is_some())).collect();
            let latest: Vec<_> = store.latest(&SubjectFilter::default()).unwrap().into_iter().map(|row| (row.key, row.runs)).collect();
            answers.push((listed, latest));
            // The index that grew entry by entry is the one that the log yields.
            drop(store);
            let store = Store::open(&folder.path().join(name), Access::Read).unwrap();
            let formats = Formats::NONE;
            let report = ledger::verify::verify(&store, ledger::verify::Depth::Full, &formats, None, &|_| {}).unwrap();
            prop_assert!(report.is_clean(), "{:?}", report.findings);
        }
        prop_assert_eq!(&answers[0], &answers[1]);
    }
}
