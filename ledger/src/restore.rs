//! Artifacts back as files, byte for byte, under the names they had. Nothing that exists is
//! overwritten, and no name leads out of the target folder.

use crate::id::BlobId;
use crate::store::{Store, StoreError};
use crate::tree::Tree;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

/// Why files could not be written.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// A manifest names a path that leads out of the folder.
    #[error("artifact `{path}` leads out of the folder")]
    Escapes {
        /// The path, escaped.
        path: String,
    },
    /// Something of that name is there.
    #[error("`{}` exists", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// The manifest cannot be read.
    #[error("artifact manifest {root} cannot be read")]
    Manifest {
        /// The artifact root, in hex.
        root: String,
    },
    /// The store refused.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Reads the artifact tree of a root.
///
/// # Errors
/// [`RestoreError::Manifest`] or what the store says.
pub fn read_tree(store: &Store, root: &str) -> Result<Tree, RestoreError> {
    let manifest = || RestoreError::Manifest { root: root.to_owned() };
    let id: BlobId = root.parse().map_err(|_bad| manifest())?;
    let bytes = store.read_blob(&id)?;
    let text = std::str::from_utf8(&bytes).map_err(|_bad| manifest())?;
    Tree::parse(text).map_err(|_bad| manifest())
}

/// Writes every artifact of a tree under `folder`. Returns the number of bytes written.
///
/// # Errors
/// [`RestoreError`]; files written before it stay.
pub fn restore(store: &Store, tree: &Tree, folder: &Path) -> Result<u64, RestoreError> {
    let mut written = 0;
    let mut made = PathBuf::new();
    for artifact in tree.artifacts() {
        let relative = Path::new(OsStr::from_bytes(&artifact.path));
        let is_inside = relative.components().all(|part| matches!(part, Component::Normal(_)));
        if !is_inside || artifact.path.is_empty() {
            return Err(RestoreError::Escapes { path: artifact.printable_path() });
        }
        let path = folder.join(relative);
        let parent = path.parent().unwrap_or(folder);
        if parent != made {
            fs::create_dir_all(parent).map_err(StoreError::io("create", parent))?;
            parent.clone_into(&mut made);
        }
        written += write(store, &artifact.blob, &path)?;
    }
    Ok(written)
}

fn write(store: &Store, blob: &BlobId, path: &Path) -> Result<u64, RestoreError> {
    let file = File::create_new(path).map_err(|error| {
        if error.kind() == std::io::ErrorKind::AlreadyExists {
            RestoreError::Exists { path: path.to_owned() }
        } else {
            RestoreError::Store(StoreError::io("create", path)(error))
        }
    })?;
    let mut writer = BufWriter::with_capacity(32 << 10, file);
    let copied = store.copy_blob(blob, &mut writer);
    let flushed = writer.flush().map_err(StoreError::io("write", path));
    match copied.and_then(|length| flushed.map(|()| length)) {
        Ok(length) => Ok(length),
        Err(error) => {
            // A file that is not what it is called must not stay.
            fs::remove_file(path).map_err(StoreError::io("remove", path))?;
            Err(error.into())
        }
    }
}
