//! The artifact tree of a run: which files, how large, which bytes. Its manifest is a text that a
//! person can read and `b3sum` can check:
//!
//! ```text
//! ledger-tree v1
//! 6437b3ac38465133ffb63b75273a8db548c558465d79db03fd359c6cd5bd9d85 3 logs/server.log
//! ```
//!
//! One line an artifact, sorted by path bytes; paths are escaped by [`crate::text::escape_path`].
//! Folders without files are not part of it.

use crate::id::{ArtifactRoot, BlobId};
use crate::text::{escape_path, unescape_path};

const HEADER: &str = "ledger-tree v1\n";

/// One file of a tree.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Artifact {
    /// Path relative to the run's folder, `/`-separated, as bytes.
    pub path: Vec<u8>,
    /// Length in bytes.
    pub size_bytes: u64,
    /// What the bytes hash to.
    pub blob: BlobId,
}

impl Artifact {
    /// Returns the path escaped for people and manifests.
    pub fn printable_path(&self) -> String {
        escape_path(&self.path)
    }
}

/// Why a text is no manifest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TreeError {
    /// The first line is another.
    #[error("the first line is not `ledger-tree v1`")]
    Header,
    /// A line is not `HASH SIZE PATH`.
    #[error("line {line} is not `HASH SIZE PATH`")]
    Line {
        /// Line from 1.
        line: usize,
    },
    /// Two lines are in the wrong order or name the same path.
    #[error("line {line} is not sorted after the one before it")]
    Order {
        /// Line from 1.
        line: usize,
    },
}

/// A sorted list of artifacts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tree {
    artifacts: Vec<Artifact>,
}

impl Tree {
    /// Sorts artifacts into a tree. The caller gives each path once.
    pub fn new(mut artifacts: Vec<Artifact>) -> Self {
        artifacts.sort_by(|a, b| a.path.cmp(&b.path));
        Self { artifacts }
    }

    /// Returns the artifacts in manifest order.
    pub fn artifacts(&self) -> &[Artifact] {
        &self.artifacts
    }

    /// Returns the total length of all artifacts in bytes.
    pub fn size_bytes(&self) -> u64 {
        self.artifacts.iter().map(|artifact| artifact.size_bytes).sum()
    }

    /// Writes the manifest.
    pub fn manifest(&self) -> String {
        self.artifacts.iter().fold(HEADER.to_owned(), |text, artifact| {
            let Artifact { blob, size_bytes, .. } = artifact;
            text + &format!("{blob} {size_bytes} {}\n", artifact.printable_path())
        })
    }

    /// Returns the artifact root: BLAKE3 of the manifest.
    pub fn root(&self) -> ArtifactRoot {
        ArtifactRoot::from_bytes(*blake3::hash(self.manifest().as_bytes()).as_bytes())
    }

    /// Reads a manifest.
    ///
    /// # Errors
    /// [`TreeError`] names the first line that is wrong.
    pub fn parse(manifest: &str) -> Result<Self, TreeError> {
        let lines = manifest.strip_prefix(HEADER).ok_or(TreeError::Header)?;
        let mut artifacts: Vec<Artifact> = Vec::new();
        for (index, text) in lines.lines().enumerate() {
            let line = index + 2;
            let artifact = parse_line(text).ok_or(TreeError::Line { line })?;
            if artifacts.last().is_some_and(|last| last.path >= artifact.path) {
                return Err(TreeError::Order { line });
            }
            artifacts.push(artifact);
        }
        Ok(Self { artifacts })
    }
}

fn parse_line(line: &str) -> Option<Artifact> {
    let (blob, rest) = line.split_once(' ')?;
    let (size, path) = rest.split_once(' ')?;
    let canonical_size = size.parse::<u64>().ok().filter(|bytes| bytes.to_string() == size)?;
    Some(Artifact {
        path: unescape_path(path)?,
        size_bytes: canonical_size,
        blob: blob.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(paths: &[&[u8]]) -> Tree {
        Tree::new(
            paths
                .iter()
                .map(|path| Artifact {
                    path: path.to_vec(),
                    size_bytes: 3,
                    blob: BlobId::of(b"abc"),
                })
                .collect(),
        )
    }

    #[test]
    fn a_manifest_is_sorted_by_path_bytes_and_reads_back() {
        let tree = tree(&[b"b", b"a/z", b"a\n", b"a\xff"]);
        let manifest = tree.manifest();
        let hash = "6437b3ac38465133ffb63b75273a8db548c558465d79db03fd359c6cd5bd9d85";
        assert_eq!(
            manifest,
            format!("ledger-tree v1\n{hash} 3 a\\x0a\n{hash} 3 a/z\n{hash} 3 a\\xff\n{hash} 3 b\n")
        );
        assert_eq!(Tree::parse(&manifest), Ok(tree));
    }

    #[test]
    fn the_order_of_the_files_does_not_change_the_root() {
        assert_eq!(tree(&[b"a", b"b"]).root(), tree(&[b"b", b"a"]).root());
        assert_ne!(tree(&[b"a", b"b"]).root(), tree(&[b"a", b"c"]).root());
    }

    #[test]
    fn a_manifest_that_nobody_wrote_is_refused() {
        let hash = BlobId::of(b"abc");
        assert_eq!(Tree::parse("x"), Err(TreeError::Header));
        for line in ["x", &format!("{hash} 03 a"), &format!("{hash} 3")] {
            let manifest = format!("{HEADER}{line}\n");
            assert_eq!(Tree::parse(&manifest), Err(TreeError::Line { line: 2 }), "{line}");
        }
        let twice = format!("{HEADER}{hash} 3 a\n{hash} 3 a\n");
        assert_eq!(Tree::parse(&twice), Err(TreeError::Order { line: 3 }));
    }
}
