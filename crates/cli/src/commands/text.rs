//! The way of texts to standard output.

use std::io::{self, Write};

use anyhow::Context;

/// Prints a text as it is; a reader that closed the pipe has read enough.
pub fn print(text: impl AsRef<[u8]>) -> anyhow::Result<()> {
    match io::stdout().write_all(text.as_ref()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(error).context("cannot write to standard output")
        }
        _ => Ok(()),
    }
}
