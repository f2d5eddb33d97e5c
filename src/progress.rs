//! Messages and progress on stderr. Nothing here goes to stdout.

use indicatif::{ProgressBar, ProgressStyle};
use std::io::Write as _;

/// Says a line on stderr.
pub(crate) fn say(line: &str) {
    // Nobody is left to tell when stderr is gone.
    let _gone = writeln!(std::io::stderr(), "{line}");
}

/// A bar over bytes; hidden unless stderr is a terminal.
pub(crate) fn bytes(shows: bool, total: u64, what: &'static str) -> ProgressBar {
    if !shows {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(total);
    let template = "{msg} {bar:30} {bytes}/{total_bytes} {bytes_per_sec} {eta}";
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar.set_message(what);
    bar
}
