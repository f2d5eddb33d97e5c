//! Where a value stands in a file, as people will read it in a finding. The recorder adds the file
//! name in front.

/// Names a line, counted from 1.
pub fn line(number: usize) -> String {
    format!("line {number}")
}

/// Names a field of a record that starts on a line: `line 3, build_commit`.
pub fn field(line: usize, name: &str) -> String {
    format!("line {line}, {name}")
}

/// Names a JSON path built of keys: `server_info.version`.
pub fn path(keys: &[&str]) -> String {
    keys.join(".")
}

/// Names a line of another file: `metrics-before.txt, line 3`.
pub fn line_of(file: &str, number: usize) -> String {
    format!("{file}, line {number}")
}

/// Names a field of another file: `server.json, args`.
pub fn field_of(file: &str, name: &str) -> String {
    format!("{file}, {name}")
}
