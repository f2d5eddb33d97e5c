//! The file as it is written. Arrays of numbers are read as such, generated texts only for whether
//! they are empty.

use serde::de::{Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// One result record. Unknown keys are kept: `--metadata` puts a user's own at the top level.
#[derive(Debug, Default)]
pub(super) struct ServeFile {
    pub(super) date: Option<String>,
    pub(super) backend: Option<String>,
    pub(super) endpoint_type: Option<String>,
    pub(super) label: Option<String>,
    pub(super) model_id: String,
    pub(super) tokenizer_id: Option<String>,
    pub(super) input_lens: Vec<u64>,
    pub(super) output_lens: Vec<u64>,
    pub(super) ttfts: Vec<Option<f64>>,
    pub(super) itls: Vec<Vec<Option<f64>>>,
    pub(super) errors: Vec<Option<String>>,
    pub(super) empty_texts: Option<Vec<bool>>,
    pub(super) rest: BTreeMap<String, Value>,
}

/// Read by hand, because `serde(flatten)` would buffer the arrays of a large file twice.
impl<'de> Deserialize<'de> for ServeFile {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        struct Record;
        impl<'de> Visitor<'de> for Record {
            type Value = ServeFile;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a result record")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<ServeFile, A::Error> {
                let mut file = ServeFile::default();
                let mut seen = BTreeSet::new();
                while let Some(key) = members.next_key::<String>()? {
                    if !seen.insert(key.clone()) {
                        return Err(A::Error::custom(format!("key `{key}` stands twice")));
                    }
                    file.take(key, &mut members)?;
                }
                Ok(file)
            }
        }
        reader.deserialize_map(Record)
    }
}

impl ServeFile {
    fn take<'de, A: MapAccess<'de>>(
        &mut self,
        key: String,
        members: &mut A,
    ) -> Result<(), A::Error> {
        match key.as_str() {
            "date" => self.date = members.next_value()?,
            "backend" => self.backend = members.next_value()?,
            "endpoint_type" => self.endpoint_type = members.next_value()?,
            "label" => self.label = members.next_value()?,
            "model_id" => self.model_id = members.next_value()?,
            "tokenizer_id" => self.tokenizer_id = members.next_value()?,
            "input_lens" => self.input_lens = members.next_value()?,
            "output_lens" => self.output_lens = members.next_value()?,
            "ttfts" => self.ttfts = members.next_value()?,
            "itls" => self.itls = members.next_value()?,
            "errors" => self.errors = members.next_value()?,
            "generated_texts" => self.empty_texts = members.next_value::<Emptiness>()?.0,
            "start_times" | "latencies" | "queue_times" => {
                members.next_value::<IgnoredAny>()?;
            }
            _ => {
                let value = members.next_value()?;
                self.rest.insert(key, value);
            }
        }
        Ok(())
    }

    /// Requests per second asked for; `None` when they were sent at once.
    pub(super) fn rate(&self) -> Option<f64> {
        self.number("request_rate")
    }

    /// A whole number under a key of the summary.
    pub(super) fn count(&self, key: &str) -> Option<u64> {
        self.rest.get(key).and_then(crate::read::number::to_count)
    }

    /// A number under a key of the summary.
    pub(super) fn number(&self, key: &str) -> Option<f64> {
        self.rest.get(key).and_then(crate::read::number::to_number)
    }
}

/// A list of texts, read as whether each is empty and not kept.
struct Emptiness(Option<Vec<bool>>);

impl<'de> Deserialize<'de> for Emptiness {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        struct Texts;
        impl<'de> Visitor<'de> for Texts {
            type Value = Emptiness;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of texts")
            }
            fn visit_unit<E>(self) -> Result<Emptiness, E> {
                Ok(Emptiness(None))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut texts: A) -> Result<Emptiness, A::Error> {
                let mut empty = Vec::new();
                while let Some(text) = texts.next_element::<IsEmpty>()? {
                    empty.push(text.0);
                }
                Ok(Emptiness(Some(empty)))
            }
        }
        reader.deserialize_any(Texts)
    }
}

struct IsEmpty(bool);

impl<'de> Deserialize<'de> for IsEmpty {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        struct Text;
        impl<'de> Visitor<'de> for Text {
            type Value = IsEmpty;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text")
            }
            fn visit_unit<E>(self) -> Result<IsEmpty, E> {
                Ok(IsEmpty(true))
            }
            fn visit_str<E>(self, text: &str) -> Result<IsEmpty, E> {
                Ok(IsEmpty(text.trim().is_empty()))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<IsEmpty, A::Error> {
                let mut is_empty = true;
                while parts.next_element::<IgnoredAny>()?.is_some() {
                    is_empty = false;
                }
                Ok(IsEmpty(is_empty))
            }
        }
        reader.deserialize_any(Text)
    }
}
