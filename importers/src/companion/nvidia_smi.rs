//! `nvidia-smi --query-gpu=… --format=csv -l N`: the power cap that was in force, card by card, and
//! what the clocks did. `[N/A]` is unknown, never zero.

use ledger::adapter::{Companion, ExtractError, Fact, FactKind, Observation, SourceFile};
use ledger::finding::{Code, Finding};
use serde_json::Value;
use std::collections::BTreeMap;

/// The companion.
#[derive(Debug)]
pub struct NvidiaSmi;

/// A last clock below this share of the first is a drift.
const DRIFT: f64 = 0.9;

#[derive(Debug, Default)]
struct Card {
    uuid: Option<String>,
    cap: Option<Value>,
    clocks: Vec<f64>,
}

impl Companion for NvidiaSmi {
    fn id(&self) -> &'static str {
        "nvidia-smi-csv"
    }

    fn version(&self) -> u32 {
        1
    }

    fn title(&self) -> &'static str {
        "nvidia-smi telemetry CSV"
    }

    fn detect(&self, file: &SourceFile<'_>) -> Option<String> {
        let header = file.outline.first_line;
        let is_telemetry = header.contains("power.limit [W]") && header.contains("index");
        is_telemetry.then(|| "its header has power.limit [W]".to_owned())
    }

    fn observe(&self, files: &[SourceFile<'_>]) -> Result<Observation, ExtractError> {
        let mut observation = Observation::default();
        let mut cards: BTreeMap<u64, Card> = BTreeMap::new();
        for file in files {
            read(file, &mut cards)?;
        }
        let names = files.iter().map(|file| file.name).collect::<Vec<_>>().join(", ");
        let caps: Vec<Value> = cards
            .values()
            .map(|card| card.cap.clone().unwrap_or_else(|| "unknown".into()))
            .collect();
        let place = format!("{names}: power.limit [W]");
        let cap = match caps.as_slice() {
            [] => return Ok(observation),
            [first, rest @ ..] if rest.iter().all(|cap| cap == first) => first.clone(),
            _ => Value::from(caps),
        };
        observation.facts.push(Fact::new(FactKind::Observed, "power.cap_w", cap, &place));
        let places: Option<Vec<&str>> = cards.values().map(|card| card.uuid.as_deref()).collect();
        if let Some(places) = places {
            let place = format!("{names}: uuid");
            observation.facts.push(Fact::new(
                FactKind::Observed,
                "placement",
                Value::from(places),
                &place,
            ));
        }
        for (index, card) in &cards {
            observe_clocks(*index, card, &mut observation);
        }
        Ok(observation)
    }
}

fn read(file: &SourceFile<'_>, cards: &mut BTreeMap<u64, Card>) -> Result<(), ExtractError> {
    let mut reader = csv::ReaderBuilder::new()
        .trim(csv::Trim::All)
        .flexible(true)
        .from_reader(file.text.as_bytes());
    let malformed = |error: csv::Error| ExtractError::Malformed {
        line: error.position().map_or(0, |place| usize::try_from(place.line()).unwrap_or(0)),
        column: 0,
        problem: error.to_string(),
    };
    let headers = reader.headers().map_err(malformed)?.clone();
    let column = |name: &str| headers.iter().position(|header| header == name);
    let (index, uuid) = (column("index"), column("uuid"));
    let (cap, clock) = (
        column("power.limit [W]"),
        column("clocks.sm [MHz]").or(column("clocks.current.sm [MHz]")),
    );
    for row in reader.records() {
        let row = row.map_err(malformed)?;
        let get = |column: Option<usize>| column.and_then(|column| row.get(column));
        let Some(number) = get(index).and_then(|text| text.parse().ok()) else { continue };
        let card = cards.entry(number).or_default();
        card.uuid = card.uuid.take().or_else(|| get(uuid).map(str::to_owned));
        let seen = get(cap).and_then(quantity).map(Value::from);
        if card.cap.is_none() {
            card.cap.clone_from(&seen);
        } else if seen.is_some() && card.cap != seen {
            // A cap that moved during the run is none that could be compared.
            card.cap = Some("unknown".into());
        }
        card.clocks.extend(get(clock).and_then(quantity));
    }
    Ok(())
}

/// Reads `140.00 W` or `1410 MHz`; `[N/A]` is nothing.
fn quantity(text: &str) -> Option<f64> {
    text.split_whitespace().next()?.parse().ok().filter(|number: &f64| number.is_finite())
}

fn observe_clocks(index: u64, card: &Card, observation: &mut Observation) {
    let (Some(first), Some(last)) = (card.clocks.first(), card.clocks.last()) else { return };
    let lowest = card.clocks.iter().copied().fold(f64::INFINITY, f64::min);
    for (name, value) in [("first", *first), ("last", *last), ("min", lowest)] {
        observation.observed.insert(format!("gpu{index}_sm_clock_{name}_mhz"), value.into());
    }
    if *last < DRIFT * first {
        let message = format!("the SM clock of card {index} fell from {first} to {last} MHz");
        observation.cautions.push(Finding::caution(Code::ClockDrift, "", message));
    }
}
