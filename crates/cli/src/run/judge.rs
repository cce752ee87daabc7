//! The judge of a run: its limits, and the verdict so far.

use netping_measure::status::Status;
use netping_results::{
    compare::Gate,
    comparison::Compared,
    condition::{Answer, Condition},
    format::on_one_line,
    run::{Kind, Run, Step},
    warning::Warnings,
};

use crate::{
    args::output::{LimitArgs, Strictness, not_accepted},
    error::Verdict,
};

/// The judge of a run.
#[derive(Debug)]
pub struct Judge {
    /// The limits on requests and warnings.
    pub limits: LimitArgs,
    fail_if: Vec<Condition>,
    /// Those on differences between targets.
    changes: Vec<Gate>,
    /// The verdict so far.
    pub verdict: Verdict,
    /// Any step was judged.
    has_judged: bool,
    /// A step broke a condition.
    has_broken: bool,
    /// Names of the warnings that fail the command, once it is at its end.
    unwanted: Vec<&'static str>,
}

impl Judge {
    /// Returns a judge who has seen nothing yet.
    pub fn new(limits: LimitArgs, fail_if: Vec<Condition>, changes: Vec<Gate>) -> Self {
        Self {
            limits,
            fail_if,
            changes,
            verdict: Verdict::Success,
            has_judged: false,
            has_broken: false,
            unwanted: Vec::new(),
        }
    }

    /// Fails the command with at least this verdict.
    pub fn decide(&mut self, verdict: Verdict) {
        self.verdict = self.verdict.max(verdict);
    }

    /// Fails the command if a step broke a limit, and returns a line for each. The failures of bulk
    /// streams are judged with those of all runs, by [`Judge::whole`].
    pub fn step(&mut self, step: &Step, kind: Kind, has_trials: bool) -> Vec<String> {
        let mut lines = self.broken(step, has_trials);
        self.has_judged = true;
        self.note(&lines);
        if step.settings.bulk.is_some() {
            return lines;
        }
        if step.summary.failure_share() > self.limits.tolerated.max_error_rate {
            self.decide(Verdict::Requests);
        }
        if step.summary.accounting.handled() == 0 && step.status == Status::Complete {
            // `ab` says itself what it cannot tell.
            if kind != Kind::Ab {
                self.decide(Verdict::Requests);
            }
            lines.push(format!(
                "warning: {}: no request ended within the window; measure longer or, if none ever ends, with a shorter --timeout",
                step.label.as_ref().unwrap_or(&step.target)
            ));
        }
        lines
    }

    /// Fails the command if these lines tell of broken conditions.
    fn note(&mut self, broken: &[String]) {
        if !broken.is_empty() {
            self.has_broken = true;
            self.decide(Verdict::Condition);
        }
    }

    /// Fails the command if a target is too different from the first, or too many bulk streams failed, and
    /// looks for warnings that are not accepted. Returns a line for each condition on a difference that is
    /// broken. A condition on numbers that are not valid decides nothing, whether it holds or not.
    pub fn whole(&mut self, run: &Run) -> Vec<String> {
        let asked: Vec<_> = self.changes.iter().map(Gate::metric).collect();
        let pairs = run.compared_and(&asked);
        let name = |pair: &Compared<'_>| {
            let [new, base] = [&pair.new, &pair.base].map(|own| on_one_line(&own.long_name()));
            format!("{new} against {base}")
        };
        let changes = self.changes.iter();
        let broken = changes
            .flat_map(|gate| gate.broken_by(pairs.iter().filter(|own| !own.is_control), name));
        let broken: Vec<String> = broken.collect();
        self.note(&broken);
        for own in run.measurements() {
            let failed = own.trials.iter().filter(|step| step.bulk.is_none()).count();
            let share = failed as f64 / own.trials.len() as f64;
            if own.settings().bulk.is_some() && share > self.limits.tolerated.max_error_rate {
                self.decide(Verdict::Requests);
            }
        }
        let strictness = self.limits.strict;
        if strictness.is_none() && !self.has_conditions() && self.verdict != Verdict::Condition {
            return broken;
        }
        let kinds = Warnings::of_run(run).kinds.into_iter();
        let counts = kinds.filter(|own| strictness == Some(Strictness::Notes) || own.is_invalid());
        let names = counts.map(|own| own.worst.name());
        self.unwanted = names
            .filter(|name| !self.limits.tolerated.accepted.accepts(name))
            .collect();
        broken
    }

    fn has_conditions(&self) -> bool {
        !self.fail_if.is_empty() || !self.changes.is_empty()
    }

    /// Fails the command if there was a warning that is not accepted, and says so.
    pub fn strictly(&mut self) -> Option<String> {
        let names = (!self.unwanted.is_empty()).then(|| not_accepted(&self.unwanted))?;
        self.decide(Verdict::Warnings);
        let why = match self.limits.strict {
            Some(Strictness::Notes) => "failed by --strict=notes",
            Some(Strictness::Invalid) => "failed by --strict",
            None if !self.has_conditions() => "failed, as the results are NOT VALID",
            None => "failed, as --fail-if decides nothing where the results are NOT VALID",
        };
        Some(format!("{why}: {names}"))
    }

    /// Says that no condition held for a step that was judged, if there are any, none did, and they could
    /// decide.
    pub fn passed(&self) -> Option<String> {
        let values = self.fail_if.iter().map(ToString::to_string);
        let changes = self.changes.iter().map(ToString::to_string);
        let quoted: Vec<_> = values
            .chain(changes)
            .map(|own| format!("'{own}'"))
            .collect();
        let is_decided = self.unwanted.is_empty() && self.verdict < Verdict::Condition;
        let passed = self.has_judged && !self.has_broken && is_decided;
        let what = if self.changes.is_empty() {
            "step"
        } else {
            "step or difference"
        };
        (passed && !quoted.is_empty())
            .then(|| format!("passed --fail-if {}: no {what} broke it", quoted.join(", ")))
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
                Answer::Unknown => {
                    "the step has no such number, too few samples to tell, or only a lower bound"
                        .to_owned()
                }
            };
            let failed = "  failed by --fail-if";
            Some(format!("{failed} '{condition}': {place}: {why}"))
        };
        self.fail_if.iter().filter_map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use clap::{Args as _, Command, FromArgMatches as _};
    use netping_results::{
        fixtures,
        run::Pairing,
        warning::{Errors, SharedHost, Warning},
    };

    use super::*;

    fn judge(flags: &[&str], condition: Option<&str>) -> Judge {
        let command = Command::new("netping").no_binary_name(true);
        let matches = LimitArgs::augment_args(command).get_matches_from(flags);
        let limits = LimitArgs::from_arg_matches(&matches).unwrap();
        let conditions = condition.into_iter().map(|own| own.parse().unwrap());
        Judge::new(limits, conditions.collect(), Vec::new())
    }

    fn run(warnings: &[Warning]) -> Run {
        let mut step = fixtures::step(1, |_| vec![1000; 10]);
        step.warnings = warnings.to_vec();
        fixtures::run(vec![step])
    }

    /// Judges a run of one step with these warnings, with these flags of `--strict` and `--allow`, under a
    /// condition that its rate of 10/s breaks or keeps, if there is one.
    fn judged(
        flags: &[&str],
        condition: Option<&str>,
        warnings: &[Warning],
    ) -> (Verdict, String, bool) {
        let (mut judge, run) = (judge(flags, condition), run(warnings));
        judge.step(&run.steps[0], run.kind, false);
        judge.whole(&run);
        let passed = judge.passed().is_some();
        let line = judge.strictly().unwrap_or_default();
        (judge.verdict, line, passed)
    }

    fn invalid() -> Warning {
        let (share, time_share) = (0.5, 0.5);
        Errors { share, time_share }.into()
    }

    #[test]
    fn a_window_without_replies_fails_the_command_unless_it_is_ab() {
        let mut run = run(&[]);
        // Replies that came after the window are none of it.
        run.steps[0].summary.accounting.late = run.steps[0].summary.accounting.ok;
        let judged = |kind| {
            let mut judge = judge(&[], None);
            let lines = judge.step(&run.steps[0], kind, true);
            assert!(lines[0].contains(&run.steps[0].target), "{lines:?}");
            judge.verdict
        };
        assert_eq!(judged(Kind::Throughput), Verdict::Requests);
        assert_eq!(judged(Kind::Ab), Verdict::Success);
    }

    #[test]
    fn strictness_is_about_what_invalidates_or_about_notes_too() {
        let verdict = |flags: &[&str], warning: Warning| judged(flags, None, &[warning]).0;
        let note = || Warning::from(SharedHost);
        assert_eq!(verdict(&[], invalid()), Verdict::Success);
        assert_eq!(verdict(&["--strict"], note()), Verdict::Success);
        assert_eq!(verdict(&["--strict"], invalid()), Verdict::Warnings);
        assert_eq!(verdict(&["--strict=invalid"], note()), Verdict::Success);
        assert_eq!(verdict(&["--strict=notes"], note()), Verdict::Warnings);
        let allowed = ["--strict=notes", "--allow", "ERRORS,SHARED_HOST"];
        assert_eq!(verdict(&allowed, note()), Verdict::Success);
        assert_eq!(verdict(&allowed, invalid()), Verdict::Success);
        let other = ["--strict", "--allow", "SHARED_HOST"];
        assert_eq!(verdict(&other, invalid()), Verdict::Warnings);
        assert_eq!(
            verdict(&["--strict=notes", "--allow", "all"], invalid()),
            Verdict::Success
        );
    }

    #[test]
    fn what_a_search_or_trials_did_not_reach_is_no_verdict_on_invalid_numbers() {
        let (mut judge, mut run) = (judge(&[], None), run(&[SharedHost.into()]));
        judge.decide(Verdict::Condition);
        judge.whole(&run);
        assert_eq!(judge.strictly(), None);
        run.steps[0].warnings.push(invalid());
        judge.whole(&run);
        assert!(judge.strictly().is_some() && judge.verdict == Verdict::Warnings);
    }

    /// Judges trials of two targets, of which the second takes this many times as long, by a condition
    /// on the difference.
    fn judged_by_change(change: &str, times: f64, warnings: &[Warning]) -> (Verdict, Vec<String>) {
        let step = |at: usize| {
            let (measurement, trial) = (at % 2, at as u32 / 2 + 1);
            let factor = if measurement == 1 { times } else { 1.0 };
            let time = (1e6 * factor * (1.0 + f64::from(trial) / 100.0)) as u64;
            Step {
                measurement,
                trial,
                target: format!("tcp://h:{measurement}"),
                warnings: warnings.to_vec(),
                ..fixtures::step(1, |_| vec![time; 1000])
            }
        };
        let run = Run {
            pairings: Pairing::against_first(0..2).collect(),
            ..fixtures::run((0..10).map(step).collect())
        };
        let mut judge = judge(&[], None);
        judge.changes = vec![change.parse().unwrap()];
        let lines = judge.whole(&run);
        judge.strictly();
        (judge.verdict, lines)
    }

    #[test]
    fn a_target_that_differs_too_much_from_the_first_fails_the_command() {
        let (verdict, lines) = judged_by_change("p50>+10%", 1.2, &[]);
        assert_eq!(verdict, Verdict::Condition);
        let [line] = &lines[..] else {
            panic!("{lines:?}");
        };
        assert!(
            line.starts_with("failed by --fail-if 'p50>+10%': tcp://h:1")
                && line.contains("against tcp://h:0")
                && line.contains("p50 by +20.")
                && line.ends_with(" beyond the limit"),
            "{line}"
        );
        assert_eq!(judged_by_change("p50>+25%", 1.2, &[]).0, Verdict::Success);
        assert_eq!(judged_by_change("p50<-10%", 1.2, &[]).0, Verdict::Success);
        let (verdict, _) = judged_by_change("p50>+10%", 1.2, &[invalid()]);
        assert_eq!(verdict, Verdict::Warnings);
        let (verdict, _) = judged_by_change("p50>+25%", 1.2, &[invalid()]);
        assert_eq!(verdict, Verdict::Warnings);
        // Nothing was compared by it.
        let (verdict, lines) = judged_by_change("bulk-rate<-10%", 1.2, &[]);
        assert_eq!(verdict, Verdict::Condition);
        assert!(lines[0].ends_with("nothing was compared that has bulk-rate"));
    }

    #[test]
    fn a_condition_decides_nothing_where_the_numbers_are_not_valid() {
        let (broken, kept) = ("rate<11", "rate<9");
        let valid = |condition| judged(&[], Some(condition), &[SharedHost.into()]);
        let (verdict, _, passed) = valid(broken);
        assert_eq!((verdict, passed), (Verdict::Condition, false));
        let (verdict, _, passed) = valid(kept);
        assert_eq!((verdict, passed), (Verdict::Success, true));
        for condition in [broken, kept] {
            let (verdict, line, passed) = judged(&[], Some(condition), &[invalid()]);
            assert_eq!((verdict, passed), (Verdict::Warnings, false), "{condition}");
            assert!(
                line.contains("--fail-if decides nothing")
                    && line.ends_with(": ERRORS (--allow ERRORS accepts it)"),
                "{line}"
            );
        }
        let allowed = |condition| judged(&["--allow", "ERRORS"], Some(condition), &[invalid()]).0;
        assert_eq!(allowed(broken), Verdict::Condition);
        assert_eq!(allowed(kept), Verdict::Success);
    }
}
