//! The bulk streams of a run: stored and judged.

use netping_results::bulk::BulkStep;

use super::Runner;
use crate::error::Verdict;

impl Runner {
    /// Stores and saves the bulk streams in place of their earlier states.
    pub fn keep_bulk(&mut self, steps: &[BulkStep]) {
        self.store.run.bulk = steps.to_vec();
        self.save();
    }

    /// Fails the command if more of the runs failed than allowed, and reports how they were
    /// secured.
    pub fn judge_bulk(&mut self) {
        let steps = &self.store.run.bulk;
        let mut before = None;
        for security in steps.iter().filter_map(|step| step.security.as_ref()) {
            if before != Some(security) {
                self.console.security(security, before);
            }
            before = Some(security);
        }
        let most = self.limits.max_error_rate;
        if steps.iter().any(|step| step.error_rate() > most) {
            self.decide(Verdict::Requests);
        }
        let warnings = self.store.run.bulk.iter().flat_map(|step| &step.warnings);
        self.judge_warnings(&warnings.cloned().collect::<Vec<_>>());
    }
}
