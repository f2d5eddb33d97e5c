//! Tables: for a terminal, for Markdown, and as CSV. A hostile label cannot leave its cell.

use crate::cli::Format;
use comfy_table::{ContentArrangement, Table, presets};
use ledger::text::printable;

/// Rows under a header.
#[derive(Debug)]
pub(crate) struct Rows {
    /// Column names.
    pub(crate) header: Vec<&'static str>,
    /// Cells.
    pub(crate) rows: Vec<Vec<String>>,
}

impl Rows {
    /// Renders as text, Markdown or CSV.
    pub(crate) fn render(&self, format: Format, width: Option<u16>) -> String {
        match format {
            Format::Md => self.markdown(),
            Format::Csv => self.csv(),
            Format::Text | Format::Json => self.text(width),
        }
    }

    fn text(&self, width: Option<u16>) -> String {
        let mut table = Table::new();
        table.load_style(presets::NOTHING).set_header(&self.header);
        if let Some(width) = width {
            table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
        }
        for row in &self.rows {
            table.add_row(row.iter().map(|cell| printable(cell)));
        }
        let lines: Vec<String> = table
            .to_string()
            .lines()
            .map(|line| line.trim_end().trim_start_matches(' ').to_owned())
            .collect();
        lines.join("\n") + "\n"
    }

    fn markdown(&self) -> String {
        let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
        let mut text = line(self.header.iter().map(|&name| name.to_owned()).collect());
        text.push_str(&line(self.header.iter().map(|_| "---".to_owned()).collect()));
        for row in &self.rows {
            text.push_str(&line(row.iter().map(|cell| escape_markdown(cell)).collect()));
        }
        text
    }

    fn csv(&self) -> String {
        let line = |cells: Vec<String>| cells.join(",") + "\r\n";
        let mut text = line(self.header.iter().map(|name| quote(name)).collect());
        for row in &self.rows {
            text.push_str(&line(row.iter().map(|cell| quote(cell)).collect()));
        }
        text
    }
}

/// Makes a text safe inside a Markdown table cell.
pub(crate) fn escape_markdown(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in printable(text).chars() {
        if matches!(
            character,
            '|' | '<' | '>' | '`' | '*' | '_' | '[' | ']' | '\\' | '&' | '#' | '!'
        ) {
            safe.push('\\');
        }
        safe.push(character);
    }
    safe
}

/// Quotes a CSV cell (RFC 4180); a leading `=`, `+`, `-` or `@` is kept from being a formula.
fn quote(cell: &str) -> String {
    let is_number = cell.parse::<f64>().is_ok();
    let guard = if !is_number && cell.starts_with(['=', '+', '-', '@']) { "'" } else { "" };
    if cell.contains(['"', ',', '\n', '\r']) || !guard.is_empty() {
        format!("\"{guard}{}\"", cell.replace('"', "\"\""))
    } else {
        cell.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hostile_label_stays_in_its_cell() {
        let rows = Rows {
            header: vec!["label"],
            rows: vec![vec!["a|b\u{1b}[2J\n<script>,=1".to_owned()]],
        };
        assert!(!rows.render(Format::Text, None).contains('\u{1b}'));
        assert_eq!(rows.render(Format::Md, None).lines().count(), 3);
        assert!(rows.render(Format::Md, None).contains("\\|b"));
        assert!(rows.render(Format::Csv, None).starts_with("label\r\n\"a|b"));
        assert_eq!(quote("=1+1"), "\"'=1+1\"");
        assert_eq!(quote("-1.5"), "-1.5");
    }
}
