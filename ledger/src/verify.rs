//! `verify`: everything is derived again from the bytes that are there, and nothing that the writer
//! wrote is trusted: not the triggers, not the indexes, not a name. It goes on to the end and names
//! each damaged thing. What it cannot see: a ledger that was replaced as a whole, or cut at its end
//! and then continued; only a tree head kept elsewhere shows that.

mod deep;
mod entries;
mod objects;

pub use deep::{extract_again, extract_cells};

use crate::adapter::Formats;
use crate::finding::{Code, Finding, Severity};
use crate::store::{Store, StoreError, TreeHead};

/// How far to look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// Everything but the bytes of objects.
    Quick,
    /// Every byte.
    Full,
    /// Every byte, and every metric extracted again.
    Deep,
}

/// What was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VerifyReport {
    /// Entries that were read.
    pub entries: u64,
    /// Objects that were checked.
    pub objects: u64,
    /// Bytes of original content that were hashed.
    pub bytes: u64,
    /// Runs whose metrics were extracted again.
    pub extracted: u64,
    /// The newest tree head.
    pub head: Option<TreeHead>,
    /// All damage, and notes on what is odd and no damage.
    pub findings: Vec<Finding>,
}

impl VerifyReport {
    /// Returns the findings that are damage.
    pub fn damage(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(|finding| finding.severity > Severity::Note)
    }

    /// True when nothing is damaged.
    pub fn is_clean(&self) -> bool {
        self.damage().next().is_none()
    }
}

/// Reports damage.
fn damage(code: Code, subject: impl Into<String>, message: impl Into<String>) -> Finding {
    Finding::new(code, Severity::Untrustworthy, subject, message)
}

/// Verifies a ledger. `expected` is a tree head that was kept elsewhere; `advance` is called with
/// the number of bytes hashed.
///
/// # Errors
/// Only when the ledger cannot be read at all; damage is in the report.
pub fn verify(
    store: &Store,
    depth: Depth,
    formats: &Formats,
    expected: Option<&TreeHead>,
    advance: &(dyn Fn(u64) + Sync),
) -> Result<VerifyReport, StoreError> {
    let mut report = VerifyReport { head: store.tree_head()?, ..VerifyReport::default() };
    report.findings.extend(
        store
            .find_structural_damage()?
            .into_iter()
            .map(|problem| damage(Code::DatabaseDamaged, "ledger.db", problem)),
    );
    report.findings.extend(check_schema(store)?);
    entries::check(store, &mut report)?;
    report.findings.extend(check_expected(store, expected)?);
    objects::check(store, depth, &mut report, advance)?;
    if report.is_clean() {
        for table in store.find_stale_indexes()? {
            let message = format!(
                "index `{table}` is not what the log yields; rebuild it with `ledger reindex`"
            );
            report.findings.push(damage(Code::IndexStale, table, message));
        }
    }
    if depth == Depth::Deep {
        deep::check(store, formats, &mut report)?;
    }
    report.findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    Ok(report)
}

fn check_schema(store: &Store) -> Result<Vec<Finding>, StoreError> {
    let (expected, found) = store.schema_statements()?;
    let mut findings = Vec::new();
    for (name, sql) in &expected {
        match found.iter().find(|(found, _)| found == name) {
            None => findings.push(damage(
                Code::SchemaAltered,
                name,
                format!("`{name}` is gone from the schema"),
            )),
            Some((_, other)) if other != sql => {
                findings.push(damage(
                    Code::SchemaAltered,
                    name,
                    format!("`{name}` is not the one of this version"),
                ));
            }
            Some(_) => {}
        }
    }
    let is_foreign = |name: &String| !expected.iter().any(|(known, _)| known == name);
    findings.extend(found.iter().map(|(name, _)| name).filter(|name| is_foreign(name)).map(
        |name| damage(Code::SchemaAltered, name, format!("`{name}` does not belong to a ledger")),
    ));
    Ok(findings)
}

fn check_expected(
    store: &Store,
    expected: Option<&TreeHead>,
) -> Result<Option<Finding>, StoreError> {
    let Some(expected) = expected else { return Ok(None) };
    let size = store.log_size()?;
    if expected.size > size {
        let message =
            format!("the head kept elsewhere has {} entries, the ledger has {size}", expected.size);
        return Ok(Some(damage(Code::HeadAltered, "expected head", message)));
    }
    let found = store.compute_head(expected.size);
    let is_same = found.as_ref().is_ok_and(|root| *root == expected.root);
    Ok((!is_same).then(|| {
        let found = found.map_or_else(|problem| problem, |root| crate::id::to_hex(&root));
        let message =
            format!("the first {} entries are not those of the head kept elsewhere", expected.size);
        damage(Code::HeadAltered, "expected head", message)
            .with(crate::id::to_hex(&expected.root), "kept elsewhere")
            .with(found, "this ledger")
    }))
}
