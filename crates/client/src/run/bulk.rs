//! The bulk streams of an invocation: kept, saved and judged.

use netping_results::bulk::BulkStep;

use super::Session;
use crate::interrupt::Interrupt;

impl Session {
    /// The user's wish to end, for whoever measures without a session.
    pub fn interrupt(&self) -> &Interrupt {
        &self.interrupt
    }

    /// Shows on standard error, where that is a terminal, what is going on.
    pub fn show_progress(&self, what: &str) {
        self.bar.begin(what);
    }

    /// Nothing is going on any more.
    pub fn hide_progress(&self) {
        self.bar.end();
    }

    /// Keeps the bulk streams as they are now, in place of how they were before, and saves them.
    pub fn keep_bulk(&mut self, steps: &[BulkStep]) {
        self.run.bulk.clear();
        self.run.bulk.extend_from_slice(steps);
        self.save();
    }

    /// Decides, once all runs are made, whether more of them failed than allowed, and says how they were secured.
    pub fn judge_bulk(&mut self) {
        let mut before = None;
        for security in self
            .run
            .bulk
            .iter()
            .filter_map(|step| step.security.as_ref())
        {
            if before != Some(security) {
                self.say_secured(security, before);
            }
            before = Some(security);
        }
        let (strict, limit) = (self.output.strict, self.output.max_error_rate);
        let broken =
            |step: &BulkStep| step.error_rate() > limit || (strict && !step.warnings.is_empty());
        self.failed |= self.run.bulk.iter().any(broken);
    }
}
