//! The steps of one invocation: run, kept, saved and said.

pub(crate) mod progress;
pub(crate) mod push;
pub(crate) mod search;
pub(crate) mod trials;
pub(crate) mod verdict;

mod bulk;

use std::{
    cell::Cell,
    collections::BTreeMap,
    io::{self, Write},
    slice, thread,
    time::Duration,
};

use anyhow::Context;
use netping_measure::{error_kind::ErrorKind, status::Status};
use netping_protocol::target::Scheme;
use netping_results::{
    connect::ChannelSecurity,
    format,
    overhead::Overhead,
    run::{Histograms, Run, SCHEMA_VERSION, Step, Tool},
    validity::Facts,
};

use crate::{
    args::{JsonTo, OutputArgs},
    clock,
    commands::Failed,
    engine::{self, arrival::Arrival},
    environment,
    error::StartError,
    interrupt::Interrupt,
    plan::{Extent, Plan, Warmup},
    probe::metrics::{Probe, ServerSource},
    run::{
        progress::Bar,
        push::{Push, Watchers},
    },
};

/// How an invocation went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// All was measured, and no more requests failed than allowed.
    Fine,
    /// Too many requests failed, or the results could not be saved.
    Failed,
    /// The user ended it.
    Interrupted,
}

/// One invocation that measures.
#[derive(Debug)]
pub struct Session {
    run: Run,
    output: OutputArgs,
    interrupt: Interrupt,
    bar: Bar,
    push: Option<Push>,
    /// Whether a step was not as it should be.
    failed: bool,
    /// Whether results could not be written.
    unsaved: bool,
    /// Whether they could not be shown.
    unshown: Cell<bool>,
    /// The current trial, from 1 on.
    trial: u32,
}

impl Session {
    /// Begins; the result file is there from now on: without steps, or, where one was there before, as it was until there
    /// is something to take its place.
    ///
    /// # Errors
    /// When two results have one file, or one cannot be written, before anything is measured.
    pub fn begin(output: &OutputArgs) -> Result<Self, Failed> {
        output.check()?;
        environment::raise_open_files();
        let run = Run {
            schema_version: SCHEMA_VERSION,
            status: Status::Partial,
            tool: tool(),
            command_line: command_line(),
            started_at: clock::timestamp(),
            environment: environment::fingerprint(),
            order_seed: None,
            steps: Vec::new(),
            bulk: Vec::new(),
            overheads: Vec::new(),
            parts: Vec::new(),
        };
        if let Some(JsonTo::File(path)) = &output.json {
            run.prepare(path).map_err(anyhow::Error::new)?;
        }
        output
            .export
            .prepare(slice::from_ref(&run))
            .map_err(anyhow::Error::new)?;
        for warning in environment::warnings(&run.environment) {
            eprintln!("warning: {warning}");
        }
        Ok(Self {
            run,
            output: output.clone(),
            interrupt: Interrupt::on_signals().context("cannot handle Ctrl-C")?,
            bar: Bar::new(),
            push: output
                .prometheus_push
                .clone()
                .map(Push::start)
                .transpose()
                .context("cannot start a thread")?,
            failed: false,
            unsaved: false,
            unshown: Cell::new(false),
            trial: 1,
        })
    }

    /// Shows a line of the result: on standard output, unless that is for the JSON.
    pub fn say(&self, line: &str) {
        self.bar.hidden(|| {
            let written = if self.output.json == Some(JsonTo::Stdout) {
                writeln!(io::stderr(), "{line}")
            } else {
                writeln!(io::stdout(), "{line}")
            };
            // The measurement and its file go on. Who has closed the pipe has read enough.
            if let Err(error) = written
                && error.kind() != io::ErrorKind::BrokenPipe
                && !self.unshown.replace(true)
            {
                let _ = writeln!(
                    io::stderr(),
                    "error: cannot write the results to standard output: {error}"
                );
            }
        });
    }

    /// Shows a remark, on standard error.
    pub fn remark(&self, line: &str) {
        self.bar.hidden(|| {
            let _ = writeln!(io::stderr(), "{line}");
        });
    }

    /// Shows why the invocation fails, which goes on all the same.
    pub fn fail(&mut self, line: &str) {
        self.remark(line);
        self.failed = true;
    }

    /// The steps that were run.
    pub fn steps(&self) -> &[Step] {
        &self.run.steps
    }

    /// Whether the user wants it to end.
    pub fn is_interrupted(&self) -> bool {
        self.interrupt.is_set()
    }

    /// Waits until `until`, but not longer than the user wants.
    pub fn wait(&self, until: clock::Deadline) {
        while !self.is_interrupted() && !until.left().is_zero() {
            thread::sleep(until.left().min(Duration::from_millis(20)));
        }
    }

    /// Begins a trial, by number from 1 on; `seed` is that of the order of its targets.
    pub fn begin_trial(&mut self, trial: u32, seed: u64) {
        self.trial = trial;
        self.run.order_seed = Some(seed);
    }

    /// Sends one request to each of several targets, before anything is measured: nobody wants to hear of one that is not
    /// there when the others are done.
    ///
    /// # Errors
    /// [`StartError`].
    pub fn reach_all(&self, plans: &[Plan]) -> Result<(), StartError> {
        let several = plans.len() > 1;
        plans
            .iter()
            .filter(|_| several)
            .try_for_each(|plan| self.reach(plan))
    }

    /// Sends one request, and keeps nothing of how it went: whether a plan's target can be connected to at all.
    ///
    /// # Errors
    /// [`StartError`].
    pub fn reach(&self, plan: &Plan) -> Result<(), StartError> {
        let one = Plan {
            server: ServerSource::Nowhere,
            arrival: Arrival::Closed,
            callers: 1,
            connections: 1,
            workers: 1,
            warmup: Warmup::Time(Duration::ZERO),
            extent: Extent::Requests(1),
            requests_per_connection: None,
            ..plan.clone()
        };
        self.bar.begin(plan.label.as_deref().unwrap_or(""));
        let outcome = engine::run(&one, &self.interrupt, &self.bar);
        self.bar.end();
        outcome.map(drop)
    }

    /// Runs a step, shows what `describe` makes of it, and what failed in it.
    ///
    /// # Errors
    /// [`StartError`]; what was measured before is saved.
    pub fn step(
        &mut self,
        plan: &Plan,
        describe: impl FnOnce(&Step) -> String,
    ) -> Result<(), StartError> {
        self.measure(plan, |step| Some(describe(step))).map(drop)
    }

    /// Runs a step of a search, where failing is part of finding: it does not fail the invocation.
    ///
    /// # Errors
    /// [`StartError`]; what was measured before is saved.
    pub fn explore(
        &mut self,
        plan: &Plan,
        describe: impl FnOnce(&Step) -> Option<String>,
    ) -> Result<(), StartError> {
        let failed = self.failed;
        let result = self.measure(plan, describe).map(drop);
        self.failed = failed;
        result
    }

    /// Runs a step, keeps it, saves it, and says what failed in it.
    ///
    /// # Errors
    /// [`StartError`]; what was measured before is saved.
    pub fn measure(
        &mut self,
        plan: &Plan,
        describe: impl FnOnce(&Step) -> Option<String>,
    ) -> Result<&Step, StartError> {
        let limit = Probe::new(plan.server.clone())
            .read()
            .ok()
            .and_then(|reading| reading.max_connections());
        for objection in environment::objections(plan.connections as u64, limit) {
            self.remark(&format!("warning: {}: {objection}", plan.target));
        }
        self.bar.begin(&format!(
            "{}  {} callers",
            plan.label.as_deref().unwrap_or(""),
            plan.callers
        ));
        let outcome = engine::run(
            plan,
            &self.interrupt,
            &Watchers::of(plan, &self.bar, self.push.as_ref()),
        );
        self.bar.end();
        if let (Err(_), Some(push)) = (&outcome, &self.push) {
            push.abandon_step();
        }
        let outcome = outcome?;
        let settings = plan.settings(outcome.warmup);
        let summary = netping_measure::summary::Summary::of(&outcome.collected);
        let warnings = Facts {
            settings: &settings,
            summary: &summary,
            cost: &outcome.cost,
            slots: outcome.collected.window_slots(),
            warmup_failed: outcome.warmup_failed,
            shared_host: environment::is_own(&plan.target),
            clock_step: outcome.clock_step,
        }
        .warnings();
        let step = Step {
            target: plan.target.to_string(),
            label: plan.label.clone(),
            trial: self.trial,
            status: outcome.status,
            window_started_at: outcome.window_started_at,
            settings,
            summary,
            cost: outcome.cost,
            reconnects: outcome.reconnects,
            ended_by_server: outcome.ended_by_server,
            security: outcome
                .negotiated
                .map(|negotiated| plan.trust.security(negotiated)),
            connect: netping_results::connect::PhaseSummary::of(&outcome.phases),
            fairness: outcome.fairness,
            warnings,
            intervals: outcome.collected.intervals.clone(),
            histograms: Histograms::of(&outcome.collected),
        };
        if let Some(text) = describe(&step) {
            self.say(&text);
        }
        for line in troubles(&step, plan.target.scheme, &outcome.details) {
            self.remark(&line);
        }
        self.say_security(&step);
        if plan.warmup == Warmup::Auto && step.summary.seconds > 0.0 {
            let steady = if outcome.warmup_failed {
                "and the rate was still not steady"
            } else {
                "until the rate was steady"
            };
            self.remark(&format!(
                "  warm-up: {:.1} s {steady}",
                step.settings.warmup_seconds
            ));
        }
        if let Some(note) = outcome.server_note {
            self.remark(&format!("  no service demand of the server: {note}"));
        }
        for line in self.output.broken(&step) {
            self.fail(&line);
        }
        self.failed |= self.output.strict && !step.warnings.is_empty();
        self.failed |= step.summary.accounting.error_rate() > self.output.max_error_rate;
        if step.summary.scheduled == 0 && step.status == Status::Complete {
            self.remark("warning: no request ended within the window; use a longer -d, or a shorter --timeout");
            self.failed = true;
        }
        if let Some(trouble) = self.push.as_ref().and_then(|push| push.end_step(&step)) {
            self.remark(&trouble);
        }
        self.run.steps.push(step);
        self.save();
        Ok(&self.run.steps[self.run.steps.len() - 1])
    }

    /// Adds what proxies add, and saves it.
    pub fn add_overheads(&mut self, overheads: &[Overhead]) {
        self.run.overheads.extend_from_slice(overheads);
        self.save();
    }

    /// Says how connections to a target are secured, once, and every time if anybody could be the server.
    fn say_security(&self, step: &Step) {
        let Some(security) = &step.security else {
            return;
        };
        let before = self
            .run
            .steps
            .iter()
            .rev()
            .find(|other| other.target == step.target);
        self.say_secured(security, before.and_then(|before| before.security.as_ref()));
    }

    fn say_secured(&self, security: &ChannelSecurity, before: Option<&ChannelSecurity>) {
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

    /// Ends: the result file is complete, unless the user ended it before.
    pub fn finish(mut self) -> Verdict {
        if !self.is_interrupted() {
            self.run.status = Status::Complete;
        }
        // A result of before is worth more than that nothing was measured.
        if self.run.status == Status::Complete
            || !(self.run.steps.is_empty() && self.run.bulk.is_empty())
        {
            self.save();
        }
        self.end_push();
        if self.is_interrupted() {
            self.say("interrupted: this is what was measured until then");
        }
        self.say(&verdict::text(&self.run.steps, &self.run.bulk));
        if self.output.json == Some(JsonTo::Stdout) {
            self.print_json();
        }
        match self {
            Self { interrupt, .. } if interrupt.is_set() => Verdict::Interrupted,
            Self { failed: true, .. } | Self { unsaved: true, .. } => Verdict::Failed,
            Self { unshown, .. } if unshown.get() => Verdict::Failed,
            _ => Verdict::Fine,
        }
    }

    /// Ends after a step that could not start: what was measured before it is saved.
    pub fn abandon(mut self, error: StartError) -> Failed {
        self.end_push();
        if self.output.json == Some(JsonTo::Stdout) {
            self.print_json();
        }
        error.into()
    }

    /// Waits until the last numbers are pushed, or cannot be.
    fn end_push(&mut self) {
        if let Some(trouble) = self.push.take().and_then(Push::end) {
            self.remark(&trouble);
        }
    }

    fn save(&mut self) {
        if let Err(error) = self.output.export.write(slice::from_ref(&self.run)) {
            self.remark(&format!("error: {error}"));
            self.unsaved = true;
        }
        if let Some(JsonTo::File(path)) = &self.output.json
            && let Err(error) = self.run.save(path)
        {
            self.remark(&format!("error: {error}; the file is as it was before"));
            self.unsaved = true;
        }
    }

    fn print_json(&mut self) {
        let text = self.run.to_json().map_err(io::Error::from);
        if let Err(error) = text.and_then(|text| io::stdout().write_all(text.as_bytes())) {
            self.remark(&format!(
                "error: cannot write the results to standard output: {error}"
            ));
            self.unsaved = true;
        }
    }
}

/// This program, as result files have it.
pub fn tool() -> Tool {
    Tool {
        name: "netping".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        commit: option_env!("NETPING_COMMIT").map(str::to_owned),
    }
}

/// The command line, as result files have it.
pub fn command_line() -> Vec<String> {
    std::env::args_os()
        .map(|arg| arg.to_string_lossy().into_owned())
        .collect()
}

/// Whether a failure is what two sides that speak different protocols come to.
fn is_strange(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::Protocol
            | ErrorKind::Eof
            | ErrorKind::Reset
            | ErrorKind::Timeout
            | ErrorKind::Mismatch
    )
}

/// What went wrong in a step, one line for each kind.
fn troubles(step: &Step, scheme: Scheme, details: &BTreeMap<ErrorKind, String>) -> Vec<String> {
    let summary = &step.summary;
    let mut lines: Vec<String> = summary
        .accounting
        .errors
        .iter()
        .map(|(kind, count)| {
            let detail = details.get(kind).map_or("", String::as_str);
            format!(
                "  {} requests failed: {kind} ({detail})",
                format::thousands(*count as f64)
            )
        })
        .collect();
    if summary.accounting.in_flight > 0 {
        lines.push(format!(
            "  {} requests got no reply before the drain was over",
            summary.accounting.in_flight
        ));
    }
    if summary.accounting.not_sent > 0 {
        let count = format::thousands(summary.accounting.not_sent as f64);
        lines.push(format!(
            "  {count} requests were due but never sent: no caller came free, or --max-backlog was full"
        ));
    }
    if summary.accounting.ok == 0
        && summary.accounting.failed() > 0
        && summary.accounting.errors.keys().copied().all(is_strange)
    {
        lines.push(format!(
            "  no request succeeded: does the server there speak {}?",
            scheme.as_str()
        ));
    }
    // A few at the end are the ordinary course of an open loop.
    if summary.late * 100 > summary.accounting.ok {
        let count = format::thousands(summary.late as f64);
        lines.push(format!(
            "  {count} replies came after the window: they count, but not for the rate"
        ));
    }
    if summary.outside_errors > 0 {
        lines.push(format!(
            "  {} requests failed outside the window (they do not count)",
            summary.outside_errors
        ));
    }
    if step.reconnects > 0 {
        lines.push(format!(
            "  {} connections were opened in place of lost ones",
            step.reconnects
        ));
    }
    if step.ended_by_server > 0 {
        let count = format::thousands(step.ended_by_server as f64);
        lines.push(format!(
            "  {count} connections were opened because the server had ended the one before; opening is within the next \
             request's time"
        ));
    }
    lines
}
