//! Reads a run's folder: every regular file under it, once, as bytes. What is no file of the run is
//! refused by name, and a file that changes while it is read is an error: its hash would name bytes
//! that never lay there together.

use crate::finding::{Code, Finding};
use crate::text::escape_path;
use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// A file that was found, with what identified its content at that moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundFile {
    /// Path relative to the folder, `/`-separated, as bytes.
    pub path: Vec<u8>,
    /// Where to read it.
    pub source: PathBuf,
    /// Size and times when it was found.
    stamp: Stamp,
}

impl FoundFile {
    /// Returns the length in bytes when it was found.
    pub const fn size_bytes(&self) -> u64 {
        self.stamp.size_bytes
    }

    /// Returns the path escaped for people.
    pub fn printable_path(&self) -> String {
        escape_path(&self.path)
    }

    /// Opens the file and checks that it is still the one that was found.
    ///
    /// # Errors
    /// What the file system says.
    pub fn open(&self) -> io::Result<OpenedFile<'_>> {
        Ok(OpenedFile { found: self, file: File::open(&self.source)? })
    }

    /// Reads the whole file; `None` when it changed.
    ///
    /// # Errors
    /// What the file system says.
    pub fn read(&self) -> io::Result<Option<Vec<u8>>> {
        let mut opened = self.open()?;
        let mut bytes = Vec::with_capacity(usize::try_from(self.size_bytes()).unwrap_or(0) + 1);
        opened.file.read_to_end(&mut bytes)?;
        let is_whole = bytes.len() as u64 == self.size_bytes() && opened.is_unchanged()?;
        Ok(is_whole.then_some(bytes))
    }
}

/// A file that is being read.
#[derive(Debug)]
pub struct OpenedFile<'a> {
    found: &'a FoundFile,
    file: File,
}

impl OpenedFile<'_> {
    /// True when size, times and inode are still those of the moment it was found.
    ///
    /// # Errors
    /// What the file system says.
    pub fn is_unchanged(&self) -> io::Result<bool> {
        Ok(Stamp::of(&self.file.metadata()?) == self.found.stamp)
    }
}

impl Read for OpenedFile<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.file.read(buffer)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    device: u64,
    inode: u64,
    size_bytes: u64,
    modified_ns: (i64, i64),
    changed_ns: (i64, i64),
}

impl Stamp {
    fn of(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            size_bytes: metadata.size(),
            modified_ns: (metadata.mtime(), metadata.mtime_nsec()),
            changed_ns: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }
}

/// Why a folder could not be listed.
#[derive(Debug, thiserror::Error)]
pub enum CollectError {
    /// The file system refused.
    #[error("cannot read `{}`", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Something in the folder is no file of a run.
    #[error("folder holds {} things that are no files of a run", findings.len())]
    Refused {
        /// All of them.
        findings: Vec<Finding>,
    },
}

/// Lists the files of a run: a folder with everything under it, or one file by itself.
///
/// A link to a file inside the folder is read as that file. Links that lead out or nowhere, links to
/// folders, devices, sockets and fifos are refused, all of them at once; an empty folder is refused.
///
/// # Errors
/// [`CollectError`].
pub fn list_files(source: &Path) -> Result<Vec<FoundFile>, CollectError> {
    let io = |source: io::Error, path: &Path| CollectError::Io { path: path.to_owned(), source };
    let root = fs::canonicalize(source).map_err(|error| io(error, source))?;
    let metadata = fs::metadata(&root).map_err(|error| io(error, source))?;
    let mut listing = Listing { root: root.clone(), files: Vec::new(), findings: Vec::new() };
    if metadata.is_dir() {
        listing.visit(&root, &[]).map_err(|(path, error)| io(error, &path))?;
    } else {
        let name = root.file_name().map(|name| name.as_bytes().to_vec()).unwrap_or_default();
        listing.add(name, root.clone(), &metadata);
    }
    let Listing { mut files, mut findings, .. } = listing;
    if files.is_empty() && findings.is_empty() {
        findings.push(Finding::refusal(Code::EmptyFolder, "", "folder holds no file"));
    }
    if !findings.is_empty() {
        return Err(CollectError::Refused { findings });
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(files)
}

struct Listing {
    root: PathBuf,
    files: Vec<FoundFile>,
    findings: Vec<Finding>,
}

impl Listing {
    fn visit(&mut self, folder: &Path, prefix: &[u8]) -> Result<(), (PathBuf, io::Error)> {
        let at = |error| (folder.to_owned(), error);
        for entry in fs::read_dir(folder).map_err(at)? {
            let entry = entry.map_err(at)?;
            let mut path = prefix.to_vec();
            path.extend_from_slice(entry.file_name().as_bytes());
            let source = entry.path();
            let metadata =
                fs::symlink_metadata(&source).map_err(|error| (source.clone(), error))?;
            if metadata.is_dir() {
                path.push(b'/');
                self.visit(&source, &path)?;
            } else if metadata.is_symlink() {
                self.add_link(path, &source);
            } else {
                self.add(path, source, &metadata);
            }
        }
        Ok(())
    }

    fn add(&mut self, path: Vec<u8>, source: PathBuf, metadata: &Metadata) {
        if let Some(what) = special(metadata) {
            let message = format!("{what} is no file of a run");
            self.findings.push(Finding::refusal(Code::SpecialFile, escape_path(&path), message));
            return;
        }
        self.files.push(FoundFile { path, source, stamp: Stamp::of(metadata) });
    }

    fn add_link(&mut self, path: Vec<u8>, source: &Path) {
        let refuse =
            |message: String| Finding::refusal(Code::LinkLeaves, escape_path(&path), message);
        let target = match fs::canonicalize(source) {
            Ok(target) => target,
            Err(error) => {
                self.findings.push(refuse(format!("link leads nowhere: {error}")));
                return;
            }
        };
        let finding = match fs::metadata(&target) {
            _ if !target.starts_with(&self.root) => refuse(format!(
                "link leads out of the folder, to `{}`",
                escape_path(target.as_os_str().as_bytes())
            )),
            Ok(metadata) if metadata.is_dir() => refuse("link leads to a folder".to_owned()),
            Ok(metadata) => return self.add(path, target, &metadata),
            Err(error) => refuse(format!("link cannot be followed: {error}")),
        };
        self.findings.push(finding);
    }
}

fn special(metadata: &Metadata) -> Option<&'static str> {
    let kind = metadata.file_type();
    if kind.is_fifo() {
        Some("a fifo")
    } else if kind.is_socket() {
        Some("a socket")
    } else if kind.is_block_device() || kind.is_char_device() {
        Some("a device")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn codes(error: CollectError) -> Vec<(String, Code)> {
        match error {
            CollectError::Refused { findings } => {
                let mut codes: Vec<_> =
                    findings.into_iter().map(|finding| (finding.subject, finding.code)).collect();
                codes.sort();
                codes
            }
            CollectError::Io { .. } => panic!("{error}"),
        }
    }

    #[test]
    fn every_file_is_found_under_its_name_in_bytes() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("logs")).unwrap();
        fs::write(folder.path().join("logs/server.log"), b"x").unwrap();
        let name = std::ffi::OsStr::from_bytes(b"r\xff.json");
        fs::write(folder.path().join(name), b"{}").unwrap();
        symlink("logs/server.log", folder.path().join("inside")).unwrap();
        let paths: Vec<Vec<u8>> =
            list_files(folder.path()).unwrap().into_iter().map(|file| file.path).collect();
        assert_eq!(
            paths,
            [b"inside".to_vec(), b"logs/server.log".to_vec(), b"r\xff.json".to_vec()]
        );
    }

    #[test]
    fn everything_that_is_no_file_of_the_run_is_named_at_once() {
        let folder = tempfile::tempdir().unwrap();
        symlink("/etc/hostname", folder.path().join("out")).unwrap();
        symlink("nowhere", folder.path().join("broken")).unwrap();
        symlink(".", folder.path().join("loop")).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(folder.path().join("socket")).unwrap();
        let found = codes(list_files(folder.path()).unwrap_err());
        assert_eq!(
            found,
            [
                ("broken".to_owned(), Code::LinkLeaves),
                ("loop".to_owned(), Code::LinkLeaves),
                ("out".to_owned(), Code::LinkLeaves),
                ("socket".to_owned(), Code::SpecialFile),
            ]
        );
    }

    #[test]
    fn an_empty_folder_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("empty")).unwrap();
        let found = codes(list_files(folder.path()).unwrap_err());
        assert_eq!(found, [(String::new(), Code::EmptyFolder)]);
    }

    #[test]
    fn a_file_that_changed_is_not_read_as_what_was_found() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        fs::write(&path, b"abc").unwrap();
        let found = list_files(folder.path()).unwrap().remove(0);
        assert_eq!(found.read().unwrap().as_deref(), Some(&b"abc"[..]));
        fs::write(&path, b"abcd").unwrap();
        assert_eq!(found.read().unwrap(), None);
        fs::write(&path, b"xyz").unwrap();
        assert_eq!(found.read().unwrap(), None, "same length, other times");
    }
}
