//! Files that lie beside a result and say under which conditions it was measured.

pub mod cache_counters;
pub mod nvidia_smi;
pub mod ollama;
pub mod server_arguments;
