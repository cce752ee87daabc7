//! The way of texts to standard output.

use std::io::{self, Write};

use anyhow::Context;

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
