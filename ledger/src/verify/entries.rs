//! The log: every id, every identity inside a body, every node and every head of the tree, derived
//! again.

use super::{VerifyReport, damage};
use crate::entry::{Body, PriorBody, RunBody, entry_id, leaf};
use crate::finding::{Code, Finding};
use crate::fingerprint::Fingerprint;
use crate::id::{ArtifactRoot, BlobId, EntryId, PriorKey, RunKey, to_hex};
use crate::store::{Store, StoreError, StoredEntry};
use crate::tree::Tree;
use std::collections::BTreeMap;
use tlog_tiles::{Hash, HashReader};

/// Checks entries, tree nodes and heads.
pub(super) fn check(store: &Store, report: &mut VerifyReport) -> Result<(), StoreError> {
    let mut tree = Rebuilt::default();
    let mut findings = Vec::new();
    let blobs = store.blob_sizes()?;
    let mut next = 0;
    store.for_each_entry(|entry| {
        if entry.seq != next {
            let message = format!("the log goes from {} to {}", next - 1, entry.seq);
            findings.push(damage(Code::EntryGone, format!("entry {next}"), message));
        }
        next = entry.seq + 1;
        report.entries += 1;
        findings.extend(check_entry(store, &entry, &blobs, &mut tree));
        Ok(())
    })?;
    findings.extend(check_nodes(store, &tree)?);
    findings.extend(check_heads(store, &tree, report.entries)?);
    report.findings.extend(findings);
    Ok(())
}

fn check_entry(
    store: &Store,
    entry: &StoredEntry,
    blobs: &BTreeMap<BlobId, u64>,
    tree: &mut Rebuilt,
) -> Vec<Finding> {
    let subject = format!("entry {}", entry.seq);
    let computed = entry_id(&entry.body);
    let mut findings = Vec::new();
    if computed.as_bytes()[..] != entry.id[..] {
        let message = format!("body hashes to {computed}, the log says {}", to_hex(&entry.id));
        findings.push(damage(Code::EntryAltered, &subject, message));
    }
    // The tree commits to the id that was logged, so the stored one is what its leaf is made of.
    let logged = <[u8; 32]>::try_from(entry.id.as_slice()).map_or(computed, EntryId::from_bytes);
    if let Err(problem) = tree.push(&leaf(&logged, &entry.kind)) {
        findings.push(damage(Code::TreeAltered, &subject, problem));
    }
    match Body::parse(&entry.body) {
        Err(error) => findings.push(damage(Code::EntryAltered, &subject, error.to_string())),
        Ok(body) => {
            if body.kind() != entry.kind {
                let message = format!("kind is `{}`, the body is a {}", entry.kind, body.kind());
                findings.push(damage(Code::EntryAltered, &subject, message));
            }
            if body.to_bytes().ok().as_ref() != Some(&entry.body) {
                findings.push(damage(Code::EntryAltered, &subject, "body is not canonical JSON"));
            }
            findings.extend(check_body(store, &subject, &body, blobs));
        }
    }
    findings
}

fn check_body(
    store: &Store,
    subject: &str,
    body: &Body,
    blobs: &BTreeMap<BlobId, u64>,
) -> Vec<Finding> {
    let gone = |hex: &str| {
        let id = hex.parse::<BlobId>().ok();
        let is_held = id.is_some_and(|id| blobs.contains_key(&id));
        (!is_held).then(|| damage(Code::BlobMissing, subject, format!("object {hex} is gone")))
    };
    match body {
        Body::Run(run) => {
            let mut findings = check_identities(subject, run);
            let named =
                run.provenance.iter().flat_map(|proof| &proof.documents).chain(&run.manifest);
            findings.extend(named.filter_map(|hex| gone(hex)));
            findings.extend(check_tree(store, subject, &run.root, blobs));
            findings
        }
        Body::Prior(prior) => {
            let mut findings: Vec<Finding> = check_prior(subject, prior).into_iter().collect();
            findings.extend(prior.map.as_deref().and_then(gone));
            findings.extend(check_tree(store, subject, &prior.root, blobs));
            findings
        }
        Body::Note(note) => {
            note.attachments.iter().filter_map(|attachment| gone(&attachment.blob)).collect()
        }
        Body::Correction(_) | Body::Retraction(_) | Body::Binding(_) => Vec::new(),
    }
}

fn check_identities(subject: &str, run: &RunBody) -> Vec<Finding> {
    let mut findings = Vec::new();
    let fingerprint = Fingerprint::from_json(&run.fingerprint)
        .map_err(|error| error.to_string())
        .and_then(|fingerprint| fingerprint.id().map_err(|error| error.to_string()));
    match &fingerprint {
        Err(problem) => findings.push(damage(Code::IdentityWrong, subject, problem.clone())),
        Ok(id) if id.to_string() != run.fingerprint_id => {
            let message =
                format!("fingerprint hashes to {id}, the entry says {}", run.fingerprint_id);
            findings.push(damage(Code::IdentityWrong, subject, message));
        }
        Ok(id) => match run.root.parse::<ArtifactRoot>() {
            Ok(root) if RunKey::derive(&root, id).to_string() == run.key => {}
            _ => findings.push(damage(
                Code::IdentityWrong,
                subject,
                "run key does not follow from root and fingerprint",
            )),
        },
    }
    findings
}

fn check_prior(subject: &str, prior: &PriorBody) -> Option<Finding> {
    let is_derived = prior
        .root
        .parse::<ArtifactRoot>()
        .is_ok_and(|root| PriorKey::derive(&root, &prior.source.name).to_string() == prior.key);
    let message = "prior key does not follow from root and source name";
    (!is_derived).then(|| damage(Code::IdentityWrong, subject, message))
}

fn check_tree(
    store: &Store,
    subject: &str,
    root: &str,
    blobs: &BTreeMap<BlobId, u64>,
) -> Vec<Finding> {
    let Ok(root) = root.parse::<BlobId>() else {
        return vec![damage(Code::IdentityWrong, subject, "artifact root is no id")];
    };
    let manifest = match store.read_blob(&root) {
        Ok(manifest) => manifest,
        Err(StoreError::NoBlob { .. }) => {
            return vec![damage(
                Code::BlobMissing,
                subject,
                format!("artifact manifest {root} is gone"),
            )];
        }
        Err(error) => {
            return vec![damage(Code::BlobAltered, subject, format!("artifact manifest: {error}"))];
        }
    };
    let Ok(Ok(tree)) = std::str::from_utf8(&manifest).map(Tree::parse) else {
        return vec![damage(Code::IdentityWrong, subject, "artifact manifest cannot be read")];
    };
    tree.artifacts()
        .iter()
        .filter(|artifact| blobs.get(&artifact.blob) != Some(&artifact.size_bytes))
        .map(|artifact| {
            let path = artifact.printable_path();
            let message = match blobs.get(&artifact.blob) {
                None => format!("artifact `{path}` is gone: no object {}", artifact.blob),
                Some(found) => format!(
                    "artifact `{path}` has {} bytes, its object says {found}",
                    artifact.size_bytes
                ),
            };
            damage(Code::BlobMissing, subject, message)
        })
        .collect()
}

/// The tree as the entries yield it, node by node in stored-hash order.
#[derive(Debug, Default)]
struct Rebuilt {
    nodes: Vec<Hash>,
    leaves: u64,
}

impl HashReader for Rebuilt {
    fn read_hashes(&self, indexes: &[u64]) -> Result<Vec<Hash>, tlog_tiles::Error> {
        let find = |index: &u64| {
            let node =
                usize::try_from(*index).ok().and_then(|index| self.nodes.get(index)).copied();
            node.ok_or_else(|| tlog_tiles::Error::InvalidInput(format!("node {index} is missing")))
        };
        indexes.iter().map(find).collect()
    }
}

impl Rebuilt {
    fn push(&mut self, leaf: &str) -> Result<(), String> {
        let hashes = tlog_tiles::stored_hashes(self.leaves, leaf.as_bytes(), self)
            .map_err(|error| error.to_string())?;
        self.nodes.extend(hashes);
        self.leaves += 1;
        Ok(())
    }

    fn root(&self, size: u64) -> Option<[u8; 32]> {
        if size > self.leaves {
            return None;
        }
        tlog_tiles::tree_hash(size, self).ok().map(|hash| hash.0)
    }
}

fn check_nodes(store: &Store, tree: &Rebuilt) -> Result<Vec<Finding>, StoreError> {
    let stored = store.tree_nodes()?;
    let mut findings = Vec::new();
    for (place, node) in tree.nodes.iter().enumerate() {
        let index = place as u64;
        match stored.get(&index) {
            Some(hash) if hash[..] == node.0[..] => {}
            found => {
                let state =
                    if found.is_some() { "is not the hash of what it covers" } else { "is gone" };
                findings.push(damage(
                    Code::TreeAltered,
                    format!("tree node {index}"),
                    format!("node {state}"),
                ));
            }
        }
    }
    let count = tree.nodes.len() as u64;
    findings.extend(stored.keys().filter(|index| **index >= count).map(|index| {
        damage(Code::TreeAltered, format!("tree node {index}"), "node belongs to no entry")
    }));
    Ok(findings)
}

fn check_heads(store: &Store, tree: &Rebuilt, entries: u64) -> Result<Vec<Finding>, StoreError> {
    let heads = store.tree_heads()?;
    let mut findings: Vec<Finding> = heads
        .iter()
        .filter(|(size, root)| tree.root(*size).is_none_or(|computed| computed[..] != root[..]))
        .map(|(size, _)| {
            let message = "head is not the root of the entries before it";
            damage(Code::HeadAltered, format!("tree head {size}"), message)
        })
        .collect();
    if entries > 0 && heads.last().map(|(size, _)| *size) != Some(entries) {
        let message = format!("no tree head covers all {entries} entries");
        findings.push(damage(Code::HeadAltered, "tree head", message));
    }
    Ok(findings)
}
