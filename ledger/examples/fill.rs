//! Fills a ledger with synthetic runs through the library's own append path, so that views can be
//! measured on a million runs without a million folders.
//!
//! ```sh
//! cargo run --release -p ledger --example fill -- FOLDER RUNS KEYS
//! ```
//!
//! Subjects repeat over KEYS keys, a few of them getting most runs; about one run in fifty arrives late.
//! The runs name no artifacts, so `verify` reports them missing: this fills views, not evidence.
#![expect(clippy::print_stderr, reason = "an example program reports to the person who started it")]

use chrono::{DateTime, Utc};
use ledger::canonical::Finite;
use ledger::cell::RequestCounts;
use ledger::clock::stamp;
use ledger::entry::{
    BODY_VERSION, Body, Circumstances, Outcome, RunBody, StoredCell, StoredMetric, StoredTokens,
    Validity,
};
use ledger::metric::Statistic;
use ledger::store::{Store, StoreError};
use ledger::subject::Subject;
use std::collections::BTreeMap;
use std::path::Path;

const CONFIGS: [&str; 8] =
    ["default", "maxseq64", "maxseq256", "kv-fp8", "mtp1", "pcap300w", "pcap450w", "ctx1m"];
const TASKS: [&str; 8] = [
    "random-1k-1k",
    "random-8k-1k",
    "sharegpt",
    "longctx-128k",
    "agentic",
    "decode-bs1",
    "mmlu-pro",
    "tools",
];
const HARDWARE: [&str; 6] =
    ["rtxpro6000x1", "rtxpro6000x4", "gb10", "h100x8", "rtx4090x2", "m3ultra"];

/// `SplitMix64` (Steele, Lea and Flood 2014): the same runs on every machine.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit.max(1)
    }
}

fn pick<'a>(list: &[&'a str], index: u64) -> &'a str {
    usize::try_from(index)
        .ok()
        .and_then(|index| list.get(index % list.len()))
        .copied()
        .unwrap_or_default()
}

fn subject(key: u64) -> Subject {
    Subject {
        candidate: format!("org/Model-{:05}", key / 384),
        config: pick(&CONFIGS, key / 8).to_owned(),
        task: pick(&TASKS, key).to_owned(),
        hardware: pick(&HARDWARE, key / 64).to_owned(),
    }
}

fn hex(random: &mut Random) -> String {
    let bytes: Vec<u8> = (0..4).flat_map(|_| random.next().to_be_bytes()).collect();
    ledger::id::to_hex(&bytes)
}

fn run(random: &mut Random, key: u64, at: DateTime<Utc>) -> Body {
    let rate = 40.0 + random.below(4000) as f64 / 10.0;
    let metric = StoredMetric {
        name: "output_tok_s".to_owned(),
        n: None,
        computed: BTreeMap::new(),
        given: Finite::new(rate).map(|rate| (Statistic::Value, rate)).into_iter().collect(),
        protocol: None,
    };
    let is_failed = random.below(50) == 0;
    Body::Run(Box::new(RunBody {
        v: BODY_VERSION,
        key: hex(random),
        root: hex(random),
        fingerprint_id: hex(random),
        recorded_at: stamp(at),
        tool: "fill".to_owned(),
        subject: subject(key),
        fingerprint: serde_json::json!({}),
        sources: BTreeMap::new(),
        measured_at: stamp(at),
        measured_at_source: "fill".to_owned(),
        server_start: None,
        outcome: if is_failed { Outcome::Failed } else { Outcome::Measured },
        failure: None,
        provenance: None,
        manifest: None,
        results: Vec::new(),
        cells: vec![StoredCell {
            id: "concurrency=16".to_owned(),
            parameters: BTreeMap::new(),
            metrics: vec![metric],
            missing: Vec::new(),
            requests: RequestCounts::default(),
            tokens: StoredTokens::default(),
            items: None,
        }],
        labels: BTreeMap::new(),
        observed: BTreeMap::new(),
        circumstances: Circumstances::default(),
        validity: Validity::Ok,
        findings: Vec::new(),
        given_beside: Vec::new(),
        replaces: None,
    }))
}

fn fill(folder: &Path, runs: u64, keys: u64) -> Result<(), StoreError> {
    let (mut store, _) = Store::open_or_create(folder)?;
    let mut random = Random(1);
    let mut at = DateTime::<Utc>::UNIX_EPOCH + chrono::Duration::seconds(1_700_000_000);
    let mut done = 0;
    while done < runs {
        let count = (runs - done).min(10_000);
        let bodies: Vec<Body> = (0..count)
            .map(|n| {
                let share = random.below(1 << 20);
                let key = if done + n < keys {
                    done + n
                } else {
                    share * share / (1 << 20) * keys / (1 << 20)
                };
                at += chrono::Duration::seconds(i64::try_from(random.below(60)).unwrap_or(0) + 1);
                let late = if random.below(50) == 0 { 100_000 } else { 0 };
                run(&mut random, key, at - chrono::Duration::seconds(late))
            })
            .collect();
        let append = store.begin()?;
        append.append(&bodies)?;
        append.commit()?;
        done += count;
        eprintln!("{done} runs");
    }
    Ok(())
}

fn main() -> std::process::ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    let number = |index: usize, usual: u64| {
        arguments.get(index).and_then(|text| text.parse().ok()).unwrap_or(usual)
    };
    let Some(folder) = arguments.get(1) else {
        eprintln!("usage: fill FOLDER [RUNS] [KEYS]");
        return std::process::ExitCode::from(2);
    };
    match fill(Path::new(folder), number(2, 10_000), number(3, 5_000)) {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            std::process::ExitCode::from(4)
        }
    }
}
