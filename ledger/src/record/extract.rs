//! Second step of a plan: which files are results, and what they say. Every format that knows a file
//! is heard; two that know the same file are refused, none is refused, and a file with several runs
//! is refused until one is chosen.

use super::files::Gathered;
use super::{PlannedBlob, RecordRequest};
use crate::adapter::{Adapter, ExtractedRun, Formats, Observation, SourceFile};
use crate::decode::{DecodeError, Decoded, Encoding, decode};
use crate::entry::ResultFile;
use crate::finding::{Code, Finding};
use crate::id::BlobId;
use crate::tree::Artifact;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// What the artifacts say.
#[derive(Debug, Default)]
pub(super) struct Extracted {
    /// The run, merged from the cells of every result file.
    pub(super) run: ExtractedRun,
    /// Which files were read by which adapter.
    pub(super) results: Vec<ResultFile>,
    /// What companions learned.
    pub(super) observations: Vec<Observation>,
    /// Cautions about files.
    pub(super) cautions: Vec<Finding>,
    /// The bytes of a record chosen from a file with several runs, to be kept as an artifact.
    pub(super) slice: Option<(Vec<u8>, Vec<u8>)>,
}

struct Text<'a> {
    artifact: &'a Artifact,
    name: String,
    content: Cow<'a, str>,
    encoding: Encoding,
    bytes: &'a [u8],
}

struct Looked<'a> {
    text: &'a Text<'a>,
    source: SourceFile<'a>,
}

fn look<'a>(text: &'a Text<'a>) -> Looked<'a> {
    Looked { text, source: SourceFile::new(&text.name, &text.content) }
}

/// Detects and extracts.
pub(super) fn extract(
    request: &RecordRequest,
    gathered: &Gathered,
    formats: &Formats,
) -> Result<Extracted, Vec<Finding>> {
    let (texts, undecoded) = decode_all(gathered);
    check_names(request, &texts, formats)?;
    let looked: Vec<Looked<'_>> = texts.iter().map(look).collect();
    let mut matches: Vec<(&Looked<'_>, &'static dyn Adapter)> = Vec::new();
    let mut findings = Vec::new();
    for file in looked.iter().filter(|file| is_wanted(request, file.text)) {
        match find_adapter(request, file, formats) {
            Ok(Some(adapter)) => matches.push((file, adapter)),
            Ok(None) => {}
            Err(finding) => findings.push(finding),
        }
    }
    let mut extracted = Extracted::default();
    for (file, adapter) in &matches {
        match take(request, file, *adapter, &mut extracted) {
            Ok(()) => {}
            Err(found) => findings.extend(found),
        }
    }
    if matches.is_empty() && findings.is_empty() && request.failed.is_none() {
        findings.extend(no_result(&texts, undecoded, formats));
    }
    findings.extend(observe(&looked, &matches, formats, &mut extracted));
    if findings.is_empty() { Ok(extracted) } else { Err(findings) }
}

/// Counts the runs of the result file that holds several, or of all of them together.
pub(super) fn count_runs(
    request: &RecordRequest,
    gathered: &Gathered,
    formats: &Formats,
) -> Result<usize, Vec<Finding>> {
    let (texts, undecoded) = decode_all(gathered);
    check_names(request, &texts, formats)?;
    let mut counts = Vec::new();
    for file in texts.iter().map(look).filter(|file| is_wanted(request, file.text)) {
        let Some(adapter) =
            find_adapter(request, &file, formats).map_err(|finding| vec![finding])?
        else {
            continue;
        };
        let read = adapter.extract(&file.source).map_err(|error| {
            vec![Finding::refusal(Code::MalformedResult, &file.text.name, error.to_string())]
        })?;
        counts.push(read.runs.len());
    }
    match counts.as_slice() {
        [count] => Ok(*count),
        [] => Err(no_result(&texts, undecoded, formats)),
        several => {
            let message =
                format!("{} result files; name the one to split with `--result`", several.len());
            Err(vec![Finding::refusal(Code::RunsAmbiguous, "", message)])
        }
    }
}

type Undecoded = Vec<(String, DecodeError)>;

fn decode_all(gathered: &Gathered) -> (Vec<Text<'_>>, Undecoded) {
    let mut texts = Vec::new();
    let mut undecoded = Vec::new();
    for (artifact, blob) in gathered.artifacts.iter().zip(&gathered.blobs) {
        let PlannedBlob::Bytes(_, bytes) = blob else { continue };
        match decode(bytes) {
            Ok(Decoded { text, encoding }) => {
                let name = artifact.printable_path();
                texts.push(Text { artifact, name, content: text, encoding, bytes });
            }
            Err(error) => undecoded.push((artifact.printable_path(), error)),
        }
    }
    (texts, undecoded)
}

fn check_names(
    request: &RecordRequest,
    texts: &[Text<'_>],
    formats: &Formats,
) -> Result<(), Vec<Finding>> {
    let mut findings = Vec::new();
    for wanted in &request.results {
        if !texts.iter().any(|text| text.name == *wanted) {
            let message = format!("no text file of the folder is called `{wanted}`");
            findings.push(Finding::refusal(Code::NoResult, wanted, message));
        }
    }
    if let Some(id) = &request.adapter
        && formats.find_adapter(id).is_none()
    {
        let known = formats.adapters.iter().map(|adapter| adapter.id());
        let meant = crate::text::nearest(id, known.clone())
            .map_or_else(String::new, |near| format!(", did you mean `{near}`"));
        let list = known.collect::<Vec<_>>().join(", ");
        let message = format!("no adapter is called `{id}`{meant}; known: {list}");
        findings.push(Finding::refusal(Code::UnknownKey, "adapter", message));
    }
    if findings.is_empty() { Ok(()) } else { Err(findings) }
}

fn is_wanted(request: &RecordRequest, text: &Text<'_>) -> bool {
    request.results.is_empty() || request.results.contains(&text.name)
}

fn find_adapter(
    request: &RecordRequest,
    file: &Looked<'_>,
    formats: &Formats,
) -> Result<Option<&'static dyn Adapter>, Finding> {
    let Looked { text, source } = file;
    let named = request.adapter.as_deref().and_then(|id| formats.find_adapter(id));
    if let Some(adapter) = named {
        let is_asked = !request.results.is_empty() || adapter.detect(source).is_some();
        return Ok(is_asked.then_some(adapter));
    }
    let known: Vec<(&'static dyn Adapter, String)> = formats
        .adapters
        .iter()
        .filter_map(|adapter| Some((*adapter, adapter.detect(source)?)))
        .collect();
    match known.as_slice() {
        [] => Ok(None),
        [(adapter, _)] => Ok(Some(*adapter)),
        several => {
            let message = format!(
                "`{}` reads as {} formats; name one with `--adapter`",
                text.name,
                several.len()
            );
            let finding = Finding::refusal(Code::FormatAmbiguous, &text.name, message);
            Err(several
                .iter()
                .fold(finding, |finding, (adapter, why)| finding.with(adapter.id(), why)))
        }
    }
}

fn no_result(texts: &[Text<'_>], undecoded: Undecoded, formats: &Formats) -> Vec<Finding> {
    let mut findings: Vec<Finding> = undecoded
        .into_iter()
        .map(|(name, error)| {
            let is_cut = matches!(error, DecodeError::Cut { .. });
            let code = if is_cut { Code::TruncatedText } else { Code::BadEncoding };
            Finding::refusal(code, name, error.to_string())
        })
        .collect();
    findings.extend(texts.iter().filter(|text| text.content.trim().is_empty()).map(|text| {
        let message = "file is empty; a harness that exits 0 and writes nothing measured nothing";
        Finding::refusal(Code::EmptyArtifact, &text.name, message)
    }));
    let known = formats.adapters.iter().map(|adapter| adapter.id()).collect::<Vec<_>>().join(", ");
    let message = format!(
        "none of {} text files is a result of a known format; name its adapter with `--adapter` ({known}), or record a failed attempt with `--failed`",
        texts.len()
    );
    findings.push(Finding::refusal(Code::NoResult, "", message));
    findings
}

/// Extracts one file and merges its cells.
fn take(
    request: &RecordRequest,
    file: &Looked<'_>,
    adapter: &'static dyn Adapter,
    extracted: &mut Extracted,
) -> Result<(), Vec<Finding>> {
    let Looked { text, source } = file;
    let read = adapter.extract(source).map_err(|error| {
        let message = format!("`{}` is {} and cannot be read: {error}", text.name, adapter.title());
        vec![Finding::refusal(Code::MalformedResult, &text.name, message)]
    })?;
    let mut runs = read.runs;
    let chosen = match (request.pick, runs.len()) {
        (_, 0) => {
            return Err(vec![Finding::refusal(
                Code::MalformedResult,
                &text.name,
                "file holds no run",
            )]);
        }
        (None, 1) => 0,
        (None, _) => return Err(vec![ambiguous(text, &runs, &read.cautions)]),
        (Some(pick), count) if pick == 0 || pick > count => {
            let message = format!("`--pick {pick}` of a file with {count} runs");
            return Err(vec![Finding::refusal(Code::RunsAmbiguous, &text.name, message)]);
        }
        (Some(pick), count) => {
            if count > 1 {
                extracted.slice = slice(text, runs.get(pick - 1), pick);
            }
            pick - 1
        }
    };
    let mut run = runs.swap_remove(chosen);
    for fact in &mut run.facts {
        fact.place = format!("{}: {}", text.name, fact.place);
    }
    let (path, blob) = match &extracted.slice {
        Some((path, bytes)) => (crate::text::escape_path(path), BlobId::of(bytes)),
        None => (text.name.clone(), text.artifact.blob),
    };
    extracted.results.push(ResultFile {
        path,
        blob: blob.to_string(),
        adapter: adapter.id().to_owned(),
        version: adapter.version(),
        encoding: text.encoding.as_str().to_owned(),
    });
    extracted.cautions.extend(read.cautions.into_iter().map(|caution| named(caution, &text.name)));
    if text.encoding != Encoding::Utf8 {
        let message = format!("`{}` was read as {}", text.name, text.encoding.as_str());
        extracted.cautions.push(Finding::new(
            Code::EncodingConverted,
            crate::finding::Severity::Note,
            &text.name,
            message,
        ));
    }
    merge(&mut extracted.run, run, &text.name)
}

fn named(mut caution: Finding, file: &str) -> Finding {
    if caution.values.is_empty() {
        caution = caution.with("", file);
    }
    caution
}

fn ambiguous(text: &Text<'_>, runs: &[ExtractedRun], cautions: &[Finding]) -> Finding {
    let message = format!(
        "`{}` holds {} runs; choose one with `--pick N`, or record all with `--split`",
        text.name,
        runs.len()
    );
    let finding = Finding::refusal(Code::RunsAmbiguous, &text.name, message);
    let finding = runs.iter().enumerate().fold(finding, |finding, (index, run)| {
        finding.with(run.locus.clone(), format!("--pick {}", index + 1))
    });
    cautions.iter().fold(finding, |finding, caution| {
        finding.with(caution.message.clone(), caution.code.as_str())
    })
}

/// Cuts the chosen record out of a UTF-8 file, to be the artifact that is the evidence.
fn slice(text: &Text<'_>, run: Option<&ExtractedRun>, pick: usize) -> Option<(Vec<u8>, Vec<u8>)> {
    let (start, end) = run?.span?;
    let mark = text.encoding.mark_bytes();
    let bytes = match text.encoding {
        Encoding::Utf8 | Encoding::Utf8Marked => text.bytes.get(mark + start..mark + end)?.to_vec(),
        Encoding::Utf16Little | Encoding::Utf16Big => {
            text.content.get(start..end)?.as_bytes().to_vec()
        }
    };
    let mut path = text.artifact.path.clone();
    path.extend_from_slice(format!(".record-{pick}").as_bytes());
    Some((path, bytes))
}

fn merge(into: &mut ExtractedRun, run: ExtractedRun, file: &str) -> Result<(), Vec<Finding>> {
    let known: Vec<String> = into.cells.iter().map(crate::cell::Cell::id).collect();
    let twice: Vec<Finding> = run
        .cells
        .iter()
        .map(crate::cell::Cell::id)
        .filter(|id| known.contains(id))
        .map(|id| {
            let message = format!(
                "cell `{id}` stands in two result files; name the ones to read with `--result`"
            );
            Finding::refusal(Code::RunsAmbiguous, file, message)
        })
        .collect();
    if !twice.is_empty() {
        return Err(twice);
    }
    into.cells.extend(run.cells);
    into.facts.extend(run.facts);
    into.checks.extend(run.checks);
    into.observed.extend(run.observed);
    into.cautions.extend(run.cautions);
    into.measured_at = match (into.measured_at.take(), run.measured_at) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    };
    Ok(())
}

fn observe(
    looked: &[Looked<'_>],
    matches: &[(&Looked<'_>, &'static dyn Adapter)],
    formats: &Formats,
    extracted: &mut Extracted,
) -> Vec<Finding> {
    let is_result =
        |file: &Looked<'_>| matches.iter().any(|(result, _)| result.text.name == file.text.name);
    let mut by_companion: BTreeMap<usize, Vec<SourceFile<'_>>> = BTreeMap::new();
    for file in looked.iter().filter(|file| !is_result(file)) {
        for (index, companion) in formats.companions.iter().enumerate() {
            if companion.detect(&file.source).is_some() {
                by_companion.entry(index).or_default().push(file.source.clone());
            }
        }
    }
    let mut findings = Vec::new();
    for (index, files) in by_companion {
        let Some(companion) = formats.companions.get(index) else { continue };
        match companion.observe(&files) {
            Ok(observation) => extracted.observations.push(observation),
            Err(error) => {
                let names = files.iter().map(|file| file.name).collect::<Vec<_>>().join(", ");
                let message =
                    format!("`{names}` is {} and cannot be read: {error}", companion.title());
                findings.push(Finding::refusal(Code::MalformedResult, names, message));
            }
        }
    }
    findings
}
