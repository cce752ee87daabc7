//! Progress on standard error while steps run: a bar, a line per second, a full screen, or nothing.

use std::{
    cell::{Cell, RefCell},
    io::{self, IsTerminal, Write},
    time::Duration,
};

use clap::ValueEnum;
use indicatif::{ProgressBar, ProgressStyle};
use netping_client::{
    clock::Deadline,
    engine::{Observer, Phase},
    interrupt::Interrupt,
    plan::Plan,
};
use netping_measure::recorder::Interval;
use netping_report::table::{is_unicode, terminal_width};
use netping_results::{format::thousands, time_unit};

use crate::run::{
    live::Live,
    push::Push,
    running::{RunningStep, whole_seconds},
};

/// The form in which progress is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ProgressForm {
    /// A line per second
    Lines,
    /// A bar that is redrawn
    Bar,
    /// Nothing
    None,
    /// A full screen
    #[value(skip)]
    Live,
}

impl ProgressForm {
    /// Returns a bar on a terminal, and lines elsewhere.
    pub fn for_stderr() -> Self {
        if io::stderr().is_terminal() {
            Self::Bar
        } else {
            Self::Lines
        }
    }
}

/// The width of a bar with the spaces around it, and of the `^C` that a terminal may write after it.
const BAR: usize = 18;

/// The time between two lines.
const LINE: Duration = Duration::from_secs(1);

/// Shows the progress of a command, and pushes it to a gateway.
#[derive(Debug)]
pub struct Progress {
    form: ProgressForm,
    bar: ProgressBar,
    live: Option<Live>,
    /// The gateway that gets the numbers, too.
    pub push: Option<Push>,
    /// The command's steps, where their number is known beforehand.
    outline: Cell<Option<Outline>>,
    /// The round, of a command that measures in rounds, and the end that is expected.
    round: Cell<Option<(u32, Option<Deadline>)>>,
    step: RefCell<RunningStep>,
    next_line: Cell<Option<Deadline>>,
}

/// The steps of a command.
#[derive(Debug, Clone, Copy)]
struct Outline {
    steps: u32,
    /// Steps that have begun.
    begun: u32,
    /// Planned time of those that have not; `None` if some have no planned time.
    ahead: Option<Duration>,
}

impl Progress {
    /// Creates progress that is not shown yet; keys of a full screen may set `interrupt`.
    pub fn new(form: ProgressForm, push: Option<Push>, interrupt: &Interrupt) -> Self {
        let bar = match form {
            ProgressForm::Bar => ProgressBar::new(0),
            _ => ProgressBar::hidden(),
        };
        if let Ok(style) = ProgressStyle::with_template("{prefix}  {bar:12} {msg}") {
            let drawn = if is_unicode() { "█░" } else { "#-" };
            bar.set_style(style.progress_chars(drawn));
        }
        Self {
            form,
            bar,
            live: (form == ProgressForm::Live).then(|| Live::new(interrupt.clone())),
            push,
            outline: Cell::default(),
            round: Cell::default(),
            step: RefCell::default(),
            next_line: Cell::default(),
        }
    }

    /// Tells of all steps of a command: each of these, this number of times.
    pub fn outline<'a>(&self, plans: impl Iterator<Item = &'a Plan>, times: u32) {
        let (mut steps, mut ahead) = (0, Some(Duration::ZERO));
        for plan in plans {
            steps += times;
            let length = planned(plan).map(|length| length.saturating_mul(times));
            ahead = ahead.zip(length).map(|(sum, own)| sum.saturating_add(own));
        }
        self.outline.set(Some(Outline {
            steps,
            begun: 0,
            ahead,
        }));
    }

    /// Adds to the steps of the command that one of them is measured again.
    pub fn again(&self, plan: &Plan) {
        let Some(mut outline) = self.outline.get() else {
            return;
        };
        let length = outline.ahead.zip(planned(plan));
        outline.ahead = length.map(|(sum, own)| sum.saturating_add(own));
        outline.steps += 1;
        self.outline.set(Some(outline));
    }

    /// Begins a round, numbered from 1, of steps that are too short for rates of their own.
    pub fn begin_round(&self, round: u32, ends: Option<Deadline>) {
        self.round.set(Some((round, ends)));
    }

    /// Begins a step of the outline, or a further one: that of plans that are measured together.
    pub fn begin_step(&self, plans: &[Plan]) {
        let plan = &plans[0];
        let length = planned(plan);
        let mut place = String::new();
        if let Some(mut outline) = self.outline.get() {
            outline.begun += 1;
            let ahead = outline.ahead.zip(length);
            outline.ahead = ahead.map(|(sum, own)| sum.saturating_sub(own));
            self.outline.set(Some(outline));
            if outline.steps > 1 {
                place = format!("{} of {}  ", outline.begun, outline.steps);
            }
        }
        if let Some((round, _)) = self.round.get() {
            place = format!("round {round}  ");
        }
        let name = match plans.len() {
            1 => plan.target.name(),
            targets => format!("{targets} targets together"),
        };
        let load = match plan.load.mean_rate(plan.load.arrival) {
            Some(rate) => format!("{} req/s planned", thousands(rate)),
            None => format!("-c {}", plan.load.callers),
        };
        self.begin(&format!("{place}{name}  {load}"));
        self.step.borrow_mut().ahead = length;
        if let Some(live) = &self.live {
            live.begin_step(plans);
        }
        if let Some(push) = &self.push {
            push.begin_step(plans);
        }
    }

    /// Begins what has no planned time.
    pub fn begin(&self, what: &str) {
        let what = what.trim().to_owned();
        self.bar.reset();
        self.bar.set_message("");
        self.bar.set_prefix(what.clone());
        *self.step.borrow_mut() = RunningStep {
            what,
            ..RunningStep::default()
        };
    }

    /// Shows nothing until the next step.
    pub fn end(&self) {
        self.bar.finish_and_clear();
        if let Some(live) = &self.live {
            live.end();
        }
    }

    /// Hides what is shown while `write` writes to the terminal.
    pub fn hidden(&self, write: impl FnOnce()) {
        match &self.live {
            Some(live) => live.hidden(write),
            None => self.bar.suspend(write),
        }
    }

    /// Returns the time left of the command.
    fn left(&self, step: &RunningStep) -> Option<Duration> {
        if let Some((_, ends)) = self.round.get() {
            return ends.map(Deadline::left);
        }
        let outline = self.outline.get()?;
        let phase = step.planned?.saturating_sub(step.elapsed);
        Some(outline.ahead? + step.ahead? + phase)
    }

    /// Returns what there is to say of a step.
    fn message(&self, step: &RunningStep) -> Vec<String> {
        let mut parts = Vec::new();
        if self.round.get().is_none() {
            let (phase, seconds) = (step.phase, step.elapsed.as_secs_f64());
            parts.push(format!("{phase} {seconds:.0} s"));
            parts.push(format!("{} req/s", thousands(step.rate)));
        }
        for (name, q) in [("p50", 0.5), ("p99", 0.99)] {
            let time = step.times.quantile(q);
            parts.extend(time.map(|time| format!("{name} {}", time_unit::time(time as f64))));
        }
        if step.failed() > 0 {
            parts.push(format!("{} failed", thousands(step.failed() as f64)));
        }
        parts.extend(step.left.map(whole_seconds));
        parts
    }
}

impl Observer for Progress {
    fn phase(&self, phase: Phase, planned: Option<Duration>) {
        let mut step = self.step.borrow_mut();
        step.begin_phase(phase, planned);
        let length = planned.map_or(0, |planned| planned.as_millis() as u64);
        self.bar.set_length(length);
        self.bar.set_position(0);
        self.bar.set_message(step.phase);
    }

    fn tick(&self, elapsed: Duration, rate: f64) {
        if let Some(push) = &self.push {
            push.tick(elapsed, rate);
        }
        let mut step = self.step.borrow_mut();
        step.tick(elapsed, rate);
        step.left = self.left(&step);
        if let Some(live) = &self.live {
            return live.tick(&step);
        }
        if self.form == ProgressForm::Bar {
            let position = step.planned.map_or(elapsed, |planned| elapsed.min(planned));
            self.bar.set_position(position.as_millis() as u64);
            let used = step.what.chars().count() + BAR;
            let room = terminal_width().map_or(usize::MAX, |width| width.saturating_sub(used));
            self.bar.set_message(fitting(self.message(&step), room));
        }
        let next = self.next_line.get();
        if self.form == ProgressForm::Lines && next.is_none_or(|next| next.left().is_zero()) {
            self.next_line.set(Some(Deadline::after(LINE)));
            // The first line comes after a second.
            if next.is_some() {
                let line = format!("{}  {}", step.what, self.message(&step).join("  "));
                let _ = writeln!(io::stderr(), "{}", line.trim_end());
            }
        }
    }

    fn interval(&self, interval: &Interval) {
        if let Some(push) = &self.push {
            push.interval(interval);
        }
        if self.form != ProgressForm::None {
            self.step.borrow_mut().add(interval);
        }
    }

    fn ends_step(&self) -> bool {
        self.live.as_ref().is_some_and(Live::ends_step)
    }
}

/// Joins the parts that fit; the first two, and then the last, are those that are kept.
fn fitting(mut parts: Vec<String>, room: usize) -> String {
    loop {
        let text = parts.join("  ");
        if text.chars().count() <= room || parts.len() < 2 {
            return text.chars().take(room).collect();
        }
        parts.remove(2.min(parts.len() - 1));
    }
}

/// Returns the planned time of a step.
fn planned(plan: &Plan) -> Option<Duration> {
    let execution = &plan.execution;
    Some(execution.warmup.duration()? + execution.extent.duration()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_narrow_terminal_is_told_the_phase_the_rate_and_the_time_left() {
        let parts = || {
            [
                "measuring 3 s",
                "58,404 req/s",
                "p50 59 us",
                "p99 217 us",
                "2s left",
            ]
            .map(str::to_owned)
        };
        assert_eq!(fitting(parts().into(), 100).chars().count(), 59);
        assert_eq!(
            fitting(parts().into(), 40),
            "measuring 3 s  58,404 req/s  2s left"
        );
        assert_eq!(fitting(parts().into(), 30), "measuring 3 s  58,404 req/s");
        assert_eq!(fitting(parts().into(), 9), "measuring");
    }
}
