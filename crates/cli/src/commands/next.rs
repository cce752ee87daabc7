//! `netping next`: the next window of a search, or the next trial, where each is a run of its own, as of clients on
//! several hosts.

use std::{path::PathBuf, time::Duration};

use clap::Args;
use netping_measure::status::Status;
use netping_report::{ab, table::wrap, text::tables};
use netping_results::{ab::Decision, condition::Condition, run::Run};

use super::{ab::FEWEST, validity};
use crate::{
    args::{
        export::print,
        output::{LimitArgs, ToleranceArgs},
        share::share_in_percent,
        time::positive,
        until::Until,
    },
    error::{Verdict, require, tell, usage},
    run::{
        judge::Judge,
        search::{End, Outcome, Search, disturbances, least_rate},
    },
};

/// Flags of `netping next`.
#[derive(Debug, Clone, Args)]
#[command(
    group = clap::ArgGroup::new("goal").required(true),
    override_usage = "netping next [OPTIONS] <--find|--until|--margin> <GOAL> [RUN.json]...",
    mut_arg("max_error_rate", |arg| arg.help("Windows in which a larger share of requests fails do not keep the condition, and trials end with exit code 1; from 0 to 1")),
    mut_arg("allow", |arg| arg.help("Windows with these warnings are not disturbed, or 'all'; may be repeated")),
    after_long_help = "Exit codes: 0 there is a next window, or the rate was found, or the interval is narrow enough, or the new \
                  server is not worse; 1 a larger share of a trial's requests failed; 2 wrong usage, 3 a file could not be read, 4 no rate keeps the condition, or the \
                  interval is too wide after all trials, or the new server is worse; 5 higher rates, or enough trials, \
                  could not be measured on these clients, or an interval that is too wide is NOT VALID; 7 these trials cannot tell whether the new server is worse."
)]
pub struct NextArgs {
    /// Result files of the windows so far, in their order; none before the first
    #[arg(value_name = "RUN.json")]
    files: Vec<PathBuf>,
    /// Search for the highest rate at which this condition holds, such as 'p99<1ms'
    #[arg(long, value_name = "CONDITION", group = "goal")]
    find: Option<Condition>,
    /// Repeat until the interval of a metric is this narrow for every target, such as 'p99 +-5%'
    #[arg(long, value_name = "PRECISION", group = "goal")]
    until: Option<Until>,
    /// Repeat until it is known whether the second target is worse than the first by more than this, such as 5%
    #[arg(long, value_name = "SHARE%", value_parser = share_in_percent, group = "goal")]
    margin: Option<f64>,
    /// Measured time of each window of a search
    #[arg(short, long, default_value = "10s", value_parser = positive, value_name = "TIME", conflicts_with_all = ["until", "margin"])]
    duration: Duration,
    /// Most trials with --until and --margin
    #[arg(long, default_value_t = 20, value_name = "N", value_parser = clap::value_parser!(u32).range(3..), conflicts_with = "find")]
    max_trials: u32,
    #[command(flatten)]
    tolerated: ToleranceArgs,
}

/// The share by which the rate of a window may be off that which was asked for: rates are whole numbers.
const ROUNDED: f64 = 0.01;

pub fn run(args: &NextArgs) -> anyhow::Result<Verdict> {
    let runs = args.files.iter().map(|path| Run::load(path));
    let runs = runs.collect::<Result<Vec<Run>, _>>()?;
    if let Some((first, second)) = same(&runs, begun) {
        let (first, second) = (args.files[first].display(), args.files[second].display());
        return Err(usage(format!(
            "{first} and {second} are of one window: give each window once, and of several clients what netping merge \
             made of it"
        )));
    }
    if let Some(at) = runs.iter().position(|run| run.tool != runs[0].tool) {
        let [first, other] = [0, at].map(|at| args.files[at].display());
        return Err(usage(format!(
            "{first} and {other} are of two builds of netping: measure with one"
        )));
    }
    match (&args.find, args.until, args.margin) {
        (Some(condition), ..) => search(args, condition, &runs),
        (None, Some(until), _) => trials(args, &Goal::Narrow(until), runs),
        (None, None, Some(margin)) => trials(args, &Goal::Decision(margin), runs),
        (None, None, None) => Err(usage("give --find, --until or --margin")),
    }
}

/// Returns the places of the first two runs that have the same value of this.
fn same<T: PartialEq>(runs: &[Run], of: impl Fn(&Run) -> Option<T>) -> Option<(usize, usize)> {
    let all: Vec<Option<T>> = runs.iter().map(of).collect();
    let earlier = |at: usize| {
        all[..at]
            .iter()
            .position(|own| own.is_some() && *own == all[at])
    };
    (0..all.len()).find_map(|at| Some((earlier(at)?, at)))
}

/// Returns when the first window of a run began.
fn begun(run: &Run) -> Option<u64> {
    run.steps.first()?.window_started_at
}

/// Returns the seed of a window's random arrivals.
fn seed(run: &Run) -> Option<u64> {
    run.steps.first()?.settings.seed
}

/// Goes through the windows of a search, and prints the next rate, or the rate that was found.
fn search(args: &NextArgs, condition: &Condition, runs: &[Run]) -> anyhow::Result<Verdict> {
    if let Some((first, second)) = same(runs, seed) {
        let (first, second) = (args.files[first].display(), args.files[second].display());
        return Err(usage(format!(
            "the requests of {second} came at the random times of {first}: give each window a --seed of its own"
        )));
    }
    let mut search = Search::new(least_rate(args.duration, condition));
    for (file, run) in args.files.iter().zip(runs) {
        let name = file.display();
        let [step] = &run.steps[..] else {
            let steps = run.steps.len();
            return Err(usage(format!(
                "{name} has {steps} steps, and a window is one: give its own file"
            )));
        };
        let Some(rate) = search.next() else {
            return Err(usage(format!(
                "the search is over before {name}: leave it out, or give the files in the order in which they were measured"
            )));
        };
        require(
            step.settings.bursts.is_none(),
            format!(
                "{name} has bursts, and a search is for a steady rate: measure without --burst"
            ),
        )?;
        if let Some(diff) = step.unlike(&runs[0].steps[0], &["planned_rate_per_s"]) {
            return Err(usage(format!(
                "{} is {} in {name}, and {} in {}: give the windows of one search",
                diff.what,
                diff.new,
                diff.base,
                args.files[0].display()
            )));
        }
        let measured = step.settings.planned_rate.unwrap_or(0.0);
        if (measured - rate).abs() > (rate * ROUNDED).max(1.0) {
            return Err(usage(format!(
                "{name} has {measured} requests per second, and the search came to {rate:.0}: give the files in the order in \
                 which they were measured, with the --find and -d of then"
            )));
        }
        search.tried(rate, &Outcome::of(step, condition, &args.tolerated));
    }
    if let Some(rate) = search.next() {
        print(format!("--rate {rate:.0}\n"))?;
        return Ok(Verdict::Success);
    }
    print(search.result(condition) + "\n")?;
    Ok(match search.end() {
        End::Found => Verdict::Success,
        End::NotFound => Verdict::Condition,
        End::Machine => Verdict::Warnings,
    })
}

/// The goal of repeated trials.
enum Goal {
    /// A narrow interval.
    Narrow(Until),
    /// An answer whether the new server is worse by more than this share.
    Decision(f64),
}

impl Goal {
    /// Completes a run of trials by what is asked of it: of so many at most.
    ///
    /// # Errors
    /// If there is no answer to that.
    fn ask(&self, run: Run, most: u32) -> anyhow::Result<Run> {
        let Self::Decision(margin) = *self else {
            let looks = Until::looks(most);
            return Ok(Run { looks, ..run });
        };
        require(
            run.steps.iter().all(|step| step.settings.bulk.is_none()),
            "--margin decides by the times of requests, and bulk streams have none: compare their rates with --until",
        )?;
        let compared = run.pairings.len();
        if compared != 1 {
            return Err(usage(format!(
                "--margin is about one new server and its base under one load, and these runs compare {compared} pairs: give \
                 each run the base and the new server as its targets"
            )));
        }
        Ok(Run {
            looks: (most - FEWEST) as usize + 1,
            margin: Some(margin),
            ..run
        })
    }

    /// Returns true if so many trials are enough.
    fn is_met(&self, run: &Run, trials: usize) -> bool {
        match self {
            Self::Narrow(until) => {
                let all = run.measurements();
                !all.is_empty() && all.iter().all(|own| until.is_met(own))
            }
            Self::Decision(_) => {
                trials >= FEWEST as usize && run.decided().decision != Decision::Undecided
            }
        }
    }
}

/// Takes the runs for trials, and prints the seed of the next one's order, or what the trials came to.
fn trials(args: &NextArgs, goal: &Goal, runs: Vec<Run>) -> anyhow::Result<Verdict> {
    if matches!(goal, Goal::Decision(_)) && args.max_trials < FEWEST {
        return Err(usage(format!(
            "--margin needs {FEWEST} trials: give a larger --max-trials"
        )));
    }
    let next = runs.len() + 1;
    let is_disturbed = |run: &Run| {
        let mut steps = run.steps.iter();
        steps.any(|step| !disturbances(step, &args.tolerated).is_empty())
    };
    let all = args.files.iter().zip(runs);
    let is_whole = |run: &Run| run.status == Status::Complete && !is_disturbed(run);
    let (names, kept): (Vec<_>, Vec<_>) = all.filter(|(_, run)| is_whole(run)).unzip();
    let (count, most) = (kept.len(), args.max_trials as usize);
    require(
        count <= most,
        format!(
            "there are {count} trials, and their intervals hold at {most} only: give the --max-trials with which they began"
        ),
    )?;
    let left_out = args.files.len() - count;
    let whole = Run::of_trials(kept);
    let whole =
        whole.map_err(|fault| usage(format!("{}: {fault}", names[fault.number].display())))?;
    let whole = whole.map(|run| Run {
        allowed: args.tolerated.accepted.names(),
        ..run
    });
    let whole = whole
        .map(|run| goal.ask(run, args.max_trials))
        .transpose()?;
    let is_met = whole.as_ref().is_some_and(|run| goal.is_met(run, count));
    // As many as one host repeats of its own accord.
    let is_over = count >= most || left_out > most / 2;
    if !is_met && !is_over {
        print(format!("--order-seed {next}\n"))?;
        return Ok(Verdict::Success);
    }
    if let Some(run) = &whole {
        let tables = match goal {
            Goal::Narrow(_) => tables(run),
            Goal::Decision(_) => ab::text(run),
        };
        let told = format!("{tables}\n{}", validity::describe(run));
        print(wrap(&told, usize::MAX) + "\n")?;
    }
    let without = match left_out {
        0 => String::new(),
        _ => format!(", without {left_out} disturbed or cut short"),
    };
    let result = match (goal, is_met) {
        (Goal::Narrow(until), true) => format!("{until} after {count} trials"),
        (Goal::Narrow(until), false) => format!("{until} was not reached in {count} trials"),
        (Goal::Decision(_), true) => format!("decided after {count} trials"),
        (Goal::Decision(_), false) => format!("not decided in {count} trials"),
    };
    print(format!("{result}{without}\n"))?;
    let limits = LimitArgs {
        tolerated: args.tolerated.clone(),
        strict: None,
    };
    let mut judge = Judge::new(limits, Vec::new(), Vec::new());
    let is_worse = |run: &Run| run.decided().decision == Decision::Worse;
    judge.decide(match goal {
        _ if !is_met && count < most => Verdict::Warnings,
        Goal::Narrow(_) if !is_met => Verdict::Condition,
        Goal::Decision(_) if !is_met => Verdict::Undecided,
        Goal::Decision(_) if whole.as_ref().is_some_and(is_worse) => Verdict::Condition,
        _ => Verdict::Success,
    });
    if let Some(run) = &whole {
        for step in &run.steps {
            for line in judge.step(step, run.kind, true) {
                tell(&line);
            }
        }
        judge.whole(run);
    }
    if let Some(line) = judge.strictly() {
        tell(&line);
    }
    Ok(judge.verdict)
}
