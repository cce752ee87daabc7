//! `netping throughput`: requests from many callers at once.

pub mod args;

use netping_client::{error::StartError, plan::Plan};
use netping_measure::status::Status;
use netping_report::text::{Rows, knee};
use netping_results::{
    condition::Condition,
    format::thousands,
    run::{Kind, Place},
};

use self::args::ThroughputArgs;
use crate::{
    error::{Failed, Verdict},
    run::{
        self, Runner,
        search::{self, Search},
        trials,
    },
};

pub fn run(args: &ThroughputArgs) -> Result<Verdict, Failed> {
    let groups = args.groups()?;
    let trials = args.trials()?;
    let options = args.options()?;
    run::run(Kind::Throughput, options, |runner| {
        runner.call_all(&groups[0])?;
        let mut rows = Rows::new(Kind::Throughput);
        let groups = match args.utilisations() {
            Some(shares) => at_shares(runner, args, &groups, shares, &mut rows)?,
            None => groups,
        };
        if trials.count > 1 {
            return Ok(trials::run(runner, trials, &groups)?);
        }
        if args.find.is_none() {
            runner.console.progress.outline(groups.iter().flatten(), 1);
        }
        // Target by target, so that the rows of each are together.
        for target in 0..groups.first().map_or(0, Vec::len) {
            for plan in groups.iter().map(|group| &group[target]) {
                match &args.find {
                    Some(condition) => {
                        let at_rate = |rate| args.at_rate(plan, rate);
                        let search = Search::new(least_rate(plan, condition));
                        let goal = Goal {
                            condition,
                            max_error_rate: runner.max_error_rate(),
                        };
                        find(runner, search, goal, at_rate, &mut rows)?;
                    }
                    None if runner.is_interrupted() => break,
                    None => {
                        let place = runner.next_place();
                        runner.measure(plan, place, |step| Some(rows.show(step)))?;
                    }
                }
            }
            let target = groups[0][target].target.url.to_string();
            if let Some(line) = knee(runner.run(), &target) {
                runner.say(&line);
            }
        }
        Ok(())
    })
}

/// Measures the capacity of each target in a closed loop; returns the groups of open loops at these
/// shares of it. Targets are then equally full, though their rates differ.
fn at_shares(
    runner: &mut Runner,
    args: &ThroughputArgs,
    groups: &[Vec<Plan>],
    shares: impl Iterator<Item = f64>,
    rows: &mut Rows,
) -> Result<Vec<Vec<Plan>>, StartError> {
    let max_error_rate = runner.max_error_rate();
    let mut capacities = Vec::new();
    for group in groups {
        for plan in group {
            if runner.is_interrupted() {
                return Ok(Vec::new());
            }
            // A full server breaks limits that are meant for its shares.
            let place = runner.next_place();
            let step = runner.explore(plan, place, |step| Some(rows.show(step) + "  capacity"))?;
            let (rate, failed) = (step.summary.rate, step.summary.failure_share());
            if rate == 0.0 || failed > max_error_rate {
                runner.fail(
                    Verdict::Requests,
                    "  this capacity is not to be relied on, as requests failed",
                );
            }
            capacities.push((plan, rate));
        }
    }
    let shares: Vec<f64> = shares.collect();
    let at = |share: f64, own: &[(&Plan, f64)]| -> Vec<Plan> {
        let plans = own.iter().filter(|(_, capacity)| *capacity > 0.0);
        plans
            .map(|(plan, capacity)| args.at_rate(plan, capacity * share))
            .collect()
    };
    let targets = groups[0].len();
    Ok(capacities
        .chunks(targets)
        .flat_map(|own| shares.iter().map(move |share| at(*share, own)))
        .filter(|group| group.len() == targets)
        .collect())
}

/// The goal of a search for the highest rate.
#[derive(Clone, Copy)]
struct Goal<'a> {
    condition: &'a Condition,
    max_error_rate: f64,
}

/// Finds the highest rate that meets the goal.
fn find(
    runner: &mut Runner,
    mut search: Search,
    goal: Goal,
    at_rate: impl Fn(f64) -> Plan,
    rows: &mut Rows,
) -> Result<(), StartError> {
    let condition = goal.condition;
    let first = runner.next_place().measurement;
    let mut tried = Vec::new();
    while let Some(rate) = search.next()
        && !runner.is_interrupted()
    {
        let (mut kept, mut measured) = (None, None);
        let place = place_at(rate, &mut tried, first);
        runner.explore(&at_rate(rate), place, |step| {
            let whole = step.status == Status::Complete;
            kept = Some(search::is_kept(step, condition, goal.max_error_rate)).filter(|_| whole);
            measured = Some(step.summary.rate);
            let word = match kept {
                None => "interrupted",
                Some(None) => "too few samples to tell",
                Some(Some(true)) => "met",
                Some(Some(false)) => search::objection(step, condition),
            };
            Some(format!("{}  {word}", rows.show(step)))
        })?;
        match kept {
            None => break,
            Some(Some(kept)) => search.tried(rate, measured.filter(|_| kept)),
            Some(None) => {
                runner.fail(
                    Verdict::Condition,
                    &format!(
                        "{condition} takes {} samples in a window to tell: measure longer (-d)",
                        thousands(condition.samples() as f64)
                    ),
                );
                return Ok(());
            }
        }
    }
    let result = search.result(condition);
    if search.is_found() || runner.is_interrupted() {
        runner.say(&result);
    } else {
        runner.fail(Verdict::Condition, &result);
    }
    Ok(())
}

/// Returns the place of another window at a rate: those of one rate are trials of one measurement.
/// `tried` has the bits of each rate so far and its windows, and `first` is the number of the first
/// measurement.
fn place_at(rate: f64, tried: &mut Vec<(u64, u32)>, first: usize) -> Place {
    let rate = rate.to_bits();
    let known = tried.iter().position(|(own, _)| *own == rate);
    let at = known.unwrap_or_else(|| {
        tried.push((rate, 0));
        tried.len() - 1
    });
    tried[at].1 += 1;
    Place {
        measurement: first + at,
        trial: tried[at].1,
    }
}

/// Returns the lowest rate with enough samples in a window to decide on a condition; a tenth more,
/// since random arrivals vary.
fn least_rate(plan: &Plan, condition: &Condition) -> f64 {
    plan.execution.extent.duration().map_or(0.0, |window| {
        condition.samples() as f64 / window.as_secs_f64() * 1.1
    })
}
