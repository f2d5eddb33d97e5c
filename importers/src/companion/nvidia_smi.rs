//! Telemetry of `nvidia-smi --query-gpu=… --format=csv`, one row a card and sample.
//!
//! The power limit is what the driver enforces, whatever a script asked for (rammsguns/llm-rig#100).
//! A field the card does not have is printed as `[N/A]`: unknown, never zero. Cards are kept apart;
//! two caps are never averaged. Columns carry their unit in the header (`power.limit [W]`) and,
//! without `nounits`, in each cell.

use crate::read::fields::whole;
use crate::read::place::line_of;
use crate::read::table::{Row, Table, csv_tables};
use ledger::adapter::{Companion, ExtractError, Fact, FactKind, Observation, SourceFile};
use ledger::finding::{Code, Finding};
use serde_json::{Value, json};

/// Share of the first clock below which the last one counts as drift.
const DRIFT: f64 = 0.9;

/// Columns that make a table telemetry; one of them must be there.
const MEASURES: [&str; 4] = ["power.limit", "power.draw", "clocks.sm", "clocks.current.sm"];

/// Names of the bits of `clocks_throttle_reasons.active`, as NVML numbers them; idling is no
/// throttling and is left out.
const THROTTLE_REASONS: [(u64, &str); 7] = [
    (0x02, "applications_clocks_setting"),
    (0x04, "sw_power_cap"),
    (0x08, "hw_slowdown"),
    (0x10, "sync_boost"),
    (0x20, "sw_thermal_slowdown"),
    (0x40, "hw_thermal_slowdown"),
    (0x80, "hw_power_brake_slowdown"),
];

/// The companion for `nvidia-smi` CSV.
#[derive(Debug, Clone, Copy)]
pub struct NvidiaSmiCsv;

/// Everything seen of one card.
#[derive(Debug, Default)]
struct Card {
    key: String,
    index: Option<u64>,
    uuid: Option<String>,
    name: Option<String>,
    /// Distinct power limits, in the order they were seen; `None` is `[N/A]`.
    caps_w: Vec<Option<f64>>,
    clocks_mhz: Vec<f64>,
    throttle_bits: u64,
    /// Its first row.
    place: String,
    cap_place: String,
}

impl Companion for NvidiaSmiCsv {
    fn id(&self) -> &'static str {
        "nvidia-smi-csv"
    }

    fn version(&self) -> u32 {
        1
    }

    fn title(&self) -> &'static str {
        "nvidia-smi --format=csv telemetry"
    }

    fn detect(&self, file: &SourceFile<'_>) -> Option<String> {
        let has_header = file.text.lines().take(50).any(is_header);
        has_header.then(|| "a CSV header with nvidia-smi query names".to_owned())
    }

    fn observe(&self, files: &[SourceFile<'_>]) -> Result<Observation, ExtractError> {
        let mut cards: Vec<Card> = Vec::new();
        for file in files {
            for table in &csv_tables(file.text, is_header)?.tables {
                for row in &table.rows {
                    add_row(&mut cards, file.name, table, row);
                }
            }
        }
        cards.sort_by_key(|card| card.index);
        Ok(describe(&cards))
    }
}

fn is_header(line: &str) -> bool {
    let mut names = line.split(',').map(bare_name);
    line.contains(',') && names.any(|name| MEASURES.contains(&name))
}

/// `power.limit [W]` is the field `power.limit`.
fn bare_name(column: &str) -> &str {
    column.split(" [").next().unwrap_or(column).trim()
}

fn add_row(cards: &mut Vec<Card>, file: &str, table: &Table, row: &Row) {
    let cell = |name: &str| {
        let column = table.header.iter().position(|column| bare_name(column) == name)?;
        row.cells.get(column).map(String::as_str).filter(|cell| !cell.is_empty())
    };
    let key = cell("uuid").or_else(|| cell("index")).unwrap_or_default().to_owned();
    let position = cards.iter().position(|card| card.key == key).unwrap_or_else(|| {
        let place = line_of(file, row.line);
        cards.push(Card { key, place, ..Card::default() });
        cards.len() - 1
    });
    let Some(card) = cards.get_mut(position) else { return };
    card.index = card.index.or_else(|| cell("index").and_then(|text| text.parse().ok()));
    card.uuid = card.uuid.take().or_else(|| cell("uuid").map(str::to_owned));
    card.name = card.name.take().or_else(|| cell("name").map(str::to_owned));
    if let Some(cap) = cell("power.limit").map(first_number)
        && !card.caps_w.contains(&cap)
    {
        card.caps_w.push(cap);
        card.cap_place = format!("{}, power.limit", line_of(file, row.line));
    }
    let clock = cell("clocks.sm").or_else(|| cell("clocks.current.sm"));
    card.clocks_mhz.extend(clock.and_then(first_number));
    let throttle = cell("clocks_throttle_reasons.active")
        .or_else(|| cell("clocks_event_reasons.active"))
        .and_then(|text| u64::from_str_radix(text.trim_start_matches("0x"), 16).ok());
    card.throttle_bits |= throttle.unwrap_or_default();
}

/// Reads `140.00 W` or `140.00`; `[N/A]` is no number.
fn first_number(cell: &str) -> Option<f64> {
    let number: f64 = cell.split_whitespace().next()?.parse().ok()?;
    number.is_finite().then_some(number)
}

fn describe(cards: &[Card]) -> Observation {
    let mut seen = Observation::default();
    add_caps(&mut seen, cards);
    add_clocks(&mut seen, cards);
    add_identity(&mut seen, cards, "placement", |card| card.uuid.clone());
    add_identity(&mut seen, cards, "topology.accelerators", |card| card.name.clone());
    seen
}

/// Any card whose cap is not known, or changed, makes the field unknown: a list with a hole would
/// look comparable.
fn add_caps(seen: &mut Observation, cards: &[Card]) {
    let Some(first) = cards.iter().find(|card| !card.caps_w.is_empty()) else { return };
    let caps: Vec<Option<f64>> = cards.iter().map(Card::cap_w).collect();
    let values: Vec<Value> = caps.iter().map(|cap| cap.map_or(Value::Null, number)).collect();
    seen.observed.insert("power_cap_w".to_owned(), values.clone().into());
    let is_known = caps.iter().all(Option::is_some);
    let value = if is_known { Value::from(values) } else { "unknown".into() };
    seen.facts.push(Fact::new(FactKind::Observed, "power.cap_w", value, &first.cap_place));
    for card in cards.iter().filter(|card| card.caps_w.len() > 1) {
        let message = format!("the power limit of card {} changed during the run", card.label());
        let finding = Finding::caution(Code::ReportsDisagree, "power.cap_w", message);
        seen.cautions.push(card.caps_w.iter().fold(finding, |finding, cap| {
            let text = cap.map_or_else(|| "[N/A]".to_owned(), |cap| format!("{cap} W"));
            finding.with(text, card.cap_place.as_str())
        }));
    }
}

fn add_clocks(seen: &mut Observation, cards: &[Card]) {
    let mut clocks = Vec::new();
    for card in cards {
        let (Some(first), Some(last)) = (card.clocks_mhz.first(), card.clocks_mhz.last()) else {
            continue;
        };
        let min = card.clocks_mhz.iter().copied().fold(f64::INFINITY, f64::min);
        clocks.push(json!({
            "card": card.label(), "first": number(*first), "last": number(*last), "min": number(min),
            "throttled_by": throttle_reasons(card.throttle_bits),
        }));
        if *last < DRIFT * first {
            let label = card.label();
            let message = format!("the clock of card {label} fell from {first} to {last} MHz");
            seen.cautions.push(Finding::caution(Code::ClockDrift, "", message));
        }
    }
    if !clocks.is_empty() {
        seen.observed.insert("clocks_sm_mhz".to_owned(), clocks.into());
    }
}

fn throttle_reasons(bits: u64) -> Vec<&'static str> {
    let active = THROTTLE_REASONS.iter().filter(|(bit, _)| bits & bit != 0);
    active.map(|(_, name)| *name).collect()
}

/// States a list with one entry a card, where every card has one.
fn add_identity(
    seen: &mut Observation,
    cards: &[Card],
    field: &str,
    read: impl Fn(&Card) -> Option<String>,
) {
    let values: Option<Vec<String>> = cards.iter().map(read).collect();
    let (Some(values), Some(first)) = (values, cards.first()) else { return };
    seen.facts.push(Fact::new(FactKind::Observed, field, values, &first.place));
}

impl Card {
    /// The one cap that was in force, if there is one.
    fn cap_w(&self) -> Option<f64> {
        if let [cap] = self.caps_w.as_slice() { *cap } else { None }
    }

    fn label(&self) -> String {
        self.index.map_or_else(|| self.key.clone(), |index| index.to_string())
    }
}

/// Writes whole numbers without a fraction, as canonical JSON does.
fn number(value: f64) -> Value {
    whole(value).map_or_else(|| json!(value), Value::from)
}

#[cfg(test)]
mod tests;
