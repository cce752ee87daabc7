//! Output of a run for people: results on standard output, remarks and progress on standard error.

use std::{
    cell::Cell,
    io::{self, Write},
};

use netping_client::interrupt::Interrupt;
use netping_report::table::wrap;
use netping_results::connect::ChannelSecurity;

use crate::run::progress::{Form, Progress};

/// The terminal of a run.
#[derive(Debug)]
pub struct Console {
    /// Progress while steps run.
    pub progress: Progress,
    /// Standard output is for JSON: results go to standard error.
    stdout_taken: bool,
    /// A result could not be written.
    broken: Cell<bool>,
}

impl Console {
    /// Creates a console that leaves standard output alone if it is `taken` by JSON.
    pub fn new(stdout_taken: bool, form: Form, interrupt: &Interrupt) -> Self {
        Self {
            progress: Progress::new(form, interrupt),
            stdout_taken,
            broken: Cell::new(false),
        }
    }

    /// Prints a part of the result, broken at words to fit the terminal.
    pub fn say(&self, text: &str) {
        let text = wrap(text, usize::MAX);
        self.progress.hidden(|| {
            let written = if self.stdout_taken {
                writeln!(io::stderr(), "{text}")
            } else {
                writeln!(io::stdout(), "{text}")
            };
            // A reader that closed the pipe has read enough; the measurement and its file go on.
            if let Err(error) = written
                && error.kind() != io::ErrorKind::BrokenPipe
                && !self.broken.replace(true)
            {
                let _ = writeln!(io::stderr(), "{}", stdout_failure(&error));
            }
        });
    }

    /// Prints a remark to standard error.
    pub fn remark(&self, line: &str) {
        self.progress.hidden(|| {
            let _ = writeln!(io::stderr(), "{line}");
        });
    }

    /// Returns true if a result could not be printed.
    pub fn is_broken(&self) -> bool {
        self.broken.get()
    }

    /// Tells how connections are secured unless that is as `before`, and always warns of a server
    /// whose certificate was not checked.
    pub fn security(&self, security: &ChannelSecurity, before: Option<&ChannelSecurity>) {
        if before != Some(security) {
            let ChannelSecurity {
                protocol,
                cipher_suite,
                key_exchange,
                ..
            } = security;
            let resumed = if security.resumed == Some(true) {
                ", resumed"
            } else {
                ""
            };
            self.remark(&format!(
                "  {protocol}, {cipher_suite}, key exchange {key_exchange}{resumed}"
            ));
        }
        if !security.server_verified {
            self.remark(
                "  WARNING: --tls-insecure: the server's certificate was not checked; anybody could have answered",
            );
        }
    }
}

/// Returns the message for results that did not get out.
pub fn stdout_failure(error: &io::Error) -> String {
    format!("error: cannot write the results to standard output: {error}")
}
