//! The format adapters of `ledger`: one module a format, each an implementation of the core's
//! `Adapter` port, and companions for the files that lie beside a result. `read` holds the readers
//! they share. Nothing here stores, prints or asks the time.

use ledger::adapter::{Adapter, Companion, Formats, SourceFile};

pub mod companion;
pub mod llama_bench;
pub mod ollama_response;
pub mod read;

static ADAPTERS: &[&dyn Adapter] = &[&llama_bench::LlamaBench, &ollama_response::OllamaResponse];

static COMPANIONS: &[&dyn Companion] = &[
    &companion::NvidiaSmiCsv,
    &companion::OllamaPs,
    &companion::PrefixCacheCounters,
    &companion::RequestedSettings,
    &companion::SentPrompt,
    &companion::ServerArguments,
];

/// Returns every format this package reads.
pub fn formats() -> Formats {
    Formats { adapters: ADAPTERS, companions: COMPANIONS }
}

/// Returns every adapter that knows the file, each with its reason. None or several is for the
/// caller to refuse: the first match is a guess, and a guess is no evidence.
pub fn detect_all(formats: &Formats, file: &SourceFile<'_>) -> Vec<(&'static dyn Adapter, String)> {
    let adapters = formats.adapters.iter().copied();
    adapters.filter_map(|adapter| Some((adapter, adapter.detect(file)?))).collect()
}
