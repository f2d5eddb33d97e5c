//! Function benches: what `record` spends its time on. `cargo bench -p ledger`.
#![expect(missing_docs, reason = "criterion's macros make functions without docs")]

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use ledger::id::BlobId;
use ledger::outline::outline;
use ledger::store::prepare_bytes;
use ledger::summary::compute;
use std::hint::black_box;

/// A megabyte of what results are made of: floats with all their digits.
fn floats() -> String {
    let mut state = 1u64;
    let mut text = String::from("{\"model_id\": \"m\", \"itls\": [");
    while text.len() < 1 << 20 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        text.push_str(&((state >> 11) as f64 / 1e16).to_string());
        text.push_str(", ");
    }
    text + "0], \"completed\": 1}"
}

fn functions(criterion: &mut Criterion) {
    let text = floats();
    let samples: Vec<f64> = (0..10_000).map(|n| f64::from(n * 7919 % 10_007)).collect();
    let mut group = criterion.benchmark_group("1 MiB of floats");
    group.throughput(Throughput::Bytes(text.len() as u64));
    group.bench_function("hash", |b| b.iter(|| BlobId::of(black_box(text.as_bytes()))));
    group.bench_function("compress", |b| {
        b.iter(|| prepare_bytes(BlobId::of(b""), black_box(text.as_bytes())).ok());
    });
    group.bench_function("outline", |b| b.iter(|| outline(black_box(&text)).keys.len()));
    group.finish();
    criterion.bench_function("statistics of 10,000 samples", |b| {
        b.iter(|| compute(black_box(&samples)));
    });
}

criterion_group!(benches, functions);
criterion_main!(benches);
