//! Markdown pipe tables: a header row, a row of dashes, rows. Text around them is kept.

use super::{OtherLine, Row, Table, Tables};

/// Reads the Markdown pipe tables of a text. Nothing is refused: a row narrower than its header
/// counts as another line.
pub fn pipe_tables(text: &str) -> Tables {
    let mut found = Tables::default();
    let mut lines = text.split_inclusive('\n').enumerate().peekable();
    let mut offset = 0;
    let mut is_inside = false;
    while let Some((index, line)) = lines.next() {
        let span = (offset, offset + line.len());
        offset = span.1;
        let cells = split_row(line);
        let begins = lines.peek().is_some_and(|(_, next)| is_separator(next, cells.as_deref()));
        if begins && let Some(header) = cells {
            found.tables.push(Table { header, line: index + 1, span, rows: Vec::new() });
            offset += lines.next().map_or(0, |(_, separator)| separator.len());
            is_inside = true;
            continue;
        }
        let table = found.tables.last_mut().filter(|_| is_inside);
        is_inside = take_row(table, cells, index + 1, offset);
        if !is_inside && !line.trim().is_empty() {
            found.other.push(OtherLine { line: index + 1, text: line.trim().to_owned() });
        }
    }
    found
}

/// Adds a row to the table it stands in; false when the line is none of its rows.
fn take_row(
    table: Option<&mut Table>,
    cells: Option<Vec<String>>,
    line: usize,
    end: usize,
) -> bool {
    let (Some(table), Some(cells)) = (table, cells) else { return false };
    if cells.len() != table.header.len() {
        return false;
    }
    table.rows.push(Row { line, cells });
    table.span.1 = end;
    true
}

fn split_row(line: &str) -> Option<Vec<String>> {
    let inner = line.trim().strip_prefix('|')?;
    let inner = inner.strip_suffix('|').unwrap_or(inner);
    Some(inner.split('|').map(|cell| cell.trim().to_owned()).collect())
}

/// True for `| --- | ---: |` with as many cells as the header.
fn is_separator(line: &str, header: Option<&[String]>) -> bool {
    let (Some(cells), Some(header)) = (split_row(line), header) else { return false };
    let is_dashes = |cell: &String| {
        let dashes = cell.trim_matches(':').trim();
        !dashes.is_empty() && dashes.bytes().all(|byte| byte == b'-')
    };
    cells.len() == header.len() && cells.iter().all(is_dashes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_found_between_text() {
        let text = "Device 0\n| model | t/s |\n| --- | ---: |\n| x 7B | 1.0 \u{b1} 0.1 |\n\nbuild: ab (1)\n";
        let found = pipe_tables(text);
        let table = &found.tables[0];
        assert_eq!(table.header, ["model", "t/s"]);
        assert_eq!((table.line, table.rows[0].line), (2, 4));
        assert_eq!(table.find_cell(&table.rows[0], "t/s"), Some("1.0 \u{b1} 0.1"));
        assert_eq!(found.other.iter().map(|line| line.line).collect::<Vec<_>>(), [1, 6]);
        assert_eq!(text.get(table.span.1..), Some("\nbuild: ab (1)\n"));
    }

    #[test]
    fn a_table_behind_a_table_is_another() {
        let text = "| a |\n|---|\n| 1 |\n| a |\n|---|\n| 2 |\n";
        let found = pipe_tables(text);
        assert_eq!(found.tables.len(), 2);
        assert_eq!(found.tables[1].rows[0].cells, ["2"]);
    }

    #[test]
    fn a_row_of_another_width_is_no_row() {
        let found = pipe_tables("| a | b |\n|---|---|\n| 1 |\n");
        assert!(found.tables[0].rows.is_empty());
        assert_eq!(found.other[0].line, 3);
    }
}
