//! The walk that writes a provenance document on Linux: a port or a pid, the process that holds it, its
//! command line and descendants, the weight files they map, hold open or name, hashed. Reads `/proc`
//! (or a copy of one under another root) and weight files, runs nothing and asks no server.
//!
//! What it cannot see is said and not guessed: an entry that may not be read names the permission, a
//! process without weight files names what was looked at.

mod gguf;
mod process;
mod secrets;
mod weights;

use crate::provenance::document::{
    Accelerator, Child, Document, Engine, Host, Labels, Listener, Process, SCHEMA, WeightFile,
};
use crate::provenance::naming::{find_proxy, normalize};
use chrono::{DateTime, Utc};
use serde_json::Map;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Where a capture starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// The process that listens on a TCP port.
    Port(u16),
    /// A process.
    Pid(u32),
}

/// Why nothing could be captured.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// Nobody listens.
    #[error("no process listens on port {port} in any network namespace that can be read")]
    NoListener {
        /// The port.
        port: u16,
    },
    /// Somebody listens, and who it is may not be read.
    #[error(
        "port {port} is open, and the process that holds it cannot be read: run the capture as its user, or with CAP_SYS_PTRACE"
    )]
    HiddenListener {
        /// The port.
        port: u16,
    },
    /// There is no such process.
    #[error("there is no process {pid}")]
    NoProcess {
        /// The pid.
        pid: u32,
    },
    /// A part of a process may not be read.
    #[error("`{}` of process {pid} cannot be read: run the capture as its user, or with CAP_SYS_PTRACE", path.display())]
    Denied {
        /// The pid.
        pid: u32,
        /// The entry.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The listener passes requests on.
    #[error(
        "port {port} is held by pid {pid}, which is `{proxy}`: a proxy loads no weights; capture the worker behind it by its own port or pid"
    )]
    Proxy {
        /// The port.
        port: u16,
        /// The pid.
        pid: u32,
        /// Its name.
        proxy: String,
    },
    /// No weight file was found.
    #[error(
        "process {pid} and its {descendants} descendants hold no weight file: looked at their mappings, open files and command lines; an engine that closed its files must be started under observation"
    )]
    NoWeights {
        /// The pid.
        pid: u32,
        /// Processes below it.
        descendants: usize,
    },
    /// A weight file cannot be read.
    #[error("weight file `{}` cannot be read", path.display())]
    Weights {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A snapshot's blob is not what its name says.
    #[error("blob `{}` hashes to {found}, its name says otherwise: the snapshot was changed", path.display())]
    BlobAltered {
        /// The blob.
        path: PathBuf,
        /// SHA-256 of its content, in hex.
        found: String,
    },
    /// The process ended or another took its number while it was looked at.
    #[error("process {pid} ended while it was looked at")]
    Gone {
        /// The pid.
        pid: u32,
    },
}

/// Captures a document. `root` is `/`, or a folder with a copy of `/proc` and the weight files under
/// their paths; `advance` is called with the number of bytes hashed.
///
/// # Errors
/// [`ProbeError`].
pub fn capture(
    root: &Path,
    target: Target,
    now: DateTime<Utc>,
    tool: &str,
    advance: &mut dyn FnMut(u64),
) -> Result<Document, ProbeError> {
    let listener = match target {
        Target::Port(port) => Some(process::find_listener(root, port)?),
        Target::Pid(_) => None,
    };
    let pid = match (&listener, target) {
        (Some(listener), _) => listener.pid,
        (None, Target::Pid(pid)) => pid,
        (None, Target::Port(port)) => return Err(ProbeError::NoListener { port }),
    };
    let seen = process::read(root, pid)?;
    if let Some(listener) = &listener {
        refuse_proxy(listener, &seen)?;
    }
    let descendants = process::find_descendants(root, pid);
    let weights = weights::find(root, &seen, &descendants, advance)?;
    if weights.is_empty() {
        return Err(ProbeError::NoWeights { pid, descendants: descendants.len() });
    }
    let again = process::read(root, pid)?;
    if again.started_at != seen.started_at {
        return Err(ProbeError::Gone { pid });
    }
    Ok(document(root, listener, seen, descendants, weights, (now, tool)))
}

fn refuse_proxy(listener: &Listener, seen: &process::Seen) -> Result<(), ProbeError> {
    let exe = [seen.exe.clone()];
    let proxy = find_proxy(&seen.argv).or_else(|| find_proxy(&exe));
    proxy.map_or(Ok(()), |proxy| {
        Err(ProbeError::Proxy { port: listener.port, pid: seen.pid, proxy: proxy.to_owned() })
    })
}

fn document(
    root: &Path,
    listener: Option<Listener>,
    seen: process::Seen,
    descendants: Vec<process::Seen>,
    weights: Vec<WeightFile>,
    (now, tool): (DateTime<Utc>, &str),
) -> Document {
    let served = served_names(&seen.argv);
    let engine = engine(root, &seen);
    let (argv, masked) = secrets::mask(&seen.argv);
    Document {
        schema: SCHEMA.to_owned(),
        captured_at: now,
        tool: tool.to_owned(),
        host: host(root),
        listener,
        process: Some(Process {
            pid: seen.pid,
            started_at: seen.started_at,
            exe: seen.exe,
            exe_blake3: engine
                .digest
                .as_ref()
                .map(|digest| digest.trim_start_matches("b3:").to_owned()),
            cwd: seen.cwd,
            argv,
            container: seen.container,
        }),
        children: descendants
            .into_iter()
            .map(|child| Child {
                pid: child.pid,
                started_at: child.started_at,
                argv: secrets::mask(&child.argv).0,
            })
            .collect(),
        weights,
        engine,
        labels: Labels { served_names: served },
        accelerators: accelerators(root),
        masked,
        memory_digests: None,
        extra: Map::new(),
    }
}

fn host(root: &Path) -> Host {
    let read = |path: &str| {
        let text = fs::read_to_string(root.join(path)).unwrap_or_default();
        text.trim().to_owned()
    };
    let cpuinfo = read("proc/cpuinfo");
    let cpu = cpuinfo.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    Host {
        name: read("proc/sys/kernel/hostname"),
        os: format!("{} {}", read("proc/sys/kernel/ostype"), read("proc/sys/kernel/osrelease"))
            .trim()
            .to_owned(),
        boot_id: read("proc/sys/kernel/random/boot_id"),
        cpu: cpu.map(|(_, name)| name.trim().to_owned()),
    }
}

/// The engine by its program, with the digest of its executable; what version it is nobody asked it.
fn engine(root: &Path, seen: &process::Seen) -> Engine {
    let program = seen.argv.first().map_or("", |word| word.rsplit('/').next().unwrap_or(word));
    let module = seen.argv.iter().find_map(|word| {
        ["vllm", "sglang", "tensorrt_llm", "mlx_lm"]
            .into_iter()
            .find(|name| word.split(['/', '.']).any(|part| part == *name))
    });
    let name = module.or_else(|| {
        ["llama-server", "llama-bench", "ollama"].into_iter().find(|known| *known == program)
    });
    let exe = root.join(seen.exe.trim_start_matches('/'));
    let digest = weights::hash_file(&exe, false, &mut |_| {})
        .ok()
        .map(|hashes| format!("b3:{}", hashes.blake3));
    Engine { name: name.map(|name| normalize("engine.name", name)), version: None, digest }
}

/// Names the command line makes the server answer to: labels.
fn served_names(argv: &[String]) -> Vec<String> {
    let options = ["--alias", "-a", "--served-model-name"];
    argv.windows(2)
        .filter_map(|pair| match pair {
            [option, name] if options.contains(&option.as_str()) => Some(name.clone()),
            _ => None,
        })
        .collect()
}

/// Cards as the NVIDIA driver lists them under `/proc`; it does not show the power cap.
fn accelerators(root: &Path) -> Vec<Accelerator> {
    let Ok(cards) = fs::read_dir(root.join("proc/driver/nvidia/gpus")) else { return Vec::new() };
    let mut found: Vec<Accelerator> = cards
        .filter_map(|card| {
            let text = fs::read_to_string(card.ok()?.path().join("information")).ok()?;
            let get = |key: &str| {
                let line = text.lines().find_map(|line| line.strip_prefix(key)?.split_once(':'))?;
                Some(line.1.trim().to_owned())
            };
            Some(Accelerator { name: get("Model")?, uuid: get("GPU UUID"), power_cap_w: None })
        })
        .collect();
    found.sort_by(|a, b| a.uuid.cmp(&b.uuid));
    found
}

#[cfg(test)]
#[path = "probe/tests.rs"]
mod tests;
