//! `ledger verify`.

use crate::cli::{Format, VerifyArgs};
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::progress;
use crate::render::findings;
use ledger::finding::Finding;
use ledger::id::{from_hex, to_hex};
use ledger::quantity;
use ledger::store::{Access, TreeHead};
use ledger::verify::{Depth, VerifyReport, verify};
use serde_json::json;
use std::io::Write;

/// Runs the command.
pub(crate) fn run(
    context: &Context,
    arguments: &VerifyArgs,
    out: &mut impl Write,
) -> Result<Exit, Failure> {
    let expected = arguments.expect.as_deref().map(read_head).transpose()?;
    let store = context.open(Access::Read)?;
    let depth = match (arguments.quick, arguments.deep) {
        (true, _) => Depth::Quick,
        (false, true) => Depth::Deep,
        (false, false) => Depth::Full,
    };
    let bar = progress::bytes(context.shows_progress, 0, "verifying");
    let report =
        verify(&store, depth, &importers::formats(), expected.as_ref(), &|bytes| bar.inc(bytes))?;
    bar.finish_and_clear();
    if arguments.format == Format::Json {
        write_json(&report, out)?;
    } else {
        write_text(&report, depth, out)?;
    }
    Ok(if report.is_clean() { Exit::Done } else { Exit::No })
}

fn read_head(line: &str) -> Result<TreeHead, Failure> {
    let parsed = line.split_once(' ').and_then(|(size, root)| {
        Some(TreeHead { size: size.trim().parse().ok()?, root: from_hex(root.trim()).ok()? })
    });
    parsed.ok_or_else(|| {
        Failure::input("bad-value", format!("`{line}` is no tree head"))
            .hint("give the line that `ledger head` printed")
    })
}

fn write_json(report: &VerifyReport, out: &mut impl Write) -> Result<(), Failure> {
    let head = report.head.map(|head| json!({"size": head.size, "root": to_hex(&head.root)}));
    let answer = json!({
        "clean": report.is_clean(), "entries": report.entries, "objects": report.objects, "bytes": report.bytes,
        "extracted": report.extracted, "head": head, "findings": findings::to_json(&report.findings),
    });
    writeln!(out, "{answer:#}")?;
    Ok(())
}

fn write_text(report: &VerifyReport, depth: Depth, out: &mut impl Write) -> Result<(), Failure> {
    let damage: Vec<Finding> = report.damage().cloned().collect();
    if !damage.is_empty() {
        let entries = report.entries;
        progress::say(&format!(
            "error[damage]: {} defects in {entries} entries and {} objects",
            damage.len(),
            report.objects
        ));
        for finding in &damage {
            writeln!(
                out,
                "{}  {}  {}",
                finding.code,
                ledger::text::printable(&finding.subject),
                ledger::text::printable(&finding.message)
            )?;
        }
        progress::say(
            "hint: restore altered objects from a copy that passes `b3sum`, or record the same files again; a hole in the log cannot be repaired, keep this folder as it is",
        );
    }
    let notes = report.findings.len() - damage.len();
    let content = match depth {
        Depth::Quick => "objects present, bytes not read".to_owned(),
        Depth::Full | Depth::Deep => format!("{} of content hashed", quantity::bytes(report.bytes)),
    };
    let extracted = if depth == Depth::Deep {
        format!(", {} runs extracted again", report.extracted)
    } else {
        String::new()
    };
    let state = if damage.is_empty() { "clean" } else { "damaged" };
    writeln!(
        out,
        "{state}: {} entries, {} objects, {content}{extracted}, {notes} notes",
        report.entries, report.objects
    )?;
    for note in report.findings.iter().filter(|finding| !damage.contains(finding)) {
        writeln!(
            out,
            "note: {}  {}  {}",
            note.code,
            ledger::text::printable(&note.subject),
            ledger::text::printable(&note.message)
        )?;
    }
    Ok(())
}
