//! Recording again: a run follows from its files, its manifest, its provenance documents, what was
//! given beside them, and the program. When all of these are those of a recorded run, the key is known
//! without reading a result again.

use super::files::Gathered;
use super::{RecordRequest, Surroundings};
use crate::entry::{Body, RunBody};
use crate::id::{BlobId, RunKey};
use crate::store::{Store, StoreError};
use crate::tree::Tree;

/// Finds the recorded run that a request would make again.
///
/// A request with anything beside its files is planned in full, and so is one whose run was retracted
/// or corrected since: what is to be answered then depends on more than the files.
pub(super) fn find_known(
    store: &Store,
    request: &RecordRequest,
    gathered: &Gathered,
    surroundings: &Surroundings<'_>,
) -> Result<Option<RunKey>, StoreError> {
    let is_plain = request.labels.is_empty()
        && request.settings.is_empty()
        && request.results.is_empty()
        && request.measured_at.is_none()
        && request.adapter.is_none()
        && request.pick.is_none()
        && request.failed.is_none()
        && request.replaces.is_none();
    if !is_plain || gathered.manifest.is_none() {
        return Ok(None);
    }
    let root = Tree::new(gathered.artifacts.clone()).root();
    for row in store.find_runs_by_root(&root)? {
        if row.retracted.is_some() {
            continue;
        }
        let Body::Run(run) = store.read_body(row.seq)? else { continue };
        if run.subject == row.subject && is_same(&run, gathered, surroundings) {
            return Ok(Some(row.key));
        }
    }
    Ok(None)
}

fn is_same(run: &RunBody, gathered: &Gathered, surroundings: &Surroundings<'_>) -> bool {
    let id = |bytes: &[u8]| BlobId::of(bytes).to_string();
    let manifest = gathered.manifest.as_ref().map(|document| id(&document.bytes));
    let documents: Vec<String> =
        gathered.provenance.iter().map(|document| id(&document.bytes)).collect();
    let recorded = run.provenance.as_ref().map(|proof| proof.documents.clone()).unwrap_or_default();
    run.tool == surroundings.tool
        && run.manifest == manifest
        && recorded == documents
        && run.is_plain()
}
