#!/usr/bin/env python3
"""Puts run.toml and provenance.json into run folders that carry a facts.json, so that a generated workload can be recorded.

    benches/manifests.py PARENT        every subfolder of PARENT

facts.json: candidate, config, task, hardware, model, model_revision, quant, engine, engine_version, engine_digest, context, power_cap_w,
started_at_unix (seconds). The provenance documents are as invented as the runs: this measures the ledger, not a model.
"""
import datetime, hashlib, json, pathlib, sys


def stamp(seconds):
    return datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def write(folder):
    facts = json.loads((folder / "facts.json").read_text())
    # Generated runs start one after another from 2025-12-01 on; the run lasts as long as its result file says.
    result = next(folder.glob("result.json*"))
    duration = json.loads(result.read_text())["duration"]
    started = facts["started_at_unix"] - 31_536_000
    (folder / "run.toml").write_text(
        f'candidate = "{facts["candidate"]}"\nconfig = "{facts["config"]}"\ntask = "{facts["task"]}"\nhardware = "{facts["hardware"]}"\n'
        f'measured_at = "{stamp(started)}"\n\n[model]\nid = "{facts["model"]}"\nrevision = "{facts["model_revision"]}"\n\n'
        f'[quant]\nweights = "{facts["quant"]}"\nkv_cache = "auto"\n\n[conditions]\nseed = {facts["seed"]}\n')
    digest = hashlib.sha256(facts["model_revision"].encode()).hexdigest()
    document = {
        "schema": "ledger-provenance/v1", "captured_at": stamp(started + duration + 5), "tool": "benches/manifests.py",
        "host": {"name": "generated", "os": "linux", "boot_id": f'boot-{facts["run"]}'},
        "listener": {"port": 8000, "address": "127.0.0.1", "pid": 4000},
        "process": {"pid": 4000, "started_at": stamp(started - 600), "exe": "/usr/bin/python3", "exe_blake3": None, "cwd": None,
                    "argv": ["python3", "serve", "--max-model-len", str(facts["context"])], "container": None},
        "weights": [{"path": f'/cache/snapshots/{facts["model_revision"]}/model.safetensors', "bytes": 1, "blake3": digest, "inode": 1,
                     "seen": "hf-snapshot", "hf": {"repo": facts["model"], "commit": facts["model_revision"]}, "header": None}],
        "engine": {"name": facts["engine"], "version": facts["engine_version"], "digest": facts["engine_digest"]},
        "accelerators": [{"name": "NVIDIA GB10", "uuid": "GPU-1", "power_cap_w": facts["power_cap_w"]}],
    }
    (folder / "provenance.json").write_text(json.dumps(document, indent=1))


def main():
    folders = [path for path in sorted(pathlib.Path(sys.argv[1]).iterdir()) if (path / "facts.json").exists()]
    for folder in folders:
        write(folder)
    print(f"{len(folders)} folders")


main()
