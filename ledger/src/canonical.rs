//! Canonical JSON (RFC 8785) behind a gate. Two programs that agree on a value must agree on its
//! bytes, because the bytes are hashed; so whatever JSON libraries round, drop or print in several
//! ways is refused before anything is written: non-finite numbers, integers beyond 2^53-1 and
//! duplicate keys on reading. Reading keeps every bit of a float (`serde_json` with
//! `float_roundtrip`).

use serde::Serialize;
use serde::de::{DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use std::fmt;

/// The largest integer that every JSON reader keeps exactly (RFC 8785 section 3.2.2.3).
pub const LARGEST_INTEGER: u64 = (1 << 53) - 1;

/// Why a value has no canonical form.
#[derive(Debug, thiserror::Error)]
pub enum CanonicalError {
    /// An integer is outside ±(2^53-1) and would be rounded by other readers.
    #[error("`{value}` at `{path}` is beyond 2^53-1 and would be rounded by other readers")]
    Integer {
        /// JSON path of the number.
        path: String,
        /// The number as it stands.
        value: String,
    },
    /// The value cannot be expressed as JSON at all.
    #[error("value has no JSON form")]
    Json(#[source] serde_json::Error),
    /// The text is not JSON, or holds a key twice.
    #[error("text is not JSON of one value: {0}")]
    Parse(#[source] serde_json::Error),
}

/// Writes a value as canonical JSON bytes.
///
/// # Errors
/// [`CanonicalError`] when the value does not pass the gate. Floats of stored types are [`Finite`].
pub fn to_bytes(value: &impl Serialize) -> Result<Vec<u8>, CanonicalError> {
    let value = to_value(value)?;
    serde_json_canonicalizer::to_vec(&value).map_err(CanonicalError::Json)
}

/// Turns a value into JSON and passes it through the gate.
///
/// # Errors
/// As [`to_bytes`].
pub fn to_value(value: &impl Serialize) -> Result<Value, CanonicalError> {
    let value = serde_json::to_value(value).map_err(CanonicalError::Json)?;
    gate(&value, "$")?;
    Ok(value)
}

fn gate(value: &Value, path: &str) -> Result<(), CanonicalError> {
    match value {
        Value::Number(number) => gate_number(number, path),
        Value::Array(items) => items
            .iter()
            .enumerate()
            .try_for_each(|(index, item)| gate(item, &format!("{path}[{index}]"))),
        Value::Object(members) => {
            members.iter().try_for_each(|(key, member)| gate(member, &format!("{path}.{key}")))
        }
        Value::Null | Value::Bool(_) | Value::String(_) => Ok(()),
    }
}

fn gate_number(number: &Number, path: &str) -> Result<(), CanonicalError> {
    let integer = number.as_u64().or_else(|| number.as_i64().map(i64::unsigned_abs));
    let is_beyond = match integer {
        Some(magnitude) => magnitude > LARGEST_INTEGER,
        // A float of this size has no fraction, and RFC 8785 writes it as an integer up to 1e21.
        None => number
            .as_f64()
            .is_some_and(|value| value.abs() > LARGEST_INTEGER as f64 && value.abs() < 1e21),
    };
    if is_beyond {
        return Err(CanonicalError::Integer { path: path.to_owned(), value: number.to_string() });
    }
    Ok(())
}

/// Reads JSON strictly: a duplicate key is an error, not the last one's victory.
///
/// # Errors
/// [`CanonicalError::Parse`] with line and column.
pub fn parse(bytes: &[u8]) -> Result<Value, CanonicalError> {
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let value = Strict.deserialize(&mut reader).map_err(CanonicalError::Parse)?;
    reader.end().map_err(CanonicalError::Parse)?;
    Ok(value)
}

struct Strict;

impl<'de> DeserializeSeed<'de> for Strict {
    type Value = Value;
    fn deserialize<D: serde::Deserializer<'de>>(self, reader: D) -> Result<Value, D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }
    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }
    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }
    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }
    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom("non-finite number"))
    }
    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut array = Vec::new();
        while let Some(item) = items.next_element_seed(Strict)? {
            array.push(item);
        }
        Ok(Value::Array(array))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(key) = members.next_key::<String>()? {
            let value = members.next_value_seed(Strict)?;
            if object.contains_key(&key) {
                return Err(A::Error::custom(format!("key `{key}` stands twice in one object")));
            }
            object.insert(key, value);
        }
        Ok(Value::Object(object))
    }
}

/// A number that was measured: never NaN, never infinite.
///
/// `serde_json` writes NaN and infinity as `null`, which would turn a value that was measured into
/// a value that is missing; every float of a stored type is therefore of this type.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct Finite(f64);

impl Finite {
    /// Takes a number if it is finite.
    pub fn new(value: f64) -> Option<Self> {
        value.is_finite().then_some(Self(value))
    }

    /// Returns the number.
    pub const fn get(self) -> f64 {
        self.0
    }
}

impl Serialize for Finite {
    fn serialize<S: serde::Serializer>(&self, writer: S) -> Result<S::Ok, S::Error> {
        writer.serialize_f64(self.0)
    }
}

impl<'de> serde::Deserialize<'de> for Finite {
    fn deserialize<D: serde::Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        let value = f64::deserialize(reader)?;
        Self::new(value).ok_or_else(|| D::Error::custom("non-finite number"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn keys_are_sorted_and_numbers_have_one_form() {
        // RFC 8785 section 3.2.2 sample, reduced.
        let bytes = to_bytes(&json!({"b": 1.0, "a": [1e21, 0.1, "\u{20ac}"]})).unwrap();
        assert_eq!(bytes, "{\"a\":[1e+21,0.1,\"\u{20ac}\"],\"b\":1}".as_bytes());
    }

    #[test]
    fn an_integer_that_others_would_round_is_refused_with_its_place() {
        let error = to_bytes(&json!({"a": [9_007_199_254_740_992_u64]})).unwrap_err();
        assert_eq!(
            error.to_string(),
            "`9007199254740992` at `$.a[0]` is beyond 2^53-1 and would be rounded by other readers"
        );
        assert!(to_bytes(&json!(9_007_199_254_740_991_u64)).is_ok());
        // A float that would be written as such an integer is one.
        assert!(to_bytes(&json!(1.095_411_448_213_496_8e17)).is_err());
        assert!(to_bytes(&json!(1e21)).is_ok());
    }

    #[test]
    fn a_key_that_stands_twice_is_an_error() {
        assert!(parse(br#"{"a":1,"a":2}"#).is_err());
        assert!(parse(br#"{"a":{"b":1,"b":1}}"#).is_err());
        assert!(parse(br#"{"a":1} x"#).is_err());
    }

    #[test]
    fn a_measured_infinity_has_no_stored_form() {
        assert!(Finite::new(f64::INFINITY).is_none());
        assert!(Finite::new(f64::NAN).is_none());
        assert_eq!(to_bytes(&Finite::new(0.5)).unwrap(), b"0.5");
    }
}
