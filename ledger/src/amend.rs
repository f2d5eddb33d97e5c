//! The verbs that append to what is recorded: retract, correct, note, bind. Each appends one entry and
//! changes nothing.

use crate::clock::{Clock, stamp};
use crate::entry::{
    Attachment, BODY_VERSION, BindingBody, Body, CorrectionBody, NoteBody, RetractionBody, entry_id,
};
use crate::id::{BlobId, EntryId, RunKey};
use crate::store::{Appended, RunRow, Store, StoreError, prepare_bytes};
use crate::subject::Subject;
use std::collections::BTreeMap;

/// Who says it and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    /// Who.
    pub by: String,
    /// Why.
    pub reason: String,
}

/// Why an amendment is refused.
#[derive(Debug, thiserror::Error)]
pub enum AmendError {
    /// A person must be named.
    #[error("nothing was appended: name who says so with `--by`")]
    NoName,
    /// A reason must be given.
    #[error("nothing was appended: a reason is missing")]
    NoReason,
    /// The run is retracted already.
    #[error("run {run} is retracted already")]
    AlreadyRetracted {
        /// Its key, short.
        run: String,
    },
    /// The correction changes nothing.
    #[error("run {run} has these labels already")]
    NothingToCorrect {
        /// Its key, short.
        run: String,
    },
    /// A digest is not 64 hex digits.
    #[error("`{typed}` is no weight set digest")]
    NotADigest {
        /// What was typed.
        typed: String,
    },
    /// The store refused.
    #[error(transparent)]
    Store(#[from] StoreError),
}

fn check(statement: &Statement) -> Result<(), AmendError> {
    if statement.by.trim().is_empty() {
        return Err(AmendError::NoName);
    }
    if statement.reason.trim().is_empty() {
        return Err(AmendError::NoReason);
    }
    Ok(())
}

/// Builds a retraction.
///
/// # Errors
/// [`AmendError`].
pub fn retract(
    run: &RunRow,
    statement: &Statement,
    replaced_by: Option<RunKey>,
    clock: Clock,
) -> Result<Body, AmendError> {
    check(statement)?;
    if run.retracted.is_some() {
        return Err(AmendError::AlreadyRetracted { run: run.key.short() });
    }
    Ok(Body::Retraction(RetractionBody {
        v: BODY_VERSION,
        run: run.key.to_string(),
        reason: statement.reason.clone(),
        by: statement.by.clone(),
        recorded_at: stamp(clock.now()),
        replaced_by: replaced_by.map(|key| key.to_string()),
    }))
}

/// Builds a correction of labels.
///
/// # Errors
/// [`AmendError`].
pub fn correct(
    run: &RunRow,
    labels: &BTreeMap<String, String>,
    statement: &Statement,
    clock: Clock,
) -> Result<Body, AmendError> {
    check(statement)?;
    let before = run.subject.clone();
    let label =
        |name: &str, old: &str| labels.get(name).map_or_else(|| old.to_owned(), Clone::clone);
    let after = Subject {
        candidate: label("candidate", &before.candidate),
        config: label("config", &before.config),
        task: label("task", &before.task),
        hardware: label("hardware", &before.hardware),
    };
    if after == before {
        return Err(AmendError::NothingToCorrect { run: run.key.short() });
    }
    Ok(Body::Correction(CorrectionBody {
        v: BODY_VERSION,
        run: run.key.to_string(),
        before,
        after,
        reason: statement.reason.clone(),
        by: statement.by.clone(),
        recorded_at: stamp(clock.now()),
    }))
}

/// A file to attach: its name, escaped, and its bytes.
pub type AttachedFile = (String, Vec<u8>);

/// Builds a note.
///
/// # Errors
/// [`AmendError`].
pub fn note(
    run: Option<&RunRow>,
    topic: &str,
    statement: &Statement,
    files: &[AttachedFile],
    links: &[RunKey],
    clock: Clock,
) -> Result<Body, AmendError> {
    check(statement)?;
    Ok(Body::Note(NoteBody {
        v: BODY_VERSION,
        run: run.map(|run| run.key.to_string()),
        topic: topic.to_owned(),
        text: statement.reason.clone(),
        by: statement.by.clone(),
        recorded_at: stamp(clock.now()),
        attachments: files
            .iter()
            .map(|(path, bytes)| Attachment {
                path: path.clone(),
                size_bytes: bytes.len() as u64,
                blob: BlobId::of(bytes).to_string(),
            })
            .collect(),
        links: links.iter().map(ToString::to_string).collect(),
    }))
}

/// Builds a binding of a weight set to a model.
///
/// # Errors
/// [`AmendError`].
pub fn bind(
    weight_set: &str,
    model_id: &str,
    revision: &str,
    statement: &Statement,
    clock: Clock,
) -> Result<Body, AmendError> {
    check(statement)?;
    if crate::id::from_hex(weight_set).is_err() {
        return Err(AmendError::NotADigest { typed: weight_set.to_owned() });
    }
    Ok(Body::Binding(BindingBody {
        v: BODY_VERSION,
        weight_set: weight_set.to_owned(),
        model_id: model_id.to_owned(),
        revision: revision.to_owned(),
        because: statement.reason.clone(),
        by: statement.by.clone(),
        recorded_at: stamp(clock.now()),
    }))
}

/// Returns the id that an entry would have.
///
/// # Errors
/// [`StoreError::Canonical`].
pub fn preview(body: &Body) -> Result<EntryId, StoreError> {
    Ok(entry_id(&body.to_bytes()?))
}

/// Appends an amendment with its files.
///
/// # Errors
/// [`AmendError`].
pub fn append(
    store: &mut Store,
    body: Body,
    files: Vec<AttachedFile>,
) -> Result<Appended, AmendError> {
    let mut blobs = Vec::new();
    for (name, bytes) in files {
        let blob = prepare_bytes(BlobId::of(&bytes), &bytes);
        blobs.push(blob.map_err(StoreError::io("compress", name))?);
    }
    let append = store.begin()?;
    append.store_blobs(blobs)?;
    let appended = append.append(&[body])?;
    append.commit()?;
    appended.first().copied().ok_or(AmendError::NoReason)
}

/// Returns every binding of the ledger with its entry id in hex.
///
/// # Errors
/// [`StoreError`].
pub fn read_bindings(store: &Store) -> Result<Vec<(String, BindingBody)>, StoreError> {
    let mut bindings = Vec::new();
    for seq in store.binding_entries()? {
        let entry = store.read_entry(seq)?;
        if let Ok(Body::Binding(binding)) = Body::parse(&entry.body) {
            bindings.push((crate::id::to_hex(&entry.id), binding));
        }
    }
    Ok(bindings)
}
