//! Output of a run for people: results on standard output, remarks and progress on standard error.

use std::{
    cell::Cell,
    io::{self, IsTerminal, Write},
};

use netping_report::table::wrap;
use netping_results::connect::ChannelSecurity;

use crate::{
    args::export::{JsonTo, say},
    run::progress::Progress,
};

/// The terminal of a run.
#[derive(Debug)]
pub struct Console {
    /// Progress while steps run.
    pub progress: Progress,
    json: Option<JsonTo>,
    /// A result could not be written.
    broken: Cell<bool>,
}

impl Console {
    /// Creates a console that leaves standard output alone if it is for JSON.
    pub fn new(json: Option<JsonTo>, progress: Progress) -> Self {
        Self {
            progress,
            json,
            broken: Cell::new(false),
        }
    }

    /// Prints a part of the result, broken at words to fit the terminal.
    pub fn say(&self, text: &str) {
        self.progress.hidden(|| {
            // The measurement and its file go on.
            if let Err(error) = say(self.json.as_ref(), &wrap(text, usize::MAX))
                && !self.broken.replace(true)
            {
                let _ = writeln!(io::stderr(), "error: {error:#}");
            }
        });
    }

    /// Prints a remark to standard error, broken at words where that is a terminal.
    pub fn remark(&self, line: &str) {
        let line = if io::stderr().is_terminal() {
            wrap(line, usize::MAX)
        } else {
            line.to_owned()
        };
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
            let (protocol, suite) = (&security.protocol, &security.cipher_suite);
            let is_resumed = security.resumed == Some(true);
            let resumed = if is_resumed { ", resumed" } else { "" };
            let exchange = &security.key_exchange;
            self.remark(&format!(
                "  {protocol}, {suite}, key exchange {exchange}{resumed}"
            ));
        }
        if !security.server_verified {
            self.remark(
                "  WARNING: --tls-insecure: the server's certificate was not checked; anybody could have answered",
            );
        }
    }
}
