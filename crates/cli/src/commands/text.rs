//! Words and columns that commands share, and their way to standard output.

use std::io::{self, Write};

use anyhow::Context;
use netping_report::table::Column;
use netping_results::{format::thousands, run::StepSettings};

/// Returns the columns with these titles, separated by `|`. A title after `<` is that of a column
/// of words; the others hold numbers.
pub fn columns(titles: &'static str) -> Vec<Column> {
    let column = |title: &'static str| match title.strip_prefix('<') {
        Some(words) => Column::text(words, 0),
        None => Column::number(title, 0),
    };
    titles.split('|').map(column).collect()
}

/// Describes the requests of a step, as headings have it; `None` where they are all empty.
pub fn requests(settings: &StepSettings) -> Option<String> {
    let bytes = |bytes| format!("{} bytes", thousands(bytes as f64));
    match (settings.payload_bytes, settings.bodies) {
        (0, None) => None,
        (length, None) => Some(bytes(length)),
        (length, Some(bodies)) => {
            let order = settings.body_order.as_deref().unwrap_or_default();
            let mean = bytes(length);
            let bodies = thousands(bodies as f64);
            Some(format!("{bodies} bodies ({order}) of {mean} on average"))
        }
    }
}

/// Returns a p-value with three decimals.
pub fn probability(p: f64) -> String {
    if p < 0.001 {
        return "<0.001".to_owned();
    }
    format!("{p:.3}")
}

/// Prints a text as it is; a reader that closed the pipe has read enough.
pub fn print_text(text: &str) -> anyhow::Result<()> {
    print(|out| {
        out.extend_from_slice(text.as_bytes());
        Ok(())
    })
}

/// Prints what `write` writes; a reader that closed the pipe has read enough.
pub fn print(write: impl FnOnce(&mut Vec<u8>) -> io::Result<()>) -> anyhow::Result<()> {
    let mut text = Vec::new();
    write(&mut text)?;
    match io::stdout().write_all(&text) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(error).context("cannot write to standard output")
        }
        _ => Ok(()),
    }
}
