-- Indexes over the truth, for the views. Nothing here is truth: `ledger reindex` drops these tables and fills them again from the log,
-- and `ledger verify` rebuilds them beside the stored ones and compares.

-- One row a run, as the entries up to now leave it.
CREATE TABLE run (
    seq         INTEGER PRIMARY KEY,
    key         BLOB NOT NULL UNIQUE,
    candidate   TEXT NOT NULL,
    config      TEXT NOT NULL,
    task        TEXT NOT NULL,
    hardware    TEXT NOT NULL,
    measured_at INTEGER NOT NULL,          -- microseconds since 1970, UTC
    root        BLOB NOT NULL,
    fingerprint BLOB NOT NULL,
    start       BLOB,                      -- server start
    weights     TEXT,                      -- weight set that was loaded
    requested   TEXT,                      -- model id asked for
    outcome     TEXT NOT NULL,             -- measured | failed
    validity    TEXT NOT NULL,             -- ok | caution | untrustworthy
    evidence    TEXT NOT NULL,             -- synthetic | client
    path        TEXT NOT NULL,             -- direct | routed | deployed
    campaign    TEXT,
    cause       TEXT,                      -- of a failed attempt
    prompt_tokens INTEGER,                 -- request shape of a failed attempt
    output_tokens INTEGER,
    retracted   INTEGER                    -- seq of the retraction
) STRICT;
CREATE INDEX run_by_subject ON run (candidate, config, task, hardware, measured_at, seq);
CREATE INDEX run_by_root ON run (root);
CREATE INDEX run_by_weights ON run (weights) WHERE weights IS NOT NULL;
CREATE INDEX run_failed ON run (cause, prompt_tokens) WHERE outcome = 'failed';

-- The newest countable run of each subject, kept so that the question costs its answer and not the log.
CREATE TABLE latest (
    candidate   TEXT NOT NULL,
    config      TEXT NOT NULL,
    task        TEXT NOT NULL,
    hardware    TEXT NOT NULL,
    measured_at INTEGER NOT NULL,
    seq         INTEGER NOT NULL,
    key         BLOB NOT NULL,
    validity    TEXT NOT NULL,
    headline    TEXT NOT NULL,             -- one line of the run's main metrics
    runs        INTEGER NOT NULL,          -- countable runs of this subject
    later_failure INTEGER,                 -- seq of a failed attempt measured after it
    PRIMARY KEY (candidate, config, task, hardware)
) STRICT, WITHOUT ROWID;

-- Which run a result file is the evidence of.
CREATE TABLE claim (
    blob BLOB NOT NULL,
    run  BLOB NOT NULL,
    path TEXT NOT NULL,
    PRIMARY KEY (blob, run)
) STRICT, WITHOUT ROWID;

-- Digest of a run's extracted numbers, to notice the same measurement in other bytes.
CREATE TABLE measurement (
    digest BLOB NOT NULL,
    run    BLOB NOT NULL,
    PRIMARY KEY (digest, run)
) STRICT, WITHOUT ROWID;

-- Entries that concern a run, beside the one that made it.
CREATE TABLE about (
    run BLOB NOT NULL,
    seq INTEGER NOT NULL,
    PRIMARY KEY (run, seq)
) STRICT, WITHOUT ROWID;

-- Entries that bind a weight set to a model.
CREATE TABLE binding (
    seq     INTEGER PRIMARY KEY,
    weights TEXT NOT NULL
) STRICT;

-- One row a prior.
CREATE TABLE prior (
    seq    INTEGER PRIMARY KEY,
    key    BLOB NOT NULL UNIQUE,
    source TEXT NOT NULL
) STRICT;
CREATE INDEX prior_by_source ON prior (source, seq);
