//! Indexes over the log, kept so that a question costs its answer. Each entry is applied once, in
//! log order, by the same function when it is appended and when everything is rebuilt; two ways to
//! fill an index would be two truths.

use super::log::{for_each_entry, to_count};
use super::{Append, Store, StoreError};
use crate::clock;
use crate::entry::{Body, CorrectionBody, Evidence, Outcome, Path, RetractionBody, RunBody};
use crate::id::{ArtifactRoot, FingerprintId, PriorKey, RunKey, from_hex};
use crate::subject::{Subject, SubjectFilter};
use rusqlite::{Connection, OptionalExtension, Row, params, params_from_iter};

/// The derived tables, in the order they are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexTable {
    /// One row a run.
    Run,
    /// The newest countable run of each subject.
    Latest,
    /// Which run a result file is the evidence of.
    Claim,
    /// Digests of extracted numbers.
    Measurement,
    /// Entries that concern a run.
    About,
    /// Entries that bind weight sets.
    Binding,
    /// One row a prior.
    Prior,
}

impl IndexTable {
    /// Every derived table.
    pub const ALL: [Self; 7] = [
        Self::Run,
        Self::Latest,
        Self::Claim,
        Self::Measurement,
        Self::About,
        Self::Binding,
        Self::Prior,
    ];

    /// Returns its SQL name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Latest => "latest",
            Self::Claim => "claim",
            Self::Measurement => "measurement",
            Self::About => "about",
            Self::Binding => "binding",
            Self::Prior => "prior",
        }
    }

    const fn dump(self) -> &'static str {
        match self {
            Self::Run => "SELECT * FROM run ORDER BY seq",
            Self::Latest => "SELECT * FROM latest ORDER BY candidate, config, task, hardware",
            Self::Claim => "SELECT * FROM claim ORDER BY blob, run",
            Self::Measurement => "SELECT * FROM measurement ORDER BY digest, run",
            Self::About => "SELECT * FROM about ORDER BY run, seq",
            Self::Binding => "SELECT * FROM binding ORDER BY seq",
            Self::Prior => "SELECT * FROM prior ORDER BY seq",
        }
    }
}

/// One run as the index knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunRow {
    /// Place of its entry in the log.
    pub seq: i64,
    /// Its key.
    pub key: RunKey,
    /// Its fingerprint id.
    pub fingerprint: FingerprintId,
    /// Its labels as they stand now.
    pub subject: Subject,
    /// Microseconds since 1970, UTC.
    pub measured_at: i64,
    /// `measured` or `failed`.
    pub outcome: String,
    /// `ok`, `caution` or `untrustworthy`.
    pub validity: String,
    /// Server start, in hex.
    pub start: Option<Vec<u8>>,
    /// Weight set that was loaded.
    pub weights: Option<String>,
    /// Model id that was asked for.
    pub requested: Option<String>,
    /// Class of the cause of a failed attempt.
    pub cause: Option<String>,
    /// Campaign.
    pub campaign: Option<String>,
    /// Prompt tokens of the request that a failed attempt died under.
    pub prompt_tokens: Option<i64>,
    /// Place of the retraction in the log.
    pub retracted: Option<i64>,
}

/// One line of `latest`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LatestRow {
    /// Labels.
    pub subject: Subject,
    /// Microseconds since 1970, UTC.
    pub measured_at: i64,
    /// Place of the run's entry in the log.
    pub seq: i64,
    /// Its key.
    pub key: RunKey,
    /// `ok`, `caution` or `untrustworthy`.
    pub validity: String,
    /// One line of main metrics.
    pub headline: String,
    /// Countable runs of this subject.
    pub runs: i64,
    /// Place of a failed attempt measured after it.
    pub later_failure: Option<i64>,
}

fn database(error: rusqlite::Error) -> StoreError {
    StoreError::database("bring an index up to date")(error)
}

fn malformed(seq: i64, what: &str) -> StoreError {
    StoreError::Entry { seq, problem: format!("its {what} cannot be read") }
}

fn key_bytes(seq: i64, hex: &str) -> Result<[u8; 32], StoreError> {
    from_hex(hex).map_err(|_bad| malformed(seq, "run key"))
}

/// Applies one entry.
pub(super) fn apply(db: &Connection, seq: i64, body: &Body) -> Result<(), StoreError> {
    match body {
        Body::Run(run) => apply_run(db, seq, run),
        Body::Correction(correction) => apply_correction(db, seq, correction),
        Body::Retraction(retraction) => apply_retraction(db, seq, retraction),
        Body::Note(note) => match &note.run {
            Some(run) => apply_about(db, seq, run),
            None => Ok(()),
        },
        Body::Binding(binding) => {
            db.prepare_cached("INSERT INTO binding (seq, weights) VALUES (?1, ?2)")
                .and_then(|mut insert| insert.execute(params![seq, binding.weight_set]))
                .map_err(database)?;
            Ok(())
        }
        Body::Prior(prior) => {
            let key = key_bytes(seq, &prior.key)?;
            db.prepare_cached("INSERT INTO prior (seq, key, source) VALUES (?1, ?2, ?3)")
                .and_then(|mut insert| insert.execute(params![seq, key, prior.source.name]))
                .map_err(database)?;
            Ok(())
        }
    }
}

fn apply_about(db: &Connection, seq: i64, run: &str) -> Result<(), StoreError> {
    let key = key_bytes(seq, run)?;
    db.prepare_cached("INSERT INTO about (run, seq) VALUES (?1, ?2)")
        .and_then(|mut insert| insert.execute(params![key, seq]))
        .map_err(database)?;
    Ok(())
}

fn apply_run(db: &Connection, seq: i64, run: &RunBody) -> Result<(), StoreError> {
    let key = key_bytes(seq, &run.key)?;
    let measured_at = clock::parse(&run.measured_at)
        .map_err(|_bad| malformed(seq, "measurement time"))?
        .timestamp_micros();
    insert_run(db, seq, run, (key, measured_at))?;
    insert_claims(db, seq, run, key)?;
    if let Some(digest) = measurement_digest(run) {
        db.prepare_cached("INSERT INTO measurement (digest, run) VALUES (?1, ?2)")
            .and_then(|mut insert| insert.execute(params![digest, key]))
            .map_err(database)?;
    }
    match run.outcome {
        Outcome::Measured => advance_latest(db, seq, run, (key, measured_at)),
        Outcome::Failed => note_failure(db, seq, &run.subject, measured_at),
    }
}

fn insert_run(
    db: &Connection,
    seq: i64,
    run: &RunBody,
    (key, measured_at): ([u8; 32], i64),
) -> Result<(), StoreError> {
    let hex = |text: &str, what| from_hex(text).map_err(|_bad| malformed(seq, what));
    let start = run.server_start.as_deref().map(|start| hex(start, "server start")).transpose()?;
    let provenance = run.provenance.as_ref();
    let failure = run.failure.as_ref();
    let Subject { candidate, config, task, hardware } = &run.subject;
    db.prepare_cached(
        "INSERT INTO run (seq, key, candidate, config, task, hardware, measured_at, root, fingerprint, start, weights, requested,
            outcome, validity, evidence, path, campaign, cause, prompt_tokens, output_tokens)
         VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16,?17,?18,?19,?20)",
    )
    .and_then(|mut insert| {
        insert.execute(params![
            seq,
            key,
            candidate,
            config,
            task,
            hardware,
            measured_at,
            from_hex(&run.root).ok(),
            from_hex(&run.fingerprint_id).ok(),
            start,
            provenance.map(|proof| &proof.weight_set),
            provenance.map(|proof| &proof.requested),
            run.outcome.as_str(),
            run.validity.as_str(),
            evidence_name(run.circumstances.evidence),
            path_name(run.circumstances.path),
            run.circumstances.campaign,
            failure.and_then(|failure| failure.cause.as_deref()),
            failure.and_then(|failure| failure.prompt_tokens).map(super::log::to_integer),
            failure.and_then(|failure| failure.output_tokens).map(super::log::to_integer),
        ])
    })
    .map_err(database)?;
    Ok(())
}

const fn evidence_name(evidence: Evidence) -> &'static str {
    match evidence {
        Evidence::Synthetic => "synthetic",
        Evidence::Client => "client",
    }
}

const fn path_name(path: Path) -> &'static str {
    match path {
        Path::Direct => "direct",
        Path::Routed => "routed",
        Path::Deployed => "deployed",
    }
}

fn insert_claims(
    db: &Connection,
    seq: i64,
    run: &RunBody,
    key: [u8; 32],
) -> Result<(), StoreError> {
    for result in &run.results {
        let blob = from_hex(&result.blob).map_err(|_bad| malformed(seq, "result file"))?;
        db.prepare_cached("INSERT OR IGNORE INTO claim (blob, run, path) VALUES (?1, ?2, ?3)")
            .and_then(|mut insert| insert.execute(params![blob, key, result.path]))
            .map_err(database)?;
    }
    Ok(())
}

/// Digests the extracted numbers of a run, so that the same measurement in other bytes (another
/// encoding, a re-saved file) is noticed. `None` when nothing was measured.
pub(crate) fn measurement_digest(run: &RunBody) -> Option<[u8; 32]> {
    if run.cells.iter().all(|cell| cell.metrics.is_empty()) {
        return None;
    }
    let bytes = crate::canonical::to_bytes(&run.cells).ok()?;
    Some(*blake3::hash(&bytes).as_bytes())
}

fn advance_latest(
    db: &Connection,
    seq: i64,
    run: &RunBody,
    (key, measured_at): ([u8; 32], i64),
) -> Result<(), StoreError> {
    let Subject { candidate, config, task, hardware } = &run.subject;
    // A run that is newer takes the line over; an older one that arrives late only counts.
    db.prepare_cached(
        "INSERT INTO latest (candidate, config, task, hardware, measured_at, seq, key, validity, headline, runs, later_failure)
         VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,1,
            (SELECT max(seq) FROM run WHERE candidate=?1 AND config=?2 AND task=?3 AND hardware=?4
                AND outcome='failed' AND retracted IS NULL AND measured_at>?5))
         ON CONFLICT (candidate, config, task, hardware) DO UPDATE SET
            runs = runs + 1,
            seq = iif(excluded.measured_at >= measured_at, excluded.seq, seq),
            key = iif(excluded.measured_at >= measured_at, excluded.key, key),
            validity = iif(excluded.measured_at >= measured_at, excluded.validity, validity),
            headline = iif(excluded.measured_at >= measured_at, excluded.headline, headline),
            later_failure = iif(excluded.measured_at >= measured_at, excluded.later_failure, later_failure),
            measured_at = max(excluded.measured_at, measured_at)",
    )
    .and_then(|mut insert| {
        let validity = run.validity.as_str();
        let line = run.headline();
        insert.execute(params![candidate, config, task, hardware, measured_at, seq, key, validity, line])
    })
    .map_err(database)?;
    Ok(())
}

fn note_failure(
    db: &Connection,
    seq: i64,
    subject: &Subject,
    measured_at: i64,
) -> Result<(), StoreError> {
    let Subject { candidate, config, task, hardware } = subject;
    db.prepare_cached(
        "UPDATE latest SET later_failure = ?5 WHERE candidate=?1 AND config=?2 AND task=?3 AND hardware=?4 AND measured_at < ?6",
    )
    .and_then(|mut update| update.execute(params![candidate, config, task, hardware, seq, measured_at]))
    .map_err(database)?;
    Ok(())
}

fn apply_correction(
    db: &Connection,
    seq: i64,
    correction: &CorrectionBody,
) -> Result<(), StoreError> {
    apply_about(db, seq, &correction.run)?;
    let key = key_bytes(seq, &correction.run)?;
    let Subject { candidate, config, task, hardware } = &correction.after;
    db.execute(
        "UPDATE run SET candidate=?2, config=?3, task=?4, hardware=?5 WHERE key=?1",
        params![key, candidate, config, task, hardware],
    )
    .map_err(database)?;
    refresh_latest(db, &correction.before)?;
    refresh_latest(db, &correction.after)
}

fn apply_retraction(
    db: &Connection,
    seq: i64,
    retraction: &RetractionBody,
) -> Result<(), StoreError> {
    apply_about(db, seq, &retraction.run)?;
    let key = key_bytes(seq, &retraction.run)?;
    db.execute("UPDATE run SET retracted=?2 WHERE key=?1 AND retracted IS NULL", params![key, seq])
        .map_err(database)?;
    match find_row(db, "key = ?1", [key])? {
        Some(row) => refresh_latest(db, &row.subject),
        None => Ok(()),
    }
}

/// Finds the line of one subject again from the run index and the log.
fn refresh_latest(db: &Connection, subject: &Subject) -> Result<(), StoreError> {
    let Subject { candidate, config, task, hardware } = subject;
    let labels = [candidate, config, task, hardware];
    db.execute(
        "DELETE FROM latest WHERE candidate=?1 AND config=?2 AND task=?3 AND hardware=?4",
        labels,
    )
    .map_err(database)?;
    let newest = find_row(
        db,
        "candidate=?1 AND config=?2 AND task=?3 AND hardware=?4 AND outcome='measured' AND retracted IS NULL
         ORDER BY measured_at DESC, seq DESC LIMIT 1",
        labels,
    )?;
    let Some(newest) = newest else { return Ok(()) };
    let body: Vec<u8> = db
        .query_row("SELECT body FROM entry WHERE seq = ?1", [newest.seq], |row| row.get(0))
        .map_err(database)?;
    let Ok(Body::Run(run)) = Body::parse(&body) else {
        return Err(malformed(newest.seq, "body"));
    };
    // The line is told as the labels stand now.
    let run = RunBody { subject: subject.clone(), ..*run };
    advance_latest(db, newest.seq, &run, (*newest.key.as_bytes(), newest.measured_at))?;
    db.execute(
        "UPDATE latest SET runs = (SELECT count(*) FROM run WHERE candidate=?1 AND config=?2 AND task=?3 AND hardware=?4
            AND outcome='measured' AND retracted IS NULL)
         WHERE candidate=?1 AND config=?2 AND task=?3 AND hardware=?4",
        labels,
    )
    .map_err(database)?;
    Ok(())
}

fn run_row(row: &Row<'_>) -> rusqlite::Result<RunRow> {
    Ok(RunRow {
        seq: row.get("seq")?,
        key: RunKey::from_bytes(row.get("key")?),
        fingerprint: FingerprintId::from_bytes(row.get("fingerprint")?),
        subject: Subject {
            candidate: row.get("candidate")?,
            config: row.get("config")?,
            task: row.get("task")?,
            hardware: row.get("hardware")?,
        },
        measured_at: row.get("measured_at")?,
        outcome: row.get("outcome")?,
        validity: row.get("validity")?,
        start: row.get("start")?,
        weights: row.get("weights")?,
        requested: row.get("requested")?,
        cause: row.get("cause")?,
        campaign: row.get("campaign")?,
        prompt_tokens: row.get("prompt_tokens")?,
        retracted: row.get("retracted")?,
    })
}

fn find_row(
    db: &Connection,
    condition: &str,
    parameters: impl rusqlite::Params,
) -> Result<Option<RunRow>, StoreError> {
    db.prepare_cached(&format!("SELECT * FROM run WHERE {condition}"))
        .and_then(|mut query| query.query_row(parameters, run_row).optional())
        .map_err(StoreError::database("look up a run"))
}

impl Append<'_> {
    /// Finds the entry of a prior by its key.
    ///
    /// # Errors
    /// What SQLite says.
    pub fn find_prior(&self, key: &PriorKey) -> Result<Option<i64>, StoreError> {
        self.transaction
            .prepare_cached("SELECT seq FROM prior WHERE key = ?1")
            .and_then(|mut query| query.query_row([key.as_bytes()], |row| row.get(0)).optional())
            .map_err(StoreError::database("look up a prior"))
    }

    /// Finds a run by its key.
    ///
    /// # Errors
    /// What SQLite says.
    pub fn find_run(&self, key: &RunKey) -> Result<Option<RunRow>, StoreError> {
        find_row(&self.transaction, "key = ?1", [key.as_bytes()])
    }

    /// Returns the keys of unretracted runs whose evidence a result file already is.
    ///
    /// # Errors
    /// What SQLite says.
    pub fn find_claims(&self, blob: &[u8; 32]) -> Result<Vec<RunRow>, StoreError> {
        rows(
            &self.transaction,
            "key IN (SELECT run FROM claim WHERE blob = ?1) AND retracted IS NULL ORDER BY seq",
            [blob],
        )
    }

    /// Returns the runs that hold the same extracted numbers.
    ///
    /// # Errors
    /// What SQLite says.
    pub fn find_same_measurement(&self, digest: &[u8; 32]) -> Result<Vec<RunRow>, StoreError> {
        rows(
            &self.transaction,
            "key IN (SELECT run FROM measurement WHERE digest = ?1) AND retracted IS NULL ORDER BY seq",
            [digest],
        )
    }
}

fn rows(
    db: &Connection,
    condition: &str,
    parameters: impl rusqlite::Params,
) -> Result<Vec<RunRow>, StoreError> {
    db.prepare_cached(&format!("SELECT * FROM run WHERE {condition}"))
        .and_then(|mut query| query.query_map(parameters, run_row)?.collect())
        .map_err(StoreError::database("look up runs"))
}

impl Store {
    /// Returns the runs of matching subjects in order of measurement.
    ///
    /// # Errors
    /// What SQLite says.
    pub fn find_runs(&self, filter: &SubjectFilter) -> Result<Vec<RunRow>, StoreError> {
        let (condition, labels) = condition(filter);
        rows(&self.db, &format!("{condition} ORDER BY measured_at, seq"), params_from_iter(labels))
    }

    /// Finds a run by its key.
    ///
    /// # Errors
    /// What SQLite says.
    pub fn find_run(&self, key: &RunKey) -> Result<Option<RunRow>, StoreError> {
        find_row(&self.db, "key = ?1", [key.as_bytes()])
    }

    /// Finds the runs of an artifact root.
    ///
    /// # Errors
    /// What SQLite says.
    pub fn find_runs_by_root(&self, root: &ArtifactRoot) -> Result<Vec<RunRow>, StoreError> {
        rows(&self.db, "root = ?1 ORDER BY seq", [root.as_bytes()])
    }

    /// Finds the run that a person names by eight or more hex digits of its key.
    ///
    /// # Errors
    /// [`StoreError::NotAKey`], [`StoreError::NoSuchRun`], or [`StoreError::Ambiguous`] with every
    /// key it could mean.
    pub fn resolve_run(&self, typed: &str) -> Result<RunRow, StoreError> {
        let is_key = typed.len() >= crate::id::SHORTEST_PREFIX
            && typed.len() <= 64
            && typed.chars().all(|c| matches!(c, '0'..='9' | 'a'..='f'));
        if !is_key {
            return Err(StoreError::NotAKey { typed: typed.to_owned() });
        }
        // Two whole keys around every key with this prefix, so that the unique index answers.
        let bound = |digit| {
            from_hex(&pad(typed, digit))
                .map_err(|_bad| StoreError::NotAKey { typed: typed.to_owned() })
        };
        let (low, high) = (bound('0')?, bound('f')?);
        let mut found =
            rows(&self.db, "key BETWEEN ?1 AND ?2 ORDER BY key LIMIT 20", params![low, high])?;
        match (found.pop(), found.is_empty()) {
            (Some(run), true) => Ok(run),
            (None, _) => Err(StoreError::NoSuchRun { typed: typed.to_owned() }),
            (Some(last), false) => Err(StoreError::Ambiguous {
                typed: typed.to_owned(),
                candidates: found.iter().chain([&last]).map(|run| run.key.to_string()).collect(),
            }),
        }
    }

    /// Returns the newest countable run of each matching subject.
    ///
    /// # Errors
    /// What SQLite says.
    pub fn latest(&self, filter: &SubjectFilter) -> Result<Vec<LatestRow>, StoreError> {
        let (condition, labels) = condition(filter);
        self.db
            .prepare_cached(&format!(
                "SELECT candidate, config, task, hardware, measured_at, seq, key, validity, headline, runs, later_failure
                 FROM latest WHERE {condition} ORDER BY candidate, config, task, hardware"
            ))
            .and_then(|mut query| query.query_map(params_from_iter(labels), latest_row)?.collect())
            .map_err(StoreError::database("read the latest runs"))
    }

    /// Returns the failed attempts, by prompt length of the request they died under.
    ///
    /// # Errors
    /// What SQLite says.
    pub fn find_failures(
        &self,
        filter: &SubjectFilter,
        cause: Option<&str>,
        prompt_below: Option<u64>,
    ) -> Result<Vec<RunRow>, StoreError> {
        let (condition, labels) = condition(filter);
        let runs = rows(
            &self.db,
            &format!("outcome = 'failed' AND {condition} ORDER BY measured_at, seq"),
            params_from_iter(labels),
        )?;
        let fits = |run: &RunRow| {
            cause.is_none_or(|cause| run.cause.as_deref() == Some(cause))
                && prompt_below.is_none_or(|limit| {
                    run.prompt_tokens.is_some_and(|tokens| to_count(tokens) < limit)
                })
        };
        Ok(runs.into_iter().filter(fits).collect())
    }

    /// Returns the places of entries that concern a run, beside the one that made it.
    ///
    /// # Errors
    /// What SQLite says.
    pub fn entries_about(&self, key: &RunKey) -> Result<Vec<i64>, StoreError> {
        self.db
            .prepare_cached("SELECT seq FROM about WHERE run = ?1 ORDER BY seq")
            .and_then(|mut query| query.query_map([key.as_bytes()], |row| row.get(0))?.collect())
            .map_err(StoreError::database("look up the entries of a run"))
    }

    /// Returns the places of the priors of a source, or of all, in log order.
    ///
    /// # Errors
    /// What SQLite says.
    pub fn prior_entries(&self, source: Option<&str>) -> Result<Vec<i64>, StoreError> {
        self.db
            .prepare_cached("SELECT seq FROM prior WHERE ?1 IS NULL OR source = ?1 ORDER BY seq")
            .and_then(|mut query| query.query_map([source], |row| row.get(0))?.collect())
            .map_err(StoreError::database("look up priors"))
    }

    /// Drops every index and fills it again from the log.
    ///
    /// # Errors
    /// What SQLite says, or the first entry that cannot be read; nothing is changed then.
    pub fn reindex(&mut self) -> Result<u64, StoreError> {
        let append = self.begin()?;
        for table in IndexTable::ALL {
            append
                .transaction
                .execute_batch(&format!("DROP TABLE IF EXISTS {}", table.as_str()))
                .map_err(database)?;
        }
        append.transaction.execute_batch(super::schema::INDEX).map_err(database)?;
        let entries = fill(&append.transaction, &append.transaction)?;
        append.commit()?;
        Ok(entries)
    }

    /// Rebuilds the indexes beside the stored ones and names the tables that differ.
    ///
    /// # Errors
    /// What SQLite says, or the first entry that cannot be read.
    pub(crate) fn find_stale_indexes(&self) -> Result<Vec<&'static str>, StoreError> {
        let scratch = Connection::open_in_memory().map_err(database)?;
        let schema = format!("{}{}", super::schema::TRUTH, super::schema::INDEX);
        scratch.execute_batch(&schema).map_err(database)?;
        scratch.execute_batch("BEGIN").map_err(database)?;
        fill(&self.db, &scratch)?;
        let mut stale = Vec::new();
        for table in IndexTable::ALL {
            if digest(&scratch, table)? != digest(&self.db, table)? {
                stale.push(table.as_str());
            }
        }
        Ok(stale)
    }
}

fn pad(prefix: &str, digit: char) -> String {
    let rest = 64usize.saturating_sub(prefix.len());
    prefix.chars().chain(std::iter::repeat_n(digit, rest)).collect()
}

fn condition(filter: &SubjectFilter) -> (String, Vec<&str>) {
    let mut parts = vec!["1".to_owned()];
    let mut labels = Vec::new();
    for (name, wanted) in Subject::LABELS.iter().zip(filter.labels()) {
        if let Some(wanted) = wanted {
            labels.push(wanted);
            parts.push(format!("{name} = ?{}", labels.len()));
        }
    }
    (parts.join(" AND "), labels)
}

fn latest_row(row: &Row<'_>) -> rusqlite::Result<LatestRow> {
    Ok(LatestRow {
        subject: Subject {
            candidate: row.get(0)?,
            config: row.get(1)?,
            task: row.get(2)?,
            hardware: row.get(3)?,
        },
        measured_at: row.get(4)?,
        seq: row.get(5)?,
        key: RunKey::from_bytes(row.get(6)?),
        validity: row.get(7)?,
        headline: row.get(8)?,
        runs: row.get(9)?,
        later_failure: row.get(10)?,
    })
}

/// Applies every entry of one database to the indexes of another (or of itself). Corrections and
/// retractions look their run's body up, so a scratch database gets the entries too.
fn fill(from: &Connection, into: &Connection) -> Result<u64, StoreError> {
    let is_scratch = !std::ptr::eq(from, into);
    let mut entries = 0;
    for_each_entry(from, |entry| {
        let body = Body::parse(&entry.body)
            .map_err(|error| StoreError::Entry { seq: entry.seq, problem: error.to_string() })?;
        if is_scratch {
            into.prepare_cached("INSERT INTO entry (seq, id, kind, body) VALUES (?1, ?2, ?3, ?4)")
                .and_then(|mut insert| {
                    insert.execute(params![entry.seq, entry.id, entry.kind, entry.body])
                })
                .map_err(database)?;
        }
        entries += 1;
        apply(into, entry.seq, &body)
    })?;
    Ok(entries)
}

fn digest(db: &Connection, table: IndexTable) -> Result<[u8; 32], StoreError> {
    let mut hasher = blake3::Hasher::new();
    let mut query = db.prepare(table.dump()).map_err(database)?;
    let columns = query.column_count();
    let mut rows = query.query([]).map_err(database)?;
    while let Some(row) = rows.next().map_err(database)? {
        for column in 0..columns {
            let value = row.get_ref(column).map_err(database)?;
            hasher.update(format!("{value:?};").as_bytes());
        }
    }
    Ok(*hasher.finalize().as_bytes())
}
