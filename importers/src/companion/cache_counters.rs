//! Prometheus scrapes around a run: how many prompt tokens the prefix cache served.
//!
//! Counters count from the server's start, so one scrape says nothing about a run: the rate is taken
//! from the difference of two. They only rise, so the earlier scrape is the one with fewer queries;
//! names with `before` and `after` are not needed, and a name or a hit count that says otherwise is a
//! restart. Names: `vllm:prefix_cache_queries_total` and `…_hits_total`, a series an engine, tokens
//! each; `gpu_prefix_cache_…` before v1. A connector's `external_prefix_cache_…` is another cache.

use ledger::adapter::{Companion, ExtractError, Fact, FactKind, Observation, SourceFile};
use ledger::finding::{Code, Finding};

/// The companion.
#[derive(Debug)]
pub struct CacheCounters;

/// A hit rate above this is warm, below [`COLD`] cold, in between partial.
const WARM: f64 = 0.5;
const COLD: f64 = 0.05;

impl Companion for CacheCounters {
    fn id(&self) -> &'static str {
        "prefix-cache-counters"
    }

    fn version(&self) -> u32 {
        1
    }

    fn title(&self) -> &'static str {
        "Prometheus scrape with prefix cache counters"
    }

    fn detect(&self, file: &SourceFile<'_>) -> Option<String> {
        let is_small = !file.outline.is_json && file.text.len() < 4 << 20;
        let scrape = is_small.then(|| read_scrape(file)).flatten();
        scrape.map(|_| "it has prefix_cache_queries and prefix_cache_hits".to_owned())
    }

    fn observe(&self, files: &[SourceFile<'_>]) -> Result<Observation, ExtractError> {
        let mut scrapes: Vec<Scrape<'_>> = files.iter().filter_map(read_scrape).collect();
        scrapes.sort_by(|a, b| a.queries.total_cmp(&b.queries).then(a.hits.total_cmp(&b.hits)));
        let (Some(before), Some(after)) = (scrapes.first(), scrapes.last()) else {
            return Ok(Observation::default());
        };
        let (queries, hits) = (after.queries - before.queries, after.hits - before.hits);
        Ok(if scrapes.len() < 2 || queries <= 0.0 {
            unknown("one scrape of the cache counters does not show what this run did")
        } else if is_restarted(before, after) || hits > queries {
            unknown("the cache counters fell between the scrapes: the server was restarted")
        } else {
            describe(before, after, hits / queries)
        })
    }
}

/// The counters of one scrape, summed over their label sets.
#[derive(Debug, Clone, Copy)]
struct Scrape<'a> {
    file: &'a str,
    line: usize,
    queries: f64,
    hits: f64,
}

fn read_scrape<'a>(file: &SourceFile<'a>) -> Option<Scrape<'a>> {
    let read = |prefix: &str| {
        let (queries, line) = sum_series(file.text, &format!("{prefix}prefix_cache_queries"))?;
        let (hits, _) = sum_series(file.text, &format!("{prefix}prefix_cache_hits"))?;
        Some(Scrape { file: file.name, line, queries, hits })
    };
    read("").or_else(|| read("gpu_"))
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
    let bare = ["vllm:", "vllm_"].iter().find_map(|engine| line.strip_prefix(engine));
    let rest = bare.unwrap_or(line).strip_prefix(name)?;
    let rest = rest.strip_prefix("_total").unwrap_or(rest);
    let values = match rest.strip_prefix('{') {
        Some(labels) => labels.rsplit_once('}')?.1,
        None => rest.strip_prefix(' ')?,
    };
    let value: f64 = values.split_whitespace().next()?.parse().ok()?;
    (value.is_finite() && value >= 0.0).then_some(value)
}

fn is_restarted(before: &Scrape<'_>, after: &Scrape<'_>) -> bool {
    let says = |scrape: &Scrape<'_>, word: &str| scrape.file.to_ascii_lowercase().contains(word);
    after.hits < before.hits || (says(before, "after") && says(after, "before"))
}

fn unknown(message: &str) -> Observation {
    let caution = Finding::caution(Code::CacheStateUnknown, "", message);
    Observation { cautions: vec![caution], ..Observation::default() }
}

fn describe(before: &Scrape<'_>, after: &Scrape<'_>, rate: f64) -> Observation {
    let state = match rate {
        rate if rate > WARM => "warm",
        rate if rate > COLD => "partial",
        _ => "cold",
    };
    let place = |scrape: &Scrape<'_>| format!("{}: line {}", scrape.file, scrape.line);
    let place = format!("{} minus {}", place(after), place(before));
    let mut seen = Observation::default();
    seen.observed.insert("prefix_cache_hit_rate".to_owned(), rate.into());
    seen.observed.insert("cache_state".to_owned(), state.into());
    seen.facts.push(Fact::new(FactKind::Observed, "conditions.cache_state", state, &place));
    seen
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scrape(queries: u64, hits: u64) -> String {
        format!(
            "# HELP vllm:prefix_cache_queries_total x\n\
             vllm:prefix_cache_queries_total{{engine=\"0\",model_name=\"a}} b\"}} {queries}.0 1700\n\
             vllm:prefix_cache_queries_total{{engine=\"1\",model_name=\"a\"}} 100\n\
             vllm:prefix_cache_queries_created{{engine=\"0\"}} 1.7e9\n\
             vllm:external_prefix_cache_queries_total{{engine=\"0\"}} 9e9\n\
             vllm:prefix_cache_hits_total{{engine=\"0\",model_name=\"a\"}} {hits}\n"
        )
    }

    fn observe(files: &[(&str, &str)]) -> Observation {
        let files: Vec<_> = files.iter().map(|(name, text)| SourceFile::new(name, text)).collect();
        CacheCounters.observe(&files).unwrap()
    }

    #[test]
    fn the_rate_is_the_difference_of_two_scrapes_of_one_counter() {
        // 489,472 of 524,288 tokens, whatever the order of the files.
        let (before, after) = (scrape(524_288, 2_048), scrape(1_048_576, 491_520));
        let seen = observe(&[("after.txt", &after), ("before.txt", &before)]);
        assert_eq!(seen.observed["prefix_cache_hit_rate"], 489_472.0 / 524_288.0);
        assert_eq!(seen.facts[0].value, "warm");
        assert_eq!(seen.facts[0].place, "after.txt: line 2 minus before.txt: line 2");
    }

    #[test]
    fn few_hits_leave_a_run_cold() {
        for (hits, state) in [(3, "cold"), (20, "partial"), (90, "warm")] {
            let seen = observe(&[("a", &scrape(0, 0)), ("b", &scrape(100, hits))]);
            assert_eq!(seen.facts[0].value, state);
        }
    }

    #[test]
    fn one_scrape_or_a_restart_says_nothing() {
        let (small, large) = (scrape(10, 5), scrape(100, 50));
        for files in [
            &[("after.txt", small.as_str())][..],
            &[("after.txt", &small), ("before.txt", &large)],
            &[("a", &small), ("b", &small)],
            &[("a", &small), ("b", &scrape(100, 1))],
        ] {
            let seen = observe(files);
            assert!(seen.facts.is_empty(), "{files:?}");
            assert_eq!(seen.cautions[0].code, Code::CacheStateUnknown);
        }
    }

    #[test]
    fn another_cache_is_not_this_one() {
        let text = "vllm:external_prefix_cache_queries_total 3\n\
                    vllm:external_prefix_cache_hits_total 3\n";
        assert_eq!(CacheCounters.detect(&SourceFile::new("x", text)), None);
    }
}
