//! A command that did not do what it was asked: one line with a stable code, every finding on a line
//! of its own, the causes, and what to type next. Everything goes to stderr.

use crate::exit::Exit;
use crate::render::findings;
use ledger::amend::AmendError;
use ledger::finding::Finding;
use ledger::import::ImportError;
use ledger::probe::ProbeError;
use ledger::record::{RecordError, Refusal, RefusalClass};
use ledger::restore::RestoreError;
use ledger::store::StoreError;
use std::error::Error;
use std::io::Write as _;

/// What is reported.
#[derive(Debug)]
pub(crate) struct Failure {
    code: &'static str,
    message: String,
    findings: Vec<Finding>,
    causes: Vec<String>,
    hint: Option<String>,
    exit: Exit,
    is_broken_pipe: bool,
}

impl Failure {
    /// Makes a failure of the input.
    pub(crate) fn input(code: &'static str, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            findings: Vec::new(),
            causes: Vec::new(),
            hint: None,
            exit: Exit::Input,
            is_broken_pipe: false,
        }
    }

    /// Adds what to type next.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    fn caused_by(mut self, error: &dyn Error) -> Self {
        let mut cause = error.source();
        while let Some(error) = cause {
            self.causes.push(error.to_string());
            cause = error.source();
        }
        self
    }

    fn exit(mut self, exit: Exit) -> Self {
        self.exit = exit;
        self
    }

    /// True when whoever read the output has left.
    pub(crate) const fn is_broken_pipe(&self) -> bool {
        self.is_broken_pipe
    }

    /// Writes the report to stderr and returns the exit.
    pub(crate) fn report(&self) -> Exit {
        let mut text = format!("error[{}]: {}\n", self.code, self.message);
        text.push_str(&findings::lines(&self.findings));
        for cause in &self.causes {
            text.push_str(&format_line("caused by", cause));
        }
        if let Some(hint) = &self.hint {
            text.push_str(&format_line("hint", hint));
        }
        // Nobody is left to tell when stderr is gone.
        let _gone = std::io::stderr().write_all(text.as_bytes());
        self.exit
    }
}

fn format_line(label: &str, text: &str) -> String {
    format!("{label}: {text}\n")
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        let is_broken_pipe = error.kind() == std::io::ErrorKind::BrokenPipe;
        let mut failure = Self::input("output", format!("cannot write the answer: {error}"))
            .exit(Exit::Environment);
        failure.is_broken_pipe = is_broken_pipe;
        failure
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        let failure = Self::input(store_code(&error), error.to_string()).caused_by(&error);
        match &error {
            StoreError::NotFound { .. } => {
                failure.hint("record a run here, or name one with `--ledger DIR` or LEDGER_DIR")
            }
            StoreError::Ambiguous { candidates, .. } => {
                let list = candidates
                    .iter()
                    .map(|key| key.get(..16).unwrap_or(key))
                    .collect::<Vec<_>>()
                    .join(", ");
                failure.hint(format!("type more of one of {list}"))
            }
            StoreError::NoSuchRun { .. } | StoreError::NotAKey { .. } => {
                failure.hint("`ledger list` shows the keys")
            }
            StoreError::Busy { .. } => {
                failure.exit(Exit::Environment).hint("nothing was stored; try again")
            }
            StoreError::Damaged { .. } => {
                failure.exit(Exit::No).hint("`ledger verify` names everything that is damaged")
            }
            StoreError::Entry { .. } => failure.exit(Exit::No),
            StoreError::Io { .. } | StoreError::Database { .. } => failure
                .exit(Exit::Environment)
                .hint("nothing was stored; see to the disk or the permissions and try again"),
            StoreError::NotALedger { .. }
            | StoreError::Newer { .. }
            | StoreError::NoBlob { .. }
            | StoreError::Canonical(_) => failure,
        }
    }
}

const fn store_code(error: &StoreError) -> &'static str {
    match error {
        StoreError::NotFound { .. } => "no-ledger",
        StoreError::NotALedger { .. } => "not-a-ledger",
        StoreError::Newer { .. } => "ledger-newer",
        StoreError::Busy { .. } => "busy",
        StoreError::Io { .. } => "io",
        StoreError::Database { .. } => "database",
        StoreError::Damaged { .. } => "object-damaged",
        StoreError::NoBlob { .. } => "no-object",
        StoreError::Entry { .. } => "entry-unreadable",
        StoreError::Canonical(_) => "not-canonical",
        StoreError::NoSuchRun { .. } => "no-such-run",
        StoreError::Ambiguous { .. } => "prefix-ambiguous",
        StoreError::NotAKey { .. } => "not-a-key",
    }
}

impl From<ProbeError> for Failure {
    fn from(error: ProbeError) -> Self {
        let failure =
            Self::input("not-captured", format!("nothing was captured: {error}")).caused_by(&error);
        let exit = match &error {
            ProbeError::Proxy { .. }
            | ProbeError::NoWeights { .. }
            | ProbeError::BlobAltered { .. }
            | ProbeError::Gone { .. } => Exit::Unverified,
            ProbeError::HiddenListener { .. } | ProbeError::Denied { .. } => Exit::Environment,
            ProbeError::NoListener { .. }
            | ProbeError::NoProcess { .. }
            | ProbeError::Weights { .. } => Exit::Input,
        };
        failure.exit(exit)
    }
}

impl From<RecordError> for Failure {
    fn from(error: RecordError) -> Self {
        match error {
            RecordError::Refused(refusal) => refused(&[refusal], false),
            RecordError::Store(error) => error.into(),
            RecordError::Io { ref path, ref source } => {
                let is_input = source.kind() == std::io::ErrorKind::NotFound;
                let exit = if is_input { Exit::Input } else { Exit::Environment };
                let message = format!("run was not recorded: cannot read `{}`", path.display());
                Self::input("io", message).caused_by(&error).exit(exit)
            }
        }
    }
}

impl From<ImportError> for Failure {
    fn from(error: ImportError) -> Self {
        match error {
            ImportError::Store(error) => error.into(),
            ImportError::Refused(ref findings) => {
                let code = findings.first().map_or("refused", |finding| finding.code.as_str());
                let failure = Self::input(code, error.to_string()).hint("nothing was stored");
                Self { findings: findings.clone(), ..failure }
            }
            ImportError::Io { ref path, ref source } => {
                let is_input = source.kind() == std::io::ErrorKind::NotFound;
                let exit = if is_input { Exit::Input } else { Exit::Environment };
                let message = format!("nothing was imported: cannot read `{}`", path.display());
                Self::input("io", message).caused_by(&error).exit(exit)
            }
        }
    }
}

impl From<AmendError> for Failure {
    fn from(error: AmendError) -> Self {
        match error {
            AmendError::Store(error) => error.into(),
            AmendError::NoName
            | AmendError::NoReason
            | AmendError::AlreadyRetracted { .. }
            | AmendError::NothingToCorrect { .. }
            | AmendError::NotADigest { .. } => Self::input("not-appended", error.to_string()),
        }
    }
}

impl From<RestoreError> for Failure {
    fn from(error: RestoreError) -> Self {
        match error {
            RestoreError::Store(error) => error.into(),
            RestoreError::Exists { .. } => {
                Self::input("exists", format!("nothing was overwritten: {error}"))
                    .hint("name an empty folder")
            }
            RestoreError::Escapes { .. } | RestoreError::Manifest { .. } => {
                Self::input("manifest", error.to_string()).exit(Exit::No)
            }
        }
    }
}

/// Reports refused runs; of a batch each finding says which folder it is about.
pub(crate) fn refused(refusals: &[Refusal], is_batch: bool) -> Failure {
    let all: Vec<Finding> = refusals
        .iter()
        .flat_map(|refusal| {
            refusal.findings.iter().map(|finding| {
                let mut finding = finding.clone();
                if is_batch {
                    let source = refusal
                        .source
                        .file_name()
                        .map_or_else(String::new, |name| name.to_string_lossy().into_owned());
                    finding.subject = format!("{source}: {}", finding.subject);
                }
                finding
            })
        })
        .collect();
    let is_unverified = refusals.iter().any(|refusal| refusal.class == RefusalClass::Unverified);
    let first = refusals.first().and_then(|refusal| refusal.findings.first());
    let code = match first {
        _ if is_unverified => "unverified",
        Some(finding) => finding.code.as_str(),
        None => "refused",
    };
    let what = if is_batch {
        format!("no run was recorded, because {} of them are refused", refusals.len())
    } else {
        "run was not recorded".to_owned()
    };
    let why = match (is_unverified, all.len()) {
        (true, _) => "nothing proves which weights were loaded".to_owned(),
        (false, 1) => "1 thing stands against it".to_owned(),
        (false, count) => format!("{count} things stand against it"),
    };
    let hint = if is_unverified {
        "capture provenance while the server runs and give it with `--provenance`; nothing was stored"
    } else {
        "nothing was stored"
    };
    let exit = if is_unverified { Exit::Unverified } else { Exit::Input };
    Failure { findings: all, ..Failure::input(code, format!("{what}: {why}")) }
        .exit(exit)
        .hint(hint)
}
