//! llama.cpp `llama-bench`: JSON, JSONL, CSV, SQL and Markdown of one tool, read into the same rows.
//!
//! Versions seen: b1275 (2023) to b11434, and the `ik_llama.cpp` fork. Writer upstream:
//! `tools/llama-bench/llama-bench.cpp`, `struct test::get_fields` and the printers beside it.
//! Sample command: `llama-bench -m model.gguf -p 512 -n 128 -r 5 -o json`.
//! Columns come and go between builds, so everything is read by name; rates are tokens per second,
//! times are nanoseconds, sizes are bytes, one stream, random tokens, no server. The file names no
//! context size, no revision and no power cap: it proves no weights.

mod cell;
mod csv;
mod json;
mod markdown;
mod row;
mod run;
mod sql;

use crate::read::documents::documents;
use ledger::adapter::{Adapter, ExtractError, ExtractedRun, Extraction, SourceFile, Trap};
use ledger::finding::{Code, Finding, Severity};
use row::{REQUIRED, Reading, is_row_object};

/// The adapter of `llama-bench`.
#[derive(Debug, Clone, Copy)]
pub struct LlamaBench;

/// Texts below this many bytes are searched for a table even where JSON stands in them.
const SMALL_TEXT: usize = 1 << 20;

/// In which of the tool's output forms a text is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Json,
    Csv,
    Sql,
    Markdown,
    /// The backend's start-up lines and nothing else: the model failed to load.
    BannerOnly,
}

impl Form {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Json => "JSON",
            Self::Csv => "CSV",
            Self::Sql => "SQL",
            Self::Markdown => "Markdown",
            Self::BannerOnly => "banner",
        }
    }
}

const TRAPS: &[Trap] = &[
    Trap {
        what: "avg_ts is the mean of per-repetition rates, not tokens / avg_ns",
        guard: "the rates of the repetitions are kept; avg_ns is never divided",
    },
    Trap {
        what: "with one repetition the standard deviation is printed as 0",
        guard: "it is left out and the cell says that the spread is unknown",
    },
    Trap {
        what: "a pp+tg row mixes two phases into one rate",
        guard: "it is stored as combined_tok_s, never as prefill or decode",
    },
    Trap {
        what: "rows differ only in n_ubatch, type_k, n_cpu_moe or another setting",
        guard: "every setting that differs between the rows is a coordinate of the cell",
    },
    Trap {
        what: "build_commit is `unknown` or a wrapper's constant, build_number 0 or 1",
        guard: "no version is stated and the run says so; a word is never taken for a commit",
    },
    Trap {
        what: "columns move between builds and flags change from bool to int",
        guard: "columns are read by name, flags in every spelling",
    },
    Trap {
        what: "log lines before, between and after the records, one crash line at the end",
        guard: "they are skipped, counted, located; a crash is named",
    },
    Trap {
        what: "the array is never closed when a later model fails to load",
        guard: "complete rows are kept and the file says that it is cut",
    },
    Trap {
        what: "`>>` used twice: `][`, or a CSV header in the middle",
        guard: "each is a run of its own, never merged",
    },
    Trap {
        what: "a header without rows, or the backend's banner alone",
        guard: "a failed run without cells, not an empty success",
    },
    Trap { what: "stddev_ts is printed as nan or -nan", guard: "read as missing, and said" },
    Trap {
        what: "SQL does not escape quotes in a path",
        guard: "values are split at `', '`; another number of values is refused",
    },
    Trap {
        what: "JSON writes each non-ASCII byte of a path as U+FFFF and `f`",
        guard: "the file name is `unknown`, and said",
    },
    Trap {
        what: "the plus-minus sign of Markdown arrives as mojibake from a Windows console",
        guard: "the two spellings that occur are read, any other is refused",
    },
    Trap {
        what: "n_gpu_layers is 99 and gpu_info empty on a machine without an accelerator",
        guard: "no accelerator is named; the CPU and the backend are kept",
    },
];

impl Adapter for LlamaBench {
    fn id(&self) -> &'static str {
        "llama-bench"
    }

    fn version(&self) -> u32 {
        1
    }

    fn title(&self) -> &'static str {
        "llama.cpp llama-bench (JSON, JSONL, CSV, SQL, Markdown)"
    }

    fn traps(&self) -> &'static [Trap] {
        TRAPS
    }

    fn detect(&self, file: &SourceFile<'_>) -> Option<String> {
        let reason = match detect_form(file)? {
            Form::Json => "records with `build_commit`, `n_prompt`, `n_gen` and `avg_ts`",
            Form::Csv => "a CSV header with `build_commit` and `avg_ts`",
            Form::Sql => "a table with a `build_commit` column and INSERT lines",
            Form::Markdown => "a table with the columns model, size, params, backend, test, t/s",
            Form::BannerOnly => "the start-up lines of a llama.cpp backend and nothing else",
        };
        Some(reason.to_owned())
    }

    fn extract(&self, file: &SourceFile<'_>) -> Result<Extraction, ExtractError> {
        let form = choose_form(&find_forms(file.text))?;
        let reading = match form {
            Form::Json => json::read(file.text)?,
            Form::Csv => csv::read(file.text)?,
            Form::Sql => sql::read(file.text)?,
            Form::Markdown => markdown::read(file.text)?,
            Form::BannerOnly => Reading::default(),
        };
        build_extraction(reading, form)
    }
}

fn detect_form(file: &SourceFile<'_>) -> Option<Form> {
    if file.outline.has_all(&REQUIRED) || file.outline.has("bench_raw") {
        return Some(Form::Json);
    }
    // Megabytes of another tool's JSON are not searched for a table.
    let is_searched = !file.outline.is_json || file.text.len() < SMALL_TEXT;
    if is_searched { find_forms(file.text).first().copied() } else { None }
}

/// Names the forms the text is written in. Markdown beside another form is what `-o json -oe md
/// 2>&1` produces, so it comes last.
fn find_forms(text: &str) -> Vec<Form> {
    let forms = [
        (Form::Json, holds_json(text)),
        (Form::Csv, text.lines().any(csv::is_header)),
        (Form::Sql, sql::find_table(text).is_some()),
        (Form::Markdown, markdown::holds_table(text)),
    ];
    let found: Vec<Form> =
        forms.into_iter().filter(|(_, holds)| *holds).map(|(form, _)| form).collect();
    if found.is_empty() && is_banner(text) {
        return vec![Form::BannerOnly];
    }
    found
}

fn holds_json(text: &str) -> bool {
    // A look at the bytes first: other adapters' files are large, and splitting them is not free.
    text.contains("\"avg_ts\"") && documents(text).records().any(|record| is_row_object(&record))
}

/// True when every line is one a backend prints while it starts.
fn is_banner(text: &str) -> bool {
    const STARTS: [&str; 5] = ["ggml_", "Device ", "load_backend:", "main: error", "error:"];
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty()).peekable();
    lines.peek().is_some_and(|first| first.starts_with("ggml_"))
        && lines.all(|line| STARTS.iter().any(|start| line.starts_with(start)))
}

/// Picks the form that holds the full rows. A page that shows several full forms is documentation,
/// not one result.
fn choose_form(forms: &[Form]) -> Result<Form, ExtractError> {
    let refused = |problem: String| ExtractError::Field { field: "format".to_owned(), problem };
    let mut full = forms.iter().copied().filter(|form| *form != Form::Markdown);
    match (full.next(), full.next()) {
        (None, _) if forms.is_empty() => Err(refused("no output of llama-bench".to_owned())),
        (None, _) => Ok(Form::Markdown),
        (Some(form), None) => Ok(form),
        (Some(_), Some(_)) => {
            let names: Vec<&str> = forms.iter().map(|form| form.as_str()).collect();
            let names = names.join(" and ");
            Err(refused(format!("rows stand here as {names}: a page about results, no result")))
        }
    }
}

fn build_extraction(reading: Reading, form: Form) -> Result<Extraction, ExtractError> {
    let mut runs = Vec::new();
    for sheet in reading.sheets {
        runs.extend(run::build_runs(sheet, &reading.accelerators)?);
    }
    if runs.is_empty() {
        runs.push(failed_run(form));
    }
    if let [only] = runs.as_mut_slice() {
        only.locus.clear();
        only.span = None;
    }
    Ok(Extraction { runs, cautions: reading.cautions })
}

/// The tool has no status field: no row is how a model that did not load looks.
fn failed_run(form: Form) -> ExtractedRun {
    let what = if form == Form::BannerOnly { "banner" } else { "header" };
    let message = format!("{what} without rows: the model failed to load");
    let failed = Finding::new(Code::NoRequestCompleted, Severity::Untrustworthy, "", message);
    ExtractedRun { cautions: vec![failed], ..ExtractedRun::default() }
}
