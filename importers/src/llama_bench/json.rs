//! JSON and JSONL: an array is one execution, and so are objects line by line.

use super::row::{Reading, Row, Sheet, find_row, is_row};
use crate::read::documents::{Document, Record, Shape, documents};
use crate::read::json::duplicate_keys;
use ledger::adapter::ExtractError;
use ledger::finding::{Code, Finding};
use serde_json::{Map, Value};

/// Reads every row of a text.
pub(super) fn read(text: &str) -> Result<Reading, ExtractError> {
    let found = documents(text);
    found.require_readable()?;
    let mut reading = Reading { cautions: found.cautions(), ..Reading::default() };
    let mut others = Vec::new();
    let mut is_line_by_line = false;
    for document in &found.documents {
        let continues = is_line_by_line && document.shape == Shape::Object;
        is_line_by_line = document.shape == Shape::Object;
        if !continues {
            reading.sheets.push(Sheet::default());
        }
        let Some(sheet) = reading.sheets.last_mut() else { continue };
        read_document(document, sheet, &mut others)?;
    }
    reading.sheets.retain(|sheet| !sheet.rows.is_empty());
    reading.cautions.extend(found_others(&others));
    Ok(reading)
}

/// Adds the rows of a document.
fn read_document(
    document: &Document<'_>,
    sheet: &mut Sheet,
    others: &mut Vec<usize>,
) -> Result<(), ExtractError> {
    for record in &document.records {
        sheet.cautions.extend(found_duplicates(record));
        match read_row(record, record.parse()?) {
            Some(row) => sheet.rows.push(row),
            None => others.push(record.line),
        }
    }
    Ok(())
}

fn read_row(record: &Record<'_>, fields: Map<String, Value>) -> Option<Row> {
    let (line, span) = (record.line, record.span);
    if let Some(inner) = find_row(&fields) {
        let base = format!("line {line}, bench_raw");
        return is_row(inner).then(|| Row { fields: inner.clone(), base, line, span });
    }
    let base = format!("line {line}");
    is_row(&fields).then_some(Row { fields, base, line, span })
}

fn found_others(lines: &[usize]) -> Option<Finding> {
    let first = lines.first()?;
    let message =
        format!("{} records are no llama-bench rows, the first on line {first}", lines.len());
    Some(Finding::caution(Code::ValueLeftOut, "", message))
}

fn found_duplicates(record: &Record<'_>) -> Option<Finding> {
    let keys = duplicate_keys(record.text);
    let message = format!("a key stands twice on line {}, the last one counts", record.line);
    let finding = Finding::caution(Code::ReportsDisagree, "", message);
    let finding = keys.iter().fold(finding, |finding, key| {
        finding.with(ledger::text::printable(key), format!("line {}", record.line))
    });
    (!keys.is_empty()).then_some(finding)
}
