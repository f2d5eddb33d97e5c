//! Which argument states which field. Arguments that change no number (parsers, ports, names of
//! log files) are kept with the run and state nothing.

use super::arguments::Argument;
use ledger::adapter::{Fact, FactKind};
use serde_json::{Value, json};

/// How the value of an argument is read.
#[derive(Debug, Clone, Copy)]
enum Reading {
    /// A whole number, with `k` (1000), `K` (1024) and the like behind it as vLLM allows.
    Count,
    /// A number where it is one, else the text.
    Scalar,
    /// No value: the argument itself says this.
    Says(&'static str),
    /// No value: true.
    True,
}

use Reading::{Count, Says, Scalar, True};

const FIELDS: [(&str, &str, Reading); 41] = [
    ("max-model-len", "context.tokens", Count),
    ("context-length", "context.tokens", Count),
    ("ctx-size", "context.tokens", Count),
    ("c", "context.tokens", Count),
    ("tensor-parallel-size", "topology.tensor_parallel", Count),
    ("tp-size", "topology.tensor_parallel", Count),
    ("tp", "topology.tensor_parallel", Count),
    ("pipeline-parallel-size", "topology.pipeline_parallel", Count),
    ("pp-size", "topology.pipeline_parallel", Count),
    ("pp", "topology.pipeline_parallel", Count),
    ("data-parallel-size", "topology.data_parallel", Count),
    ("dp-size", "topology.data_parallel", Count),
    ("dp", "topology.data_parallel", Count),
    ("nnodes", "topology.hosts", Count),
    ("kv-cache-dtype", "quant.kv_cache", Scalar),
    ("quantization", "conditions.quantization", Scalar),
    ("dtype", "conditions.dtype", Scalar),
    ("enforce-eager", "conditions.enforce_eager", True),
    ("disable-cuda-graph", "conditions.cuda_graph", Says("off")),
    ("gpu-memory-utilization", "conditions.gpu_memory_utilization", Scalar),
    ("mem-fraction-static", "conditions.mem_fraction_static", Scalar),
    ("max-num-seqs", "conditions.max_num_seqs", Count),
    ("max-running-requests", "conditions.max_running_requests", Count),
    ("max-num-batched-tokens", "conditions.max_num_batched_tokens", Count),
    ("chunked-prefill-size", "conditions.chunked_prefill_size", Scalar),
    ("enable-prefix-caching", PREFIX_CACHING, Says("on")),
    ("no-enable-prefix-caching", PREFIX_CACHING, Says("off")),
    ("disable-radix-cache", PREFIX_CACHING, Says("off")),
    ("speculative-config", "conditions.speculation", Scalar),
    ("speculative-algorithm", "conditions.speculation", Scalar),
    ("speculative-num-steps", "conditions.speculation_steps", Count),
    ("speculative-num-draft-tokens", "conditions.speculation_draft_tokens", Count),
    ("attention-backend", "conditions.attention_backend", Scalar),
    ("enable-expert-parallel", "conditions.expert_parallel", True),
    ("ep-size", "conditions.expert_parallel_size", Count),
    ("cpu-offload-gb", "conditions.cpu_offload_gb", Scalar),
    ("n-gpu-layers", "conditions.n_gpu_layers", Scalar),
    ("ngl", "conditions.n_gpu_layers", Scalar),
    ("flash-attn", "conditions.flash_attn", Scalar),
    ("fa", "conditions.flash_attn", Scalar),
    ("parallel", "conditions.parallel_slots", Count),
];

const PREFIX_CACHING: &str = "conditions.prefix_caching";

/// Arguments that name a model; what a server was told is a name, what it loaded is evidence.
const MODEL_NAMES: [&str; 3] = ["model", "model-path", "m"];

/// States what the arguments say; `place` names the file and the key they stand under.
pub(super) fn state(arguments: &[Argument], place: &str) -> Vec<Fact> {
    let mut facts: Vec<Fact> =
        arguments.iter().filter_map(|argument| state_one(argument, place)).collect();
    facts.extend(find_model(arguments, place));
    if facts.iter().all(|fact| fact.field != PREFIX_CACHING) {
        let place = format!("{place} (no flag: the engine's default)");
        facts.push(Fact::new(FactKind::Stated, PREFIX_CACHING, "default", &place));
    }
    facts
}

fn state_one(argument: &Argument, place: &str) -> Option<Fact> {
    let (_, field, reading) = FIELDS.iter().find(|(name, ..)| *name == argument.name)?;
    let text = argument.value.as_deref();
    let value = match reading {
        Count => parse_count(text?).map_or_else(|| text.unwrap_or_default().into(), Value::from),
        Scalar => text.map_or_else(|| "on".into(), parse_scalar),
        Says(word) => (*word).into(),
        True => true.into(),
    };
    Some(Fact::new(FactKind::Stated, field, value, &format!("{place} --{}", argument.name)))
}

/// `serve org/Model`, `--model org/Model`, `--model-path org/Model`.
fn find_model(arguments: &[Argument], place: &str) -> Option<Fact> {
    let named = arguments.iter().find(|argument| MODEL_NAMES.contains(&argument.name.as_str()));
    let mut words = arguments.iter().filter(|argument| argument.name.is_empty());
    let served = || words.find(|word| word.value.as_deref() == Some("serve")).and(words.next());
    let model = named.or_else(served)?.value.as_deref()?;
    Some(Fact::new(FactKind::Label, "model.id", model, place))
}

/// vLLM reads `32k` as 32,000 and `32K` as 32,768 (`human_readable_int`).
fn parse_count(text: &str) -> Option<u64> {
    let factor = match text.chars().last()? {
        'k' => 1_000,
        'm' => 1_000_000,
        'K' => 1_024,
        'M' => 1_048_576,
        _ => return text.parse().ok(),
    };
    let digits = text.get(..text.len() - 1)?;
    digits.parse::<u64>().ok()?.checked_mul(factor)
}

fn parse_scalar(text: &str) -> Value {
    if let Ok(whole) = text.parse::<i64>() {
        return whole.into();
    }
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() => json!(number),
        _ => text.into(),
    }
}
