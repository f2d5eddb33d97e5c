//! `--deep`: every metric is extracted again from the artifacts and compared with the recorded one.

use super::{VerifyReport, damage};
use crate::adapter::{Formats, SourceFile};
use crate::canonical;
use crate::cell::Cell;
use crate::decode::decode;
use crate::entry::{Body, PriorBody, ResultFile, RunBody, StoredCell};
use crate::finding::{Code, Finding, Severity};
use crate::id::BlobId;
use crate::import::read_again;
use crate::store::{Store, StoreError};
use crate::summary::summarize;
use crate::validity;

/// Extracts every run again.
pub(super) fn check(
    store: &Store,
    formats: &Formats,
    report: &mut VerifyReport,
) -> Result<(), StoreError> {
    let mut findings = Vec::new();
    let mut extracted = 0;
    store.for_each_entry(|entry| {
        match Body::parse(&entry.body) {
            Ok(Body::Run(run)) => match extract_again(store, &run, formats) {
                Ok(cells) => findings.extend(compare(&run, &cells)),
                Err(finding) => findings.push(*finding),
            },
            Ok(Body::Prior(prior)) => findings.extend(check_prior(store, &prior, formats)),
            _ => return Ok(()),
        }
        extracted += 1;
        Ok(())
    })?;
    report.extracted = extracted;
    report.findings.extend(findings);
    Ok(())
}

fn check_prior(store: &Store, prior: &PriorBody, formats: &Formats) -> Option<Finding> {
    let subject = format!("prior {}", prior.key);
    match read_again(store, prior, formats) {
        // As they are stored: canonical JSON writes 1.0 as 1.
        Ok(rows) if canonical::to_bytes(&rows).ok() == canonical::to_bytes(&prior.rows).ok() => {
            None
        }
        Ok(_) => {
            let message = "what is extracted again is not what was imported";
            Some(damage(Code::MetricDiffers, subject, message))
        }
        Err(problem) => Some(Finding::new(Code::AdapterGone, Severity::Note, subject, problem)),
    }
}

/// Extracts and judges the cells of a recorded run from its artifacts.
///
/// # Errors
/// A finding: a blob that cannot be read, or an adapter of another version.
pub fn extract_again(
    store: &Store,
    run: &RunBody,
    formats: &Formats,
) -> Result<Vec<StoredCell>, Box<Finding>> {
    Ok(extract_cells(store, run, formats)?.iter().map(summarize).collect())
}

/// Extracts the cells of a recorded run with their samples.
///
/// # Errors
/// As [`extract_again`].
pub fn extract_cells(
    store: &Store,
    run: &RunBody,
    formats: &Formats,
) -> Result<Vec<Cell>, Box<Finding>> {
    let mut cells = Vec::new();
    for result in &run.results {
        cells.extend(extract_file(store, run, result, formats)?);
    }
    let context = run.fingerprint.pointer("/context/tokens").and_then(serde_json::Value::as_u64);
    validity::judge(&mut cells, context);
    Ok(cells)
}

fn extract_file(
    store: &Store,
    run: &RunBody,
    result: &ResultFile,
    formats: &Formats,
) -> Result<Vec<Cell>, Box<Finding>> {
    let subject = format!("run {}", run.key);
    let problem = |code, message: String| Box::new(damage(code, &subject, message));
    let adapter =
        formats.find_adapter(&result.adapter).filter(|adapter| adapter.version() == result.version);
    let Some(adapter) = adapter else {
        let message =
            format!("adapter {} version {} is not in this program", result.adapter, result.version);
        return Err(Box::new(Finding::new(Code::AdapterGone, Severity::Note, subject, message)));
    };
    let id: BlobId = result.blob.parse().map_err(|_bad| {
        problem(Code::IdentityWrong, format!("result file `{}` has no id", result.path))
    })?;
    let bytes =
        store.read_blob(&id).map_err(|error| problem(Code::BlobAltered, error.to_string()))?;
    let decoded =
        decode(&bytes).map_err(|error| problem(Code::MetricDiffers, error.to_string()))?;
    let file = SourceFile::new(&result.path, &decoded.text);
    let extraction = adapter
        .extract(&file)
        .map_err(|error| problem(Code::MetricDiffers, format!("`{}`: {error}", result.path)))?;
    Ok(extraction.runs.into_iter().next().map(|run| run.cells).unwrap_or_default())
}

fn compare(run: &RunBody, cells: &[StoredCell]) -> Vec<Finding> {
    let subject = format!("run {}", run.key);
    if run.cells == cells {
        return Vec::new();
    }
    let mut findings = Vec::new();
    for recorded in &run.cells {
        let Some(again) = cells.iter().find(|cell| cell.id == recorded.id) else {
            findings.push(damage(
                Code::MetricDiffers,
                &subject,
                format!("cell `{}` is not in the artifacts", recorded.id),
            ));
            continue;
        };
        for metric in recorded.metrics.iter().filter(|metric| !again.metrics.contains(metric)) {
            let message = format!(
                "`{}@{}` extracted again is not the recorded one",
                metric.name, recorded.id
            );
            findings.push(damage(Code::MetricDiffers, &subject, message));
        }
    }
    if findings.is_empty() {
        findings.push(damage(
            Code::MetricDiffers,
            subject,
            "what is extracted again is not what was recorded",
        ));
    }
    findings
}
