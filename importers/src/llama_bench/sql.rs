//! SQL: a CREATE TABLE with the column names, then one INSERT a row, every value quoted. The tool
//! escapes nothing, so a path with a quote makes invalid SQL that only a reader of this form can
//! read: values are split at `', '`, and another number of values than columns is refused.

use super::row::{Reading, Row, Sheet};
use ledger::adapter::ExtractError;
use serde_json::{Map, Value};

/// The table's first line; builds of 2023 call it `test`.
const STARTS: [&str; 2] =
    ["CREATE TABLE IF NOT EXISTS llama_bench (", "CREATE TABLE IF NOT EXISTS test ("];

/// Finds the first table of the tool and returns its offset.
pub(super) fn find_table(text: &str) -> Option<usize> {
    let offset = STARTS.iter().filter_map(|start| text.find(start)).min()?;
    let body = text.get(offset..)?;
    let columns = body.get(..body.find(");").unwrap_or(body.len()))?;
    columns.contains("build_commit").then_some(offset)
}

/// Reads every row of a text.
pub(super) fn read(text: &str) -> Result<Reading, ExtractError> {
    let mut reading = Reading::default();
    let mut offset = 0;
    for (index, line) in text.split_inclusive('\n').enumerate() {
        let span = (offset, offset + line.len());
        offset = span.1;
        if STARTS.iter().any(|start| line.starts_with(start)) {
            reading.sheets.push(Sheet::default());
        } else if line.starts_with("INSERT INTO ") {
            let row = read_insert(line.trim_end(), index + 1, span)?;
            rows_of_last(&mut reading.sheets).push(row);
        }
    }
    reading.sheets.retain(|sheet| !sheet.rows.is_empty());
    Ok(reading)
}

/// The rows of the newest sheet; INSERT lines without a CREATE TABLE make one.
fn rows_of_last(sheets: &mut Vec<Sheet>) -> &mut Vec<Row> {
    let sheet = sheets.pop().unwrap_or_default();
    &mut sheets.push_mut(sheet).rows
}

/// `INSERT INTO llama_bench (a, b) VALUES ('1', '2');`
fn read_insert(line: &str, number: usize, span: (usize, usize)) -> Result<Row, ExtractError> {
    let malformed = |problem: String| ExtractError::Malformed { line: number, column: 0, problem };
    let cut = || malformed("the INSERT is cut".to_owned());
    let (head, tail) = line.split_once(" VALUES (").ok_or_else(cut)?;
    let names =
        head.split_once('(').and_then(|(_, names)| names.strip_suffix(')')).ok_or_else(cut)?;
    let values = tail.strip_suffix(");").ok_or_else(cut)?;
    let values =
        values.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\'')).ok_or_else(cut)?;
    let names: Vec<&str> = names.split(", ").collect();
    let values: Vec<&str> = values.split("', '").collect();
    if names.len() != values.len() {
        let (found, expected) = (values.len(), names.len());
        return Err(malformed(format!("the INSERT has {found} values for {expected} columns")));
    }
    let pairs = names.iter().zip(&values);
    let fields: Map<String, Value> =
        pairs.map(|(name, value)| ((*name).to_owned(), Value::from(*value))).collect();
    Ok(Row { fields, base: format!("line {number}"), line: number, span })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(values: &str) -> Result<Row, ExtractError> {
        read_insert(&format!("INSERT INTO llama_bench (a, b) VALUES ({values});"), 7, (0, 1))
    }

    #[test]
    fn a_quote_inside_a_path_is_read() {
        assert_eq!(row("'it's \"tiny\"', '2'").unwrap().fields["a"], "it's \"tiny\"");
    }

    #[test]
    fn another_number_of_values_is_refused() {
        let error = row("'a', 'b', '2'").unwrap_err();
        assert_eq!(error.to_string(), "line 7, column 0: the INSERT has 3 values for 2 columns");
        assert!(row("'a").is_err());
    }
}
