//! One row as a cell: which metric its rate is, its samples, and what its spread is worth.

use super::row::{Row, Test};
use crate::read::fields::Fields;
use ledger::adapter::ExtractError;
use ledger::cell::{Cell, Metric, Parameter, TokenCounts};
use ledger::finding::{Code, Finding};
use ledger::metric::{Statistic, Unit};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Makes the cell of a row; `varied` are the settings that differ between the rows of its run.
pub(super) fn build_cell(row: &Row, varied: &BTreeSet<String>) -> Result<Cell, ExtractError> {
    let test = row.test()?;
    let mut cell = Cell { tokens: tokens(test), ..Cell::default() };
    cell.parameters = parameters(row, test, varied);
    add_rate(&mut cell, &row.fields(), test)?;
    Ok(cell)
}

fn parameters(row: &Row, test: Test, varied: &BTreeSet<String>) -> BTreeMap<String, Parameter> {
    let settings = row.settings();
    let differing = varied.iter().map(|name| {
        let value = settings.get(name.as_str()).map_or_else(|| "unknown".into(), to_parameter);
        (name.clone(), value)
    });
    differing.chain([("test".to_owned(), test.label().into())]).collect()
}

fn to_parameter(value: &Value) -> Parameter {
    match (value.as_u64(), value.as_str()) {
        (Some(count), _) => Parameter::Count(count),
        (None, Some(text)) => Parameter::Text(text.to_owned()),
        (None, None) => Parameter::Text(value.to_string()),
    }
}

/// The tool feeds and generates exactly the tokens it names.
fn tokens(test: Test) -> TokenCounts {
    TokenCounts {
        prompt_nominal: Some(test.prompt),
        prompt_mean: Some(test.prompt as f64),
        output_limit: Some(test.output),
        output_mean: Some(test.output as f64),
        ..TokenCounts::default()
    }
}

const fn metric_name(test: Test) -> &'static str {
    match (test.prompt, test.output) {
        (_, 0) => "prefill_tok_s",
        (0, _) => "decode_tok_s",
        _ => "combined_tok_s",
    }
}

fn add_rate(cell: &mut Cell, fields: &Fields<'_>, test: Test) -> Result<(), ExtractError> {
    let name = metric_name(test);
    let samples = read_samples(fields, test)?;
    let mean = fields.number("avg_ts")?;
    if mean.is_none() && samples.is_empty() {
        cell.push_missing(name, "the file prints no rate");
        return Ok(());
    }
    let repetitions = samples.len();
    let mut metric = Metric::new(name).with_samples(Unit::Canonical, samples).with_given(
        Statistic::Mean,
        Unit::Canonical,
        mean,
        "avg_ts",
    );
    match read_spread(fields, repetitions)? {
        Ok(std) => {
            metric = metric.with_given(Statistic::Std, Unit::Canonical, Some(std), "stddev_ts");
            if let Some(given) = metric.given.get_mut(&Statistic::Std) {
                given.ddof = Some(1);
            }
        }
        Err(reason) => cell.cautions.push(Finding::caution(Code::SpreadUnknown, "", reason)),
    }
    cell.push(metric);
    Ok(())
}

/// Reads the rate of each repetition: as printed, or from its time where only times are there.
fn read_samples(fields: &Fields<'_>, test: Test) -> Result<Vec<f64>, ExtractError> {
    if let Some(rates) = fields.numbers("samples_ts")? {
        return Ok(rates);
    }
    let times_ns = fields.numbers("samples_ns")?.unwrap_or_default();
    let tokens = (test.prompt + test.output) as f64;
    Ok(times_ns.iter().map(|time_ns| tokens * 1e9 / time_ns).collect())
}

/// Reads the printed spread, or the reason why it says nothing. The tool prints 0 for a single
/// repetition, and the square root of a difference that can fall below zero otherwise.
fn read_spread(
    fields: &Fields<'_>,
    repetitions: usize,
) -> Result<Result<f64, &'static str>, ExtractError> {
    let std = fields.number("stddev_ts")?;
    Ok(match std {
        _ if repetitions == 1 => Err("one repetition: the printed spread of 0 is unknown, not 0"),
        None => Err("the printed spread is not a number"),
        Some(0.0) if repetitions == 0 => {
            Err("the printed spread is 0 and the number of repetitions is not given")
        }
        Some(std) => Ok(std),
    })
}
