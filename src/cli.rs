//! The command tree: every flag, its help, and the man pages and completions that follow from it.

use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

/// An append-only evidence store for LLM inference benchmarks.
#[derive(Debug, Parser)]
#[command(name = "ledger", version, about, max_term_width = 100, propagate_version = true)]
pub(crate) struct Cli {
    /// Folder of the ledger; without it `LEDGER_DIR`, or the nearest `.ledger` upward
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) ledger: Option<PathBuf>,

    #[command(subcommand)]
    pub(crate) command: Command,
}

/// How an answer is written to stdout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum Format {
    /// For people
    #[default]
    Text,
    /// One JSON value, its shape in schema/
    Json,
    /// Markdown
    Md,
    /// CSV (views only)
    Csv,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Record a finished benchmark as an immutable run
    #[command(after_help = "Example:\n  ledger record out/ --provenance prov.json --run run.toml")]
    Record(RecordArgs),
    /// Show one run with everything that is known about it
    #[command(after_help = "Example:\n  ledger show 3fa9c1d2")]
    Show(ShowArgs),
    /// List runs
    #[command(after_help = "Example:\n  ledger list --candidate qwen3-32b-nvfp4 --format csv")]
    List(ListArgs),
    /// Show every run of a subject with the entries about it
    #[command(after_help = "Example:\n  ledger history --candidate qwen3-32b-nvfp4 --task chat")]
    History(HistoryArgs),
    /// Show the newest countable run of each subject
    #[command(after_help = "Example:\n  ledger latest --task serve-random-1k-1k")]
    Latest(ViewArgs),
    /// Write an artifact, a manifest or a document to stdout, byte for byte
    #[command(after_help = "Example:\n  ledger cat 6437b3ac | b3sum")]
    Cat(CatArgs),
    /// Write the artifacts of a run back as files, byte for byte
    #[command(after_help = "Example:\n  ledger extract 3fa9c1d2 restored/")]
    Extract(ExtractArgs),
    /// Withdraw a run; it keeps its address and counts no more
    #[command(
        after_help = "Example:\n  ledger retract 3fa9c1d2 --reason 'five times the output tokens' --by lena"
    )]
    Retract(RetractArgs),
    /// Correct the labels of a run
    #[command(
        after_help = "Example:\n  ledger correct 3fa9c1d2 --candidate qwen-tp4 --reason 'typo' --by lena"
    )]
    Correct(CorrectArgs),
    /// Add a remark or a file to a run
    #[command(
        after_help = "Example:\n  ledger note 3fa9c1d2 'Xid 79 an hour later' --by lena --attach dmesg.txt"
    )]
    Note(NoteArgs),
    /// List weight sets, or bind one to a model
    #[command(
        after_help = "Example:\n  ledger weights bind DIGEST org/name@revision --by lena --because 'converted with convert_hf_to_gguf.py'"
    )]
    Weights(WeightsArgs),
    /// Check a provenance document against the rules
    #[command(after_help = "Example:\n  ledger provenance capture --port 8000 -o prov.json")]
    Provenance(ProvenanceArgs),
    /// Import other people's numbers as priors, advisory for ever
    #[command(
        after_help = "Example:\n  ledger import leaderboard.yml --source aider-polyglot --url https://aider.chat/docs/leaderboards/ --published 2026-07-31"
    )]
    Import(ImportArgs),
    /// List priors with their source and what each leaves unknown
    #[command(after_help = "Example:\n  ledger priors --model qwen3 --hardware 5090")]
    Priors(PriorsArgs),
    /// List the formats that are known, or explain what a file is
    #[command(after_help = "Example:\n  ledger adapters explain result.json")]
    Adapters(AdaptersArgs),
    /// Derive everything again and name what is damaged
    #[command(after_help = "Example:\n  ledger verify --deep")]
    Verify(VerifyArgs),
    /// Fill the indexes again from the log
    #[command(after_help = "Example:\n  ledger reindex")]
    Reindex,
    /// Print the tree head: one line that a later `verify --expect` holds the ledger to
    #[command(after_help = "Example:\n  ledger head >> HEADS.txt")]
    Head,
    /// Print shell completions
    #[command(after_help = "Example:\n  ledger completions bash > /etc/bash_completion.d/ledger")]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Write man pages into a folder
    #[command(after_help = "Example:\n  ledger man man/")]
    Man {
        /// The folder
        folder: PathBuf,
    },
}

#[derive(Debug, Args)]
pub(crate) struct RecordArgs {
    /// Folder (or single file) that the benchmark wrote
    #[arg(required_unless_present = "each")]
    pub(crate) source: Option<PathBuf>,
    /// Record every subfolder of PARENT as a run, all in one commit
    #[arg(long, value_name = "PARENT", conflicts_with_all = ["source", "run", "provenance", "split", "pick", "failed"])]
    pub(crate) each: Option<PathBuf>,
    /// Runs per commit of --each
    #[arg(long, value_name = "N", default_value_t = 10_000, requires = "each")]
    pub(crate) batch: usize,
    /// Manifest; without it run.toml in the folder
    #[arg(long, value_name = "FILE")]
    pub(crate) run: Option<PathBuf>,
    /// Provenance document; twice for one captured before and one after; without it provenance.json in the folder
    #[arg(long, value_name = "FILE")]
    pub(crate) provenance: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) labels: Labels,
    /// Fingerprint field, as FIELD=VALUE
    #[arg(long = "set", value_name = "FIELD=VALUE", value_parser = pair)]
    pub(crate) settings: Vec<(String, String)>,
    /// When the measurement started, RFC 3339
    #[arg(long, value_name = "TIME")]
    pub(crate) measured_at: Option<String>,
    /// Adapter to use
    #[arg(long, value_name = "ID")]
    pub(crate) adapter: Option<String>,
    /// Result file to read, by its path in the folder; may be given more than once
    #[arg(long = "result", value_name = "PATH")]
    pub(crate) results: Vec<String>,
    /// Which run of a file that holds several, from 1
    #[arg(long, value_name = "N", conflicts_with = "split")]
    pub(crate) pick: Option<usize>,
    /// Record every run of a file that holds several as a run of its own
    #[arg(long)]
    pub(crate) split: bool,
    /// Record an attempt that failed without a metric, and why
    #[arg(long, value_name = "REASON")]
    pub(crate) failed: Option<String>,
    /// Key of the retracted run that this one replaces
    #[arg(long, value_name = "KEY")]
    pub(crate) replaces: Option<String>,
    /// Print the key it would have and store nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Exit 1 when the run is stored with a caution
    #[arg(long)]
    pub(crate) strict: bool,
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

fn pair(text: &str) -> Result<(String, String), String> {
    let (field, value) = text.split_once('=').ok_or("expected FIELD=VALUE")?;
    Ok((field.to_owned(), value.to_owned()))
}

#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// Files to import, each as a prior of its own; of a folder every file under it
    #[arg(required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// Who published them; part of the prior's key
    #[arg(long, value_name = "NAME")]
    pub(crate) source: String,
    /// Where they were read
    #[arg(long)]
    pub(crate) url: Option<String>,
    /// Day of publication, as 2026-07-31
    #[arg(long, value_name = "DATE")]
    pub(crate) published: Option<String>,
    /// Adapter to use
    #[arg(long, value_name = "ID", conflicts_with = "map")]
    pub(crate) adapter: Option<String>,
    /// TOML file that says where cells, metrics and units stand, for a format that no adapter knows
    #[arg(long, value_name = "FILE")]
    pub(crate) map: Option<PathBuf>,
    /// Print the keys they would have and store nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Exit 1 when a file is stored unparsed
    #[arg(long)]
    pub(crate) strict: bool,
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct PriorsArgs {
    /// Only rows whose model contains this text
    #[arg(long, value_name = "TEXT")]
    pub(crate) model: Option<String>,
    /// Only rows whose accelerators contain this text
    #[arg(long, value_name = "TEXT")]
    pub(crate) hardware: Option<String>,
    /// Only rows whose engine contains this text
    #[arg(long, value_name = "TEXT")]
    pub(crate) engine: Option<String>,
    /// Only rows whose quantization contains this text
    #[arg(long, value_name = "TEXT")]
    pub(crate) quant: Option<String>,
    /// Only this source
    #[arg(long, value_name = "NAME")]
    pub(crate) source: Option<String>,
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

impl PriorsArgs {
    /// True when the question is about rows and not about whole sources.
    pub(crate) fn narrows(&self) -> bool {
        [&self.model, &self.hardware, &self.engine, &self.quant].into_iter().any(Option::is_some)
    }
}

#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Labels {
    /// Label: the recipe under test
    #[arg(long)]
    pub(crate) candidate: Option<String>,
    /// Label: its variant
    #[arg(long)]
    pub(crate) config: Option<String>,
    /// Label: the workload
    #[arg(long)]
    pub(crate) task: Option<String>,
    /// Label: the machine class
    #[arg(long)]
    pub(crate) hardware: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// Key of the run: 8 or more hex digits
    pub(crate) key: String,
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct ViewArgs {
    #[command(flatten)]
    pub(crate) labels: Labels,
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    pub(crate) labels: Labels,
    /// Only failed attempts
    #[arg(long)]
    pub(crate) failed: bool,
    /// Only failed attempts of this cause
    #[arg(long, value_name = "CAUSE")]
    pub(crate) cause: Option<String>,
    /// Only failed attempts that died under a prompt shorter than this many tokens
    #[arg(long, value_name = "TOKENS")]
    pub(crate) prompt_below: Option<u64>,
    /// Only runs that hold this artifact: 8 or more hex digits of its blob id
    #[arg(long, value_name = "BLOB")]
    pub(crate) artifact: Option<String>,
    /// Only runs of this campaign
    #[arg(long)]
    pub(crate) campaign: Option<String>,
    /// Only runs whose requested and loaded names, or requested and effective settings, differ
    #[arg(long)]
    pub(crate) differs: bool,
    /// Only runs whose labels, reasons, notes or file names contain this text
    #[arg(long, value_name = "TEXT")]
    pub(crate) search: Option<String>,
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct HistoryArgs {
    #[command(flatten)]
    pub(crate) labels: Labels,
    /// As it stood at this moment, RFC 3339
    #[arg(long, value_name = "TIME")]
    pub(crate) as_of: Option<String>,
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct CatArgs {
    /// Blob id or artifact root: 8 or more hex digits; or KEY:PATH for an artifact of a run
    pub(crate) object: String,
}

#[derive(Debug, Args)]
pub(crate) struct ExtractArgs {
    /// Key of the run
    #[arg(required_unless_present = "all")]
    pub(crate) key: Option<String>,
    /// Folder to write to; made when it is not there
    #[arg(required_unless_present = "all")]
    pub(crate) folder: Option<PathBuf>,
    /// Write every run into DIR, one folder a key
    #[arg(long, value_name = "DIR", conflicts_with_all = ["key", "folder"])]
    pub(crate) all: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Who {
    /// Who says so
    #[arg(long, value_name = "NAME")]
    pub(crate) by: String,
    /// Print the entry id it would have and append nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RetractArgs {
    /// Key of the run
    pub(crate) key: String,
    /// Why
    #[arg(long)]
    pub(crate) reason: String,
    /// Key of the run that stands in its place
    #[arg(long, value_name = "KEY")]
    pub(crate) replaced_by: Option<String>,
    #[command(flatten)]
    pub(crate) who: Who,
}

#[derive(Debug, Args)]
pub(crate) struct CorrectArgs {
    /// Key of the run
    pub(crate) key: String,
    #[command(flatten)]
    pub(crate) labels: Labels,
    /// Why
    #[arg(long)]
    pub(crate) reason: String,
    #[command(flatten)]
    pub(crate) who: Who,
}

#[derive(Debug, Args)]
pub(crate) struct NoteArgs {
    /// Key of the run
    pub(crate) key: String,
    /// The remark
    pub(crate) text: String,
    /// What sort of note: remark, attachment, incident, mitigation, explanation
    #[arg(long, default_value = "remark")]
    pub(crate) topic: String,
    /// File to attach; may be given more than once
    #[arg(long, value_name = "FILE")]
    pub(crate) attach: Vec<PathBuf>,
    /// Key of another run it speaks of; may be given more than once
    #[arg(long, value_name = "KEY")]
    pub(crate) link: Vec<String>,
    #[command(flatten)]
    pub(crate) who: Who,
}

#[derive(Debug, Args)]
pub(crate) struct WeightsArgs {
    #[command(subcommand)]
    pub(crate) command: Option<WeightsCommand>,
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

#[derive(Debug, Subcommand)]
pub(crate) enum WeightsCommand {
    /// Bind a weight set to a model once
    Bind {
        /// Digest of the weight set, as `ledger weights` and `ledger provenance check` print it
        digest: String,
        /// The model, as org/name@revision
        model: String,
        /// Why you are sure
        #[arg(long)]
        because: String,
        #[command(flatten)]
        who: Who,
    },
}

#[derive(Debug, Args)]
pub(crate) struct ProvenanceArgs {
    #[command(subcommand)]
    pub(crate) command: ProvenanceCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ProvenanceCommand {
    /// Look at a running server or process and write down which weights it has loaded
    #[command(after_help = "Example:\n  ledger provenance capture --port 8000 -o prov.json")]
    Capture {
        /// TCP port that the server listens on
        #[arg(long, required_unless_present = "pid", conflicts_with = "pid")]
        port: Option<u16>,
        /// Process to look at
        #[arg(long)]
        pid: Option<u32>,
        /// File to write; without it stdout
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
        /// Folder that holds a copy of /proc and the weight files under their paths
        #[arg(long, value_name = "DIR", default_value = "/")]
        proc_root: PathBuf,
    },
    /// Print each rule with pass or fail and the fact behind it
    Check {
        /// The document; a second one when one was captured before and one after
        #[arg(required = true)]
        documents: Vec<PathBuf>,
        /// Manifest of the run it is to prove
        #[arg(long, value_name = "FILE")]
        run: Option<PathBuf>,
        #[arg(long, value_enum, default_value_t)]
        format: Format,
    },
}

#[derive(Debug, Args)]
pub(crate) struct AdaptersArgs {
    #[command(subcommand)]
    pub(crate) command: Option<AdaptersCommand>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum AdaptersCommand {
    /// Say what a file is, why, and what would be extracted
    Explain {
        /// The file
        file: PathBuf,
    },
}

#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {
    /// Skip the bytes of objects
    #[arg(long, conflicts_with = "deep")]
    pub(crate) quick: bool,
    /// Extract every metric again
    #[arg(long)]
    pub(crate) deep: bool,
    /// A line that `ledger head` printed: everything before it must be unchanged
    #[arg(long, value_name = "HEAD")]
    pub(crate) expect: Option<String>,
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

impl Labels {
    /// Returns the labels that are given, by name.
    pub(crate) fn given(&self) -> Vec<(&'static str, &str)> {
        [
            ("candidate", &self.candidate),
            ("config", &self.config),
            ("task", &self.task),
            ("hardware", &self.hardware),
        ]
        .into_iter()
        .filter_map(|(name, label)| Some((name, label.as_deref()?)))
        .collect()
    }

    /// Returns the filter they make.
    pub(crate) fn filter(&self) -> ledger::subject::SubjectFilter {
        ledger::subject::SubjectFilter {
            candidate: self.candidate.clone(),
            config: self.config.clone(),
            task: self.task.clone(),
            hardware: self.hardware.clone(),
        }
    }
}
