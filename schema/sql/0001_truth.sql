-- The truth of a ledger: entries, the Merkle tree over them, and blobs. Append only: every table has three triggers, because
-- INSERT OR REPLACE walks past the triggers on UPDATE and DELETE. `ledger verify` trusts none of them.

-- One append. body is RFC 8785 canonical JSON; id = BLAKE3(body):  sqlite3 ledger.db "select cast(body as text) from entry where seq = 0" | tr -d '\n' | b3sum
CREATE TABLE entry (
    seq  INTEGER PRIMARY KEY CHECK (seq >= 0),
    id   BLOB NOT NULL UNIQUE CHECK (length(id) = 32),
    kind TEXT NOT NULL,
    body BLOB NOT NULL
) STRICT;

-- The RFC 6962 tree (SHA-256) over the leaves {"entry":ID,"kind":KIND,"v":1}, in the stored-hash order of Go's sumdb:
-- https://pkg.go.dev/golang.org/x/mod/sumdb/tlog#StoredHashIndex
CREATE TABLE tlog_hash (
    idx  INTEGER PRIMARY KEY CHECK (idx >= 0),
    hash BLOB NOT NULL CHECK (length(hash) = 32)
) STRICT;

-- The root after each append transaction.
CREATE TABLE tree_head (
    size INTEGER PRIMARY KEY CHECK (size > 0),
    root BLOB NOT NULL CHECK (length(root) = 32)
) STRICT;

-- Files byte for byte, stored as zstd frames. hash = BLAKE3 of the original bytes, stored_hash = BLAKE3 of the frame; data is NULL where
-- the frame lies in objects/.
CREATE TABLE blob (
    id          INTEGER PRIMARY KEY,
    hash        BLOB NOT NULL UNIQUE CHECK (length(hash) = 32),
    size        INTEGER NOT NULL CHECK (size >= 0),
    stored_hash BLOB NOT NULL CHECK (length(stored_hash) = 32),
    data        BLOB
) STRICT;

CREATE TRIGGER entry_is_never_updated BEFORE UPDATE ON entry BEGIN SELECT RAISE(ABORT, 'the log is append-only: an entry is never changed'); END;
CREATE TRIGGER entry_is_never_deleted BEFORE DELETE ON entry BEGIN SELECT RAISE(ABORT, 'the log is append-only: an entry is never deleted'); END;
CREATE TRIGGER entry_is_never_replaced BEFORE INSERT ON entry
    WHEN EXISTS (SELECT 1 FROM entry WHERE seq = NEW.seq) OR EXISTS (SELECT 1 FROM entry WHERE id = NEW.id)
    BEGIN SELECT RAISE(ABORT, 'the log is append-only: an entry is never replaced'); END;

CREATE TRIGGER tlog_hash_is_never_updated BEFORE UPDATE ON tlog_hash BEGIN SELECT RAISE(ABORT, 'the log is append-only: a tree node is never changed'); END;
CREATE TRIGGER tlog_hash_is_never_deleted BEFORE DELETE ON tlog_hash BEGIN SELECT RAISE(ABORT, 'the log is append-only: a tree node is never deleted'); END;
CREATE TRIGGER tlog_hash_is_never_replaced BEFORE INSERT ON tlog_hash
    WHEN EXISTS (SELECT 1 FROM tlog_hash WHERE idx = NEW.idx)
    BEGIN SELECT RAISE(ABORT, 'the log is append-only: a tree node is never replaced'); END;

CREATE TRIGGER tree_head_is_never_updated BEFORE UPDATE ON tree_head BEGIN SELECT RAISE(ABORT, 'the log is append-only: a tree head is never changed'); END;
CREATE TRIGGER tree_head_is_never_deleted BEFORE DELETE ON tree_head BEGIN SELECT RAISE(ABORT, 'the log is append-only: a tree head is never deleted'); END;
CREATE TRIGGER tree_head_is_never_replaced BEFORE INSERT ON tree_head
    WHEN EXISTS (SELECT 1 FROM tree_head WHERE size = NEW.size)
    BEGIN SELECT RAISE(ABORT, 'the log is append-only: a tree head is never replaced'); END;

CREATE TRIGGER blob_is_never_updated BEFORE UPDATE ON blob BEGIN SELECT RAISE(ABORT, 'artifacts are never changed'); END;
CREATE TRIGGER blob_is_never_deleted BEFORE DELETE ON blob BEGIN SELECT RAISE(ABORT, 'artifacts are never deleted'); END;
CREATE TRIGGER blob_is_never_replaced BEFORE INSERT ON blob
    WHEN EXISTS (SELECT 1 FROM blob WHERE hash = NEW.hash) OR EXISTS (SELECT 1 FROM blob WHERE id = NEW.id)
    BEGIN SELECT RAISE(ABORT, 'artifacts are never replaced'); END;
