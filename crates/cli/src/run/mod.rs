//! The run of a measuring command: a store keeps and saves its steps, a judge decides on them, a
//! console shows them.

pub(crate) mod clock_demand;
pub(crate) mod command_line;
pub(crate) mod console;
mod live;
pub(crate) mod progress;
mod prove;
pub(crate) mod push;
pub(crate) mod search;
pub(crate) mod step;
pub(crate) mod store;
pub(crate) mod trials;

pub(crate) mod in_step;
pub(crate) mod judge;
mod running;
mod servers;
mod troubles;

use std::{path::PathBuf, slice, thread, time::Duration};

use anyhow::Context;
use netping_client::{
    clock::{self, Moment},
    engine::{self, Measured},
    error::StartError,
    interrupt::Interrupt,
    plan::{Destination, Plan, Warmup, shuffled},
    workload::first_call::first_call,
};
use netping_measure::status::Status;
use netping_report::text;
use netping_results::{
    format::{on_lines, on_one_line, plural},
    run::{Kind, PLACEMENT, Pairing, Place, Run, Step},
    warning::{ForeignLoad, Warning},
};
use netping_system::limits::raise_open_files;
use rand_chacha::ChaCha8Rng;

use crate::{
    args::output::Options,
    environment,
    error::Verdict,
    interrupt,
    observation::Observations,
    run::{
        console::Console,
        in_step::Announcement,
        judge::Judge,
        progress::{Progress, ProgressForm},
        prove::Planted,
        push::Push,
        servers::Servers,
        step::step,
        store::Store,
        troubles::troubles,
    },
    sides::Sides,
};

/// The time between two first calls of a server that does not answer yet.
const BETWEEN_CALLS: Duration = Duration::from_millis(20);

/// Runs the body of a measuring command; what it measured is kept and told, whether it succeeds or not.
/// `describe` returns the text that stands below the numbers.
///
/// # Errors
/// Those of `body`, and files that cannot be written, before anything is measured.
pub fn run(
    kind: Kind,
    options: Options,
    describe: fn(&Run) -> String,
    body: impl FnOnce(&mut Runner) -> anyhow::Result<()>,
) -> anyhow::Result<Verdict> {
    let mut runner = Runner::begin(kind, options, describe)?;
    if let Err(failed) = body(&mut runner) {
        runner.end();
        return Err(failed);
    }
    Ok(runner.finish())
}

/// The run of one measuring command.
#[derive(Debug)]
pub struct Runner {
    /// The results so far.
    pub store: Store,
    /// The limits, and the verdict so far.
    pub judge: Judge,
    servers: Servers,
    /// The terminal.
    pub console: Console,
    /// The user's request to end.
    pub interrupt: Interrupt,
    describe: fn(&Run) -> String,
    prove: bool,
    /// The planted servers, once they run.
    planted: Option<Planted>,
    /// The number of disturbed windows that may still be measured again.
    repeats: u32,
    /// The file that will have the moment of the first request, if one will.
    announcement: Option<Announcement>,
    /// The CPUs of servers that the command starts; empty: any.
    server_cpus: Vec<usize>,
    /// Where a round was interrupted, which is left out.
    cut: Option<String>,
    /// The files that the command named itself.
    files: Vec<PathBuf>,
}

impl Runner {
    fn begin(kind: Kind, options: Options, describe: fn(&Run) -> String) -> anyhow::Result<Self> {
        raise_open_files();
        let results = options.results;
        let mut store = Store::create(kind, results.json, results.exports)?;
        store.run.clock = Some(options.clock.check()?);
        let interrupt = interrupt::on_signals().context("cannot handle Ctrl-C")?;
        if let Some(own) = &options.announcement {
            own.withdraw()?;
        }
        let push = options.gateway.map(Push::start).transpose();
        let push = push.context("cannot start a thread")?;
        let form = results.progress.unwrap_or_else(ProgressForm::for_stderr);
        let progress = Progress::new(form, push, &interrupt);
        let console = Console::new(store.json.clone(), progress);
        for warning in environment::settings(&store.run.environment).objections() {
            console.remark(&format!("warning: {warning}"));
        }
        Ok(Self {
            store,
            judge: Judge::new(results.limits, options.fail_if, options.changes),
            servers: Servers::default(),
            console,
            interrupt,
            describe,
            prove: options.prove,
            planted: None,
            repeats: 0,
            announcement: options.announcement,
            server_cpus: Vec::new(),
            cut: None,
            files: Vec::new(),
        })
    }

    /// Keeps this process to the client's CPUs and servers that it starts to theirs, and notes them.
    pub fn place(&mut self, sides: &Sides) {
        self.server_cpus.clone_from(&sides.servers);
        if !sides.sentence.is_empty() {
            let settings = &mut self.store.run.environment.system;
            settings.insert(PLACEMENT.to_owned(), sides.sentence.clone());
        }
        sides.confine_client();
    }

    /// Prints the reason for a verdict, though the command goes on.
    pub fn fail(&mut self, verdict: Verdict, line: &str) {
        self.console.remark(line);
        self.judge.decide(verdict);
    }

    /// Returns the steps so far.
    pub fn steps(&self) -> &[Step] {
        &self.store.run.steps
    }

    /// Returns true once the user wants it to end.
    pub fn is_interrupted(&self) -> bool {
        self.interrupt.is_set()
    }

    /// Waits until the deadline or an interrupt.
    pub fn wait(&self, until: clock::Deadline) {
        while !self.is_interrupted() && !until.left().is_zero() {
            thread::sleep(until.left().min(Duration::from_millis(20)));
        }
    }

    /// Notes the seed of the order within each trial, and the measurements that are compared, before
    /// the first trial.
    pub fn design(&mut self, order_seed: u64, pairings: Vec<Pairing>) {
        self.store.run.order_seed = Some(order_seed);
        self.store.run.pairings = pairings;
    }

    /// Lets this many windows be measured again in which others had the CPUs.
    pub fn allow_repeats(&mut self, repeats: u32) {
        self.repeats = repeats;
    }

    /// Adds what is known of a target's server.
    pub fn complete(&mut self, target: &mut Destination) {
        self.servers.complete(target);
    }

    /// Returns the place of the first trial of a measurement that is none of those so far.
    pub fn next_place(&self) -> Place {
        let numbers = self.steps().iter().map(|step| step.measurement + 1);
        Place {
            measurement: numbers.max().unwrap_or(0),
            trial: 1,
        }
    }

    /// Sends one request to each target before any is measured, so that one that is not there, or
    /// speaks another protocol, is found at once.
    ///
    /// # Errors
    /// The first [`StartError`].
    pub fn call_all(&mut self, plans: &[Plan]) -> Result<(), StartError> {
        // Their servers are one side from the first step on: a relay, and the one behind it.
        for plan in plans {
            self.servers.find(&plan.target);
        }
        plans.iter().try_for_each(|plan| self.call(plan))
    }

    /// Does the same with targets that have just been started, again and again while they do not answer and
    /// `may_wait` allows it.
    ///
    /// # Errors
    /// The first [`StartError`] that is waited for no longer, or an error of `may_wait`.
    pub fn call_started(
        &mut self,
        plans: &[Plan],
        mut may_wait: impl FnMut(&StartError) -> anyhow::Result<bool>,
    ) -> anyhow::Result<()> {
        while let Err(failure) = self.call_all(plans) {
            if !failure.is_of_server() || !may_wait(&failure)? {
                return Err(failure.into());
            }
            self.wait(clock::Deadline::after(BETWEEN_CALLS));
        }
        Ok(())
    }

    /// Sends one request, to see that a plan's target answers; shows the reply if that is wished.
    ///
    /// # Errors
    /// [`StartError`] if it does not.
    pub fn call(&self, plan: &Plan) -> Result<(), StartError> {
        let progress = &self.console.progress;
        progress.begin(plan.target.label.as_deref().unwrap_or(""));
        let outcome = first_call(plan, &self.interrupt, progress);
        progress.end();
        if let Some(kept) = &plan.target.kept {
            for reply in kept.take() {
                // Only what begins a line is netping's own.
                let text = on_lines(&plan.target.prepared.show(&reply)).replace('\n', "\n  | ");
                self.console
                    .say(&format!("reply of {}: {text}", plan.target.url));
            }
        }
        outcome
    }

    /// Runs steps of targets that are measured together, as one trial of the measurements from this place on:
    /// prints their failures, and saves them.
    ///
    /// # Errors
    /// [`StartError`]; earlier steps are saved.
    pub fn explore_together(&mut self, plans: &[Plan], first: Place) -> Result<(), StartError> {
        for ((step, outcome), plan) in self.run_steps(plans, first)?.into_iter().zip(plans) {
            self.explain(&step, plan, &outcome);
            self.push(step);
        }
        self.save();
        Ok(())
    }

    /// Runs a step that may break limits, prints its description and its failures, and saves it.
    ///
    /// # Errors
    /// [`StartError`]; earlier steps are saved.
    pub fn explore(
        &mut self,
        plan: &Plan,
        place: Place,
        describe: impl FnOnce(&Step) -> Option<String>,
    ) -> Result<&Step, StartError> {
        let (step, outcome) = self.run_step(plan, place)?;
        if let Some(text) = describe(&step) {
            self.console.say(&text);
        }
        self.explain(&step, plan, &outcome);
        self.push(step);
        self.save();
        Ok(&self.steps()[self.steps().len() - 1])
    }

    /// Does the same, and fails the command if the step breaks a limit.
    ///
    /// # Errors
    /// [`StartError`]; earlier steps are saved.
    pub fn measure(
        &mut self,
        plan: &Plan,
        place: Place,
        describe: impl FnOnce(&Step) -> Option<String>,
    ) -> Result<(), StartError> {
        let first = self.steps().len();
        self.explore(plan, place, describe)?;
        self.judge_from(first);
        Ok(())
    }

    /// Judges and saves steps that were measured elsewhere, or in a round.
    pub fn keep(&mut self, steps: impl IntoIterator<Item = Step>) {
        let first = self.steps().len();
        for step in steps {
            self.push(step);
        }
        self.judge_from(first);
        self.save();
    }

    /// Runs a step; once more where others had the CPUs, whatever came out, as often as that may be.
    fn run_step(&mut self, plan: &Plan, place: Place) -> Result<(Step, Measured), StartError> {
        let mut all = self.run_steps(slice::from_ref(plan), place)?;
        Ok(all.remove(0))
    }

    /// Runs steps of plans that differ in their targets alone at the same time. The place is that of the first,
    /// and the measurements of the others follow.
    fn run_steps(
        &mut self,
        plans: &[Plan],
        first: Place,
    ) -> Result<Vec<(Step, Measured)>, StartError> {
        let mut plans = plans.to_vec();
        for plan in &mut plans {
            self.warn_of_limits(plan);
            self.servers.complete(&mut plan.target);
        }
        loop {
            let start_at = self.await_start(&plans[0])?;
            for plan in &mut plans {
                plan.execution.start_at = start_at;
            }
            let measured = self.execute(&plans)?;
            let mut all = Vec::new();
            for (at, (plan, own)) in plans.iter().zip(measured).enumerate() {
                self.servers.note(plan, &own);
                let place = Place {
                    measurement: first.measurement + at,
                    ..first
                };
                all.push((step(plan, &own, place), own));
            }
            let disturbed = all.iter().find_map(|(own, _)| ForeignLoad::of_window(own));
            match disturbed {
                Some(load) if self.repeats > 0 && !self.is_interrupted() => {
                    let load = load.clone();
                    self.repeats -= 1;
                    self.replace(&plans, &all[0].0, load);
                }
                _ => return Ok(all),
            }
        }
    }

    /// Counts a window that is measured again because of this load. Those of a ladder are too short and
    /// too many to be told one by one.
    fn replace(&mut self, plans: &[Plan], step: &Step, load: ForeignLoad) {
        let progress = &self.console.progress;
        progress.again(&plans[0]);
        if let Some(push) = &progress.push {
            push.abandon_step();
        }
        if self.store.run.kind != Kind::Ladder {
            let why = Warning::from(load.clone());
            let what = match plans {
                [_] => step.name(),
                _ => "a window of all targets",
            };
            let line = format!("{what} is measured again: {why}");
            self.console.remark(&line);
        }
        self.store.run.count_replaced(load);
    }

    /// Returns the moment at which a step begins, if it has one. Waits until it is time to open the
    /// connections.
    fn await_start(&mut self, plan: &Plan) -> Result<Option<Moment>, StartError> {
        let announced = || match &self.announcement {
            Some(own) => own.wait(&self.console, &self.interrupt),
            None => Err(StartError::Broken),
        };
        let Some((moment, opening)) = in_step::turn(plan, announced)? else {
            return Ok(None);
        };
        if let Ok(left) = opening.left() {
            self.console
                .remark(&format!("waiting to begin at {moment}"));
            self.wait(clock::Deadline::after(left));
        }
        Ok(Some(moment))
    }

    /// Measures each plan once, in random order, as a round, and returns their steps in the order of
    /// the plans, each a trial of the measurement of its plan's place. Returns nothing if the user ends
    /// it.
    ///
    /// # Errors
    /// [`StartError`].
    pub fn round(
        &mut self,
        plans: &[&Plan],
        trial: u32,
        random: &mut ChaCha8Rng,
    ) -> Result<Option<Vec<Step>>, StartError> {
        let mut steps = vec![None; plans.len()];
        for measurement in shuffled(plans.len(), random) {
            let plan = plans[measurement];
            let (step, outcome) = self.run_step(plan, Place { measurement, trial })?;
            if self.is_interrupted() {
                let (measured, all) = (steps.iter().flatten().count(), plans.len());
                self.cut = Some(format!(
                    " in round {trial}, after {measured} of {all} windows"
                ));
                return Ok(None);
            }
            if step.summary.unserved() > 0 {
                let callers = plural(plan.load.callers as u64, "caller");
                self.console.remark(&format!("{}, {callers}:", step.name()));
                for line in troubles(&step, plan.target.url.scheme, &outcome.report.details) {
                    self.console.remark(&line);
                }
            }
            steps[measurement] = Some(step);
        }
        Ok(Some(steps.into_iter().flatten().collect()))
    }

    /// Adds a step to the run, and pushes it to the gateway.
    fn push(&mut self, step: Step) {
        let push = self.console.progress.push.as_ref();
        if let Some(trouble) = push.and_then(|push| push.end_step(&step)) {
            self.console.remark(&trouble);
        }
        self.store.run.steps.push(step);
    }

    /// Writes a page and a result file with this stem at the end, unless others were asked for, and
    /// names them.
    pub fn save_as(&mut self, stem: &str) {
        self.files = self.store.add_files(stem);
    }

    /// Warns if the system or the server cannot have as many connections as planned. A server is
    /// asked for its limit once.
    fn warn_of_limits(&mut self, plan: &Plan) {
        let limit = self.servers.limit(&plan.target.server);
        let mut found = Observations::about(&plan.target.url.to_string());
        let connections = plan.load.connections as u64;
        environment::room(&mut found, connections);
        if let Some(limit) = limit {
            environment::server_room(&mut found, connections, limit);
        }
        for objection in found.objections() {
            self.console
                .remark(&format!("warning: {}: {objection}", plan.target.url));
        }
    }

    fn execute(&self, plans: &[Plan]) -> Result<Vec<Measured>, StartError> {
        let progress = &self.console.progress;
        progress.begin_step(plans);
        let outcome = engine::run_together(plans, &self.interrupt, progress);
        progress.end();
        if let (Err(_), Some(push)) = (&outcome, &progress.push) {
            push.abandon_step();
        }
        outcome
    }

    /// Prints what failed in a step, and circumstances that its description does not have.
    fn explain(&self, step: &Step, plan: &Plan, measurement: &Measured) {
        let console = &self.console;
        for line in troubles(step, plan.target.url.scheme, &measurement.report.details) {
            console.remark(&line);
        }
        if let Some(security) = &step.security {
            let mut others = self.steps().iter().rev();
            let before = others.find(|other| other.name() == step.name());
            let before = before.and_then(|step| step.security.as_ref());
            console.security(security, before);
        }
        if plan.execution.warmup == Warmup::Auto && step.summary.seconds > 0.0 {
            let steady = if measurement.warmup_failed {
                "and the rate was still not steady"
            } else {
                "until the rate was steady"
            };
            let seconds = step.settings.warmup_seconds;
            console.remark(&format!("  warm-up: {seconds:.1} s {steady}"));
        }
        if let Some(note) = &measurement.server_note {
            console.remark(&format!("  server CPU time unknown: {}", on_one_line(note)));
        }
    }

    /// Fails the command if a step broke a limit, from the one at this place on.
    pub fn judge_from(&mut self, first: usize) {
        let run = &self.store.run;
        for step in &run.steps[first..] {
            for line in self.judge.step(step, run.kind, run.order_seed.is_some()) {
                self.console.remark(&line);
            }
        }
    }

    /// Measures what is planted on this machine, between two rounds or trials, if that is wished.
    pub fn plant(&mut self) {
        self.with_planted(|runner, mut planted| {
            planted.measure(&runner.interrupt)?;
            runner.planted = Some(planted);
            Ok(())
        });
    }

    /// Says what was seen of what is planted, if that is wished.
    fn prove(&mut self) {
        self.with_planted(|runner, planted| {
            let line = "measuring what is planted (--prove)";
            runner.console.remark(line);
            runner.store.run.proof = planted.finish(&runner.store.run, &runner.interrupt)?;
            Ok(())
        });
    }

    /// Measures the planted servers, which are started first, if that is wished and something was measured of which
    /// they are the proof. The run stands without it.
    fn with_planted(&mut self, measure: impl FnOnce(&mut Self, Planted) -> anyhow::Result<()>) {
        if !self.prove || self.is_interrupted() || self.steps().is_empty() {
            return;
        }
        let planted = match self.planted.take() {
            Some(planted) => Ok(planted),
            None => Planted::start(&self.server_cpus),
        };
        let measured = planted.and_then(|planted| measure(self, planted));
        if let Err(error) = measured
            && !self.is_interrupted()
        {
            self.prove = false;
            let line =
                format!("error: what was planted (--prove) could not be measured: {error:#}");
            self.fail(Verdict::Unmeasured, &line);
        }
    }

    /// Completes the run, unless the user interrupted it, and decides on it.
    fn finish(mut self) -> Verdict {
        self.prove();
        let is_interrupted = self.is_interrupted();
        if !is_interrupted {
            self.store.run.status = Status::Complete;
        }
        self.end_push();
        if is_interrupted {
            self.judge.decide(Verdict::Interrupted);
            self.console.say(&self.interruption());
        }
        self.tell();
        self.print();
        if !is_interrupted && let Some(line) = self.judge.passed() {
            self.console.say(&line);
        }
        if let Some(line) = self.judge.strictly() {
            self.console.remark(&line);
        }
        if self.console.is_broken() {
            self.judge.decide(Verdict::Unsaved);
        }
        self.judge.verdict
    }

    /// Ends a run that failed: what it has measured is saved, and what can be said of it is said.
    fn end(mut self) {
        self.end_push();
        if self.is_interrupted() {
            self.console.say(&self.interruption());
        }
        if !self.steps().is_empty() {
            self.tell();
        }
        self.print();
    }

    /// Says where the user interrupted the run.
    fn interruption(&self) -> String {
        let cut = self.cut.as_deref().unwrap_or_default();
        match (self.store.is_worth_saving(), &self.cut) {
            (true, _) => format!("interrupted{cut}"),
            (false, Some(_)) => format!(
                "interrupted{cut}: no round is whole, so nothing can be compared, and nothing is saved"
            ),
            (false, None) => "interrupted before there was a result".to_owned(),
        }
    }

    /// Saves the run, and prints what `netping report` prints of its file, but for rows that stand above
    /// already.
    fn tell(&mut self) {
        let is_worth_saving = self.store.is_worth_saving();
        if is_worth_saving {
            self.save();
        }
        if text::has_rounds(&self.store.run) && !self.steps().is_empty() {
            self.console.say(&text::tables(&self.store.run));
        }
        for line in self.judge.whole(&self.store.run) {
            self.console.remark(&line);
        }
        self.console.say(&(self.describe)(&self.store.run));
        if is_worth_saving {
            for file in &self.files {
                self.console.say(&format!("results: {}", file.display()));
            }
        }
    }

    /// Waits for the last push.
    fn end_push(&mut self) {
        if let Some(trouble) = self.console.progress.push.take().and_then(Push::end) {
            self.console.remark(&trouble);
        }
    }

    fn save(&mut self) {
        for failure in self.store.save() {
            self.fail(Verdict::Unsaved, &format!("error: {failure}"));
        }
    }

    fn print(&mut self) {
        if let Err(error) = self.store.print() {
            self.fail(Verdict::Unsaved, &format!("error: {error:#}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use netping_results::{
        fixtures,
        warning::{ClientThrottled, SharedHost},
    };

    use super::*;

    #[test]
    fn a_step_is_disturbed_by_the_balance_alone() {
        let load = fixtures::foreign_load();
        let mut step = fixtures::step(1, |_| vec![1000; 10]);
        step.warnings = vec![ClientThrottled { seconds: 0.5 }.into(), SharedHost.into()];
        assert_eq!(ForeignLoad::of_window(&step), None);
        step.warnings.push(load.clone().into());
        assert_eq!(ForeignLoad::of_window(&step), Some(&load));
    }
}
