//! Which weight files a process tree holds: mapped, open, or named by its command line and the Hugging
//! Face cache; each read whole and hashed. A mapping whose file was deleted or replaced on disk is said,
//! because its path then names other weights.

use super::process::{Seen, folder};
use super::{ProbeError, gguf};
use crate::id::to_hex;
use crate::provenance::document::{HfSnapshot, Seen as How, WeightFile};
use chrono::{DateTime, Utc};
use procfs::FromRead;
use procfs::process::{MMapPath, MemoryMaps};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufReader, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Endings of weight files.
const ENDINGS: &[&str] = &[".gguf", ".ggml", ".safetensors", ".pth", ".exl2", ".exl3"];

/// Options that name a model file or folder.
const MODEL_OPTIONS: &[&str] =
    &["-m", "--model", "--model-path", "--mmproj", "--lora", "-md", "--model-draft"];

/// A file that was seen, before it is hashed. Paths are as the process sees them.
#[derive(Debug, Clone)]
struct Found {
    how: How,
    /// Inode of the mapping, where there is one.
    inode: Option<u64>,
    is_deleted: bool,
}

/// Finds and hashes.
pub(super) fn find(
    root: &Path,
    process: &Seen,
    descendants: &[Seen],
    advance: &mut dyn FnMut(u64),
) -> Result<Vec<WeightFile>, ProbeError> {
    let mut found: BTreeMap<PathBuf, Found> = BTreeMap::new();
    for seen in std::iter::once(process).chain(descendants) {
        collect_mapped(root, seen, seen.pid == process.pid, &mut found)?;
        collect_open(root, seen, &mut found);
    }
    for seen in std::iter::once(process).chain(descendants) {
        collect_named(root, seen, &mut found);
    }
    found.into_iter().map(|(path, found)| hash(root, &path, &found, advance)).collect()
}

fn is_weight(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let is_ollama =
        name.strip_prefix("sha256-").is_some_and(|hex| hex.len() == 64) && path.contains("/blobs/");
    // Snapshots link to blobs, which have no ending; a mapping names the blob.
    let is_hub = path.contains("/models--") && path.contains("/blobs/") && name.len() == 64;
    is_ollama || is_hub || ENDINGS.iter().any(|ending| name.to_ascii_lowercase().ends_with(ending))
}

fn collect_mapped(
    root: &Path,
    seen: &Seen,
    is_root: bool,
    found: &mut BTreeMap<PathBuf, Found>,
) -> Result<(), ProbeError> {
    let path = folder(root, seen.pid).join("maps");
    let bytes = match fs::read(&path) {
        Ok(bytes) => bytes,
        Err(source) if is_root && source.kind() == io::ErrorKind::PermissionDenied => {
            return Err(ProbeError::Denied { pid: seen.pid, path, source });
        }
        // A worker that ended meanwhile maps nothing.
        Err(_) => return Ok(()),
    };
    let Ok(maps) = MemoryMaps::from_read(bytes.as_slice()) else { return Ok(()) };
    for map in maps.0 {
        let MMapPath::Path(path) = map.pathname else { continue };
        let text = path.to_string_lossy().into_owned();
        let plain = text.trim_end_matches(" (deleted)");
        if is_weight(plain) {
            let is_deleted = plain.len() < text.len();
            let how = Found { how: How::Mapped, inode: Some(map.inode), is_deleted };
            found.insert(PathBuf::from(plain), how);
        }
    }
    Ok(())
}

fn collect_open(root: &Path, seen: &Seen, found: &mut BTreeMap<PathBuf, Found>) {
    let Ok(files) = fs::read_dir(folder(root, seen.pid).join("fd")) else { return };
    for target in files.filter_map(|file| fs::read_link(file.ok()?.path()).ok()) {
        let text = target.to_string_lossy().into_owned();
        let plain = text.trim_end_matches(" (deleted)");
        if is_weight(plain) {
            let is_deleted = plain.len() < text.len();
            found.entry(PathBuf::from(plain)).or_insert(Found {
                how: How::Open,
                inode: None,
                is_deleted,
            });
        }
    }
}

/// Files that the command line names: directly, as a folder, or as a Hugging Face id in the cache.
fn collect_named(root: &Path, seen: &Seen, found: &mut BTreeMap<PathBuf, Found>) {
    for name in model_arguments(&seen.argv) {
        let path = match &seen.cwd {
            Some(cwd) => Path::new(cwd).join(name),
            None => PathBuf::from(name),
        };
        let inside = under(root, &path);
        let (files, how) = if inside.is_dir() {
            (folder_files(root, &path), How::Argument)
        } else if inside.is_file() {
            (vec![path], How::Argument)
        } else {
            (snapshot_files(root, seen, name), How::HfSnapshot)
        };
        for file in files.into_iter().filter(|file| is_weight(&file.to_string_lossy())) {
            let is_known = found.keys().any(|known| same_file(root, known, &file));
            if !is_known {
                found.insert(file, Found { how, inode: None, is_deleted: false });
            }
        }
    }
}

fn same_file(root: &Path, one: &Path, other: &Path) -> bool {
    let inode = |path: &Path| {
        fs::metadata(under(root, path)).map(|metadata| (metadata.dev(), metadata.ino())).ok()
    };
    one == other || (inode(one).is_some() && inode(one) == inode(other))
}

fn model_arguments(argv: &[String]) -> Vec<&str> {
    let mut names: Vec<&str> = argv
        .windows(2)
        .filter_map(|pair| match pair {
            [option, value] if MODEL_OPTIONS.contains(&option.as_str()) => Some(value.as_str()),
            _ => None,
        })
        .collect();
    names.extend(argv.iter().filter_map(|word| {
        let (option, value) = word.split_once('=')?;
        MODEL_OPTIONS.contains(&option).then_some(value)
    }));
    // `vllm serve MODEL`
    let serve = argv.iter().position(|word| word == "serve");
    let positional = serve.and_then(|at| argv.get(at + 1)).filter(|word| !word.starts_with('-'));
    names.extend(positional.map(String::as_str));
    names
}

fn under(root: &Path, path: &Path) -> PathBuf {
    root.join(path.strip_prefix("/").unwrap_or(path))
}

fn folder_files(root: &Path, path: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(under(root, path)) else { return Vec::new() };
    entries.filter_map(|entry| Some(path.join(entry.ok()?.file_name()))).collect()
}

/// The snapshot that `refs/main` of the cache names, for an id like `org/name`.
fn snapshot_files(root: &Path, seen: &Seen, id: &str) -> Vec<PathBuf> {
    let Some((organization, name)) = id.split_once('/') else { return Vec::new() };
    let environment = fs::read(folder(root, seen.pid).join("environ")).unwrap_or_default();
    let variable = |wanted: &str| {
        environment.split(|byte| *byte == 0).find_map(|pair| {
            let text = String::from_utf8_lossy(pair).into_owned();
            text.strip_prefix(&format!("{wanted}=")).map(str::to_owned)
        })
    };
    let hub = variable("HF_HUB_CACHE")
        .or_else(|| variable("HF_HOME").map(|home| format!("{home}/hub")))
        .or_else(|| variable("HOME").map(|home| format!("{home}/.cache/huggingface/hub")));
    let Some(hub) = hub else { return Vec::new() };
    let repository = Path::new(&hub).join(format!("models--{organization}--{name}"));
    let Ok(commit) = fs::read_to_string(under(root, &repository.join("refs/main"))) else {
        return Vec::new();
    };
    folder_files(root, &repository.join("snapshots").join(commit.trim()))
}

/// Digests of one file.
pub(super) struct Hashes {
    pub(super) blake3: String,
    pub(super) sha256: Option<String>,
}

/// Hashes a file in one pass, on all cores.
pub(super) fn hash_file(
    path: &Path,
    wants_sha256: bool,
    advance: &mut dyn FnMut(u64),
) -> io::Result<Hashes> {
    let mut file = File::open(path)?;
    let mut blake3 = blake3::Hasher::new();
    let mut sha256 = wants_sha256.then(Sha256::new);
    let mut buffer = vec![0u8; 8 << 20];
    loop {
        let length = fill(&mut file, &mut buffer)?;
        let Some(chunk) = buffer.get(..length).filter(|chunk| !chunk.is_empty()) else { break };
        match &mut sha256 {
            Some(sha256) => {
                rayon::join(|| blake3.update(chunk), || sha256.update(chunk));
            }
            None => {
                blake3.update_rayon(chunk);
            }
        }
        advance(length as u64);
    }
    Ok(Hashes {
        blake3: blake3.finalize().to_hex().to_string(),
        sha256: sha256.map(|sha256| to_hex(&sha256.finalize())),
    })
}

fn fill(file: &mut File, buffer: &mut [u8]) -> io::Result<usize> {
    let mut length = 0;
    while let Some(rest) = buffer.get_mut(length..).filter(|rest| !rest.is_empty()) {
        let read = file.read(rest)?;
        if read == 0 {
            break;
        }
        length += read;
    }
    Ok(length)
}

fn hash(
    root: &Path,
    path: &Path,
    found: &Found,
    advance: &mut dyn FnMut(u64),
) -> Result<WeightFile, ProbeError> {
    let inside = under(root, path);
    let failed = |source| ProbeError::Weights { path: path.to_owned(), source };
    let metadata = match fs::metadata(&inside) {
        Ok(metadata) => metadata,
        // What was mapped is no longer there: said as replaced, never as absent.
        Err(_) if found.is_deleted => return Ok(replaced(path, found)),
        Err(source) => return Err(failed(source)),
    };
    let is_replaced = found.is_deleted || found.inode.is_some_and(|inode| inode != metadata.ino());
    let (hf, expected) = snapshot_of(root, path);
    let hashes = hash_file(&inside, expected.is_some(), advance).map_err(failed)?;
    if let (Some(expected), Some(sha256)) = (&expected, &hashes.sha256)
        && expected != sha256
    {
        return Err(ProbeError::BlobAltered { path: path.to_owned(), found: sha256.clone() });
    }
    // The file type may stand behind a vocabulary of hundreds of thousands of texts.
    let header = File::open(&inside).and_then(|file| gguf::read(&mut BufReader::new(file)));
    let header = header.ok().flatten();
    Ok(WeightFile {
        path: shown_path(path, hf.as_ref()),
        bytes: metadata.size(),
        blake3: Some(hashes.blake3),
        sha256: hashes.sha256,
        inode: Some(found.inode.unwrap_or(metadata.ino())),
        seen: found.how,
        hf: hf.map(|(snapshot, _)| snapshot),
        header,
        changed_at: DateTime::<Utc>::from_timestamp(metadata.ctime(), 0),
        replaced: is_replaced.then_some(true),
        hash_source: Some("read".to_owned()),
    })
}

fn replaced(path: &Path, found: &Found) -> WeightFile {
    WeightFile {
        path: path.to_string_lossy().into_owned(),
        bytes: 0,
        blake3: None,
        sha256: None,
        inode: found.inode,
        seen: found.how,
        hf: None,
        header: None,
        changed_at: None,
        replaced: Some(true),
        hash_source: None,
    }
}

/// A blob goes by the name that its snapshot gives it.
fn shown_path(path: &Path, hf: Option<&(HfSnapshot, PathBuf)>) -> String {
    hf.map_or(path, |(_, name)| name).to_string_lossy().into_owned()
}

/// The snapshot a file belongs to with its name there, and the SHA-256 that its blob's name promises.
fn snapshot_of(root: &Path, path: &Path) -> (Option<(HfSnapshot, PathBuf)>, Option<String>) {
    let target = fs::read_link(under(root, path)).unwrap_or_else(|_plain| path.to_owned());
    let blob =
        target.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let digest = blob.strip_prefix("sha256-").unwrap_or(&blob);
    let is_named_by_digest =
        path.to_string_lossy().contains("/blobs/") || target.to_string_lossy().contains("/blobs/");
    let expected =
        (is_named_by_digest && crate::id::from_hex(digest).is_ok()).then(|| digest.to_owned());
    let parts: Vec<String> = path.iter().map(|part| part.to_string_lossy().into_owned()).collect();
    let Some(at) = parts.iter().position(|part| part.starts_with("models--")) else {
        return (None, expected);
    };
    let repository: PathBuf = path.iter().take(at + 1).collect();
    let repo = parts
        .get(at)
        .map(|name| name.trim_start_matches("models--").replacen("--", "/", 1))
        .unwrap_or_default();
    let named = |commit: &str, name: PathBuf| {
        Some((HfSnapshot { repo: repo.clone(), commit: commit.to_owned() }, name))
    };
    if parts.get(at + 1).is_some_and(|part| part == "snapshots") {
        let commit = parts.get(at + 2).cloned().unwrap_or_default();
        return (named(&commit, path.to_owned()), expected);
    }
    // A mapped blob: the snapshot with a link to it.
    let snapshots = repository.join("snapshots");
    let commits = folder_files(root, &snapshots);
    let link = commits.into_iter().find_map(|commit| {
        let file =
            folder_files(root, &commit).into_iter().find(|file| same_file(root, file, path))?;
        Some((commit.file_name()?.to_string_lossy().into_owned(), file))
    });
    (link.and_then(|(commit, file)| named(&commit, file)), expected)
}
