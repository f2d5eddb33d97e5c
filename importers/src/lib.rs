//! Format adapters of the ledger: one module a benchmark tool, none knows another. The core meets
//! formats only through [`ledger::adapter`]; this crate hands it the list.

pub mod anvil_capacity;
pub mod anvil_preflight;
pub mod companion;
pub mod llama_bench;
pub mod map;
pub mod ollama_response;
pub mod read;
pub mod sglang_serving;
pub mod vllm_serve;

use ledger::adapter::{Adapter, Companion, Formats};

static ADAPTERS: &[&dyn Adapter] = &[
    &anvil_capacity::AnvilCapacity,
    &llama_bench::LlamaBench,
    &ollama_response::OllamaResponse,
    &sglang_serving::SglangServing,
    &vllm_serve::VllmServe,
];

static COMPANIONS: &[&dyn Companion] = &[
    &anvil_preflight::AnvilPreflight,
    &companion::cache_counters::CacheCounters,
    &companion::nvidia_smi::NvidiaSmi,
    &companion::ollama::OllamaContext,
    &companion::server_arguments::ServerArguments,
];

static PUBLICATIONS: &[&dyn Adapter] = &[];

/// Returns every format this crate knows.
pub fn formats() -> Formats {
    Formats {
        adapters: ADAPTERS,
        companions: COMPANIONS,
        publications: PUBLICATIONS,
        read_map: map::read_map,
    }
}
