use super::*;
use crate::provenance::document::Seen as How;
use std::os::unix::fs::symlink;

/// A copy of `/proc` with one process that listens on port 8000.
struct Fake {
    root: tempfile::TempDir,
}

impl Fake {
    fn new(argv: &[&str]) -> Self {
        let fake = Self { root: tempfile::tempdir().unwrap() };
        // Port 8000 is 1F40; state 0A is LISTEN; the socket's inode is 777.
        let header = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n";
        let row = "   0: 0100007F:1F40 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 777 1 0 100 0 0 10 0\n";
        fake.write("proc/net/tcp", &format!("{header}{row}"));
        fake.write("proc/stat", "cpu 0\nbtime 1780000000\n");
        fake.write("proc/sys/kernel/random/boot_id", "boot-1\n");
        fake.write("proc/sys/kernel/hostname", "h\n");
        fake.write("proc/cpuinfo", "processor : 0\nmodel name : AMD EPYC\n");
        fake.process(41, 1, argv);
        symlink("socket:[777]", fake.path("proc/41/fd/3")).unwrap();
        fake
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn process(&self, pid: u32, parent: u32, argv: &[&str]) {
        self.write(&format!("proc/{pid}/cmdline"), &(argv.join("\0") + "\0"));
        let stat = format!(
            "{pid} (x) S {parent} 1 1 0 -1 4194304 0 0 0 0 0 0 0 0 20 0 1 0 6000 0 0 18446744073709551615 0 0 0 0 0 0 0 0 0 0 0 0 17 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n"
        );
        self.write(&format!("proc/{pid}/stat"), &stat);
        self.write(&format!("proc/{pid}/maps"), "");
        self.write(&format!("proc/{pid}/cgroup"), "0::/user.slice\n");
        fs::create_dir_all(self.path(&format!("proc/{pid}/fd"))).unwrap();
        symlink("/usr/bin/server", self.path(&format!("proc/{pid}/exe"))).unwrap();
        symlink("/", self.path(&format!("proc/{pid}/cwd"))).unwrap();
        self.write("usr/bin/server", "ELF");
    }

    fn map(&self, pid: u32, path: &str, inode: u64) {
        let row = format!("7f0000000000-7f0000001000 r--s 00000000 fe:00 {inode} {path}\n");
        self.write(&format!("proc/{pid}/maps"), &row);
    }

    fn inode(&self, path: &str) -> u64 {
        use std::os::unix::fs::MetadataExt;
        fs::metadata(self.path(path.trim_start_matches('/'))).unwrap().ino()
    }

    fn capture(&self) -> Result<Document, ProbeError> {
        capture(self.root.path(), Target::Port(8000), DateTime::UNIX_EPOCH, "test", &mut |_| {})
    }
}

#[test]
fn a_port_leads_to_the_process_and_its_mapped_weights() {
    let fake =
        Fake::new(&["llama-server", "-m", "/m/tiny.gguf", "--alias", "gpt-5", "--api-key", "sk"]);
    fake.write("m/tiny.gguf", "abc");
    fake.map(41, "/m/tiny.gguf", fake.inode("m/tiny.gguf"));
    let document = fake.capture().unwrap();
    assert_eq!(document.listener.as_ref().unwrap().pid, 41);
    let process = document.process.as_ref().unwrap();
    // btime 1780000000 plus 6000 ticks of 1/100 s.
    assert_eq!(process.started_at.timestamp(), 1_780_000_060);
    assert_eq!(process.argv.last().map(String::as_str), Some("***"));
    assert_eq!(document.labels.served_names, ["gpt-5"]);
    let file = &document.weights[0];
    assert_eq!((file.path.as_str(), file.seen, file.replaced), ("/m/tiny.gguf", How::Mapped, None));
    assert_eq!(
        file.blake3.as_deref(),
        Some("6437b3ac38465133ffb63b75273a8db548c558465d79db03fd359c6cd5bd9d85")
    );
    assert_eq!(document.host.cpu.as_deref(), Some("AMD EPYC"));
    assert_eq!(document.engine.name.as_deref(), Some("llama.cpp"));
}

#[test]
fn weights_of_a_worker_below_the_listener_are_its_own() {
    let fake = Fake::new(&["vllm", "serve", "acme/tiny"]);
    fake.process(42, 41, &["VLLM::Worker"]);
    fake.write("m/a.safetensors", "abc");
    fake.map(42, "/m/a.safetensors", fake.inode("m/a.safetensors"));
    let document = fake.capture().unwrap();
    assert_eq!(document.children[0].pid, 42);
    assert_eq!(document.weights[0].seen, How::Mapped);
}

#[test]
fn a_replaced_file_is_said() {
    let fake = Fake::new(&["llama-server"]);
    fake.write("m/tiny.gguf", "abc");
    fake.map(41, "/m/tiny.gguf", fake.inode("m/tiny.gguf") + 1);
    assert_eq!(fake.capture().unwrap().weights[0].replaced, Some(true));
    fake.map(41, "/m/tiny.gguf (deleted)", fake.inode("m/tiny.gguf"));
    assert_eq!(fake.capture().unwrap().weights[0].replaced, Some(true));
    fake.map(41, "/m/gone.gguf (deleted)", 5);
    assert_eq!(fake.capture().unwrap().weights[0].replaced, Some(true));
}

#[test]
fn a_snapshot_of_the_cache_is_resolved_and_its_blobs_are_what_they_say() {
    let fake = Fake::new(&["vllm", "serve", "acme/tiny"]);
    fake.write("proc/41/environ", "HF_HOME=/cache\0");
    let repository = "cache/hub/models--acme--tiny";
    // printf abc | sha256sum
    let sha256 = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    fake.write(&format!("{repository}/refs/main"), "c0ffee");
    fake.write(&format!("{repository}/blobs/{sha256}"), "abc");
    fs::create_dir_all(fake.path(&format!("{repository}/snapshots/c0ffee"))).unwrap();
    symlink(
        format!("../../blobs/{sha256}"),
        fake.path(&format!("{repository}/snapshots/c0ffee/model.safetensors")),
    )
    .unwrap();
    let document = fake.capture().unwrap();
    let file = &document.weights[0];
    let snapshot = file.hf.as_ref().unwrap();
    assert_eq!(
        (snapshot.repo.as_str(), snapshot.commit.as_str(), file.seen),
        ("acme/tiny", "c0ffee", How::HfSnapshot)
    );
    // The blob mapped by a worker is the same file under its name in the snapshot.
    fake.map(
        41,
        &format!("/{repository}/blobs/{sha256}"),
        fake.inode(&format!("{repository}/blobs/{sha256}")),
    );
    let mapped = fake.capture().unwrap();
    assert_eq!(mapped.weights.len(), 1);
    assert_eq!(
        (mapped.weights[0].seen, mapped.weights[0].hf.clone()),
        (How::Mapped, file.hf.clone())
    );
    assert!(mapped.weights[0].path.ends_with("c0ffee/model.safetensors"));
    fake.write(&format!("{repository}/blobs/{sha256}"), "abd");
    assert!(matches!(fake.capture(), Err(ProbeError::BlobAltered { .. })));
}

#[test]
fn what_proves_nothing_is_refused_by_name() {
    let proxy = Fake::new(&["python3", "/opt/litellm", "--port", "8000"]);
    assert!(matches!(proxy.capture(), Err(ProbeError::Proxy { pid: 41, .. })));
    let bare = Fake::new(&["vllm", "serve", "acme/tiny"]);
    assert!(matches!(bare.capture(), Err(ProbeError::NoWeights { pid: 41, descendants: 0 })));
    let silent =
        capture(bare.root.path(), Target::Port(9), DateTime::UNIX_EPOCH, "test", &mut |_| {});
    assert!(matches!(silent, Err(ProbeError::NoListener { port: 9 })));
    let absent =
        capture(bare.root.path(), Target::Pid(9), DateTime::UNIX_EPOCH, "test", &mut |_| {});
    assert!(matches!(absent, Err(ProbeError::NoProcess { pid: 9 })));
    fs::remove_file(bare.path("proc/41/fd/3")).unwrap();
    assert!(matches!(bare.capture(), Err(ProbeError::HiddenListener { port: 8000 })));
}

#[test]
fn a_real_process_that_listens_is_found_with_the_file_it_holds_open() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("real-process.gguf");
    fs::write(&path, "abc").unwrap();
    let _held = fs::File::open(&path).unwrap();
    let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = socket.local_addr().unwrap().port();
    let document =
        capture(Path::new("/"), Target::Port(port), DateTime::UNIX_EPOCH, "test", &mut |_| {})
            .unwrap();
    assert_eq!(document.listener.as_ref().map(|listener| listener.pid), Some(std::process::id()));
    let file =
        document.weights.iter().find(|file| file.file_name() == "real-process.gguf").unwrap();
    assert_eq!(file.seen, How::Open);
    assert!(document.process.as_ref().is_some_and(|process| !process.argv.is_empty()));
}
