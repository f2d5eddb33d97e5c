//! Numbers and booleans as tools spell them: `"550"`, `"0"`, `"false"`, 1 for true.

use crate::read::fields::whole;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// Reads a number or a text that is one; `null`, `"N/A"` and other texts are absent.
///
/// # Errors
/// What the reader says.
pub fn loose<'de, D: Deserializer<'de>>(reader: D) -> Result<Option<f64>, D::Error> {
    Ok(to_number(&Value::deserialize(reader)?))
}

/// Reads a count or a text that is one.
///
/// # Errors
/// What the reader says.
pub fn loose_count<'de, D: Deserializer<'de>>(reader: D) -> Result<Option<u64>, D::Error> {
    Ok(to_count(&Value::deserialize(reader)?))
}

/// Reads a number out of a JSON value.
pub fn to_number(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.trim().parse().ok().filter(|number: &f64| number.is_finite()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Reads a whole number out of a JSON value; `512.0` counts, `512.5` does not.
pub fn to_count(value: &Value) -> Option<u64> {
    if let Some(count) = value.as_u64() {
        return Some(count);
    }
    whole(to_number(value)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn numbers_are_read_as_tools_spell_them() {
        assert_eq!(to_number(&json!("550")), Some(550.0));
        assert_eq!(to_number(&json!("N/A")), None);
        assert_eq!(to_number(&json!("Infinity")), None);
        assert_eq!(to_count(&json!(512.0)), Some(512));
        assert_eq!(to_count(&json!("12")), Some(12));
        assert_eq!(to_count(&json!(-1)), None);
        assert_eq!(to_count(&json!(0.5)), None);
    }
}
