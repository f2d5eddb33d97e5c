//! The objects: every frame hashed as it is stored, decompressed, and hashed again.

use super::{Depth, VerifyReport, damage};
use crate::finding::{Code, Finding, Severity};
use crate::id::to_hex;
use crate::store::{Access, Store, StoreError, StoredBlob};
use rayon::prelude::*;
use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::{AtomicU64, Ordering};

/// Checks every object, on all cores; each worker has its own connection.
pub(super) fn check(
    store: &Store,
    depth: Depth,
    report: &mut VerifyReport,
    advance: &(dyn Fn(u64) + Sync),
) -> Result<(), StoreError> {
    let rows = store.blob_rows()?;
    report.objects = rows.len() as u64;
    let contiguous = rows.iter().zip(1..).all(|(row, expected)| *row == expected);
    if !contiguous {
        report.findings.push(damage(
            Code::BlobMissing,
            "objects",
            "the numbers of the objects have a hole",
        ));
    }
    let bytes = AtomicU64::new(0);
    let folder = store.folder();
    // Workers take runs of neighbouring rows, so that each reads the database in order.
    let chunks: Vec<&[i64]> = rows.chunks(64).collect();
    let found: Vec<Vec<Finding>> = chunks
        .par_iter()
        .map_init(
            || Store::open(folder, Access::Read),
            |opened, chunk| match opened {
                Ok(own) => check_chunk(own, chunk, depth, &bytes, advance),
                Err(error) => vec![damage(Code::DatabaseDamaged, "ledger.db", error.to_string())],
            },
        )
        .collect();
    report.findings.extend(found.into_iter().flatten());
    report.bytes = bytes.into_inner();
    report.findings.extend(check_files(store)?);
    Ok(())
}

fn check_chunk(
    store: &Store,
    rows: &[i64],
    depth: Depth,
    bytes: &AtomicU64,
    advance: &(dyn Fn(u64) + Sync),
) -> Vec<Finding> {
    let mut findings = Vec::new();
    for row in rows {
        match store.read_blob_row(*row) {
            Err(error) => findings.push(damage(
                Code::BlobMissing,
                format!("object row {row}"),
                describe(&error),
            )),
            Ok(blob) if depth == Depth::Quick => findings.extend(check_presence(store, &blob)),
            Ok(blob) => {
                findings.extend(check_object(store, &blob));
                bytes.fetch_add(blob.size_bytes, Ordering::Relaxed);
                advance(blob.size_bytes);
            }
        }
    }
    findings
}

fn describe(error: &StoreError) -> String {
    let cause =
        std::error::Error::source(error).map_or_else(String::new, |cause| format!(": {cause}"));
    format!("{error}{cause}")
}

fn name(blob: &StoredBlob) -> String {
    format!("object {}", to_hex(&blob.hash))
}

fn check_presence(store: &Store, blob: &StoredBlob) -> Option<Finding> {
    let is_gone = blob.data.is_none() && !store.object_path(blob).exists();
    is_gone.then(|| damage(Code::BlobMissing, name(blob), "its file is gone"))
}

fn check_object(store: &Store, blob: &StoredBlob) -> Option<Finding> {
    let frame = match store.hash_frame(blob) {
        Ok(frame) => frame,
        Err(error) => {
            return Some(damage(
                Code::BlobMissing,
                name(blob),
                format!("its frame cannot be read: {error}"),
            ));
        }
    };
    let mut sink = blake3::Hasher::new();
    let content = store.decompress(blob, &mut sink);
    let is_whole = content.as_ref().is_ok_and(|length| *length == blob.size_bytes)
        && sink.finalize().as_bytes()[..] == blob.hash[..];
    let is_stored_form = frame.as_bytes()[..] == blob.stored_hash[..];
    match (is_whole, is_stored_form) {
        (true, true) => None,
        (true, false) if blob.data.is_some() && store.object_path(blob).exists() => {
            let message = "its copy in the database is damaged, the repaired file is whole";
            Some(Finding::new(Code::StoredFormAltered, Severity::Note, name(blob), message))
        }
        (true, false) => {
            let message = "its content is whole, its stored form is not the one that was written";
            Some(damage(Code::StoredFormAltered, name(blob), message))
        }
        (false, _) => Some(damage(Code::BlobAltered, name(blob), altered(blob, content, &sink))),
    }
}

fn altered(blob: &StoredBlob, content: std::io::Result<u64>, sink: &blake3::Hasher) -> String {
    match content {
        Err(error) => format!("its frame cannot be decompressed: {error}"),
        Ok(length) if length != blob.size_bytes => {
            format!("it has {length} bytes, {} were stored", blob.size_bytes)
        }
        Ok(_) => format!("content hashes to {}", sink.finalize()),
    }
}

fn check_files(store: &Store) -> Result<Vec<Finding>, StoreError> {
    let known: BTreeSet<String> = store.blob_sizes()?.keys().map(ToString::to_string).collect();
    let mut findings = Vec::new();
    for path in store.object_files()? {
        let stem =
            path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        let shown = crate::text::printable(&path.display().to_string());
        if !known.contains(&stem) {
            let message = "no object has this name; an append that was killed leaves such files, and they are never read";
            findings.push(Finding::new(Code::StrayFile, Severity::Note, shown, message));
        } else if path.metadata().is_ok_and(|metadata| metadata.permissions().mode() & 0o222 != 0) {
            let message = "the file can be written to; object files are read-only";
            findings.push(Finding::new(Code::ObjectWritable, Severity::Note, shown, message));
        }
    }
    Ok(findings)
}
