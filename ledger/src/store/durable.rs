//! The only file that creates files in a ledger. Everything appears under its final name whole and
//! durable, or not at all: temporary name, write, sync, rename without replacing, sync the folder.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use tempfile::{Builder, NamedTempFile};

/// Makes a folder and its parents, and makes their names durable.
pub(crate) fn create_folder(folder: &Path) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    let parent = folder.parent().filter(|parent| !parent.as_os_str().is_empty());
    if let Some(parent) = parent {
        create_folder(parent)?;
    }
    match fs::create_dir(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => sync_folder(parent.unwrap_or(Path::new("."))),
    }
}

/// Makes the names in a folder durable.
pub(crate) fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Opens a temporary file that vanishes unless it is published.
pub(crate) fn create_temporary(folder: &Path) -> io::Result<NamedTempFile> {
    Builder::new().prefix(".incoming-").tempfile_in(folder)
}

/// Publishes a temporary file under a name that says what it holds. A name that already exists is
/// success when `replace` is false: it names the same bytes.
///
/// The folder is not synced here; the caller syncs each folder once for many files.
pub(crate) fn publish(file: NamedTempFile, name: &Path, replace: bool) -> io::Result<()> {
    file.as_file().set_permissions(Permissions::from_mode(0o444))?;
    file.as_file().sync_all()?;
    if replace {
        file.persist(name)?;
        return Ok(());
    }
    match file.persist_noclobber(name) {
        Ok(_) => Ok(()),
        Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error.error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn a_published_file_is_whole_and_read_only() {
        let folder = tempfile::tempdir().unwrap();
        let name = folder.path().join("a");
        let mut file = create_temporary(folder.path()).unwrap();
        file.write_all(b"abc").unwrap();
        publish(file, &name, false).unwrap();
        assert_eq!(fs::read(&name).unwrap(), b"abc");
        assert_eq!(fs::metadata(&name).unwrap().permissions().mode() & 0o777, 0o444);
    }

    #[test]
    fn a_name_that_exists_is_success_and_keeps_its_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let name = folder.path().join("a");
        for bytes in [b"abc", b"xyz"] {
            let mut file = create_temporary(folder.path()).unwrap();
            file.write_all(bytes).unwrap();
            publish(file, &name, false).unwrap();
        }
        assert_eq!(fs::read(&name).unwrap(), b"abc");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
