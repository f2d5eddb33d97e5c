//! Prometheus scrapes around a run: how many prompt tokens the prefix cache served. Counters only
//! rise, so the earlier of two scrapes is the one with fewer queries; names with `before` and `after`
//! are not needed.

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
        let is_scrape = !file.outline.is_json
            && file.text.len() < 4 << 20
            && file.text.contains("prefix_cache_queries")
            && file.text.contains("prefix_cache_hits");
        is_scrape.then(|| "it has prefix_cache_queries and prefix_cache_hits".to_owned())
    }

    fn observe(&self, files: &[SourceFile<'_>]) -> Result<Observation, ExtractError> {
        let mut scrapes: Vec<(f64, f64)> = files
            .iter()
            .map(|file| {
                (total(file.text, "prefix_cache_queries"), total(file.text, "prefix_cache_hits"))
            })
            .collect();
        scrapes.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut observation = Observation::default();
        let (Some(before), Some(after)) = (scrapes.first(), scrapes.last()) else {
            return Ok(observation);
        };
        let queries = after.0 - before.0;
        if scrapes.len() < 2 || queries <= 0.0 {
            let message = "one scrape of the cache counters does not show what this run did";
            observation.cautions.push(Finding::caution(Code::CacheStateUnknown, "", message));
            return Ok(observation);
        }
        let rate = (after.1 - before.1) / queries;
        let state = if rate > WARM {
            "warm"
        } else if rate > COLD {
            "partial"
        } else {
            "cold"
        };
        observation.observed.insert("prefix_cache_hit_rate".to_owned(), rate.into());
        observation.observed.insert("cache_state".to_owned(), state.into());
        let names = files.iter().map(|file| file.name).collect::<Vec<_>>().join(", ");
        observation.facts.push(Fact::new(
            FactKind::Observed,
            "conditions.cache_state",
            state,
            &names,
        ));
        Ok(observation)
    }
}

/// Sums a counter over its label sets; `# HELP` lines are none of it.
fn total(text: &str, counter: &str) -> f64 {
    text.lines()
        .filter(|line| !line.starts_with('#'))
        .filter(|line| {
            let name = line.split(['{', ' ']).next().unwrap_or_default();
            let name = name.rsplit(':').next().unwrap_or_default();
            name.trim_end_matches("_total").ends_with(counter)
        })
        .filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok())
        .sum()
}
