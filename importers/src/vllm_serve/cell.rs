//! The one cell of a serve record: counts, system rates, latencies from the arrays where they are,
//! and what hidden reasoning does to them.

use super::file::ServeFile;
use ledger::adapter::ExtractError;
use ledger::cell::{Cell, CountOrigin, Metric, Request, RequestStatus};
use ledger::finding::{Code, Finding};
use ledger::metric::{Statistic, Unit};
use ledger::stats::quantile::median;

/// Statistics that the summary prints for each latency: prefix of the key, statistic.
const STATISTICS: &[(&str, Statistic)] = &[
    ("mean", Statistic::Mean),
    ("median", Statistic::P50),
    ("std", Statistic::Std),
    ("p90", Statistic::P90),
    ("p95", Statistic::P95),
    ("p99", Statistic::P99),
    ("p99.9", Statistic::P999),
];

/// A computed and a printed statistic that differ by more than this share disagree; prints carry all
/// digits, so only another definition differs more.
const AGREEMENT: f64 = 1e-3;

/// TPOT below this share of ITL is impossible when every token is a chunk.
const TPOT_SHARE: f64 = 0.5;

/// Extracts the cell.
pub(super) fn cell(record: &ServeFile) -> Result<Cell, ExtractError> {
    let mut cell = Cell::default();
    if let Some(concurrency) = record.count("max_concurrency") {
        cell.parameters.insert("concurrency".to_owned(), concurrency.into());
    }
    if let Some(rate) = record.rate() {
        cell.parameters.insert("rate".to_owned(), rate.to_string().into());
    }
    count(record, &mut cell);
    tokens(record, &mut cell);
    check_lengths(record)?;
    if cell.requests.completed == Some(0) || record.count("total_output_tokens") == Some(0) {
        // Zeros of a run in which nothing was produced are no measurement.
        cell.push_missing("ttft_ms", "nothing was generated");
        cell.push_missing("output_tok_s", "nothing was generated");
        return Ok(cell);
    }
    system_rates(record, &mut cell);
    speculation(record, &mut cell);
    if record.ttfts.is_empty() {
        summary_latencies(record, &mut cell);
    } else {
        detailed_latencies(record, &mut cell);
    }
    Ok(cell)
}

fn count(record: &ServeFile, cell: &mut Cell) {
    let requests = &mut cell.requests;
    requests.asked = record.count("num_prompts");
    requests.completed = record.count("completed");
    requests.failed = record.count("failed");
    if let (None, Some(asked), Some(completed)) =
        (record.count("failed"), record.count("num_prompts"), record.count("completed"))
    {
        requests.failed = Some(asked.saturating_sub(completed));
        requests.failed_origin = CountOrigin::Derived;
    }
    // A failed request has no text either, so only texts of completed ones say anything.
    requests.empty = record.empty_texts.as_ref().map(|texts| {
        texts
            .iter()
            .zip(statuses(record))
            .filter(|(empty, status)| **empty && *status == RequestStatus::Ok)
            .count() as u64
    });
}

fn statuses(record: &ServeFile) -> impl Iterator<Item = RequestStatus> + '_ {
    (0..).map(|index: usize| {
        let error = record.errors.get(index).and_then(Option::as_deref).unwrap_or_default();
        if error.is_empty() { RequestStatus::Ok } else { RequestStatus::Failed }
    })
}

fn tokens(record: &ServeFile, cell: &mut Cell) {
    let per_request = |total: Option<u64>| {
        let completed = record.count("completed").filter(|completed| *completed > 0)?;
        Some(total? as f64 / completed as f64)
    };
    cell.tokens.prompt_total = record.count("total_input_tokens");
    cell.tokens.output_total = record.count("total_output_tokens");
    cell.tokens.prompt_mean = per_request(record.count("total_input_tokens"));
    cell.tokens.output_mean = per_request(record.count("total_output_tokens"));
    for key in ["random_input_len", "random_output_len"] {
        let planned = record.rest.get(key).and_then(crate::read::number::to_count);
        match key {
            "random_input_len" => cell.tokens.prompt_nominal = planned,
            _ => cell.tokens.output_limit = planned,
        }
    }
}

fn check_lengths(record: &ServeFile) -> Result<(), ExtractError> {
    let n = record.ttfts.len();
    let fits = |length: usize| n == 0 || length == 0 || length == n;
    let all = [record.itls.len(), record.output_lens.len(), record.input_lens.len()];
    if all.into_iter().all(fits) {
        return Ok(());
    }
    Err(ExtractError::Field {
        field: "ttfts, itls, input_lens, output_lens".to_owned(),
        problem: format!("have {n}, {}, {} and {} elements", all[0], all[2], all[1]),
    })
}

fn system_rates(record: &ServeFile, cell: &mut Cell) {
    for (metric, key) in [
        ("output_tok_s", "output_throughput"),
        ("total_tok_s", "total_token_throughput"),
        ("request_s", "request_throughput"),
        ("goodput_s", "request_goodput"),
        ("goodput_s", "request_goodput:"),
        ("peak_output_tok_s", "max_output_tokens_per_s"),
    ] {
        let value = record.number(key);
        cell.push(Metric::new(metric).with_given(Statistic::Value, Unit::Canonical, value, key));
    }
    cell.push(Metric::new("duration_s").with_given(
        Statistic::Value,
        Unit::Seconds,
        record.number("duration"),
        "duration",
    ));
}

fn speculation(record: &ServeFile, cell: &mut Cell) {
    let computed = record
        .number("spec_decode_accepted_tokens")
        .zip(record.number("spec_decode_draft_tokens"))
        .filter(|(_, drafted)| *drafted > 0.0)
        .map(|(accepted, drafted)| accepted / drafted);
    let metric = match computed {
        Some(share) => Metric::new("spec_accept_rate").with_given(
            Statistic::Value,
            Unit::Fraction,
            Some(share),
            "spec_decode_accepted_tokens / spec_decode_draft_tokens",
        ),
        None => Metric::new("spec_accept_rate").with_given(
            Statistic::Value,
            Unit::Percent,
            record.number("spec_decode_acceptance_rate"),
            "spec_decode_acceptance_rate",
        ),
    };
    cell.push(metric);
    cell.push(Metric::new("spec_accept_length").with_given(
        Statistic::Value,
        Unit::Canonical,
        record.number("spec_decode_acceptance_length"),
        "spec_decode_acceptance_length",
    ));
}

/// A latency with everything the summary prints of it.
fn given(record: &ServeFile, metric: &str, key: &str) -> Metric {
    STATISTICS.iter().fold(Metric::new(metric), |metric, (prefix, statistic)| {
        let key = format!("{prefix}_{key}_ms");
        let value = record.number(&key);
        let mut metric = metric.with_given(*statistic, Unit::Milliseconds, value, &key);
        if *statistic == Statistic::Std
            && let Some(given) = metric.given.get_mut(statistic)
        {
            given.ddof = Some(0);
        }
        metric
    })
}

fn summary_latencies(record: &ServeFile, cell: &mut Cell) {
    let [ttft, tpot, itl, e2e] =
        [("ttft_ms", "ttft"), ("tpot_ms", "tpot"), ("itl_ms", "itl"), ("e2e_ms", "e2el")]
            .map(|(metric, key)| given(record, metric, key));
    let mean = |metric: &Metric| metric.given.get(&Statistic::Mean).map(|given| given.value);
    let is_speculative = record.number("spec_decode_acceptance_length").is_some();
    let disagree = mean(&tpot)
        .zip(mean(&itl))
        .filter(|(tpot, itl)| *tpot < TPOT_SHARE * itl && !is_speculative);
    cell.push(ttft);
    cell.push(e2e);
    if let Some((tpot, itl)) = disagree {
        let reason = format!(
            "mean TPOT {tpot:.2} ms lies far below mean ITL {itl:.2} ms: tokens were not streamed one by one"
        );
        cell.push_missing("tpot_ms", reason.clone());
        cell.push_missing("itl_ms", reason.clone());
        cell.cautions.push(Finding::caution(Code::TpotBelowItl, "", reason));
    } else {
        cell.push(tpot);
        cell.push(itl);
    }
}

/// Times of one completed request, in milliseconds.
struct Timing {
    ttft: f64,
    decode: f64,
    gaps: usize,
    output: u64,
}

fn detailed_latencies(record: &ServeFile, cell: &mut Cell) {
    let mut timings = Vec::new();
    let mut gaps = Vec::new();
    for (index, (ttft, status)) in record.ttfts.iter().zip(statuses(record)).enumerate() {
        let output = record.output_lens.get(index).copied();
        cell.request_rows.push(Request {
            status,
            prompt_tokens: record.input_lens.get(index).copied(),
            output_tokens: output.filter(|_| status == RequestStatus::Ok),
            truncated: None,
        });
        let (Some(ttft), RequestStatus::Ok) = (ttft, status) else { continue };
        let own: Vec<f64> =
            record.itls.get(index).into_iter().flatten().flatten().map(|gap| gap * 1e3).collect();
        timings.push(Timing {
            ttft: ttft * 1e3,
            decode: own.iter().sum(),
            gaps: own.len(),
            output: output.unwrap_or(own.len() as u64 + 1),
        });
        gaps.extend(own);
    }
    let hidden = find_hidden(record, &timings, &gaps);
    let samples =
        |take: &dyn Fn(&Timing) -> Option<f64>| timings.iter().filter_map(take).collect::<Vec<_>>();
    let is_several = |timing: &&Timing| timing.output > 1 && timing.decode > 0.0;
    let ttft = samples(&|timing| Some(timing.ttft));
    let e2e = samples(&|timing| Some(timing.ttft + timing.decode));
    let tpot = samples(&|timing| {
        Some(timing).filter(is_several).map(|t| t.decode / (t.output - 1) as f64)
    });
    let decode = samples(&|timing| {
        Some(timing).filter(is_several).map(|t| (t.output - 1) as f64 / t.decode * 1e3)
    });
    let with = |name: &str, key: &str, samples: Vec<f64>| {
        given(record, name, key).with_samples(Unit::Milliseconds, samples)
    };
    if let Some(hidden) = hidden {
        hide(cell, hidden, &ttft);
    } else {
        for (name, key, samples) in
            [("ttft_ms", "ttft", ttft), ("tpot_ms", "tpot", tpot), ("itl_ms", "itl", gaps)]
        {
            check_and_push(cell, with(name, key, samples));
        }
        cell.push(Metric::new("decode_tok_s").with_samples(Unit::Canonical, decode));
    }
    check_and_push(cell, with("e2e_ms", "e2el", e2e));
}

/// Tokens per request that came before the first visible chunk. Several tokens in one chunk look the
/// same in the counts, but then TTFT is too short for them to have been generated before it.
fn find_hidden(record: &ServeFile, timings: &[Timing], gaps: &[f64]) -> Option<Vec<u64>> {
    if record.itls.is_empty() || record.output_lens.is_empty() {
        return None;
    }
    let hidden: Vec<u64> =
        timings.iter().map(|timing| timing.output.saturating_sub(timing.gaps as u64 + 1)).collect();
    let counts: Vec<f64> = hidden.iter().map(|tokens| *tokens as f64).collect();
    let outputs: Vec<f64> = timings.iter().map(|timing| timing.output as f64).collect();
    let ttfts: Vec<f64> = timings.iter().map(|timing| timing.ttft).collect();
    let (typical, output, gap, ttft) =
        (median(&counts)?, median(&outputs)?, median(gaps)?, median(&ttfts)?);
    let came_first = ttft >= TPOT_SHARE * typical * gap;
    (typical > 0.1 * output && typical >= 2.0 && came_first).then_some(hidden)
}

fn hide(cell: &mut Cell, hidden: Vec<u64>, ttft: &[f64]) {
    let most = hidden.iter().max().copied().unwrap_or(0);
    let message = format!(
        "up to {most} tokens a request came before the first visible chunk: hidden reasoning"
    );
    cell.cautions.push(Finding::caution(Code::TokensWithoutChunks, "", message));
    let message = "TPOT divides the time of the visible tokens by all of them";
    cell.cautions.push(Finding::caution(Code::TpotBelowItl, "", message));
    cell.tokens.hidden = hidden;
    cell.tokens.reasoning_counted = Some(true);
    cell.push(
        Metric::new("time_to_first_visible_ms")
            .with_samples(Unit::Milliseconds, ttft.iter().copied()),
    );
    for metric in ["ttft_ms", "tpot_ms", "itl_ms", "decode_tok_s"] {
        cell.push_missing(metric, "hidden tokens came before the first visible chunk");
    }
}

fn check_and_push(cell: &mut Cell, metric: Metric) {
    if metric.given.is_empty() {
        cell.push(metric);
        return;
    }
    let computed = ledger::summary::compute(&metric.samples);
    for (statistic, given) in &metric.given {
        let Some(own) = computed.get(statistic).map(|value| value.get()) else { continue };
        // Printed standard deviations are the population's, ours the sample's.
        let n = metric.samples.len() as f64;
        let own = if *statistic == Statistic::Std { own * ((n - 1.0) / n).sqrt() } else { own };
        if (own - given.value).abs() > AGREEMENT * own.abs().max(given.value.abs()) {
            let message = format!(
                "`{}` is {} in the summary and {own} from the samples",
                given.key, given.value
            );
            cell.cautions.push(Finding::caution(
                Code::StatisticDisagrees,
                format!("{}@{}", metric.name, cell.id()),
                message,
            ));
        }
    }
    cell.push(metric);
}
