//! One run as a page: what was asked for and what was loaded, under which conditions, what was
//! measured, and everything that stands beside the numbers.

use super::table::{Rows, escape_markdown};
use super::{findings, time};
use crate::cli::Format;
use ledger::entry::{Body, Outcome, RunBody, StoredCell, StoredMetric};
use ledger::fingerprint::Fingerprint;
use ledger::metric::{Statistic, find_definition};
use ledger::quantity::rounded;
use ledger::statement::show;
use ledger::store::RunRow;
use ledger::text::printable;

/// Renders the page.
pub(crate) fn page(
    row: &RunRow,
    run: &RunBody,
    amendments: &[(i64, Body)],
    is_markdown: bool,
    width: Option<u16>,
) -> String {
    let format = if is_markdown { Format::Md } else { Format::Text };
    let mut page = Page { text: String::new(), is_markdown };
    page.heading(&format!("run {}", row.key));
    page.facts(&identity(row, run));
    page.heading("fingerprint");
    page.text.push_str(&fingerprint(run).render(format, width));
    if !run.cells.is_empty() {
        page.heading("metrics");
        page.text.push_str(&metrics(&run.cells).render(format, width));
        for line in cell_lines(&run.cells) {
            page.line(&line);
        }
    }
    let circumstances = circumstances(run);
    if !circumstances.is_empty() {
        page.heading("circumstances");
        page.facts(&circumstances);
    }
    if !run.findings.is_empty() {
        page.heading("cautions");
        let notes = findings::footnotes(&run.findings);
        page.block(&notes);
    }
    if !amendments.is_empty() {
        page.heading("since");
        for (seq, body) in amendments {
            page.line(&amendment(*seq, body));
        }
    }
    page.text
}

struct Page {
    text: String,
    is_markdown: bool,
}

impl Page {
    fn heading(&mut self, title: &str) {
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        let mark = if self.is_markdown { "## " } else { "" };
        self.text.extend([mark, title, "\n"]);
        if self.is_markdown {
            self.text.push('\n');
        }
    }

    fn line(&mut self, line: &str) {
        let line = if self.is_markdown {
            format!("- {}\n", escape_markdown(line))
        } else {
            format!("  {}\n", printable(line))
        };
        self.text.push_str(&line);
    }

    fn facts(&mut self, facts: &[(&str, String)]) {
        let width = facts.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        for (name, value) in facts {
            self.line(format!("{name:width$}  {value}").trim_end());
        }
    }

    fn block(&mut self, block: &str) {
        for line in block.lines() {
            self.line(line.trim_start());
        }
    }
}

fn identity(row: &RunRow, run: &RunBody) -> Vec<(&'static str, String)> {
    let state = match (row.retracted, run.outcome) {
        (Some(_), _) => "retracted".to_owned(),
        (None, Outcome::Failed) => "failed attempt; no result".to_owned(),
        (None, Outcome::Measured) => format!("verified, validity {}", run.validity.as_str()),
    };
    let mut facts = vec![
        ("state", state),
        ("subject", row.subject.labels().map(|(name, label)| format!("{name}={label}")).join(" ")),
        ("measured", format!("{} ({})", run.measured_at, run.measured_at_source)),
        ("recorded", format!("{} by {}", run.recorded_at, run.tool)),
    ];
    if let Some(failure) = &run.failure {
        facts.push(("failure", failure.reason.clone()));
    }
    if let Some(proof) = &run.provenance {
        facts.push(("requested", proof.requested.clone()));
        facts.push(("loaded", proof.loaded.join(", ")));
        facts.push(("weights", format!("{} (grade {})", proof.weight_set, proof.grade)));
    } else {
        facts.push(("weights", "no provenance".to_owned()));
    }
    for (name, values) in &run.labels {
        facts.push(("label", format!("{name} = {} (a name, not evidence)", values.join(", "))));
    }
    if let Some(start) = &run.server_start {
        facts.push(("start", start.clone()));
    }
    facts.push(("artifacts", format!("root {}", run.root)));
    for result in &run.results {
        facts.push((
            "result",
            format!(
                "{} read by {} {}, {}",
                result.path, result.adapter, result.version, result.encoding
            ),
        ));
    }
    if let Some(replaced) = &run.replaces {
        facts.push(("replaces", replaced.clone()));
    }
    facts
}

fn fingerprint(run: &RunBody) -> Rows {
    let fields = Fingerprint::from_json(&run.fingerprint)
        .map(|fingerprint| fingerprint.fields().clone())
        .unwrap_or_default();
    let cells = |(path, value): (&String, &serde_json::Value)| {
        let source = run.sources.get(path);
        let at = source
            .map_or_else(String::new, |source| format!("{}: {}", source.kind.as_str(), source.at));
        vec![path.clone(), show(value), at]
    };
    Rows { header: vec!["field", "value", "read from"], rows: fields.iter().map(cells).collect() }
}

fn metrics(cells: &[StoredCell]) -> Rows {
    let rows = cells
        .iter()
        .flat_map(|cell| cell.metrics.iter().map(|metric| metric_row(cell, metric)))
        .collect();
    Rows {
        header: vec![
            "cell", "metric", "unit", "n", "value", "p50", "p90", "p99", "spread", "origin",
        ],
        rows,
    }
}

fn metric_row(cell: &StoredCell, metric: &StoredMetric) -> Vec<String> {
    let get =
        |statistic| metric.find(statistic).map_or_else(String::new, |(value, _)| rounded(value));
    let headline = metric.find(Statistic::Value).or_else(|| metric.find(Statistic::Mean));
    let spread = match (
        metric.find(Statistic::Min),
        metric.find(Statistic::Max),
        metric.find(Statistic::Std),
    ) {
        (Some((low, _)), Some((high, _)), _) => format!("{} to {}", rounded(low), rounded(high)),
        (_, _, Some((std, _))) => format!("± {}", rounded(std)),
        _ => String::new(),
    };
    let origin = if metric.n.is_some() { "computed" } else { "given" };
    let protocol =
        metric.protocol.as_ref().map_or_else(String::new, |protocol| format!(", {protocol}"));
    vec![
        cell.id.clone(),
        metric.name.clone(),
        find_definition(&metric.name).map_or_else(String::new, |found| found.unit.clone()),
        metric.n.map_or_else(String::new, |n| n.to_string()),
        headline.map_or_else(String::new, |(value, _)| rounded(value)),
        get(Statistic::P50),
        get(Statistic::P90),
        get(Statistic::P99),
        spread,
        format!("{origin}{protocol}"),
    ]
}

fn cell_lines(cells: &[StoredCell]) -> Vec<String> {
    let mut lines = Vec::new();
    for cell in cells {
        let counts = &cell.requests;
        let part = |name: &str, count: Option<u64>| count.map(|count| format!("{count} {name}"));
        let requests: Vec<String> = [
            part("asked", counts.asked),
            part("completed", counts.completed),
            part("failed", counts.failed),
            part("cancelled", counts.cancelled),
            part("cut", counts.truncated),
            part("empty", counts.empty),
        ]
        .into_iter()
        .flatten()
        .collect();
        if !requests.is_empty() {
            lines.push(format!("{}: requests {}", cell.id, requests.join(", ")));
        }
        if let Some(items) = &cell.items {
            let cut = items.truncated.map_or_else(|| "unknown".to_owned(), |cut| cut.to_string());
            lines.push(format!(
                "{}: {} of {} attempts passed, {} of {} items in every attempt, cut {cut}",
                cell.id, items.passed, items.attempts, items.stable, items.items
            ));
        }
        lines.extend(
            cell.missing
                .iter()
                .map(|missing| format!("{}: no {}: {}", cell.id, missing.metric, missing.reason)),
        );
    }
    lines
}

fn circumstances(run: &RunBody) -> Vec<(&'static str, String)> {
    let told = &run.circumstances;
    let mut facts = vec![(
        "evidence",
        format!("{:?} traffic, {:?} path", told.evidence, told.path).to_lowercase(),
    )];
    let mut add = |name, value: Option<String>| {
        if let Some(value) = value {
            facts.push((name, value));
        }
    };
    add("campaign", told.campaign.clone());
    add("attempt", told.attempt.map(|attempt| attempt.to_string()));
    add("command", told.command.clone());
    add("contract", told.operating_contract.clone());
    add("tenancy", told.tenancy.clone());
    add("cache", told.cache_state.clone());
    add(
        "reasoning",
        told.reasoning_counted
            .map(|counted| if counted { "counted as output" } else { "not counted" }.to_owned()),
    );
    add("configured", told.capacity_configured.as_ref().map(show));
    add("reported", told.capacity_reported.as_ref().map(show));
    add("measured", told.capacity_measured.as_ref().map(show));
    add("cost", told.cost_minutes.map(|minutes| format!("{} minutes", minutes.get())));
    for setting in &told.settings {
        let effective = setting.effective.as_ref().map_or_else(|| "unknown".to_owned(), show);
        add(
            "setting",
            Some(format!(
                "{} asked {} effective {effective}",
                setting.name,
                show(&setting.requested)
            )),
        );
    }
    for check in &told.checks {
        let status =
            serde_json::to_value(check.status).map(|status| show(&status)).unwrap_or_default();
        add("check", Some(format!("{} {status} {}", check.name, check.reason)));
    }
    for waiver in &told.waivers {
        add(
            "waiver",
            Some(format!(
                "{} waived by {} for {}: {}",
                waiver.gate, waiver.by, waiver.scope, waiver.reason
            )),
        );
    }
    for incident in &told.incidents {
        add("incident", Some(format!("{} {}", incident.at, incident.what)));
    }
    for claim in &told.non_claims {
        add("non-claim", Some(claim.clone()));
    }
    for (name, value) in &told.identities {
        add("identity", Some(format!("{name} {value}")));
    }
    for (name, value) in &run.observed {
        add("observed", Some(format!("{name} = {}", show(value))));
    }
    facts
}

/// Writes one amendment as a line.
pub(crate) fn amendment(seq: i64, body: &Body) -> String {
    match body {
        Body::Retraction(retraction) => {
            let by = retraction
                .replaced_by
                .as_ref()
                .map_or_else(String::new, |key| format!(", replaced by {key}"));
            format!(
                "entry {seq}: withdrawn {} by {}, because {}{by}",
                retraction.recorded_at, retraction.by, retraction.reason
            )
        }
        Body::Correction(correction) => {
            let changed: Vec<String> = correction
                .before
                .labels()
                .into_iter()
                .zip(correction.after.labels())
                .filter(|((_, before), (_, after))| before != after)
                .map(|((name, before), (_, after))| format!("{name} {before} -> {after}"))
                .collect();
            format!(
                "entry {seq}: corrected {} by {}: {} because {}",
                correction.recorded_at,
                correction.by,
                changed.join(", "),
                correction.reason
            )
        }
        Body::Note(note) => {
            let files: Vec<String> = note
                .attachments
                .iter()
                .map(|file| format!("{} ({})", file.path, file.blob))
                .collect();
            let attached = if files.is_empty() {
                String::new()
            } else {
                format!(" [attached {}]", files.join(", "))
            };
            format!(
                "entry {seq}: {} {} by {}: {}{attached}",
                note.topic, note.recorded_at, note.by, note.text
            )
        }
        Body::Run(run) => format!("entry {seq}: run {} measured {}", run.key, run.measured_at),
        Body::Binding(binding) => format!(
            "entry {seq}: weight set {} is {}@{}",
            binding.weight_set, binding.model_id, binding.revision
        ),
        Body::Prior(prior) => {
            format!("entry {seq}: prior {} from {}", prior.key, prior.source.name)
        }
    }
}

/// Writes a run as one line of a history.
pub(crate) fn history_line(row: &RunRow, run: &RunBody) -> String {
    let what = match run.outcome {
        Outcome::Measured => run.validity.as_str().to_owned(),
        Outcome::Failed => format!(
            "failed: {}",
            run.failure.as_ref().map_or("", |failure| failure.reason.as_str())
        ),
    };
    format!("{}  {}  {}  {what}", row.key.short(), time(row.measured_at), run.headline())
}
