#!/bin/sh
# Recomputes every identity of one run with b3sum and sqlite3 alone.
#   scripts/recompute-key.sh LEDGER-FOLDER RUN-FOLDER KEY
# RUN-FOLDER is the folder that was recorded (or what `ledger extract` wrote). Exits 1 when an identity differs.
set -eu
ledger=$1 folder=$2 key=$3
hash() { b3sum --no-names; }
body=$(mktemp); trap 'rm -f "$body" "$body".*' EXIT

# The entry: its body is canonical JSON, its id is BLAKE3 of those bytes.
seq=$(sqlite3 "$ledger/ledger.db" "SELECT seq FROM run WHERE hex(key) = upper('$key')")
sqlite3 "$ledger/ledger.db" "SELECT writefile('$body', body) FROM entry WHERE seq = $seq" > /dev/null
entry=$(hash < "$body")
stored=$(sqlite3 "$ledger/ledger.db" "SELECT lower(hex(id)) FROM entry WHERE seq = $seq")
echo "entry id     $entry"
[ "$entry" = "$stored" ] || { echo "the log says  $stored"; exit 1; }

# The artifact root: BLAKE3 of one line a file, sorted by path bytes. Manifest and provenance are no artifacts.
{
    echo "ledger-tree v1"
    (cd "$folder" && find . -type f ! -path ./run.toml ! -path ./provenance.json | sed 's|^\./||' | LC_ALL=C sort | while IFS= read -r path; do
        printf '%s %s %s\n' "$(b3sum --no-names "$path")" "$(wc -c < "$path" | tr -d ' ')" "$path"
    done)
} > "$body.tree"
root=$(hash < "$body.tree")
echo "artifact root $root"

# The fingerprint: BLAKE3 of its canonical JSON, which stands in the canonical body as it is.
sqlite3 "$ledger/ledger.db" "SELECT writefile('$body.fingerprint', json_extract(CAST(body AS TEXT), '$.fingerprint')) FROM entry WHERE seq = $seq" > /dev/null
fingerprint=$(hash < "$body.fingerprint")
echo "fingerprint  $fingerprint"

computed=$(printf 'ledger-run v1\n%s\n%s\n' "$root" "$fingerprint" | hash)
echo "run key      $computed"
[ "$computed" = "$key" ] || { echo "the ledger says $key"; exit 1; }
