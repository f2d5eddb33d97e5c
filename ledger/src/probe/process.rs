//! Processes as `/proc` shows them. Formats are parsed by the crate `procfs`; the walk is ours, because
//! it must also work on a copy of `/proc` under another root.

use super::ProbeError;
use crate::provenance::document::Listener;
use chrono::{DateTime, Duration, Utc};
use procfs::net::{TcpNetEntries, TcpState};
use procfs::process::Stat;
use procfs::{FromBufReadSI, FromRead};
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// `CLK_TCK` is 100 on every Linux that runs these engines.
const TICKS_PER_S: u64 = 100;

/// One process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) pid: u32,
    pub(super) parent: i32,
    pub(super) started_at: DateTime<Utc>,
    pub(super) exe: String,
    pub(super) cwd: Option<String>,
    pub(super) argv: Vec<String>,
    pub(super) container: Option<String>,
}

pub(super) fn folder(root: &Path, pid: u32) -> PathBuf {
    root.join("proc").join(pid.to_string())
}

/// Every pid that is listed.
pub(super) fn pids(root: &Path) -> Vec<u32> {
    let Ok(entries) = fs::read_dir(root.join("proc")) else { return Vec::new() };
    let mut pids: Vec<u32> =
        entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect();
    pids.sort_unstable();
    pids
}

fn denied(pid: u32, path: PathBuf) -> impl FnOnce(io::Error) -> ProbeError {
    move |source| {
        if source.kind() == io::ErrorKind::NotFound {
            ProbeError::NoProcess { pid }
        } else {
            ProbeError::Denied { pid, path, source }
        }
    }
}

/// Reads one process.
pub(super) fn read(root: &Path, pid: u32) -> Result<Seen, ProbeError> {
    let folder = folder(root, pid);
    let cmdline = folder.join("cmdline");
    let argv = fs::read(&cmdline).map_err(denied(pid, cmdline))?;
    let argv = argv
        .split(|byte| *byte == 0)
        .map(|word| String::from_utf8_lossy(word).into_owned())
        .collect::<Vec<_>>();
    let argv = argv
        .into_iter()
        .rev()
        .skip_while(String::is_empty)
        .collect::<Vec<_>>()
        .into_iter()
        .rev()
        .collect();
    let link = |name: &str| {
        fs::read_link(folder.join(name)).map(|path| path.to_string_lossy().into_owned())
    };
    let exe = link("exe").map_err(denied(pid, folder.join("exe")))?;
    let (parent, started_at) = start(root, pid)?;
    Ok(Seen {
        pid,
        parent,
        started_at,
        exe,
        cwd: link("cwd").ok(),
        argv,
        container: container(&folder),
    })
}

/// Parent and start time: boot time plus field 22 of `stat` in clock ticks.
fn start(root: &Path, pid: u32) -> Result<(i32, DateTime<Utc>), ProbeError> {
    let path = folder(root, pid).join("stat");
    let bytes = fs::read(&path).map_err(denied(pid, path.clone()))?;
    let stat = Stat::from_read(bytes.as_slice()).map_err(|error| ProbeError::Denied {
        pid,
        path,
        source: io::Error::other(error.to_string()),
    })?;
    let since_boot = i64::try_from(stat.starttime * 1000 / TICKS_PER_S).unwrap_or(0);
    let boot = fs::read_to_string(root.join("proc/stat")).unwrap_or_default();
    let boot =
        boot.lines().find_map(|line| line.strip_prefix("btime ")?.trim().parse::<i64>().ok());
    let boot = DateTime::<Utc>::from_timestamp(boot.unwrap_or(0), 0).unwrap_or_default();
    Ok((stat.ppid, boot + Duration::milliseconds(since_boot)))
}

/// The id of a container: the last 64 hex digits of a cgroup path.
fn container(folder: &Path) -> Option<String> {
    let text = fs::read_to_string(folder.join("cgroup")).ok()?;
    text.split(['/', '-', '.', '\n'])
        .find(|part| part.len() == 64 && part.chars().all(|c| c.is_ascii_hexdigit()))
        .map(str::to_owned)
}

/// Processes below one, in order of pid. A process that cannot be read is left out: what it maps is
/// then not seen either, and the rules will miss it.
pub(super) fn find_descendants(root: &Path, pid: u32) -> Vec<Seen> {
    let all: Vec<Seen> = pids(root).into_iter().filter_map(|pid| read(root, pid).ok()).collect();
    let mut below = BTreeSet::from([i64::from(pid)]);
    loop {
        let before = below.len();
        below.extend(
            all.iter()
                .filter(|seen| below.contains(&i64::from(seen.parent)))
                .map(|seen| i64::from(seen.pid))
                .collect::<Vec<_>>(),
        );
        if below.len() == before {
            break;
        }
    }
    all.into_iter().filter(|seen| seen.pid != pid && below.contains(&i64::from(seen.pid))).collect()
}

/// Finds the process that listens on a port, in this network namespace or in that of any process.
pub(super) fn find_listener(root: &Path, port: u16) -> Result<Listener, ProbeError> {
    let own = root.join("proc/net");
    let mut seen_namespaces = BTreeSet::new();
    let mut folders = vec![own];
    for pid in pids(root) {
        let folder = folder(root, pid);
        if let Ok(namespace) = fs::read_link(folder.join("ns/net"))
            && seen_namespaces.insert(namespace)
        {
            folders.push(folder.join("net"));
        }
    }
    let mut is_open = false;
    for folder in folders {
        for (address, inode) in listening(&folder, port) {
            is_open = true;
            if let Some(pid) = holder(root, inode) {
                return Ok(Listener { port, address, pid });
            }
        }
    }
    Err(if is_open { ProbeError::HiddenListener { port } } else { ProbeError::NoListener { port } })
}

/// Sockets that listen on a port: address and inode.
fn listening(net: &Path, port: u16) -> Vec<(String, u64)> {
    let mut found = Vec::new();
    for name in ["tcp", "tcp6"] {
        let Ok(bytes) = fs::read(net.join(name)) else { continue };
        let Ok(entries) =
            TcpNetEntries::from_buf_read(bytes.as_slice(), procfs::current_system_info())
        else {
            continue;
        };
        let listens = |entry: &&procfs::net::TcpNetEntry| {
            entry.state == TcpState::Listen && entry.local_address.port() == port
        };
        found.extend(
            entries
                .0
                .iter()
                .filter(listens)
                .map(|entry| (entry.local_address.ip().to_string(), entry.inode)),
        );
    }
    found
}

fn holder(root: &Path, inode: u64) -> Option<u32> {
    let wanted = format!("socket:[{inode}]");
    pids(root).into_iter().find(|pid| {
        let Ok(files) = fs::read_dir(folder(root, *pid).join("fd")) else { return false };
        files.filter_map(Result::ok).any(|file| {
            fs::read_link(file.path()).is_ok_and(|target| target.to_string_lossy() == wanted)
        })
    })
}
