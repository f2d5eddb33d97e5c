//! The commit of plans: in one transaction, after the checks that need the whole ledger (is it
//! already recorded, is its result file already the evidence of another run). All plans are
//! appended, or none.

use super::{Plan, Planned, PlannedBlob, Refusal};
use crate::entry::Body;
use crate::finding::{Code, Finding, Severity};
use crate::id::{BlobId, RunKey, from_hex};
use crate::store::{
    Append, BlobStored, PreparedBlob, RunRow, Store, StoreError, measurement_digest, prepare_bytes,
};
use rayon::prelude::*;
use std::collections::HashSet;

/// What became of one plan.
#[derive(Debug, Clone, PartialEq)]
pub enum Recorded {
    /// It is a new run.
    New {
        /// Its key.
        key: RunKey,
        /// Its cautions.
        findings: Vec<Finding>,
    },
    /// It was recorded before.
    Already {
        /// Its key.
        key: RunKey,
        /// Objects of it that were damaged and are whole again.
        repaired: usize,
    },
}

impl Recorded {
    /// Returns the key.
    pub const fn key(&self) -> RunKey {
        match self {
            Self::New { key, .. } | Self::Already { key, .. } => *key,
        }
    }
}

/// Appends plans in one transaction. Returns the outcomes in order, or every refusal, in which case
/// nothing was stored.
///
/// # Errors
/// What the store says.
pub fn commit(
    store: &mut Store,
    plans: Vec<Planned>,
) -> Result<Result<Vec<Recorded>, Vec<Refusal>>, StoreError> {
    let prepared = prepare(store, plans, &mut HashSet::new())?;
    let mut batch = Batch::begin(store)?;
    batch.add(prepared)?;
    batch.finish()
}

/// A plan (or the key of a known run) with its new blobs compressed.
pub(super) type Prepared = (Result<Box<Plan>, RunKey>, Vec<PreparedBlob>);

/// Runs that become visible together.
pub(super) struct Batch<'store> {
    append: Append<'store>,
    outcomes: Vec<Recorded>,
    refusals: Vec<Refusal>,
}

impl<'store> Batch<'store> {
    pub(super) fn begin(store: &'store mut Store) -> Result<Self, StoreError> {
        Ok(Self { append: store.begin()?, outcomes: Vec::new(), refusals: Vec::new() })
    }

    pub(super) fn add(&mut self, prepared: Vec<Prepared>) -> Result<(), StoreError> {
        for (plan, blobs) in prepared {
            let outcome = match plan {
                Ok(plan) => commit_one(&self.append, *plan, blobs)?,
                Err(key) => Ok(mend(&self.append, key, blobs)?),
            };
            match outcome {
                Ok(recorded) => self.outcomes.push(recorded),
                Err(refusal) => self.refusals.push(refusal),
            }
        }
        Ok(())
    }

    pub(super) fn refuse(&mut self, refusal: Refusal) {
        self.refusals.push(refusal);
    }

    /// Commits, or drops everything when one run was refused.
    pub(super) fn finish(self) -> Result<Result<Vec<Recorded>, Vec<Refusal>>, StoreError> {
        if !self.refusals.is_empty() {
            return Ok(Err(self.refusals));
        }
        self.append.commit()?;
        Ok(Ok(self.outcomes))
    }
}

/// Compresses, on all cores, what the ledger does not hold yet and `seen` does not name. A blob that
/// another process stores meanwhile is compressed twice and stored once.
pub(super) fn prepare(
    store: &Store,
    plans: Vec<Planned>,
    seen: &mut HashSet<BlobId>,
) -> Result<Vec<Prepared>, StoreError> {
    let mut wanted: Vec<Vec<PlannedBlob>> = Vec::with_capacity(plans.len());
    let mut bare = Vec::with_capacity(plans.len());
    for planned in plans {
        let mut fresh = Vec::new();
        let (plan, blobs) = match planned {
            Planned::Run(mut plan) => {
                let blobs = std::mem::take(&mut plan.blobs);
                (Ok(plan), blobs)
            }
            Planned::Known { key, blobs } => (Err(key), blobs),
        };
        for blob in blobs {
            let id = blob.id();
            if seen.insert(id) && !store.holds_intact(&id)? {
                fresh.push(blob);
            }
        }
        wanted.push(fresh);
        bare.push(plan);
    }
    let prepared: Vec<Vec<PreparedBlob>> = wanted
        .into_par_iter()
        .map(|blobs| blobs.into_par_iter().map(compress).collect::<Result<_, _>>())
        .collect::<Result<_, _>>()?;
    Ok(bare.into_iter().zip(prepared).collect())
}

fn compress(blob: PlannedBlob) -> Result<PreparedBlob, StoreError> {
    match blob {
        PlannedBlob::Prepared(blob) => Ok(blob),
        PlannedBlob::Bytes(id, bytes) => prepare_bytes(id, &bytes).map_err(|source| {
            StoreError::Io { action: "compress", path: id.to_string().into(), source }
        }),
    }
}

/// Stores again what is damaged of a run that is known.
fn mend(
    append: &Append<'_>,
    key: RunKey,
    blobs: Vec<PreparedBlob>,
) -> Result<Recorded, StoreError> {
    let stored = append.store_blobs(blobs)?;
    Ok(Recorded::Already { key, repaired: count_repaired(&stored) })
}

fn count_repaired(stored: &[(BlobId, BlobStored)]) -> usize {
    stored.iter().filter(|(_, outcome)| *outcome == BlobStored::Repaired).count()
}

fn commit_one(
    append: &Append<'_>,
    mut plan: Plan,
    blobs: Vec<PreparedBlob>,
) -> Result<Result<Recorded, Refusal>, StoreError> {
    let stored = append.store_blobs(blobs)?;
    if let Some(known) = append.find_run(&plan.key)? {
        return Ok(already(plan, &known, &stored));
    }
    let mut findings = Vec::new();
    findings.extend(check_claims(append, &plan)?);
    findings.extend(check_replaced(append, &plan)?);
    if !findings.is_empty() {
        return Ok(Err(Refusal::input(plan.source, findings)));
    }
    plan.body.findings.extend(note_same_measurement(append, &plan)?);
    let findings = plan.body.findings.clone();
    append.append(&[Body::Run(Box::new(plan.body))])?;
    Ok(Ok(Recorded::New { key: plan.key, findings }))
}

fn already(
    plan: Plan,
    known: &RunRow,
    stored: &[(BlobId, BlobStored)],
) -> Result<Recorded, Refusal> {
    let mut findings = Vec::new();
    if known.retracted.is_some() {
        let message = format!(
            "run {} is recorded and was retracted; a retracted run keeps its address",
            known.key
        );
        findings.push(Finding::refusal(Code::SubjectDiffers, "", message));
    } else if known.subject != plan.body.subject {
        let message = format!(
            "run {} is recorded under another subject; correct it with `ledger correct`",
            known.key.short()
        );
        let finding = Finding::refusal(Code::SubjectDiffers, "subject", message);
        let differing = known.subject.labels().into_iter().zip(plan.body.subject.labels());
        findings.push(differing.filter(|(held, asked)| held != asked).fold(
            finding,
            |finding, ((name, held), (_, asked))| {
                finding
                    .with(held, format!("{name} in the ledger"))
                    .with(asked, format!("{name} asked for"))
            },
        ));
    }
    if !findings.is_empty() {
        return Err(Refusal::input(plan.source, findings));
    }
    Ok(Recorded::Already { key: plan.key, repaired: count_repaired(stored) })
}

/// Invariant 8: a result file that is the evidence of one run cannot become the evidence of another
/// with a different fingerprint or subject.
fn check_claims(append: &Append<'_>, plan: &Plan) -> Result<Vec<Finding>, StoreError> {
    let mut findings = Vec::new();
    for result in &plan.body.results {
        let Ok(blob) = from_hex(&result.blob) else { continue };
        for other in append.find_claims(&blob)? {
            let is_same = other.subject == plan.body.subject
                && other.fingerprint.to_string() == plan.body.fingerprint_id;
            if is_same {
                continue;
            }
            let message = format!(
                "`{}` is already the evidence of run {} ({})",
                result.path,
                other.key.short(),
                describe(&other)
            );
            findings.push(
                Finding::refusal(Code::ArtifactClaimed, &result.path, message)
                    .with(other.key.to_string(), "the run that holds it"),
            );
        }
    }
    Ok(findings)
}

fn describe(run: &RunRow) -> String {
    let labels = run.subject.labels().map(|(name, label)| format!("{name}={label}"));
    labels.join(" ")
}

fn check_replaced(append: &Append<'_>, plan: &Plan) -> Result<Vec<Finding>, StoreError> {
    let Some(replaced) = plan.body.replaces.as_deref().and_then(|hex| hex.parse::<RunKey>().ok())
    else {
        return Ok(Vec::new());
    };
    let message = match append.find_run(&replaced)? {
        None => format!("ledger holds no run {replaced}"),
        Some(run) if run.retracted.is_none() => {
            format!(
                "run {} is not retracted; retract it with `ledger retract {}` first",
                run.key.short(),
                run.key.short()
            )
        }
        Some(_) => return Ok(Vec::new()),
    };
    Ok(vec![Finding::refusal(Code::BadValue, "--replaces", message)])
}

fn note_same_measurement(append: &Append<'_>, plan: &Plan) -> Result<Option<Finding>, StoreError> {
    let Some(digest) = measurement_digest(&plan.body) else { return Ok(None) };
    let same = append.find_same_measurement(&digest)?;
    let Some(first) = same.first() else { return Ok(None) };
    let message = format!(
        "run {} holds the same numbers from other bytes; it is one measurement, not a repeat",
        first.key.short()
    );
    Ok(Some(
        Finding::new(Code::SameMeasurement, Severity::Caution, "", message)
            .with(first.key.to_string(), "the run that holds them"),
    ))
}
