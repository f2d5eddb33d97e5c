//! A folder of its own for each test, with a ledger, a fixed clock and a fixed width.

use serde_json::{Value, json};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

/// The moment at which every test takes place.
pub const NOW: &str = "2026-12-01T12:00:00Z";

pub struct Sandbox {
    folder: TempDir,
}

/// What a command printed and how it ended.
#[derive(Debug)]
pub struct Answer {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Answer {
    fn new(output: &Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    #[track_caller]
    pub fn ok(self) -> Self {
        assert_eq!(self.code, 0, "stdout:\n{}\nstderr:\n{}", self.stdout, self.stderr);
        self
    }

    #[track_caller]
    pub fn fails(self, code: i32) -> Self {
        assert_eq!(self.code, code, "stdout:\n{}\nstderr:\n{}", self.stdout, self.stderr);
        self
    }

    #[track_caller]
    pub fn says(self, text: &str) -> Self {
        assert!(self.stderr.contains(text), "`{text}` is not in stderr:\n{}", self.stderr);
        self
    }

    #[track_caller]
    pub fn prints(self, text: &str) -> Self {
        assert!(self.stdout.contains(text), "`{text}` is not in stdout:\n{}", self.stdout);
        self
    }

    /// The first line of stdout.
    pub fn key(&self) -> String {
        self.stdout.lines().next().unwrap_or_default().to_owned()
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap()
    }
}

impl Sandbox {
    pub fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        path
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ledger"));
        command
            .args(arguments)
            .current_dir(self.folder.path())
            .env_remove("LEDGER_DIR")
            .env("LEDGER_CLOCK", NOW)
            .env("NO_COLOR", "1")
            .env("COLUMNS", "200");
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Answer {
        Answer::new(&self.command(arguments).output().unwrap())
    }

    /// Records a run folder and returns its key.
    #[track_caller]
    pub fn record(&self, folder: &str) -> String {
        self.run(&["record", folder]).ok().key()
    }

    /// A run folder that `record` takes: a vLLM result with samples, manifest and provenance.
    pub fn run_folder(&self, name: &str, seed: u64) -> PathBuf {
        self.write(&format!("{name}/result.json"), vllm_result(seed, 8).to_string());
        self.write(&format!("{name}/server.log"), "INFO started\n".repeat(20));
        self.write(&format!("{name}/run.toml"), manifest("tiny"));
        self.write(&format!("{name}/provenance.json"), provenance().to_string());
        self.path(name)
    }

    /// Every file of the ledger with its length, sorted.
    pub fn listing(&self) -> Vec<String> {
        let mut found = Vec::new();
        walk(&self.path(".ledger"), &mut found);
        found.sort();
        found
    }

    /// Opens the database with whatever a person with the sqlite3 program can do.
    pub fn database(&self) -> rusqlite::Connection {
        rusqlite::Connection::open(self.path(".ledger/ledger.db")).unwrap()
    }
}

fn walk(folder: &Path, found: &mut Vec<String>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.filter_map(Result::ok) {
        let path = entry.path();
        if path.is_dir() {
            walk(&path, found);
        } else {
            found.push(String::from_utf8_lossy(path.as_os_str().as_bytes()).into_owned());
        }
    }
}

pub fn manifest(candidate: &str) -> String {
    format!(
        r#"candidate = "{candidate}"
config = "default"
task = "serve"
hardware = "cpu"
measured_at = 2026-11-01T10:00:00Z

[model]
id = "acme/tiny-llama"

[quant]
kv_cache = "auto"
"#
    )
}

/// The folder with real files and collected cases, where one is named.
#[expect(clippy::disallowed_methods, reason = "the only thing a test reads from the environment")]
pub fn shared() -> Option<PathBuf> {
    let folder = std::env::var_os("LEDGER_SHARED").map(PathBuf::from)?;
    folder.join("cases").is_dir().then_some(folder)
}

/// True for the file of an object of its own.
pub fn is_object(path: &str) -> bool {
    Path::new(path).extension().is_some_and(|extension| extension == "zst")
}

/// One file of a sandbox's weight set.
pub const WEIGHTS: &str = "6437b3ac38465133ffb63b75273a8db548c558465d79db03fd359c6cd5bd9d85";

pub fn provenance() -> Value {
    json!({
        "schema": "ledger-provenance/v1", "captured_at": "2026-11-01T11:00:00Z", "tool": "test",
        "host": {"name": "h", "os": "linux", "boot_id": "boot-1", "cpu": "EPYC"},
        "listener": {"port": 8000, "address": "127.0.0.1", "pid": 41},
        "process": {"pid": 41, "started_at": "2026-11-01T09:00:00Z", "exe": "/opt/llama-server", "exe_blake3": null, "cwd": null,
            "argv": ["llama-server", "-m", "tiny-llama-q4_k_m.gguf", "-c", "4096"], "container": null},
        "children": [],
        "weights": [{"path": "/m/tiny-llama-q4_k_m.gguf", "bytes": 3, "blake3": WEIGHTS, "inode": 9, "seen": "mapped", "hf": null,
            "header": {"format": "gguf", "architecture": "llama", "quant": "Q4_K_M", "name": null}}],
        "engine": {"name": "llama.cpp", "version": "b1", "digest": "b3:00"},
        "labels": {"served_names": ["tiny"]}, "accelerators": [], "masked": []
    })
}

/// A `vllm bench serve --save-detailed` record of `n` requests with plausible times.
pub fn vllm_result(seed: u64, n: usize) -> Value {
    let time = |index: usize| 0.05 + ((seed * 7 + index as u64 * 13) % 17) as f64 / 1000.0;
    let ttfts: Vec<f64> = (0..n).map(time).collect();
    let itls: Vec<Vec<f64>> =
        (0..n).map(|i| (0..15).map(|k| 0.01 + time(i + k) / 100.0).collect()).collect();
    let duration = itls.iter().flatten().sum::<f64>();
    json!({
        "date": "20261101-100000", "endpoint_type": "openai-chat", "backend": "openai-chat", "label": format!("seed {seed}"), "model_id": "tiny",
        "tokenizer_id": "tiny", "num_prompts": n, "request_rate": "inf", "burstiness": 1.0, "max_concurrency": 1, "duration": duration,
        "completed": n, "failed": 0, "total_input_tokens": 100 * n, "total_output_tokens": 16 * n,
        "request_throughput": n as f64 / duration, "output_throughput": 16.0 * n as f64 / duration,
        "total_token_throughput": 116.0 * n as f64 / duration,
        "input_lens": vec![100; n], "output_lens": vec![16; n], "ttfts": ttfts, "itls": itls,
        "generated_texts": vec!["text"; n], "errors": vec![""; n],
    })
}
