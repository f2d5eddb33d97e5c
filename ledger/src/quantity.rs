//! How numbers are shown: four significant digits at most, never an exponent, thousands separated,
//! so that a reader sees what was measured and not what a float can hold.

/// Rounds a value to four significant digits for a table; whole numbers above that stay whole.
pub fn rounded(value: f64) -> String {
    let magnitude = value.abs();
    let decimals = match magnitude {
        m if m >= 1000.0 || m == 0.0 => 0,
        m if m >= 100.0 => 1,
        m if m >= 10.0 => 2,
        m if m >= 1.0 => 3,
        _ => 4,
    };
    let text = format!("{value:.decimals$}");
    match text.split_once('.') {
        Some((whole, fraction)) => format!("{}.{fraction}", thousands(whole)),
        None => thousands(&text),
    }
}

/// Separates thousands of a whole number: `6,920`.
pub fn thousands(whole: &str) -> String {
    let (sign, digits) = whole.strip_prefix('-').map_or(("", whole), |digits| ("-", digits));
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    format!("{sign}{grouped}")
}

/// Writes a number of bytes with a binary prefix: `1.4 GiB`.
pub fn bytes(count: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut size = count as f64;
    let mut units = UNITS.iter();
    let mut unit = units.next().unwrap_or(&"B");
    while size >= 1024.0 {
        let Some(next) = units.next() else { break };
        unit = next;
        size /= 1024.0;
    }
    if *unit == "B" { format!("{count} B") } else { format!("{size:.1} {unit}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_shown_with_four_digits_that_mean_something() {
        let shown: Vec<String> =
            [188.1234, 6920.4, 0.0123, 1_015_784.0, 9.8765, -35.5, 0.0].map(rounded).into();
        assert_eq!(shown, ["188.1", "6,920", "0.0123", "1,015,784", "9.877", "-35.50", "0"]);
    }

    #[test]
    fn bytes_have_a_unit_that_fits() {
        assert_eq!(bytes(512), "512 B");
        assert_eq!(bytes(3_825_065_984), "3.6 GiB");
    }
}
