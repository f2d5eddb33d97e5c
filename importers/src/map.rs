//! A map: a person's description of a format nobody foresaw, as TOML. It says where coordinates,
//! fingerprint fields and metrics stand, in which unit; it is checked whole before it is used, and
//! one that matches nothing is an error.
//!
//! ```toml
//! name = "my-bench"
//! kind = "json"              # json: JSON pointers; csv: column names; text: regular expressions
//! rows = "/results"          # json only: the array whose members are rows; without it the document
//!
//! [cell]                     # coordinates of a row
//! concurrency = "/clients"
//!
//! [state]                    # fingerprint fields that the file states
//! "model.id" = "/model"
//!
//! [[metric]]
//! name = "ttft_ms"           # a name of schema/metrics.toml
//! at = "/ttft"               # a number, a numeric text, or an array of samples
//! unit = "s"                 # s, ms, us, ns, fraction, percent, or the metric's own
//! statistic = "mean"         # what one number is; `value` when it is not said
//! ```

use ledger::adapter::{
    Adapter, ExtractError, ExtractedRun, Extraction, Fact, FactKind, SourceFile, Trap,
};
use ledger::cell::{Cell, Metric, Parameter};
use ledger::fingerprint;
use ledger::metric::{Statistic, Unit, find_definition};
use regex::Regex;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// Largest number of rows that one file may yield.
const MOST_ROWS: usize = 100_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Json,
    Csv,
    Text,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    name: String,
    kind: Kind,
    rows: Option<String>,
    #[serde(default)]
    cell: BTreeMap<String, String>,
    #[serde(default)]
    state: BTreeMap<String, String>,
    #[serde(default)]
    metric: Vec<WrittenMetric>,
    measured_at: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenMetric {
    name: String,
    at: String,
    unit: Option<String>,
    statistic: Option<Statistic>,
}

/// Where a value stands in a row.
#[derive(Debug)]
enum Place {
    Pointer(String),
    Column(String),
    Pattern(Regex),
}

#[derive(Debug)]
struct MetricPlace {
    name: String,
    place: Place,
    unit: Unit,
    statistic: Statistic,
}

/// The adapter that a map describes.
#[derive(Debug)]
pub struct MapAdapter {
    title: String,
    kind: Kind,
    rows: Option<String>,
    cell: Vec<(String, Place)>,
    state: Vec<(String, Place)>,
    metrics: Vec<MetricPlace>,
    measured_at: Option<Place>,
}

/// Reads a map and checks it.
///
/// # Errors
/// Everything that is wrong with it: what is no TOML or has an unknown key, and then every metric,
/// unit, field, pointer and pattern that cannot be.
pub fn read_map(bytes: &[u8]) -> Result<Box<dyn Adapter>, Vec<String>> {
    let text = std::str::from_utf8(bytes).map_err(|error| vec![format!("map: {error}")])?;
    let written: Written =
        toml::from_str(text).map_err(|error| vec![error.to_string().trim().to_owned()])?;
    let mut problems = Vec::new();
    let kind = written.kind;
    if kind != Kind::Json && written.rows.is_some() {
        problems.push("`rows` is for `kind = \"json\"` only".to_owned());
    }
    if let Some(rows) = written.rows.as_deref().filter(|rows| !rows.starts_with('/')) {
        problems.push(format!("`rows`: `{rows}` is no JSON pointer, which starts with `/`"));
    }
    if written.metric.is_empty() {
        problems.push("no `[[metric]]`: a map without a metric yields nothing".to_owned());
    }
    for field in written.state.keys().filter(|field| !fingerprint::is_field(field)) {
        problems.push(format!("`state.{field}` is no fingerprint field"));
    }
    let mut places = |named: BTreeMap<String, String>, table: &str| {
        let mut found = Vec::with_capacity(named.len());
        for (name, at) in named {
            match read_place(kind, &at) {
                Ok(place) => found.push((name, place)),
                Err(problem) => problems.push(format!("`{table}.{name}`: {problem}")),
            }
        }
        found
    };
    let cell = places(written.cell, "cell");
    let state = places(written.state, "state");
    let when = written.measured_at.map(|at| ("measured_at".to_owned(), at)).into_iter().collect();
    let measured_at = places(when, "map").pop().map(|(_, place)| place);
    let mut metrics = Vec::with_capacity(written.metric.len());
    for metric in written.metric {
        match read_metric(kind, metric) {
            Ok(metric) => metrics.push(metric),
            Err(found) => problems.extend(found),
        }
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    let title = format!("a file that the map `{}` describes", written.name);
    Ok(Box::new(MapAdapter { title, kind, rows: written.rows, cell, state, metrics, measured_at }))
}

fn read_place(kind: Kind, at: &str) -> Result<Place, String> {
    match kind {
        Kind::Json if at.is_empty() || at.starts_with('/') => Ok(Place::Pointer(at.to_owned())),
        Kind::Json => Err(format!("`{at}` is no JSON pointer, which starts with `/`")),
        Kind::Csv => Ok(Place::Column(at.to_owned())),
        Kind::Text => {
            let pattern = Regex::new(at).map_err(|error| error.to_string())?;
            if pattern.captures_len() == 2 {
                Ok(Place::Pattern(pattern))
            } else {
                let groups = pattern.captures_len() - 1;
                Err(format!("`{at}` has {groups} groups; exactly one must hold the value"))
            }
        }
    }
}

fn read_metric(kind: Kind, written: WrittenMetric) -> Result<MetricPlace, Vec<String>> {
    let mut problems = Vec::new();
    let name = &written.name;
    let definition = find_definition(name);
    if definition.is_none() {
        problems.push(format!("`{name}` is no metric of schema/metrics.toml"));
    }
    let canonical = definition.map_or("", |definition| definition.unit.as_str());
    let unit = written.unit.as_deref().map_or(Some(Unit::Canonical), |unit| match unit {
        "s" => Some(Unit::Seconds),
        "ms" => Some(Unit::Milliseconds),
        "us" => Some(Unit::Microseconds),
        "ns" => Some(Unit::Nanoseconds),
        "fraction" => Some(Unit::Fraction),
        "percent" | "%" => Some(Unit::Percent),
        own if own == canonical => Some(Unit::Canonical),
        _ => None,
    });
    let unit = unit.filter(|unit| unit.to_canonical(1.0, canonical).is_some());
    if unit.is_none() {
        let given = written.unit.as_deref().unwrap_or_default();
        problems.push(format!("metric `{name}` is in {canonical}; `{given}` does not convert"));
    }
    match (read_place(kind, &written.at), unit) {
        (Ok(place), Some(unit)) if problems.is_empty() => Ok(MetricPlace {
            name: written.name,
            place,
            unit,
            statistic: written.statistic.unwrap_or(Statistic::Value),
        }),
        (place, _) => {
            problems.extend(place.err().map(|problem| format!("metric `{name}`: {problem}")));
            Err(problems)
        }
    }
}

/// One row of the file: the values at a place, as texts or numbers.
enum Row<'a> {
    Json(&'a Value),
    Record(BTreeMap<String, String>),
    Text(&'a str),
}

impl Row<'_> {
    fn values(&self, place: &Place) -> Vec<Value> {
        match (self, place) {
            (Self::Json(row), Place::Pointer(pointer)) => match row.pointer(pointer) {
                Some(Value::Array(samples)) => samples.clone(),
                Some(Value::Null) | None => Vec::new(),
                Some(value) => vec![value.clone()],
            },
            (Self::Record(record), Place::Column(column)) => record
                .get(column)
                .filter(|text| !text.trim().is_empty())
                .map(|text| Value::from(text.trim()))
                .into_iter()
                .collect(),
            (Self::Text(text), Place::Pattern(pattern)) => pattern
                .captures_iter(text)
                .filter_map(|found| found.get(1).map(|value| Value::from(value.as_str())))
                .collect(),
            _ => Vec::new(),
        }
    }
}

fn describe(place: &Place) -> String {
    match place {
        Place::Pointer(at) | Place::Column(at) => at.clone(),
        Place::Pattern(pattern) => pattern.as_str().to_owned(),
    }
}

fn number(value: &Value) -> Option<f64> {
    let number = match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.trim().parse().ok(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    };
    number.filter(|number| number.is_finite())
}

impl MapAdapter {
    fn read_row(&self, row: &Row<'_>, locus: &str) -> Result<Option<ExtractedRun>, ExtractError> {
        let mut cell = Cell::default();
        for (name, place) in &self.cell {
            if let Some(value) = row.values(place).into_iter().next() {
                cell.parameters.insert(name.clone(), parameter(&value));
            }
        }
        for wanted in &self.metrics {
            add_metric(&mut cell, wanted, row, locus)?;
        }
        if cell.metrics.is_empty() {
            return Ok(None);
        }
        let facts = self.state.iter().filter_map(|(field, place)| {
            let value = row.values(place).into_iter().next()?;
            Some(Fact::new(FactKind::Stated, field, value, &describe(place)))
        });
        let time = self.measured_at.as_ref().and_then(|place| row.values(place).into_iter().next());
        Ok(Some(ExtractedRun {
            locus: locus.to_owned(),
            facts: facts.collect(),
            cells: vec![cell],
            measured_at: time.and_then(|time| time.as_str().map(str::to_owned)),
            ..ExtractedRun::default()
        }))
    }

    fn read_rows(
        &self,
        rows: &mut dyn Iterator<Item = Result<(Row<'_>, String), ExtractError>>,
    ) -> Result<Extraction, ExtractError> {
        let mut runs = Vec::new();
        for (count, row) in rows.enumerate() {
            if count >= MOST_ROWS {
                let problem = format!("more than {MOST_ROWS} rows");
                return Err(ExtractError::Field { field: "rows".to_owned(), problem });
            }
            let (row, locus) = row?;
            runs.extend(self.read_row(&row, &locus)?);
        }
        if runs.is_empty() {
            let looked: Vec<String> =
                self.metrics.iter().map(|metric| describe(&metric.place)).collect();
            let problem = format!("the map matches nothing: no number at {}", looked.join(", "));
            return Err(ExtractError::Field { field: "metric".to_owned(), problem });
        }
        Ok(Extraction { runs, cautions: Vec::new() })
    }

    fn read_json(&self, text: &str) -> Result<Extraction, ExtractError> {
        let document: Value =
            serde_json::from_str(text).map_err(|error| ExtractError::Malformed {
                line: error.line(),
                column: error.column(),
                problem: error.to_string(),
            })?;
        let Some(pointer) = &self.rows else {
            return self.read_rows(&mut [Ok((Row::Json(&document), String::new()))].into_iter());
        };
        let Some(Value::Array(rows)) = document.pointer(pointer) else {
            let problem = "the map matches nothing: there is no array".to_owned();
            return Err(ExtractError::Field { field: pointer.clone(), problem });
        };
        self.read_rows(
            &mut rows
                .iter()
                .enumerate()
                .map(|(index, row)| Ok((Row::Json(row), format!("{pointer}/{index}")))),
        )
    }

    fn read_csv(&self, text: &str) -> Result<Extraction, ExtractError> {
        let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(text.as_bytes());
        let malformed = |error: &csv::Error| ExtractError::Malformed {
            line: error.position().map_or(0, |at| usize::try_from(at.line()).unwrap_or(0)),
            column: 0,
            problem: error.to_string(),
        };
        let header = reader.headers().map_err(|error| malformed(&error))?.clone();
        let missing = self.metrics.iter().map(|metric| describe(&metric.place));
        let missing: Vec<String> =
            missing.filter(|column| !header.iter().any(|name| name.trim() == column)).collect();
        if !missing.is_empty() {
            let problem = format!(
                "the map names columns that are not there: {}; there are {}",
                missing.join(", "),
                header.iter().collect::<Vec<_>>().join(", ")
            );
            return Err(ExtractError::Field { field: "metric".to_owned(), problem });
        }
        self.read_rows(&mut reader.records().enumerate().map(|(index, record)| {
            let record = record.map_err(|error| malformed(&error))?;
            let named = header.iter().map(|name| name.trim().to_owned());
            let row = named.zip(record.iter().map(str::to_owned)).collect();
            Ok((Row::Record(row), format!("row {}", index + 1)))
        }))
    }
}

fn parameter(value: &Value) -> Parameter {
    match value {
        Value::String(text) => {
            text.trim().parse::<u64>().map_or_else(|_text| text.clone().into(), Parameter::from)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            value.as_u64().map_or_else(|| value.to_string().into(), Parameter::from)
        }
    }
}

fn add_metric(
    cell: &mut Cell,
    wanted: &MetricPlace,
    row: &Row<'_>,
    locus: &str,
) -> Result<(), ExtractError> {
    let values = row.values(&wanted.place);
    let mut numbers = Vec::with_capacity(values.len());
    for value in &values {
        let Some(number) = number(value) else {
            let field = format!("{locus} {}", describe(&wanted.place)).trim().to_owned();
            let problem = format!("`{value}` is no number for {}", wanted.name);
            return Err(ExtractError::Field { field, problem });
        };
        numbers.push(number);
    }
    let metric = Metric::new(&wanted.name);
    match numbers.as_slice() {
        [] => cell.push_missing(&wanted.name, format!("nothing at {}", describe(&wanted.place))),
        [only] => {
            let key = describe(&wanted.place);
            cell.push(metric.with_given(wanted.statistic, wanted.unit, Some(*only), &key));
        }
        several => cell.push(metric.with_samples(wanted.unit, several.iter().copied())),
    }
    Ok(())
}

impl Adapter for MapAdapter {
    fn id(&self) -> &'static str {
        "map"
    }

    fn version(&self) -> u32 {
        1
    }

    fn title(&self) -> &'static str {
        "a file that a map describes"
    }

    fn traps(&self) -> &'static [Trap] {
        &[]
    }

    /// A map is used where a person names it, never by content.
    fn detect(&self, _file: &SourceFile<'_>) -> Option<String> {
        None
    }

    fn extract(&self, file: &SourceFile<'_>) -> Result<Extraction, ExtractError> {
        let extraction = match self.kind {
            Kind::Json => self.read_json(file.text),
            Kind::Csv => self.read_csv(file.text),
            Kind::Text => {
                self.read_rows(&mut [Ok((Row::Text(file.text), String::new()))].into_iter())
            }
        };
        extraction.map_err(|error| match error {
            ExtractError::Field { field, problem } => {
                ExtractError::Field { field, problem: format!("{problem} ({})", self.title) }
            }
            ExtractError::Malformed { .. } | ExtractError::Cut { .. } => error,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extract(map: &str, text: &str) -> Result<Extraction, ExtractError> {
        read_map(map.as_bytes()).unwrap().extract(&SourceFile::new("f", text))
    }

    const JSON: &str = "name = 'x'\nkind = 'json'\nrows = '/results'\n[cell]\nconcurrency = '/clients'\n\
        [state]\n'model.id' = '/model'\n[[metric]]\nname = 'ttft_ms'\nat = '/ttft'\nunit = 's'\nstatistic = 'mean'\n";

    #[test]
    fn rows_of_a_json_array_become_cells_in_canonical_units() {
        let text = r#"{"results": [{"clients": 4, "model": "acme/a", "ttft": "0.25"}, {"clients": 8, "model": "acme/a"}]}"#;
        let extraction = extract(JSON, text).unwrap();
        assert_eq!(extraction.runs.len(), 1, "a row without a number is no row");
        let run = &extraction.runs[0];
        assert_eq!(run.cells[0].id(), "concurrency=4");
        assert_eq!(run.cells[0].metrics[0].given[&Statistic::Mean].value, 250.0);
        assert_eq!(run.facts[0].value, "acme/a");
        assert_eq!(run.locus, "/results/0");
    }

    #[test]
    fn a_map_that_matches_nothing_is_an_error() {
        let problem = extract(JSON, r#"{"results": [{"clients": 4}]}"#).unwrap_err().to_string();
        assert!(problem.contains("matches nothing: no number at /ttft"), "{problem}");
        let problem = extract(JSON, r#"{"rows": []}"#).unwrap_err().to_string();
        assert!(problem.contains("there is no array"), "{problem}");
    }

    #[test]
    fn everything_that_is_wrong_with_a_map_is_said_at_once() {
        let map = "name = 'x'\nkind = 'text'\nrows = '/r'\n[state]\n'modle.id' = '(a)'\n\
            [[metric]]\nname = 'ttft'\nat = '(x'\n[[metric]]\nname = 'ttft_ms'\nat = '(a)(b)'\nunit = 'percent'\n";
        let problems = read_map(map.as_bytes()).unwrap_err().join("\n");
        for expected in [
            "`rows` is for",
            "`state.modle.id` is no fingerprint field",
            "`ttft` is no metric",
            "unclosed group",
            "is in ms; `percent` does not convert",
            "has 2 groups",
        ] {
            assert!(problems.contains(expected), "`{expected}` is not in {problems}");
        }
        assert!(read_map(b"name = 'x'\nkind = 'json'\nmetrics = []\n").is_err(), "unknown key");
    }

    #[test]
    fn a_map_with_too_many_rows_is_refused() {
        let map = "name = 'x'\nkind = 'csv'\n[[metric]]\nname = 'decode_tok_s'\nat = 'tps'\n";
        let text = format!("tps\n{}", "1\n".repeat(MOST_ROWS + 1));
        assert!(extract(map, &text).unwrap_err().to_string().contains("more than 100000 rows"));
    }

    #[test]
    fn a_pattern_that_matches_often_gives_samples() {
        let map = "name = 'x'\nkind = 'text'\n[[metric]]\nname = 'decode_tok_s'\nat = 'eval rate: ([0-9.]+)'\n";
        let extraction = extract(map, "eval rate: 10.5\neval rate: 11.5 tok/s\n").unwrap();
        assert_eq!(extraction.runs[0].cells[0].metrics[0].samples, [10.5, 11.5]);
    }

    #[test]
    fn a_column_that_is_not_there_is_named_with_those_that_are() {
        let map = "name = 'x'\nkind = 'csv'\n[[metric]]\nname = 'decode_tok_s'\nat = 'tps'\n";
        let problem = extract(map, "model,tok/s\na,1\n").unwrap_err().to_string();
        assert!(problem.contains("not there: tps; there are model, tok/s"), "{problem}");
        let problem = extract(map, "model,tps\na,fast\n").unwrap_err().to_string();
        assert!(problem.contains("row 1 tps") && problem.contains("is no number"), "{problem}");
    }
}
