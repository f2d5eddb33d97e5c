//! Tables: CSV read by header name, and Markdown pipe tables. Columns move and come between
//! versions of a tool, so no column has a number. A row as wide as another table is refused; a
//! header that stands again begins another run.

use ledger::adapter::ExtractError;
use std::collections::BTreeSet;

mod pipe;

pub use pipe::pipe_tables;

/// A table and where it stands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Table {
    /// Column names as the file writes them, white space trimmed.
    pub header: Vec<String>,
    /// Line of the header, from 1.
    pub line: usize,
    /// First byte of the header and one past the last byte of the table.
    pub span: (usize, usize),
    /// The rows.
    pub rows: Vec<Row>,
}

/// One row of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// Its line, from 1.
    pub line: usize,
    /// Its cells, white space trimmed, as many as the header has.
    pub cells: Vec<String>,
}

/// A line that is no row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtherLine {
    /// Its line, from 1.
    pub line: usize,
    /// Its text.
    pub text: String,
}

/// What a text of tables holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tables {
    /// The tables in file order.
    pub tables: Vec<Table>,
    /// Lines that belong to no table.
    pub other: Vec<OtherLine>,
    /// Line of a last row that has no end.
    pub cut: Option<usize>,
}

impl Table {
    /// Returns the number of a column, if the table has it; case does not matter.
    pub fn find_column(&self, name: &str) -> Option<usize> {
        self.header.iter().position(|column| column.eq_ignore_ascii_case(name))
    }

    /// Returns the cell of a row under a column name; an empty cell is nothing.
    pub fn find_cell<'a>(&self, row: &'a Row, name: &str) -> Option<&'a str> {
        let cell = row.cells.get(self.find_column(name)?)?;
        (!cell.is_empty()).then_some(cell)
    }

    /// Pairs column names with the cells of a row.
    pub fn pairs<'a>(&'a self, row: &'a Row) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.header.iter().map(String::as_str).zip(row.cells.iter().map(String::as_str))
    }
}

/// Reads the CSV tables of a text.
///
/// `is_header` says of a line whether it is a header; text before the first is kept as
/// [`Tables::other`], and so is a row of a single cell in a table of many columns (log lines). A
/// header that stands again begins another table.
///
/// # Errors
/// [`ExtractError::Malformed`] when a row is not as wide as its header or a column stands twice.
/// A last row that is cut is no error: it is left out and [`Tables::cut`] names it.
pub fn csv_tables(text: &str, is_header: impl Fn(&str) -> bool) -> Result<Tables, ExtractError> {
    let mut found = Tables::default();
    let sections = split_sections(text, is_header, &mut found.other);
    let ends_with_line = text.ends_with('\n');
    for (index, section) in sections.iter().enumerate() {
        let may_be_cut = index + 1 == sections.len() && !ends_with_line;
        let table = read_section(section, may_be_cut, &mut found)?;
        found.tables.push(table);
    }
    Ok(found)
}

/// A header and everything up to the next.
struct Section<'a> {
    text: &'a str,
    line: usize,
    start: usize,
}

fn split_sections<'a>(
    text: &'a str,
    is_header: impl Fn(&str) -> bool,
    other: &mut Vec<OtherLine>,
) -> Vec<Section<'a>> {
    let mut starts = Vec::new();
    let mut offset = 0;
    for (index, line) in text.split_inclusive('\n').enumerate() {
        if is_header(line.trim()) {
            starts.push((offset, index + 1));
        } else if starts.is_empty() && !line.trim().is_empty() {
            other.push(OtherLine { line: index + 1, text: line.trim().to_owned() });
        }
        offset += line.len();
    }
    let ends = starts.iter().skip(1).map(|(start, _)| *start).chain([text.len()]);
    let spans = starts.iter().zip(ends);
    spans
        .filter_map(|((start, line), end)| {
            Some(Section { text: text.get(*start..end)?, line: *line, start: *start })
        })
        .collect()
}

fn read_section(
    section: &Section<'_>,
    may_be_cut: bool,
    found: &mut Tables,
) -> Result<Table, ExtractError> {
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .trim(csv::Trim::All)
        .from_reader(section.text.as_bytes());
    let mut table = Table {
        line: section.line,
        span: (section.start, section.start + section.text.len()),
        ..Table::default()
    };
    let mut records: Vec<csv::StringRecord> = Vec::new();
    for record in reader.records() {
        records.push(record.map_err(|error| csv_error(&error, section.line))?);
    }
    let last = records.len().saturating_sub(1);
    for (index, record) in records.into_iter().enumerate() {
        let line = section.line + record_line(&record) - 1;
        let cells: Vec<String> = record.iter().map(str::to_owned).collect();
        if index == 0 {
            check_header(&cells, line)?;
            table.header = cells;
        } else if cells.len() == table.header.len() {
            table.rows.push(Row { line, cells });
        } else if may_be_cut && index == last && cells.len() < table.header.len() {
            found.cut = Some(line);
        } else if let [text] = cells.as_slice() {
            found.other.push(OtherLine { line, text: text.clone() });
        } else {
            return Err(wrong_width(line, cells.len(), table.header.len()));
        }
    }
    Ok(table)
}

fn record_line(record: &csv::StringRecord) -> usize {
    let line = record.position().map_or(1, csv::Position::line);
    usize::try_from(line).unwrap_or(1).max(1)
}

fn csv_error(error: &csv::Error, first_line: usize) -> ExtractError {
    let inside = error.position().map_or(1, csv::Position::line);
    let line = first_line + usize::try_from(inside).unwrap_or(1).saturating_sub(1);
    ExtractError::Malformed { line, column: 0, problem: error.to_string() }
}

fn check_header(header: &[String], line: usize) -> Result<(), ExtractError> {
    let mut seen = BTreeSet::new();
    match header.iter().find(|name| !seen.insert(*name)) {
        Some(twice) => Err(ExtractError::Malformed {
            line,
            column: 0,
            problem: format!("column `{twice}` stands twice"),
        }),
        None => Ok(()),
    }
}

fn wrong_width(line: usize, found: usize, expected: usize) -> ExtractError {
    ExtractError::Malformed {
        line,
        column: 0,
        problem: format!("the row has {found} columns, its header has {expected}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Tables, ExtractError> {
        csv_tables(text, |line| line.starts_with("a,"))
    }

    #[test]
    fn cells_are_found_by_the_name_of_their_column() {
        let found = read("log line\na,b , c\n1,\"x, \"\"y\"\"\",3\n4,,6\n").unwrap();
        let table = &found.tables[0];
        assert_eq!((table.line, table.rows[1].line, table.span), (2, 4, (9, 37)));
        assert_eq!(table.find_cell(&table.rows[0], "B"), Some("x, \"y\""));
        assert_eq!(table.find_cell(&table.rows[1], "b"), None);
        assert_eq!(table.find_cell(&table.rows[1], "c"), Some("6"));
        assert_eq!(found.other, [OtherLine { line: 1, text: "log line".to_owned() }]);
    }

    #[test]
    fn a_header_that_stands_again_begins_another_run() {
        let found = read("a,b\n1,2\na,b\n3,4\n5,6\n").unwrap();
        let rows: Vec<_> = found.tables.iter().map(|table| table.rows.len()).collect();
        assert_eq!(rows, [1, 2]);
        assert_eq!(found.tables[1].rows[0].line, 4);
    }

    #[test]
    fn a_row_of_another_width_is_refused() {
        let error = read("a,b,c\n1,2\n4,5,6\n").unwrap_err();
        assert_eq!(error.to_string(), "line 2, column 0: the row has 2 columns, its header has 3");
        assert!(read("a,b,a\n").is_err());
    }

    #[test]
    fn log_lines_and_a_cut_last_row_are_kept_apart() {
        let found = read("a,b,c\n1,2,3\nmain: loading\n4,5").unwrap();
        assert_eq!(found.tables[0].rows.len(), 1);
        assert_eq!(found.other[0].line, 3);
        assert_eq!(found.cut, Some(4));
        assert_eq!(read("a,b,c").unwrap().tables[0].rows.len(), 0);
    }

    #[test]
    fn a_cell_with_a_line_end_keeps_later_lines_right() {
        let found = read("a,b\n1,\"x\ny\"\n3,4\n").unwrap();
        assert_eq!(found.tables[0].rows[1].line, 4);
    }
}
