//! The fields of one record, which know where they stand. Writers disagree about what a number is: `"550"`, `0`/`1` for
//! booleans, `"false"`, `"inf"`. Absent, `null` and not-a-number read as nothing; a value of a
//! wrong kind is an error that names the field, never a default.

use ledger::adapter::ExtractError;
use serde_json::{Map, Value};

/// Largest integer a JSON number carries exactly in every reader.
const EXACT_INTEGERS: f64 = 9_007_199_254_740_991.0;

/// The fields of one record, which know where they stand.
#[derive(Debug, Clone)]
pub struct Fields<'a> {
    map: &'a Map<String, Value>,
    base: String,
}

/// How fast requests were sent.
#[derive(Debug, Clone, PartialEq)]
pub enum Rate {
    /// Requests per second.
    Finite(f64),
    /// `inf`, `"inf"`, `Infinity`: all at once.
    Unbounded,
    /// A word: `trace`.
    Named(String),
}

impl<'a> Fields<'a> {
    /// Wraps the fields of a record; `base` is put in front of their names in places and errors
    /// (`line 3`, `server_info`), empty for the only record of a file.
    pub fn new(map: &'a Map<String, Value>, base: impl Into<String>) -> Self {
        Self { map, base: base.into() }
    }

    /// Returns where a field stands.
    pub fn place(&self, key: &str) -> String {
        match self.base.as_str() {
            "" => key.to_owned(),
            line if is_line(line) => format!("{line}, {key}"),
            object => format!("{object}.{key}"),
        }
    }

    /// Returns the raw value; `null` counts as absent.
    pub fn find(&self, key: &str) -> Option<&'a Value> {
        self.map.get(key).filter(|value| !value.is_null())
    }

    /// True when the key is there, even as `null`.
    pub fn has(&self, key: &str) -> bool {
        self.map.contains_key(key)
    }

    /// Iterates over every key.
    pub fn keys(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        self.map.keys().map(String::as_str)
    }

    /// Returns the fields of an object inside.
    pub fn object(&self, key: &str) -> Option<Self> {
        let map = self.find(key)?.as_object()?;
        Some(Self { map, base: self.place(key) })
    }

    /// Reads a number or a numeric string. Infinite where the file says so, nothing where it is
    /// absent, `null` or not a number.
    ///
    /// # Errors
    /// [`ExtractError::Field`] when something else stands there.
    pub fn number(&self, key: &str) -> Result<Option<f64>, ExtractError> {
        self.read(key, "a number", to_number)
    }

    /// Reads a whole number that is not negative, also as a numeric string or as `128.0`.
    ///
    /// # Errors
    /// [`ExtractError::Field`] when something else stands there.
    pub fn count(&self, key: &str) -> Result<Option<u64>, ExtractError> {
        self.read(key, "a whole number", to_count)
    }

    /// Reads a boolean, also as `0`, `1` or as a string of one.
    ///
    /// # Errors
    /// [`ExtractError::Field`] when something else stands there.
    pub fn flag(&self, key: &str) -> Result<Option<bool>, ExtractError> {
        self.read(key, "true or false", |value| to_flag(value).map(Some))
    }

    /// Reads a string, or the text of a number or boolean; an empty string is nothing.
    ///
    /// # Errors
    /// [`ExtractError::Field`] when a list or an object stands there.
    pub fn text(&self, key: &str) -> Result<Option<String>, ExtractError> {
        let text = self.read(key, "a text", |value| to_text(value).map(Some))?;
        Ok(text.filter(|text| !text.is_empty()))
    }

    /// Reads a list of numbers in file order; not-a-number stays NaN, so that the list keeps its
    /// length beside others.
    ///
    /// # Errors
    /// [`ExtractError::Field`] when something else stands there.
    pub fn numbers(&self, key: &str) -> Result<Option<Vec<f64>>, ExtractError> {
        self.read(key, "a list of numbers", |value| {
            let items = value.as_array()?.iter();
            let numbers =
                items.map(|item| to_number(item).map(|number| number.unwrap_or(f64::NAN)));
            numbers.collect::<Option<Vec<_>>>().map(Some)
        })
    }

    /// Reads a request rate.
    ///
    /// # Errors
    /// [`ExtractError::Field`] when a list or an object stands there.
    pub fn rate(&self, key: &str) -> Result<Option<Rate>, ExtractError> {
        self.read(key, "a rate", |value| to_rate(value).map(Some))
    }

    fn read<T>(
        &self,
        key: &str,
        expected: &str,
        convert: impl Fn(&Value) -> Option<Option<T>>,
    ) -> Result<Option<T>, ExtractError> {
        let Some(value) = self.find(key) else { return Ok(None) };
        convert(value).ok_or_else(|| ExtractError::Field {
            field: self.place(key),
            problem: format!("{expected} was expected, {} stands there", describe(value)),
        })
    }
}

/// True for `line 3`, false for the path of an object on that line.
fn is_line(base: &str) -> bool {
    base.strip_prefix("line ").is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Says in a few words what a value is.
fn describe(value: &Value) -> String {
    match value {
        Value::Null => "nothing".to_owned(),
        Value::Bool(_) | Value::Number(_) => format!("`{value}`"),
        Value::String(text) => {
            let short: String = text.chars().take(40).collect();
            format!("the text `{}`", ledger::text::printable(&short))
        }
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    }
}

/// Reads a number; `Some(None)` where the value says that there is none.
pub fn to_number(value: &Value) -> Option<Option<f64>> {
    match value {
        Value::Null => Some(None),
        Value::Number(number) => number.as_f64().map(Some),
        Value::String(text) => parse_number(text),
        Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Reads the text of a number; `Some(None)` for an empty text and for not-a-number.
pub fn parse_number(text: &str) -> Option<Option<f64>> {
    let text = text.trim();
    if text.is_empty() {
        return Some(None);
    }
    let number: f64 = text.parse().ok()?;
    Some((!number.is_nan()).then_some(number))
}

/// Reads a count; `Some(None)` where the value says that there is none.
pub fn to_count(value: &Value) -> Option<Option<u64>> {
    if let Some(count) = value.as_u64() {
        return Some(Some(count));
    }
    let Some(number) = to_number(value)? else { return Some(None) };
    whole(number).map(Some)
}

/// Returns a float as the count it spells; nothing where it is negative, broken or too large.
pub fn whole(number: f64) -> Option<u64> {
    let is_count = (0.0..=EXACT_INTEGERS).contains(&number) && number.fract() == 0.0;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "checked to be whole and within 0 and 2^53 - 1"
    )]
    let count = number as u64;
    is_count.then_some(count)
}

/// Reads a boolean.
pub fn to_flag(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(flag) => Some(*flag),
        Value::Number(number) => match number.as_i64()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        },
        Value::String(text) => match text.trim().to_ascii_lowercase().as_str() {
            "true" | "1" | "yes" | "on" => Some(true),
            "false" | "0" | "no" | "off" => Some(false),
            _ => None,
        },
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Returns the text of a scalar.
pub fn to_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Reads a request rate.
pub fn to_rate(value: &Value) -> Option<Rate> {
    match to_number(value) {
        Some(Some(rate)) if rate.is_finite() => Some(Rate::Finite(rate)),
        Some(Some(_)) => Some(Rate::Unbounded),
        Some(None) => None,
        None => to_text(value).map(Rate::Named),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn map(value: &Value) -> &Map<String, Value> {
        value.as_object().unwrap()
    }

    #[test]
    fn numbers_come_as_numbers_strings_and_not_at_all() {
        let record = json!({"a": 1.5, "b": "550", "c": null, "d": "nan", "e": "Infinity", "f": "",
            "g": true, "h": "12 ms"});
        let fields = Fields::new(map(&record), "");
        assert_eq!(fields.number("a"), Ok(Some(1.5)));
        assert_eq!(fields.number("b"), Ok(Some(550.0)));
        assert_eq!(fields.number("e"), Ok(Some(f64::INFINITY)));
        for absent in ["c", "d", "f", "z"] {
            assert_eq!(fields.number(absent), Ok(None), "{absent}");
        }
        for wrong in ["g", "h"] {
            assert!(fields.number(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_count_is_whole_and_not_negative() {
        let record = json!({"a": 3, "b": "128", "c": 128.0, "d": 1.5, "e": -1, "f": 1e300,
            "g": 18_446_744_073_709_551_615_u64});
        let fields = Fields::new(map(&record), "");
        assert_eq!(fields.count("a"), Ok(Some(3)));
        assert_eq!(fields.count("b"), Ok(Some(128)));
        assert_eq!(fields.count("c"), Ok(Some(128)));
        assert_eq!(fields.count("g"), Ok(Some(u64::MAX)));
        for wrong in ["d", "e", "f"] {
            assert!(fields.count(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn flags_come_in_four_spellings() {
        let record = json!({"a": true, "b": 1, "c": "1", "d": "True", "e": "false", "f": 2});
        let fields = Fields::new(map(&record), "");
        for yes in ["a", "b", "c", "d"] {
            assert_eq!(fields.flag(yes), Ok(Some(true)), "{yes}");
        }
        assert_eq!(fields.flag("e"), Ok(Some(false)));
        assert!(fields.flag("f").is_err());
    }

    #[test]
    fn an_error_names_the_field_and_what_stands_there() {
        let record = json!({"server_info": {"tp_size": "two"}, "xs": [1, "2", null]});
        let fields = Fields::new(map(&record), "line 3");
        assert_eq!(fields.place("duration"), "line 3, duration");
        let inner = fields.object("server_info").unwrap();
        assert_eq!(
            inner.count("tp_size").unwrap_err().to_string(),
            "field `line 3, server_info.tp_size`: a whole number was expected, the text `two` \
             stands there"
        );
        let numbers = fields.numbers("xs").unwrap().unwrap();
        assert_eq!(numbers[..2], [1.0, 2.0]);
        assert!(numbers[2].is_nan());
    }

    #[test]
    fn a_rate_is_finite_unbounded_or_a_word() {
        let record = json!({"a": 2.5, "b": "inf", "c": "Infinity", "d": "trace", "e": null});
        let fields = Fields::new(map(&record), "");
        assert_eq!(fields.rate("a"), Ok(Some(Rate::Finite(2.5))));
        assert_eq!(fields.rate("b"), Ok(Some(Rate::Unbounded)));
        assert_eq!(fields.rate("c"), Ok(Some(Rate::Unbounded)));
        assert_eq!(fields.rate("d"), Ok(Some(Rate::Named("trace".to_owned()))));
        assert_eq!(fields.rate("e"), Ok(None));
    }
}
