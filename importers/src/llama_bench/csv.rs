//! CSV: everything quoted, booleans as `0` and `1`, no samples. Columns are found by name: builds
//! print 24 to 42 of them, and new ones stand in the middle.

use super::row::{Reading, Row, Sheet};
use crate::read::table::{OtherLine, Table, csv_tables};
use ledger::adapter::ExtractError;
use ledger::finding::{Code, Finding, Severity};
use serde_json::{Map, Value};

/// True for a header line of the tool.
pub(super) fn is_header(line: &str) -> bool {
    let names: Vec<&str> = line.split(',').map(|name| name.trim().trim_matches('"')).collect();
    ["build_commit", "n_prompt", "n_gen", "avg_ts"].iter().all(|name| names.contains(name))
}

/// Reads every row of a text.
pub(super) fn read(text: &str) -> Result<Reading, ExtractError> {
    let found = csv_tables(text, is_header)?;
    let mut cautions = other_lines(&found.other);
    cautions.extend(found.cut.map(|line| {
        Finding::caution(Code::TruncatedRecord, "", format!("the row on line {line} is cut"))
    }));
    let sheets = found.tables.iter().map(read_table).filter(|sheet| !sheet.rows.is_empty());
    Ok(Reading { sheets: sheets.collect(), cautions, accelerators: Vec::new() })
}

fn read_table(table: &Table) -> Sheet {
    let rows = table.rows.iter().map(|row| {
        let fields: Map<String, Value> =
            table.pairs(row).map(|(name, cell)| (name.to_owned(), cell.into())).collect();
        Row { fields, base: format!("line {}", row.line), line: row.line, span: table.span }
    });
    Sheet { rows: rows.collect(), cautions: Vec::new() }
}

/// Says which lines are no rows.
pub(super) fn other_lines(lines: &[OtherLine]) -> Vec<Finding> {
    let Some(first) = lines.first() else { return Vec::new() };
    let noun = if lines.len() == 1 { "line is no row" } else { "lines are no rows" };
    let message = format!("{} {noun}, the first on line {}", lines.len(), first.line);
    vec![Finding::new(Code::LeadingText, Severity::Note, "", message)]
}
