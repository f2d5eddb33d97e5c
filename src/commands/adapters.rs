//! `ledger adapters`: what is known, and what a file would be read as.

use crate::cli::{AdaptersArgs, AdaptersCommand};
use crate::context::shown;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::render::findings;
use crate::render::table::Rows;
use ledger::adapter::{Adapter, Extraction, SourceFile};
use ledger::decode::decode;
use ledger::quantity::rounded;
use ledger::summary::summarize;
use ledger::text::printable;
use std::io::Write;
use std::path::Path;

/// Runs the command.
pub(crate) fn run(arguments: &AdaptersArgs, out: &mut impl Write) -> Result<Exit, Failure> {
    match &arguments.command {
        None => list(out),
        Some(AdaptersCommand::Explain { file }) => explain(file, out),
    }
}

fn list(out: &mut impl Write) -> Result<Exit, Failure> {
    let formats = importers::formats();
    for adapter in formats.adapters {
        writeln!(out, "{:<24} {} (version {})", adapter.id(), adapter.title(), adapter.version())?;
        for trap in adapter.traps() {
            writeln!(out, "    {}: {}", trap.what, trap.guard)?;
        }
    }
    for adapter in formats.publications {
        let (id, title, version) = (adapter.id(), adapter.title(), adapter.version());
        writeln!(out, "{id:<24} {title} (import only, version {version})")?;
        for trap in adapter.traps() {
            writeln!(out, "    {}: {}", trap.what, trap.guard)?;
        }
    }
    for companion in formats.companions {
        writeln!(
            out,
            "{:<24} {} (beside a result, version {})",
            companion.id(),
            companion.title(),
            companion.version()
        )?;
    }
    Ok(Exit::Done)
}

fn explain(path: &Path, out: &mut impl Write) -> Result<Exit, Failure> {
    let bytes = std::fs::read(path)
        .map_err(|error| Failure::input("io", format!("cannot read `{}`: {error}", shown(path))))?;
    let decoded = decode(&bytes)
        .map_err(|error| Failure::input("bad-encoding", format!("`{}`: {error}", shown(path))))?;
    writeln!(out, "encoding  {}", decoded.encoding.as_str())?;
    let name = shown(path);
    let file = SourceFile::new(&name, &decoded.text);
    let formats = importers::formats();
    let mut known = 0;
    for adapter in formats.importable() {
        if let Some(why) = adapter.detect(&file) {
            known += 1;
            writeln!(out, "format    {} ({}): {}", adapter.id(), adapter.title(), printable(&why))?;
            write_extraction(adapter, &file, out)?;
        }
    }
    for companion in formats.companions {
        if let Some(why) = companion.detect(&file) {
            known += 1;
            writeln!(
                out,
                "beside    {} ({}): {}",
                companion.id(),
                companion.title(),
                printable(&why)
            )?;
        }
    }
    if known == 0 {
        writeln!(out, "format    none that is known")?;
    }
    Ok(if known == 0 { Exit::No } else { Exit::Done })
}

fn write_extraction(
    adapter: &dyn Adapter,
    file: &SourceFile<'_>,
    out: &mut impl Write,
) -> Result<(), Failure> {
    let extraction = match adapter.extract(file) {
        Ok(extraction) => extraction,
        Err(error) => {
            writeln!(out, "  cannot be read: {}", printable(&error.to_string()))?;
            return Ok(());
        }
    };
    let Extraction { mut runs, mut cautions } = extraction;
    for run in &mut runs {
        writeln!(out, "run {}", printable(&run.locus))?;
        let mut found = ledger::validity::judge(&mut run.cells, None);
        let rows = run.cells.iter().map(summarize).flat_map(|cell| {
            cell.metrics.into_iter().map(move |metric| {
                let value = metric.headline().map_or_else(String::new, |(statistic, value)| {
                    format!("{statistic} {}", rounded(value))
                });
                let n = metric.n.map_or_else(|| "given".to_owned(), |n| format!("n={n}"));
                vec![cell.id.clone(), metric.name, value, n]
            })
        });
        let rows = Rows { header: vec!["cell", "metric", "value", "n"], rows: rows.collect() };
        out.write_all(rows.render(crate::cli::Format::Text, None).as_bytes())?;
        for fact in &run.facts {
            let kind = format!("{:?}", fact.kind).to_lowercase();
            writeln!(
                out,
                "  {kind} {} = {} ({})",
                printable(&fact.field),
                printable(&ledger::statement::show(&fact.value)),
                printable(&fact.place)
            )?;
        }
        cautions.append(&mut run.cautions);
        cautions.append(&mut found);
    }
    out.write_all(findings::footnotes(&cautions).as_bytes())?;
    Ok(())
}
