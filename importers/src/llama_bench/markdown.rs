//! The Markdown table: settings appear only where they are not the default, rates are rounded to
//! two decimals, and the accelerators stand in the banner above. A `build:` line closes the table;
//! without it the run ended early.

use super::csv::other_lines;
use super::row::{Reading, Row, Sheet, Test};
use crate::read::table::{OtherLine, Row as TableRow, Table, Tables, pipe_tables};
use ledger::adapter::ExtractError;
use ledger::finding::{Code, Finding};
use serde_json::{Map, Value, json};

const COLUMNS: [&str; 6] = ["model", "size", "params", "backend", "test", "t/s"];

/// Column names that differ from the field they show (`get_field_display_name` upstream).
const FIELDS: [(&str, &str); 16] = [
    ("model", "model_type"),
    ("backend", "backends"),
    ("ngl", "n_gpu_layers"),
    ("threads", "n_threads"),
    ("sm", "split_mode"),
    ("mg", "main_gpu"),
    ("nkvo", "no_kv_offload"),
    ("fa", "flash_attn"),
    ("mmap", "use_mmap"),
    ("dio", "use_direct_io"),
    ("embd", "embeddings"),
    ("nopo", "no_op_offload"),
    ("noh", "no_host"),
    ("dev", "devices"),
    ("ts", "tensor_split"),
    ("ot", "tensor_buft_overrides"),
];

/// The plus-minus sign, and what it becomes when a Windows console reads UTF-8 as another page.
const PLUS_MINUS: [&str; 3] = ["\u{b1}", "\u{252c}\u{2592}", "\u{c2}\u{b1}"];

/// True when a table of the tool stands in the text.
pub(super) fn holds_table(text: &str) -> bool {
    text.contains("t/s") && pipe_tables(text).tables.iter().any(is_result)
}

fn is_result(table: &Table) -> bool {
    COLUMNS.iter().all(|column| table.find_column(column).is_some())
}

/// Reads every row of a text.
pub(super) fn read(text: &str) -> Result<Reading, ExtractError> {
    let found = pipe_tables(text);
    refuse_odd_rows(&found)?;
    let mut reading = Reading::default();
    let tables: Vec<&Table> = found.tables.iter().filter(|table| is_result(table)).collect();
    for (index, table) in tables.iter().enumerate() {
        let next = tables.get(index + 1).map_or(usize::MAX, |next| next.line);
        let footer = find_footer(&found.other, table.line, next);
        reading.sheets.push(read_table(table, footer.as_ref())?);
    }
    reading.sheets.retain(|sheet| !sheet.rows.is_empty());
    reading.accelerators = found.other.iter().filter_map(find_device).collect();
    reading.cautions = other_lines(&unexplained(&found.other));
    Ok(reading)
}

/// A row of another width than its header is a row of another table, or of none.
fn refuse_odd_rows(found: &Tables) -> Result<(), ExtractError> {
    let odd = found.other.iter().find(|line| line.text.starts_with('|'));
    odd.map_or(Ok(()), |line| {
        let problem = "the row is not as wide as its table's header".to_owned();
        Err(ExtractError::Malformed { line: line.line, column: 0, problem })
    })
}

/// `build: 308f61c31 (9536)`
struct Footer {
    commit: String,
    number: u64,
}

fn find_footer(lines: &[OtherLine], from: usize, until: usize) -> Option<Footer> {
    let mut inside = lines.iter().filter(|line| line.line > from && line.line < until);
    inside.find_map(|line| {
        let (commit, number) = line.text.strip_prefix("build: ")?.split_once(" (")?;
        let number = number.strip_suffix(')')?.parse().ok()?;
        Some(Footer { commit: commit.to_owned(), number })
    })
}

fn read_table(table: &Table, footer: Option<&Footer>) -> Result<Sheet, ExtractError> {
    let rows = table.rows.iter().map(|row| read_row(table, row, footer));
    let rows = rows.collect::<Result<Vec<_>, _>>()?;
    let cut = footer.is_none().then(|| {
        let message = "the table has no `build:` line below: the run ended early";
        Finding::caution(Code::TruncatedRecord, "", message)
    });
    Ok(Sheet { rows, cautions: cut.into_iter().collect() })
}

fn read_row(table: &Table, row: &TableRow, footer: Option<&Footer>) -> Result<Row, ExtractError> {
    let malformed =
        |problem: String| ExtractError::Malformed { line: row.line, column: 0, problem };
    let mut fields = Map::new();
    for (column, cell) in table.pairs(row) {
        match column {
            "test" => {
                let test = Test::parse(cell)
                    .ok_or_else(|| malformed(format!("`{cell}` names no llama-bench test")))?;
                fields.insert("n_prompt".to_owned(), test.prompt.into());
                fields.insert("n_gen".to_owned(), test.output.into());
                fields.insert("n_depth".to_owned(), test.depth.into());
            }
            "t/s" => {
                let (mean, std) = parse_rate(cell)
                    .ok_or_else(|| malformed(format!("`{cell}` is no rate with a spread")))?;
                fields.insert("avg_ts".to_owned(), json!(mean));
                fields.insert("stddev_ts".to_owned(), json!(std));
            }
            _ => {
                fields.insert(field_name(column).to_owned(), Value::from(cell));
            }
        }
    }
    let (commit, number) = footer.map_or(("unknown", 0), |footer| (&footer.commit, footer.number));
    fields.insert("build_commit".to_owned(), commit.into());
    fields.insert("build_number".to_owned(), number.into());
    Ok(Row { fields, base: format!("line {}", row.line), line: row.line, span: table.span })
}

fn field_name(column: &str) -> &str {
    FIELDS.iter().find(|(shown, _)| *shown == column).map_or(column, |(_, field)| field)
}

/// `3021.76 ± 34.41`; the spread may be nan.
fn parse_rate(cell: &str) -> Option<(f64, Option<f64>)> {
    let mut words = cell.split_whitespace();
    let mean: f64 = words.next()?.parse().ok()?;
    let Some(sign) = words.next() else { return Some((mean, None)) };
    let std: f64 = words.next()?.parse().ok()?;
    let is_whole = PLUS_MINUS.contains(&sign) && words.next().is_none();
    is_whole.then_some((mean, (!std.is_nan()).then_some(std)))
}

/// Reads a device from the banner: `Device 0: NVIDIA GB10, compute capability 12.1, …`.
fn find_device(line: &OtherLine) -> Option<(usize, String)> {
    let (index, rest) = line.text.strip_prefix("Device ")?.split_once(": ")?;
    index.parse::<u32>().ok()?;
    let name = rest.split(',').next()?.trim();
    (!name.is_empty()).then(|| (line.line, name.to_owned()))
}

/// Leaves out the lines whose meaning is known: the banner and the footer.
fn unexplained(lines: &[OtherLine]) -> Vec<OtherLine> {
    let is_known = |line: &OtherLine| {
        ["ggml_", "Device ", "build: ", "load_backend:"]
            .iter()
            .any(|start| line.text.starts_with(start))
    };
    lines.iter().filter(|line| !is_known(line)).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_read_in_the_spellings_that_occur() {
        for cell in ["3021.76 \u{b1} 34.41", "3021.76 \u{252c}\u{2592} 34.41"] {
            assert_eq!(parse_rate(cell), Some((3021.76, Some(34.41))));
        }
        assert_eq!(parse_rate("1.5"), Some((1.5, None)));
        assert_eq!(parse_rate("1.5 \u{b1} -nan"), Some((1.5, None)));
        for wrong in ["", "fast", "1.5 ? 2", "1.5 \u{b1}", "1 \u{b1} 2 3"] {
            assert_eq!(parse_rate(wrong), None, "{wrong}");
        }
    }
}
