//! The file as it is written. Arrays of numbers are read as such, generated texts only for whether
//! they are empty.

use crate::read::number::{loose, loose_count};
use serde::de::{IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;

/// One result record. Unknown keys are kept: `--metadata` puts a user's own at the top level.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ServeFile {
    pub(super) date: Option<String>,
    pub(super) backend: Option<String>,
    pub(super) endpoint_type: Option<String>,
    pub(super) label: Option<String>,
    pub(super) model_id: String,
    pub(super) tokenizer_id: Option<String>,
    #[serde(deserialize_with = "loose_count")]
    pub(super) num_prompts: Option<u64>,
    pub(super) request_rate: Value,
    #[serde(deserialize_with = "loose")]
    pub(super) burstiness: Option<f64>,
    #[serde(deserialize_with = "loose_count")]
    pub(super) max_concurrency: Option<u64>,
    #[serde(deserialize_with = "loose")]
    pub(super) duration: Option<f64>,
    #[serde(deserialize_with = "loose_count")]
    pub(super) completed: Option<u64>,
    #[serde(deserialize_with = "loose_count")]
    pub(super) failed: Option<u64>,
    #[serde(deserialize_with = "loose_count")]
    pub(super) total_input_tokens: Option<u64>,
    #[serde(deserialize_with = "loose_count")]
    pub(super) total_output_tokens: Option<u64>,
    #[serde(rename = "spec_decode_acceptance_rate", deserialize_with = "loose")]
    pub(super) spec_acceptance_percent: Option<f64>,
    #[serde(rename = "spec_decode_acceptance_length", deserialize_with = "loose")]
    pub(super) spec_acceptance_length: Option<f64>,
    #[serde(rename = "spec_decode_draft_tokens", deserialize_with = "loose")]
    pub(super) spec_draft_tokens: Option<f64>,
    #[serde(rename = "spec_decode_accepted_tokens", deserialize_with = "loose")]
    pub(super) spec_accepted_tokens: Option<f64>,
    pub(super) input_lens: Vec<u64>,
    pub(super) output_lens: Vec<u64>,
    pub(super) ttfts: Vec<Option<f64>>,
    pub(super) itls: Vec<Vec<Option<f64>>>,
    pub(super) errors: Vec<Option<String>>,
    #[serde(rename = "generated_texts", deserialize_with = "emptiness")]
    pub(super) empty_texts: Option<Vec<bool>>,
    pub(super) start_times: Option<IgnoredAny>,
    pub(super) latencies: Option<IgnoredAny>,
    pub(super) queue_times: Option<IgnoredAny>,
    #[serde(flatten)]
    pub(super) rest: BTreeMap<String, Value>,
}

impl ServeFile {
    /// Requests per second asked for; `None` when they were sent at once.
    pub(super) fn rate(&self) -> Option<f64> {
        crate::read::number::to_number(&self.request_rate)
    }

    /// A number under a key of the summary.
    pub(super) fn number(&self, key: &str) -> Option<f64> {
        self.rest.get(key).and_then(crate::read::number::to_number)
    }
}

/// Reads a list of texts as whether each is empty, without keeping the texts.
fn emptiness<'de, D: Deserializer<'de>>(reader: D) -> Result<Option<Vec<bool>>, D::Error> {
    struct Texts;
    impl<'de> Visitor<'de> for Texts {
        type Value = Option<Vec<bool>>;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list of texts")
        }
        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok(None)
        }
        fn visit_seq<A: SeqAccess<'de>>(self, mut texts: A) -> Result<Self::Value, A::Error> {
            let mut empty = Vec::new();
            while let Some(text) = texts.next_element::<IsEmpty>()? {
                empty.push(text.0);
            }
            Ok(Some(empty))
        }
    }
    reader.deserialize_any(Texts)
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
