//! Prefix cache counters scraped from a server's Prometheus endpoint before and after a run.
//!
//! Counters count from the server's start, so one scrape says nothing about a run: the rate is
//! taken from the difference of two (vllm-project/vllm#54227: a fixed seed on a warm server gave
//! 49 times lower TTFT and nothing in the result said so). Names: `vllm:prefix_cache_queries_total`
//! and `…_hits_total` with a series an engine, `vllm:gpu_prefix_cache_…` before v1, tokens each;
//! `sglang:prompt_tokens_total` and `sglang:cached_tokens_total`.

use crate::read::place::line_of;
use ledger::adapter::{Companion, ExtractError, Fact, FactKind, Observation, SourceFile};
use ledger::finding::{Code, Finding};
use serde_json::json;

/// Hit rates below this leave a run cold: chat templates and system prompts are shared always.
const COLD_BELOW: f64 = 0.05;

/// Hit rates from this on are a run that measures the cache.
const WARM_FROM: f64 = 0.5;

/// Names of the two counters, without the prefix of the engine and the ending `_total`.
const NAMES: [(&str, &str); 3] = [
    ("prefix_cache_queries", "prefix_cache_hits"),
    ("gpu_prefix_cache_queries", "gpu_prefix_cache_hits"),
    ("prompt_tokens", "cached_tokens"),
];

const ENGINES: [&str; 4] = ["vllm:", "vllm_", "sglang:", "sglang_"];

/// The companion for prefix cache counters.
#[derive(Debug, Clone, Copy)]
pub struct PrefixCacheCounters;

/// The counters of one scrape, summed over their label sets.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Scrape<'a> {
    file: &'a str,
    line: usize,
    queries: f64,
    hits: f64,
}

impl Companion for PrefixCacheCounters {
    fn id(&self) -> &'static str {
        "prefix-cache-counters"
    }

    fn version(&self) -> u32 {
        1
    }

    fn title(&self) -> &'static str {
        "Prometheus prefix cache counters before and after"
    }

    fn detect(&self, file: &SourceFile<'_>) -> Option<String> {
        read_scrape(file).map(|_| "series that count prefix cache queries and hits".to_owned())
    }

    fn observe(&self, files: &[SourceFile<'_>]) -> Result<Observation, ExtractError> {
        let mut scrapes: Vec<Scrape<'_>> = files.iter().filter_map(read_scrape).collect();
        scrapes.sort_by(|a, b| a.queries.total_cmp(&b.queries).then(a.hits.total_cmp(&b.hits)));
        let (Some(before), Some(after)) = (scrapes.first(), scrapes.last()) else {
            return Ok(Observation::default());
        };
        if scrapes.len() < 2 {
            let message = "one scrape of the counters: without a second there is no difference";
            return Ok(unknown_state(message, before));
        }
        if is_reset(before, after) {
            let message = "the counters fell between the scrapes: the server was restarted";
            return Ok(unknown_state(message, after));
        }
        Ok(describe(before, after))
    }
}

/// Sums the counters of a scrape; nothing when one of the two is not there.
fn read_scrape<'a>(file: &SourceFile<'a>) -> Option<Scrape<'a>> {
    NAMES.iter().find_map(|(queries, hits)| {
        let (queries, line) = sum_series(file.text, queries)?;
        let (hits, _) = sum_series(file.text, hits)?;
        Some(Scrape { file: file.name, line, queries, hits })
    })
}

/// Adds up every series of a counter; also returns the line of the first.
fn sum_series(text: &str, name: &str) -> Option<(f64, usize)> {
    let mut found = None;
    for (index, line) in text.lines().enumerate() {
        let Some(value) = series_value(line.trim(), name) else { continue };
        let (sum, first) = found.unwrap_or((0.0, index + 1));
        found = Some((sum + value, first));
    }
    found
}

/// `vllm:prefix_cache_hits_total{engine="0"} 2048.0`, possibly with a timestamp behind.
fn series_value(line: &str, name: &str) -> Option<f64> {
    let bare = ENGINES.iter().find_map(|engine| line.strip_prefix(engine)).unwrap_or(line);
    let rest = bare.strip_prefix(name)?;
    let rest = rest.strip_prefix("_total").unwrap_or(rest);
    let values = match rest.strip_prefix('{') {
        Some(labels) => labels.rsplit_once('}')?.1,
        None => rest.strip_prefix(' ')?,
    };
    let value: f64 = values.split_whitespace().next()?.parse().ok()?;
    (value.is_finite() && value >= 0.0).then_some(value)
}

/// Files are ordered by their counters, so a name that says otherwise means a restart in between.
fn is_reset(before: &Scrape<'_>, after: &Scrape<'_>) -> bool {
    let says = |scrape: &Scrape<'_>, word: &str| scrape.file.to_ascii_lowercase().contains(word);
    let is_swapped = says(before, "after") && says(after, "before");
    is_swapped || after.hits < before.hits
}

/// Says that the state is not known. No condition is stated: a run without any counters states none
/// either, and must not look better for it.
fn unknown_state(message: &str, scrape: &Scrape<'_>) -> Observation {
    let place = line_of(scrape.file, scrape.line);
    let caution = Finding::caution(Code::CacheStateUnknown, "conditions.cache_state", message)
        .with(scrape.queries.to_string(), place.as_str());
    Observation { cautions: vec![caution], ..Observation::default() }
}

fn describe(before: &Scrape<'_>, after: &Scrape<'_>) -> Observation {
    let (queries, hits) = (after.queries - before.queries, after.hits - before.hits);
    if queries <= 0.0 || hits > queries {
        let message = "the counters do not describe a run between the two scrapes";
        return unknown_state(message, after);
    }
    let rate = hits / queries;
    let state = match rate {
        rate if rate < COLD_BELOW => "cold",
        rate if rate < WARM_FROM => "partial",
        _ => "warm",
    };
    let place =
        format!("{} minus {}", line_of(after.file, after.line), line_of(before.file, before.line));
    let mut seen = Observation::default();
    seen.facts.push(Fact::new(FactKind::Observed, "conditions.cache_state", state, &place));
    seen.observed.insert("prefix_cache_hit_rate".to_owned(), json!(rate));
    seen.observed.insert("cache_state".to_owned(), state.into());
    if state == "warm" {
        let percent = rate * 100.0;
        let message = format!("{percent:.1} % of the prompt tokens came from the prefix cache");
        seen.cautions
            .push(Finding::caution(Code::WarmCache, "", message).with(rate.to_string(), place));
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scrape(queries: u64, hits: u64) -> String {
        format!(
            "# HELP vllm:prefix_cache_queries_total x\n\
             vllm:prefix_cache_queries_total{{engine=\"0\",model_name=\"a}} b\"}} {queries}.0\n\
             vllm:prefix_cache_queries_total{{engine=\"1\",model_name=\"a\"}} 100\n\
             vllm:prefix_cache_queries_created{{engine=\"0\"}} 1.7e9\n\
             vllm:prefix_cache_hits_total{{engine=\"0\",model_name=\"a\"}} {hits}\n"
        )
    }

    fn observe(files: &[(&str, &str)]) -> Observation {
        let files: Vec<_> = files.iter().map(|(name, text)| SourceFile { name, text }).collect();
        PrefixCacheCounters.observe(&files).unwrap()
    }

    #[test]
    fn the_rate_is_the_difference_of_two_scrapes() {
        // Order of files does not matter: 489,472 of 524,288 tokens, 93.36 %.
        let (before, after) = (scrape(524_288, 2_048), scrape(1_048_576, 491_520));
        let seen = observe(&[("m-after.txt", &after), ("m-before.txt", &before)]);
        assert_eq!(seen.observed["prefix_cache_hit_rate"], json!(489_472.0 / 524_288.0));
        assert_eq!(seen.facts[0].value, "warm");
        assert_eq!(seen.facts[0].place, "m-after.txt, line 2 minus m-before.txt, line 2");
        assert_eq!(seen.cautions[0].code, Code::WarmCache);
        assert_eq!(
            seen.cautions[0].message,
            "93.4 % of the prompt tokens came from the prefix cache"
        );
    }

    #[test]
    fn few_hits_leave_a_run_cold() {
        let seen = observe(&[("a", &scrape(0, 0)), ("b", &scrape(524_288, 2_048))]);
        assert_eq!(seen.facts[0].value, "cold");
        assert!(seen.cautions.is_empty());
        let seen = observe(&[("a", &scrape(0, 0)), ("b", &scrape(100, 20))]);
        assert_eq!(seen.facts[0].value, "partial");
    }

    #[test]
    fn one_scrape_or_a_restart_says_nothing() {
        let (small, large) = (scrape(10, 1), scrape(100, 50));
        for files in [
            &[("after.txt", small.as_str())][..],
            &[("after.txt", &small), ("before.txt", &large)],
            &[("a", &small), ("b", &small)],
        ] {
            let seen = observe(files);
            assert!(seen.facts.is_empty(), "{files:?}");
            assert_eq!(seen.cautions[0].code, Code::CacheStateUnknown);
        }
    }

    #[test]
    fn other_metrics_are_no_counters_of_the_cache() {
        let text = "vllm:prompt_tokens_total 12\nvllm:external_prefix_cache_queries_total 3\n";
        assert_eq!(PrefixCacheCounters.detect(&SourceFile { name: "x", text }), None);
    }
}
