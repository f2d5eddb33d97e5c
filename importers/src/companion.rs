//! The files beside a result: telemetry, cache counters, server arguments, requested settings. None
//! of them holds a result; each states facts about the run they lie with, at the worth they have:
//! what was observed wins over what was requested.

mod nvidia_smi;
mod ollama_ps;
mod prefix_cache;
mod requested_settings;
mod sent_prompt;
mod server_arguments;

pub use nvidia_smi::NvidiaSmiCsv;
pub use ollama_ps::OllamaPs;
pub use prefix_cache::PrefixCacheCounters;
pub use requested_settings::RequestedSettings;
pub use sent_prompt::SentPrompt;
pub use server_arguments::ServerArguments;
