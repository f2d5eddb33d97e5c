//! From extracted cells to stored ones: statistics are computed wherever the file has samples, and
//! what the harness printed is kept beside them, marked as given.

use crate::canonical::Finite;
use crate::cell::{Cell, CheckStatus, Item, Metric, TokenCounts};
use crate::entry::{StoredCell, StoredItems, StoredMetric, StoredTokens};
use crate::metric::Statistic;
use crate::stats::quantile::quantile_of_sorted;
use std::collections::{BTreeMap, BTreeSet};

/// Summarizes one cell. Values that are not finite must have been taken out before.
pub fn summarize(cell: &Cell) -> StoredCell {
    StoredCell {
        id: cell.id(),
        parameters: cell.parameters.clone(),
        metrics: cell.metrics.iter().map(summarize_metric).collect(),
        missing: cell.missing.clone(),
        requests: cell.requests.clone(),
        tokens: summarize_tokens(cell),
        items: (!cell.items.is_empty()).then(|| summarize_items(&cell.items)),
    }
}

fn summarize_metric(metric: &Metric) -> StoredMetric {
    let given = metric
        .given
        .iter()
        .filter_map(|(statistic, given)| Some((*statistic, Finite::new(given.value)?)))
        .collect();
    StoredMetric {
        name: metric.name.clone(),
        n: (!metric.samples.is_empty()).then_some(metric.samples.len() as u64),
        computed: compute(&metric.samples),
        given,
        protocol: metric.protocol.clone(),
    }
}

/// Computes the statistics of samples: mean, sample standard deviation (n - 1, from two samples on),
/// extremes and type-7 quantiles (stats.md section 3, formula 1).
pub fn compute(samples: &[f64]) -> BTreeMap<Statistic, Finite> {
    let mut sorted = samples.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let n = sorted.len() as f64;
    let mean = sorted.iter().sum::<f64>() / n;
    let spread = sorted.iter().map(|sample| (sample - mean).powi(2)).sum::<f64>();
    let quantile = |p| quantile_of_sorted(&sorted, p);
    let values = [
        (Statistic::Mean, Some(mean)),
        (Statistic::P50, quantile(0.5)),
        (Statistic::P90, quantile(0.9)),
        (Statistic::P95, quantile(0.95)),
        (Statistic::P99, quantile(0.99)),
        (Statistic::Min, sorted.first().copied()),
        (Statistic::Max, sorted.last().copied()),
        (Statistic::Std, (sorted.len() > 1).then(|| (spread / (n - 1.0)).sqrt())),
    ];
    values
        .into_iter()
        .filter_map(|(statistic, value)| Some((statistic, Finite::new(value?)?)))
        .collect()
}

fn summarize_tokens(cell: &Cell) -> StoredTokens {
    let TokenCounts {
        prompt_nominal,
        prompt_mean,
        output_limit,
        output_mean,
        output_total,
        prompt_total,
        reasoning_counted,
        hidden,
    } = cell.tokens.clone();
    let outputs: Vec<f64> = cell
        .request_rows
        .iter()
        .filter_map(|request| request.output_tokens)
        .map(|tokens| tokens as f64)
        .collect();
    let computed = compute(&outputs);
    let cv = computed.get(&Statistic::Std).zip(computed.get(&Statistic::Mean));
    StoredTokens {
        prompt_nominal,
        prompt_mean: prompt_mean.and_then(Finite::new),
        output_limit,
        output_mean: output_mean.and_then(Finite::new),
        output_cv: cv.and_then(|(std, mean)| Finite::new(std.get() / mean.get())),
        output_total,
        prompt_total,
        reasoning_counted,
        hidden,
    }
}

fn summarize_items(items: &[Item]) -> StoredItems {
    let is_scored = |item: &&Item| matches!(item.status, CheckStatus::Pass | CheckStatus::Fail);
    let scored: Vec<&Item> = items.iter().filter(is_scored).collect();
    let names: BTreeSet<&str> = scored.iter().map(|item| item.id.as_str()).collect();
    let failed: BTreeSet<&str> = scored
        .iter()
        .filter(|item| item.status == CheckStatus::Fail)
        .map(|item| item.id.as_str())
        .collect();
    let mut classes = BTreeMap::new();
    for class in scored.iter().filter_map(|item| item.failure_class.clone()) {
        *classes.entry(class).or_insert(0) += 1;
    }
    let can_say = scored.iter().any(|item| item.truncated.is_some());
    let truncated = scored.iter().filter(|item| item.truncated == Some(true)).count() as u64;
    StoredItems {
        items: names.len() as u64,
        stable: names.difference(&failed).count() as u64,
        attempts: scored.len() as u64,
        passed: scored.iter().filter(|item| item.status == CheckStatus::Pass).count() as u64,
        truncated: can_say.then_some(truncated),
        classes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_are_those_of_numpy() {
        // numpy: x=[1,2,3,4,10]; x.mean() 4, np.percentile(x,[50,90,95,99]) 3, 7.6, 8.8, 9.76, x.std(ddof=1) 3.5355339
        let computed = compute(&[10.0, 1.0, 2.0, 3.0, 4.0]);
        let get = |statistic| computed[&statistic].get();
        for (statistic, expected) in [
            (Statistic::Mean, 4.0),
            (Statistic::P50, 3.0),
            (Statistic::P90, 7.6),
            (Statistic::P95, 8.8),
            (Statistic::P99, 9.76),
            (Statistic::Std, 3.535_533_905_932_738),
            (Statistic::Min, 1.0),
            (Statistic::Max, 10.0),
        ] {
            assert!((get(statistic) - expected).abs() < 1e-12, "{statistic}");
        }
    }

    #[test]
    fn one_sample_has_no_spread_and_none_has_nothing() {
        assert!(!compute(&[5.0]).contains_key(&Statistic::Std));
        assert!(compute(&[]).is_empty());
    }

    #[test]
    fn an_item_is_stable_when_every_attempt_passed() {
        let item = |id: &str, attempt, status, truncated| Item {
            id: id.into(),
            attempt,
            status,
            truncated,
            failure_class: None,
        };
        let items = [
            item("a", 1, CheckStatus::Pass, Some(false)),
            item("a", 2, CheckStatus::Pass, Some(false)),
            item("b", 1, CheckStatus::Pass, Some(false)),
            item("b", 2, CheckStatus::Fail, Some(true)),
            item("c", 1, CheckStatus::NotRun, None),
        ];
        let tally = summarize_items(&items);
        assert_eq!((tally.items, tally.stable, tally.attempts, tally.passed), (2, 1, 4, 3));
        assert_eq!(tally.truncated, Some(1));
    }
}
