#!/bin/sh
# Measures the release binary with hyperfine. A peer program and a workload of run folders (each with run.toml and provenance.json, see
# manifests.py) are named by the caller:
#   benches/compare.sh RUNS-FOLDER [PEER-COMMAND-WITH-{store}-AND-{runs}]
# for example a bare program that hashes, compresses and commits:  'floor bulk {store} {runs} --sync=none --db=normal'
set -eu
ledger=$(cd "$(dirname "$0")/.." && pwd)/target/release/ledger
runs=$1 peer=${2:-}
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
one=$(find "$runs" -mindepth 1 -maxdepth 1 -type d | sort | head -1)

echo "start"; hyperfine -N --warmup 3 "$ledger --version"
echo "one run, one process"; hyperfine -N --runs 20 --prepare "rm -rf $work/one" "$ledger --ledger $work/one record $one"
echo "the same again"; hyperfine -N --runs 20 "$ledger --ledger $work/one record $one"
echo "all runs, one commit"
if [ -n "$peer" ]; then
    command=$(printf '%s' "$peer" | sed "s|{store}|$work/peer|; s|{runs}|$runs|")
    hyperfine --runs 3 --prepare "rm -rf $work/peer $work/all" "$command" "$ledger --ledger $work/all record --each $runs"
else
    hyperfine --runs 3 --prepare "rm -rf $work/all" "$ledger --ledger $work/all record --each $runs"
fi
echo "all again"; hyperfine --runs 3 "$ledger --ledger $work/all record --each $runs"
echo "verify"; hyperfine --runs 3 "$ledger --ledger $work/all verify"
echo "extract"; hyperfine --runs 3 --prepare "rm -rf $work/out" "$ledger --ledger $work/all extract --all $work/out"
echo "stored bytes"; du -sb "$work/all"
