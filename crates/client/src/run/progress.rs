//! A progress bar on standard error while a step runs, if that is a terminal.

use std::{cell::Cell, time::Duration};

use indicatif::{ProgressBar, ProgressStyle};
use netping_results::format;

use crate::engine::{Observer, Phase};

/// The progress bar. Without a terminal it shows nothing.
#[derive(Debug)]
pub struct Bar {
    bar: ProgressBar,
    planned: Cell<Option<Duration>>,
}

impl Bar {
    /// Creates a bar that is not shown yet.
    pub fn new() -> Self {
        let bar = ProgressBar::new(0);
        if let Ok(style) = ProgressStyle::with_template("{prefix}  {bar:20} {msg}") {
            bar.set_style(style);
        }
        Self {
            bar,
            planned: Cell::new(None),
        }
    }

    /// Shows the bar for a step.
    pub fn begin(&self, what: &str) {
        self.bar.reset();
        self.bar.set_prefix(what.trim().to_owned());
    }

    /// Removes the bar.
    pub fn end(&self) {
        self.bar.finish_and_clear();
    }

    /// Hides the bar while `write` writes to the terminal.
    pub fn hidden(&self, write: impl FnOnce()) {
        self.bar.suspend(write);
    }
}

impl Observer for Bar {
    fn phase(&self, phase: Phase, planned: Option<Duration>) {
        self.planned.set(planned);
        self.bar
            .set_length(planned.map_or(0, |planned| planned.as_millis() as u64));
        self.bar.set_position(0);
        self.bar.set_message(match phase {
            Phase::Connect => "connecting",
            Phase::Warmup => "warming up",
            Phase::Measure => "measuring",
            Phase::Drain => "waiting for the last replies",
        });
    }

    fn tick(&self, elapsed: Duration, rate: f64) {
        let elapsed = self
            .planned
            .get()
            .map_or(elapsed, |planned| elapsed.min(planned));
        self.bar.set_position(elapsed.as_millis() as u64);
        self.bar.set_message(format!(
            "{:.1} s  {} req/s",
            elapsed.as_secs_f64(),
            format::thousands(rate)
        ));
    }
}
