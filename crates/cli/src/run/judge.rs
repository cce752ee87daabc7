//! The judge of a run: its limits, and the verdict so far.

use netping_measure::status::Status;
use netping_results::{
    condition::{Answer, Condition},
    run::{Run, Step},
    warning::{Warning, Warnings},
};

use crate::{args::output::LimitArgs, error::Verdict};

/// The judge of a run.
#[derive(Debug)]
pub struct Judge {
    /// The limits on requests and warnings.
    pub limits: LimitArgs,
    fail_if: Vec<Condition>,
    /// The verdict so far.
    pub verdict: Verdict,
    /// Names of the warnings that fail the command.
    unwanted: Vec<&'static str>,
}

impl Judge {
    /// Returns a judge who has seen nothing yet.
    pub fn new(limits: LimitArgs, fail_if: Vec<Condition>) -> Self {
        Self {
            limits,
            fail_if,
            verdict: Verdict::Success,
            unwanted: Vec::new(),
        }
    }

    /// Fails the command with at least this verdict.
    pub fn decide(&mut self, verdict: Verdict) {
        self.verdict = self.verdict.max(verdict);
    }

    /// Fails the command if a step broke a limit, and returns a line for each. The failures of bulk
    /// streams are judged with those of all runs, by [`Judge::whole`].
    pub fn step(&mut self, step: &Step, has_trials: bool) -> Vec<String> {
        let mut lines = self.broken(step, has_trials);
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

    /// Fails the command if several steps together have a warning that is not allowed, or too many bulk
    /// streams failed.
    pub fn whole(&mut self, run: &Run) {
        let found = Warnings::of_several_steps(run).into_iter();
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
        let quote = |condition: &Condition| format!("'{condition}'");
        let quoted: Vec<_> = self.fail_if.iter().map(quote).collect();
        let is_kept = |step: &Step| self.broken(step, false).is_empty();
        let passed = !quoted.is_empty() && !steps.is_empty() && steps.iter().all(is_kept);
        passed.then(|| format!("passed --fail-if {}: no step broke it", quoted.join(", ")))
    }

    /// Returns a line for each `--fail-if` condition that holds for a step, perhaps one of several
    /// trials, or cannot be decided.
    fn broken(&self, step: &Step, has_trials: bool) -> Vec<String> {
        let mut place = format!("{}, {}", step.name(), step.settings.load_in_words());
        if has_trials {
            place = format!("{place}, trial {}", step.trial);
        }
        let line = |condition: &Condition| {
            let why = match condition.check(step) {
                Answer::Fails(_) => return None,
                Answer::Holds(value) => condition.describe(value),
                Answer::Unknown => "too few samples to tell".to_owned(),
            };
            let failed = "  failed by --fail-if";
            Some(format!("{failed} '{condition}': {place}: {why}"))
        };
        self.fail_if.iter().filter_map(line).collect()
    }
}
