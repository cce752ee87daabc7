//! What judges a run: its limits, and the verdict so far.

use netping_measure::status::Status;
use netping_results::{
    run::{Run, Step},
    warning::{Warning, Warnings},
};

use super::options::Limits;
use crate::error::Verdict;

/// The judge of a run.
#[derive(Debug)]
pub struct Judge {
    limits: Limits,
    /// The verdict so far.
    pub verdict: Verdict,
    /// Names of the warnings that fail the command.
    unwanted: Vec<&'static str>,
}

impl Judge {
    /// Returns a judge who has seen nothing yet.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            verdict: Verdict::Success,
            unwanted: Vec::new(),
        }
    }

    /// Returns the largest share of requests that may fail, from 0 to 1.
    pub fn max_error_rate(&self) -> f64 {
        self.limits.max_error_rate
    }

    /// Fails the command with at least this verdict.
    pub fn decide(&mut self, verdict: Verdict) {
        self.verdict = self.verdict.max(verdict);
    }

    /// Fails the command if a step broke a limit, and returns a line for each. The failures of bulk
    /// streams are judged with those of all runs, by [`Judge::whole`].
    pub fn step(&mut self, step: &Step, has_trials: bool) -> Vec<String> {
        let mut lines = self.limits.broken(step, has_trials);
        if !lines.is_empty() {
            self.decide(Verdict::Condition);
        }
        self.warnings(&step.warnings);
        if step.settings.bulk.is_some() {
            return lines;
        }
        if step.summary.failure_share() > self.limits.max_error_rate {
            self.decide(Verdict::Requests);
        }
        if step.summary.scheduled == 0 && step.status == Status::Complete {
            self.decide(Verdict::Requests);
            lines.push(
                "warning: no request ended within the window; use a longer -d, or a shorter --timeout"
                    .to_owned(),
            );
        }
        lines
    }

    /// Fails the command if the trials of a measurement have a warning that is not allowed, or too
    /// many bulk streams failed.
    pub fn whole(&mut self, run: &Run) {
        let found = Warnings::of_trials(&run.steps).into_iter();
        let warnings: Vec<Warning> = found.map(|(_, warning)| warning).collect();
        self.warnings(&warnings);
        for own in run.measurements() {
            let failed = own.trials.iter().filter(|step| step.bulk.is_none()).count();
            let share = failed as f64 / own.trials.len() as f64;
            if own.settings().bulk.is_some() && share > self.limits.max_error_rate {
                self.decide(Verdict::Requests);
            }
        }
    }

    fn warnings(&mut self, warnings: &[Warning]) {
        for name in warnings.iter().map(Warning::name) {
            if self.limits.forbids(name) && !self.unwanted.contains(&name) {
                self.unwanted.push(name);
            }
        }
    }

    /// Fails the command if there was a warning that is not allowed, and says so.
    pub fn strictly(&mut self) -> Option<String> {
        let names = self.unwanted.join(", ");
        (!names.is_empty()).then(|| {
            self.decide(Verdict::Warnings);
            format!("failed by --strict: {names} (--allow NAME accepts a warning)")
        })
    }

    /// Says that no condition held, if there are any and none did.
    pub fn passed(&self, steps: &[Step]) -> Option<String> {
        let conditions = self.limits.conditions()?;
        let is_kept = |step: &Step| self.limits.broken(step, false).is_empty();
        (!steps.is_empty() && steps.iter().all(is_kept))
            .then(|| format!("passed --fail-if {conditions}: no step broke it"))
    }
}
