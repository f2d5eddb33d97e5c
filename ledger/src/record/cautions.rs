//! What is said beside the numbers of a run because two of its sources, or a source and a rule, do not
//! go together, although nothing forbids recording it.

use super::assemble::Settled;
use super::extract::Extracted;
use crate::adapter::FactKind;
use crate::entry::Circumstances;
use crate::finding::{Code, Finding, Severity};
use crate::statement::{Assembled, show};

/// Lists every caution that follows from the sources together.
pub(super) fn cautions(extracted: &Extracted, settled: &Settled) -> Vec<Finding> {
    let Settled { manifest, assembled, measured, .. } = settled;
    let mut findings: Vec<Finding> = extracted.cautions.clone();
    findings.extend(extracted.run.cautions.clone());
    findings
        .extend(extracted.observations.iter().flat_map(|observation| observation.cautions.clone()));
    findings.extend(measured.caution.clone());
    findings.extend(requested_not_observed(extracted, assembled));
    findings.extend(label_differs(extracted, assembled));
    findings.extend(assembled.fingerprint.unknown_fields().into_iter().map(|path| {
        let message = format!("`{path}` is unknown; the run will not be comparable with any other");
        Finding::new(Code::UnknownField, Severity::Caution, path, message)
    }));
    findings.extend(capacity_differs(&manifest.circumstances));
    findings.extend(prompt_truncated(extracted));
    findings
}

/// An engine that evaluates fewer prompt tokens than were sent has cut the prompt, whatever it
/// answered: no quality can be read off such an answer.
fn prompt_truncated(extracted: &Extracted) -> Option<Finding> {
    let observations = extracted.observations.iter().map(|observation| &observation.observed);
    let find = |key: &str| {
        observations
            .clone()
            .chain([&extracted.run.observed])
            .find_map(|facts| facts.get(key)?.as_u64())
    };
    let (sent, evaluated) = (find("prompt_tokens_sent")?, find("prompt_tokens_evaluated")?);
    (evaluated < sent).then(|| {
        let message = format!("{sent} prompt tokens were sent, the engine evaluated {evaluated}");
        Finding::new(Code::PromptTruncated, Severity::Untrustworthy, "", message)
    })
}

fn requested_not_observed(extracted: &Extracted, assembled: &Assembled) -> Vec<Finding> {
    let facts = extracted.observations.iter().flat_map(|observation| &observation.facts);
    facts
        .chain(&extracted.run.facts)
        .filter(|fact| fact.kind == FactKind::Requested)
        .filter_map(|fact| {
            let effective = assembled.fingerprint.find(&fact.field)?;
            if crate::fingerprint::is_equal(effective, &fact.value) {
                return None;
            }
            let message = format!(
                "`{}` was asked for as {} and observed as {}",
                fact.field,
                show(&fact.value),
                show(effective)
            );
            let at = assembled.sources.get(&fact.field).map_or("", |source| source.at.as_str());
            Some(
                Finding::caution(Code::DeclaredNotObserved, &fact.field, message)
                    .with(show(&fact.value), &fact.place)
                    .with(show(effective), at),
            )
        })
        .collect()
}

fn label_differs(extracted: &Extracted, assembled: &Assembled) -> Option<Finding> {
    let model = assembled.fingerprint.find_text("model.id")?;
    let label = extracted.run.facts.iter().find(|fact| {
        fact.kind == FactKind::Label && fact.field == "model.id" && fact.value != model
    })?;
    let message = format!(
        "the client asked for `{}`, the weights are {model}; the name is a label",
        show(&label.value)
    );
    Some(
        Finding::new(Code::LabelDiffers, Severity::Note, "model.id", message)
            .with(show(&label.value), &label.place),
    )
}

fn capacity_differs(circumstances: &Circumstances) -> Option<Finding> {
    let floor = circumstances.reserve_floor_bytes?;
    let left = circumstances.headroom_bytes?;
    (left < floor).then(|| {
        let message = format!("{left} bytes were left after the workload, {floor} must stay free");
        Finding::caution(Code::CheckFailed, "headroom", message)
    })
}
