//! Rows to runs: rows of another model, build or machine are another run, and so is a row that
//! repeats a point. What is equal for all rows of a run becomes a statement about the run, what
//! differs a coordinate of its cells.

use super::cell::build_cell;
use super::row::{Row, Sheet, Test};
use crate::read::fields::{Fields, to_text};
use ledger::adapter::{ExtractError, ExtractedRun, Fact, FactKind};
use ledger::finding::{Code, Finding};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Settings whose value says that a feature is not in use. Builds add such fields all the time; a
/// build without the field behaves as one with this value, so it is no condition.
const NEUTRAL: [(&str, &[&str]); 24] = [
    ("cpu_mask", &["0x0"]),
    ("cpu_strict", &["false"]),
    ("defrag_thold", &["-1", "-1.0"]),
    ("devices", &["auto", ""]),
    ("embeddings", &["false"]),
    ("fit_min_ctx", &["0"]),
    ("fit_target", &["0"]),
    ("lazy_mode", &["auto"]),
    ("load_mode", &["auto", "mmap"]),
    ("main_gpu", &["0"]),
    ("mul_mat_q", &["true"]),
    ("n_cpu_moe", &["0"]),
    ("no_host", &["false"]),
    ("no_kv_offload", &["false"]),
    ("no_op_offload", &["0"]),
    ("poll", &["50"]),
    ("repack", &["true"]),
    ("tensor_buft_overrides", &["none", ""]),
    ("tensor_split", &["0.00", ""]),
    ("use_direct_io", &["false"]),
    ("use_mmap", &["true"]),
    ("f16_kv", &["true"]),
    ("ser", &["none", ""]),
    ("override_tensor", &["none", ""]),
];

/// Fields that only the `ik_llama.cpp` fork prints.
const FORK_FIELDS: [&str; 3] = ["mla_attn", "fused_moe", "attn_max_batch"];

/// Makes the runs of one execution.
pub(super) fn build_runs(
    sheet: Sheet,
    accelerators: &[(usize, String)],
) -> Result<Vec<ExtractedRun>, ExtractError> {
    let groups = split_groups(sheet.rows)?;
    let mut runs =
        groups.iter().map(|rows| build_run(rows, accelerators)).collect::<Result<Vec<_>, _>>()?;
    if let Some(first) = runs.first_mut() {
        first.cautions.extend(sheet.cautions);
    }
    Ok(runs)
}

/// Groups rows by what they are rows of, in the order they begin. A point that is already in the
/// newest group of its identity begins another: the file was appended to.
fn split_groups(rows: Vec<Row>) -> Result<Vec<Vec<Row>>, ExtractError> {
    let mut groups: Vec<Vec<Row>> = Vec::new();
    let mut newest = BTreeMap::new();
    let mut points = BTreeSet::new();
    for row in rows {
        let identity = row.identity();
        let settings: Vec<String> =
            row.settings().iter().map(|(name, value)| format!("{name}={value}")).collect();
        let point = (row.test()?, settings);
        let index = newest.get(&identity).copied();
        let index = index.filter(|index: &usize| !points.contains(&(*index, point.clone())));
        let index = index.unwrap_or(groups.len());
        newest.insert(identity, index);
        points.insert((index, point));
        match groups.get_mut(index) {
            Some(group) => group.push(row),
            None => groups.push(vec![row]),
        }
    }
    Ok(groups)
}

fn build_run(rows: &[Row], accelerators: &[(usize, String)]) -> Result<ExtractedRun, ExtractError> {
    let Some(first) = rows.first() else { return Ok(ExtractedRun::default()) };
    let varied = find_varied(rows);
    let cells = rows.iter().map(|row| build_cell(row, &varied)).collect::<Result<_, _>>()?;
    let mut run = ExtractedRun { cells, ..ExtractedRun::default() };
    run.locus = locus(rows, &first.fields())?;
    run.span = span(rows);
    run.measured_at = measured_at(rows)?;
    add_engine(&mut run, first)?;
    add_machine(&mut run, &first.fields(), accelerators)?;
    add_model(&mut run, &first.fields())?;
    add_context(&mut run, rows)?;
    add_settings(&mut run, first, &varied);
    Ok(run)
}

fn find_varied(rows: &[Row]) -> BTreeSet<String> {
    let all: Vec<BTreeMap<&str, Value>> = rows.iter().map(Row::settings).collect();
    let names: BTreeSet<&str> = all.iter().flat_map(|settings| settings.keys().copied()).collect();
    let differs = |name: &&str| {
        let mut values = all.iter().map(|settings| settings.get(*name));
        let first = values.next();
        values.any(|value| Some(value) != first)
    };
    names.into_iter().filter(differs).map(str::to_owned).collect()
}

fn locus(rows: &[Row], fields: &Fields<'_>) -> Result<String, ExtractError> {
    let first = rows.iter().map(|row| row.line).min().unwrap_or_default();
    let last = rows.iter().map(|row| row.line).max().unwrap_or_default();
    let named = match fields.text("model_filename")? {
        Some(path) => Some(base_name(&path).to_owned()),
        None => fields.text("model_type")?,
    };
    let lines =
        if first == last { format!("line {first}") } else { format!("lines {first} to {last}") };
    Ok(named.map_or_else(|| lines.clone(), |named| format!("{lines} ({named})")))
}

fn base_name(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}

fn span(rows: &[Row]) -> Option<(usize, usize)> {
    let start = rows.iter().map(|row| row.span.0).min()?;
    Some((start, rows.iter().map(|row| row.span.1).max()?))
}

/// The earliest start of a row; the tool writes UTC in RFC 3339, which sorts as text.
fn measured_at(rows: &[Row]) -> Result<Option<String>, ExtractError> {
    let times = rows.iter().map(|row| row.fields().text("test_time"));
    let times = times.collect::<Result<Vec<_>, _>>()?;
    Ok(times.into_iter().flatten().filter(|time| ledger::clock::parse(time).is_ok()).min())
}

/// The harness is built with the engine, so it has no version of its own to compare.
fn add_engine(run: &mut ExtractedRun, row: &Row) -> Result<(), ExtractError> {
    let fields = row.fields();
    let commit = fields.text("build_commit")?.unwrap_or_default();
    let number = fields.count("build_number")?.unwrap_or_default();
    let is_fork = FORK_FIELDS.iter().any(|name| fields.has(name));
    let name = if is_fork { "ik_llama.cpp" } else { "llama.cpp" };
    let place = fields.place("build_commit");
    let mut state = |field: &str, value: Value| {
        run.facts.push(Fact::new(FactKind::Stated, field, value, &place));
    };
    state("engine.name", name.into());
    state("conditions.harness.name", "llama-bench".into());
    if let Some(version) = engine_version(&commit, number) {
        state("engine.version", version.into());
    } else {
        let message = "the file names no build of llama.cpp: the engine's version is unknown";
        run.cautions.push(
            Finding::caution(Code::EngineBuildUnknown, "engine.version", message)
                .with(ledger::text::printable(&commit), place)
                .with(number.to_string(), fields.place("build_number")),
        );
    }
    run.observed.insert("build_commit".to_owned(), commit.into());
    Ok(())
}

/// `b8460-b1c70e2e5` from build number and commit. A shallow clone counts one commit, so number 1
/// names no build and the commit stands alone; without a commit nothing names a build.
fn engine_version(commit: &str, number: u64) -> Option<String> {
    let is_commit =
        (7..=40).contains(&commit.len()) && commit.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_commit.then(|| match number {
        0 | 1 => commit.to_owned(),
        number => format!("b{number}-{commit}"),
    })
}

/// Names of cards are labels, spelled as a backend likes; which cards were there a probe says.
fn add_machine(
    run: &mut ExtractedRun,
    fields: &Fields<'_>,
    accelerators: &[(usize, String)],
) -> Result<(), ExtractError> {
    let mut state = |kind, field: &str, value: Value, place: &str| {
        run.facts.push(Fact::new(kind, field, value, place));
    };
    let field = "topology.accelerators";
    if let Some(names) = fields.text("gpu_info")? {
        let names: Vec<&str> = names.split(", ").map(str::trim).collect();
        state(FactKind::Label, field, names.into(), &fields.place("gpu_info"));
    } else if let Some((line, _)) = accelerators.first() {
        let names: Vec<&str> = accelerators.iter().map(|(_, name)| name.as_str()).collect();
        state(FactKind::Label, field, names.into(), &format!("line {line}"));
    }
    if let Some(cpu) = fields.text("cpu_info")? {
        state(FactKind::Label, "cpu", cpu.into(), &fields.place("cpu_info"));
    }
    if let Some(backends) = fields.text("backends")? {
        let place = fields.place("backends");
        state(FactKind::Stated, "conditions.backends", backends.into(), &place);
    }
    Ok(())
}

/// The tool opens a context of just the tokens of each test (`to_llama_cparams`, `n_ctx`).
fn add_context(run: &mut ExtractedRun, rows: &[Row]) -> Result<(), ExtractError> {
    let tests = rows.iter().map(Row::test).collect::<Result<Vec<_>, _>>()?;
    let tokens = |test: &Test| test.prompt.saturating_add(test.output).saturating_add(test.depth);
    if let (Some(tokens), Some(first)) = (tests.iter().map(tokens).max(), rows.first()) {
        let place = first.fields().place("n_prompt + n_gen + n_depth");
        run.facts.push(Fact::new(FactKind::Stated, "context.tokens", tokens, &place));
    }
    Ok(())
}

/// File name and type are what somebody typed and what a header says: labels, no evidence.
fn add_model(run: &mut ExtractedRun, fields: &Fields<'_>) -> Result<(), ExtractError> {
    let place = fields.place("model_filename");
    if let Some(path) = fields.text("model_filename")? {
        let is_mangled = path.contains('\u{ffff}');
        let value = if is_mangled { "unknown" } else { path.as_str() };
        run.facts.push(Fact::new(FactKind::Label, "model.file", value, &place));
        run.cautions.extend(is_mangled.then(|| {
            let message = "the path holds bytes that llama-bench's JSON cannot spell; \
                           its CSV output can";
            Finding::caution(Code::ValueLeftOut, "model.file", message)
        }));
    }
    if let Some(kind) = fields.text("model_type")? {
        run.facts.push(Fact::new(FactKind::Label, "model.type", kind, &fields.place("model_type")));
    }
    for (field, name) in
        [("model_size", "model_size_bytes"), ("model_n_params", "model_parameters")]
    {
        run.observed
            .extend(fields.count(field)?.map(|count| (name.to_owned(), Value::from(count))));
    }
    for field in ["size", "params"] {
        run.observed.extend(fields.text(field)?.map(|text| (field.to_owned(), Value::from(text))));
    }
    Ok(())
}

/// States the settings that all rows share, and keeps every one of them with the run.
fn add_settings(run: &mut ExtractedRun, row: &Row, varied: &BTreeSet<String>) {
    let fields = row.fields();
    let settings = row.settings();
    let shared: BTreeMap<&str, Value> =
        settings.into_iter().filter(|(name, _)| !varied.contains(*name)).collect();
    for (name, value) in shared.iter().filter(|(name, value)| is_condition(name, value)) {
        let field = format!("conditions.{name}");
        run.facts.push(Fact::new(FactKind::Stated, &field, value.clone(), &fields.place(name)));
    }
    run.facts.extend(kv_cache(&shared, &fields));
    run.observed.insert("settings".to_owned(), json!(shared));
}

fn is_condition(name: &str, value: &Value) -> bool {
    let text = to_text(value).unwrap_or_default();
    let is_neutral = NEUTRAL.iter().any(|(field, words)| *field == name && words.contains(&&*text));
    !is_neutral && !matches!(name, "type_k" | "type_v")
}

/// `f16` where keys and values are stored alike, `q8_0/f16` (keys, then values) where they are not.
fn kv_cache(shared: &BTreeMap<&str, Value>, fields: &Fields<'_>) -> Option<Fact> {
    let keys = shared.get("type_k")?.as_str()?;
    let values = shared.get("type_v")?.as_str()?;
    let value = if keys == values { keys.to_owned() } else { format!("{keys}/{values}") };
    Some(Fact::new(FactKind::Stated, "quant.kv_cache", value, &fields.place("type_k")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_that_is_no_commit_names_no_build() {
        assert_eq!(engine_version("b1c70e2e5", 8460).as_deref(), Some("b8460-b1c70e2e5"));
        assert_eq!(engine_version("1c1409e1", 1).as_deref(), Some("1c1409e1"));
        for (commit, number) in [("unknown", 0), ("vendored", 1), ("vendored", 9000), ("", 0)] {
            assert_eq!(engine_version(commit, number), None, "{commit}");
        }
    }
}
