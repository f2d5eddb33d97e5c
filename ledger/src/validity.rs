//! Whether a run measured what it claims: rules over extracted cells, each with a code (design
//! section 6). A value that cannot be trusted is taken out and said to be missing; it never stays as
//! zero. What the rules only doubt stays, with a caution beside it.

use crate::cell::{Cell, Check, CheckStatus, Metric};
use crate::entry::{Circumstances, Validity};
use crate::finding::{Code, Finding, Severity};
use crate::metric::{Scope, Statistic, find_definition};
use crate::stats::quantile::quantile;

/// Share of requests that must complete before a run can be better than or equal to another.
const COMPLETION_LIMIT: f64 = 0.95;
/// A request whose output is this many times the median of the others ran away.
const RUNAWAY_RATIO: f64 = 20.0;
/// Requests that run within this many tokens of the context ceiling ran into it.
const CEILING_TOKENS: u64 = 16;
/// Prompt tokens planned and seen may differ by this share.
const PROMPT_TOLERANCE: f64 = 0.02;
/// As many equal prompt lengths in a row, among others that vary, are a retry loop.
const RETRY_LOOP: usize = 60;
/// TPOT below this share of ITL is possible only if tokens were not streamed one by one.
const LATENCIES: [&str; 4] = ["ttft_ms", "tpot_ms", "itl_ms", "decode_tok_s"];
const AGGREGATES: [&str; 6] =
    ["output_tok_s", "input_tok_s", "total_tok_s", "request_s", "goodput_s", "peak_output_tok_s"];

/// Judges cells, taking out what cannot be trusted. `context_tokens` is the context limit, where it
/// is known.
pub fn judge(cells: &mut [Cell], context_tokens: Option<u64>) -> Vec<Finding> {
    cells.iter_mut().flat_map(|cell| judge_cell(cell, context_tokens)).collect()
}

/// Judges what stands around the cells: forced runs, failed checks, incidents, unproved settings.
pub fn judge_circumstances(circumstances: &Circumstances) -> Vec<Finding> {
    let mut findings = Vec::new();
    if circumstances.forced {
        findings.push(Finding::new(
            Code::Forced,
            Severity::Untrustworthy,
            "",
            "a preflight failed and the run was forced",
        ));
    }
    if circumstances.incident_time {
        findings.push(Finding::caution(
            Code::IncidentTime,
            "",
            "its time includes repairs and says nothing about latency",
        ));
    }
    findings.extend(circumstances.checks.iter().filter_map(judge_check));
    findings.extend(circumstances.incidents.iter().map(|incident| {
        let message = format!("{} at {}", incident.what, incident.at);
        Finding::caution(Code::HostIncident, "", message)
    }));
    findings.extend(circumstances.settings.iter().filter_map(judge_setting));
    if circumstances.cache_state.as_deref() == Some("warm") {
        findings.push(Finding::caution(Code::WarmCache, "", "the prefix cache was warm"));
    }
    findings
}

fn judge_check(check: &Check) -> Option<Finding> {
    let reason =
        if check.reason.is_empty() { String::new() } else { format!(": {}", check.reason) };
    match check.status {
        CheckStatus::Fail => Some(Finding::caution(
            Code::CheckFailed,
            &check.name,
            format!("check `{}` failed{reason}", check.name),
        )),
        CheckStatus::Blocked => Some(Finding::caution(
            Code::CheckFailed,
            &check.name,
            format!("check `{}` was blocked{reason}", check.name),
        )),
        CheckStatus::Pass
        | CheckStatus::Unscored
        | CheckStatus::NotRun
        | CheckStatus::NotApplicable => None,
    }
}

fn judge_setting(setting: &crate::entry::Setting) -> Option<Finding> {
    use crate::statement::show;
    let name = &setting.name;
    let requested = show(&setting.requested);
    match &setting.effective {
        Some(effective) if *effective != setting.requested => {
            let message =
                format!("`{name}` was asked for as {requested} and ran as {}", show(effective));
            let at = setting.at.clone().unwrap_or_default();
            Some(Finding::caution(Code::RequestedNotEffective, name, message).with(requested, at))
        }
        None if setting.measured.is_none() => {
            let message =
                format!("`{name}` was asked for as {requested}; nothing shows that it took effect");
            Some(Finding::caution(Code::EffectUnverified, name, message))
        }
        _ => None,
    }
}

/// Derives the verdict on a run from its findings: untrustworthy when the whole run is, or every
/// cell of it.
pub fn derive_validity(cells: &[Cell], findings: &[Finding]) -> Validity {
    let is_void = |subject: &str| {
        findings.iter().any(|finding| {
            finding.severity == Severity::Untrustworthy && finding.subject == subject
        })
    };
    let all_cells_void = !cells.is_empty() && cells.iter().all(|cell| is_void(&cell.id()));
    if is_void("") || all_cells_void {
        Validity::Untrustworthy
    } else if findings.iter().any(|finding| finding.severity > Severity::Note) {
        Validity::Caution
    } else {
        Validity::Ok
    }
}

fn judge_cell(cell: &mut Cell, context_tokens: Option<u64>) -> Vec<Finding> {
    let id = cell.id();
    let mut findings: Vec<Finding> = std::mem::take(&mut cell.cautions)
        .into_iter()
        .map(|mut caution| {
            if caution.subject.is_empty() {
                caution.subject.clone_from(&id);
            }
            caution
        })
        .collect();
    findings.extend(take_out_impossible(cell, &id));
    findings.extend(judge_completion(cell, &id));
    findings.extend(judge_answers(cell, &id));
    findings.extend(judge_streaming(cell, &id));
    findings.extend(judge_runaways(cell, &id, context_tokens));
    findings.extend(judge_prompts(cell, &id));
    findings.extend(judge_samples(cell, &id));
    findings
}

/// Moves metrics out of a cell, leaving the reason.
fn take_out(cell: &mut Cell, is_gone: impl Fn(&Metric) -> bool, reason: &str) -> Vec<String> {
    let (gone, kept): (Vec<Metric>, Vec<Metric>) =
        std::mem::take(&mut cell.metrics).into_iter().partition(is_gone);
    cell.metrics = kept;
    let names: Vec<String> = gone.into_iter().map(|metric| metric.name).collect();
    for name in &names {
        cell.push_missing(name, reason);
    }
    names
}

fn values(metric: &Metric) -> impl Iterator<Item = f64> {
    metric.samples.iter().copied().chain(metric.given.values().map(|given| given.value))
}

fn take_out_impossible(cell: &mut Cell, id: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (code, word, is_bad) in [
        (Code::NonFiniteValue, "not finite", (|value: f64| !value.is_finite()) as fn(f64) -> bool),
        (Code::NegativeValue, "negative", |value| value < 0.0),
    ] {
        let reason = format!("a value is {word}");
        for name in take_out(cell, |metric| values(metric).any(is_bad), &reason) {
            let subject = format!("{name}@{id}");
            findings.push(Finding::new(code, Severity::Untrustworthy, subject, reason.clone()));
        }
    }
    findings
}

fn judge_completion(cell: &mut Cell, id: &str) -> Vec<Finding> {
    let counts = &cell.requests;
    if counts.completed == Some(0) {
        let asked = counts.asked.map_or_else(String::new, |asked| format!(" of {asked}"));
        let message = format!("0{asked} requests completed; nothing was measured");
        take_out(cell, |_| true, "no request completed");
        return vec![Finding::new(Code::NoRequestCompleted, Severity::Untrustworthy, id, message)];
    }
    let (Some(completed), Some(asked)) = (counts.completed, counts.asked) else {
        return Vec::new();
    };
    if completed >= asked {
        return Vec::new();
    }
    let share = completed as f64 / asked as f64;
    let message = format!("{completed} of {asked} requests completed ({:.1} %)", share * 100.0);
    let code =
        if share < COMPLETION_LIMIT { Code::CompletionBelowLimit } else { Code::RequestsFailed };
    vec![Finding::caution(code, id, message)]
}

fn judge_answers(cell: &mut Cell, id: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    let counts = cell.requests.clone();
    let completed = counts.completed.filter(|completed| *completed > 0);
    if completed.is_some() && counts.empty >= completed {
        let message = "every answer was empty";
        findings.push(Finding::new(Code::EmptyAnswers, Severity::Untrustworthy, id, message));
    }
    if completed.is_some() && cell.tokens.output_total == Some(0) {
        take_out(
            cell,
            |metric| {
                find_definition(&metric.name).is_some_and(|metric| metric.scope != Scope::Item)
            },
            "output tokens are zero",
        );
        let message = "requests completed and no output token came back";
        findings.push(Finding::new(Code::NoOutputTokens, Severity::Untrustworthy, id, message));
    }
    let items_cut = cell.items.iter().filter(|item| item.truncated == Some(true)).count() as u64;
    let cut = counts.truncated.unwrap_or(0).max(items_cut);
    if cut > 0 {
        let of = counts.completed.unwrap_or(cell.items.len() as u64);
        let message = format!("{cut} of {of} answers were cut at the token limit");
        findings.push(Finding::caution(Code::TruncatedAnswers, id, message));
    }
    findings
}

fn judge_streaming(cell: &mut Cell, id: &str) -> Vec<Finding> {
    let has = |name: &str| cell.find_metric(name).is_some();
    let is_zero = |name: &str| {
        cell.find_metric(name).is_some_and(|metric| values(metric).all(|value| value == 0.0))
    };
    let reason = if is_zero("ttft_ms") {
        "TTFT is 0: the answers were not streamed"
    } else if has("ttft_ms") && ttft_is_end_to_end(cell) {
        "TTFT equals end-to-end latency: the answers were not streamed"
    } else {
        return Vec::new();
    };
    take_out(cell, |metric| LATENCIES.contains(&metric.name.as_str()), reason);
    vec![Finding::new(Code::NotStreamed, Severity::Untrustworthy, format!("ttft_ms@{id}"), reason)]
}

fn ttft_is_end_to_end(cell: &Cell) -> bool {
    let (Some(ttft), Some(e2e)) = (cell.find_metric("ttft_ms"), cell.find_metric("e2e_ms")) else {
        return false;
    };
    let writes_several_tokens = cell.tokens.output_mean.is_none_or(|tokens| tokens > 1.5);
    if !writes_several_tokens {
        return false;
    }
    if !ttft.samples.is_empty() && ttft.samples.len() == e2e.samples.len() {
        return ttft.samples == e2e.samples;
    }
    let mean = |metric: &Metric| metric.given.get(&Statistic::Mean).map(|given| given.value);
    mean(ttft).is_some() && mean(ttft) == mean(e2e)
}

fn judge_runaways(cell: &mut Cell, id: &str, context_tokens: Option<u64>) -> Vec<Finding> {
    let outputs: Vec<Option<u64>> = cell.request_rows.iter().map(|row| row.output_tokens).collect();
    let mut findings = Vec::new();
    for (index, row) in cell.request_rows.iter().enumerate() {
        let Some(output) = row.output_tokens else { continue };
        let total = output.saturating_add(row.prompt_tokens.unwrap_or(0));
        let ceiling = context_tokens.filter(|limit| total.saturating_add(CEILING_TOKENS) >= *limit);
        let others = others(&outputs, index);
        let far = quantile(&others, 0.5).filter(|median| output as f64 > RUNAWAY_RATIO * median);
        let message = match (ceiling, far) {
            (Some(limit), _) => {
                format!("request {index} ran to {total} tokens against a context of {limit}")
            }
            (None, Some(median)) if others.len() >= 3 => {
                format!(
                    "request {index} wrote {output} tokens, the median of the others is {median}"
                )
            }
            _ => continue,
        };
        findings.push(Finding::caution(Code::RunawayRequest, id, message));
    }
    if !findings.is_empty() {
        take_out(
            cell,
            |metric| AGGREGATES.contains(&metric.name.as_str()),
            "a request ran away, which poisons the wall time",
        );
        let runaways = findings.len() as u64;
        let completed = cell.requests.completed.map(|n| n.saturating_sub(runaways));
        cell.requests.asked = cell.requests.asked.or(cell.requests.completed);
        cell.requests.completed = completed;
    }
    findings
}

fn others(outputs: &[Option<u64>], index: usize) -> Vec<f64> {
    let without = outputs.iter().enumerate().filter(|(other, _)| *other != index);
    without.filter_map(|(_, tokens)| tokens.map(|tokens| tokens as f64)).collect()
}

fn judge_prompts(cell: &Cell, id: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    if let (Some(planned), Some(seen)) = (cell.tokens.prompt_nominal, cell.tokens.prompt_mean)
        && planned > 0
        && (seen / planned as f64 - 1.0).abs() > PROMPT_TOLERANCE
    {
        let message = format!("{planned} prompt tokens were planned, {seen:.0} were seen");
        findings.push(Finding::caution(Code::PlannedNotActual, id, message));
    }
    let lengths: Vec<Option<u64>> = cell.request_rows.iter().map(|row| row.prompt_tokens).collect();
    let varies = lengths.iter().any(|length| *length != lengths.first().copied().flatten());
    let longest = longest_repeat(&lengths);
    if varies && longest.1 >= RETRY_LOOP {
        let message = format!(
            "{} requests in a row have {} prompt tokens: a retry loop",
            longest.1, longest.0
        );
        findings.push(Finding::caution(Code::RetryLoop, id, message));
    }
    findings
}

/// Finds the longest stretch of equal lengths: (length, how many in a row).
fn longest_repeat(lengths: &[Option<u64>]) -> (u64, usize) {
    let mut best = (0, 0);
    let mut current: (Option<u64>, usize) = (None, 0);
    for length in lengths {
        current = if *length == current.0 { (*length, current.1 + 1) } else { (*length, 1) };
        if let Some(tokens) = length
            && current.1 > best.1
        {
            best = (*tokens, current.1);
        }
    }
    best
}

fn judge_samples(cell: &Cell, id: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    for metric in &cell.metrics {
        let subject = format!("{}@{id}", metric.name);
        let is_system =
            find_definition(&metric.name).is_some_and(|found| found.scope == Scope::System);
        if metric.samples.len() == 1 && !is_system {
            findings.push(Finding::caution(Code::OneSample, subject, "a point, not a spread"));
        } else if metric.samples.is_empty() && !metric.given.contains_key(&Statistic::Value) {
            let message = "statistics as the harness gave them; the file holds no samples";
            findings.push(Finding::new(Code::GivenNotComputed, Severity::Note, subject, message));
        }
    }
    findings
}

#[cfg(test)]
#[path = "validity/tests.rs"]
mod tests;
