//! `netping throughput`: requests from many callers at once.

pub mod args;

use netping_client::{error::StartError, plan::Plan};
use netping_report::text::{Rows, of_sweep};
use netping_results::{
    condition::Condition,
    run::{Kind, Place, Step},
};

use self::args::ThroughputArgs;
use crate::{
    args::trials::Alternate,
    commands::measure,
    error::Verdict,
    run::{
        Runner,
        search::{End, Outcome, Search, least_rate},
        trials,
    },
};

pub fn run(args: &ThroughputArgs) -> anyhow::Result<Verdict> {
    let groups = args.groups()?;
    let trials = args
        .compared
        .trials(args.targets.len(), 1, Alternate::Windows)?;
    let options = args.compared.options()?;
    measure(Kind::Throughput, options, |runner| {
        runner.call_all(&groups[0])?;
        let mut rows = Rows::new(Kind::Throughput);
        let groups = match args.utilisations() {
            Some(shares) => at_shares(runner, args, &groups, shares, &mut rows)?,
            None => groups,
        };
        if trials.have_order(args.targets.len()) && args.find.is_none() {
            return Ok(trials::run(runner, trials, &groups, |_| None)?);
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
                        let window = plan.execution.extent.duration();
                        let least = window.map_or(0.0, |window| least_rate(window, condition));
                        let search = Search::new(least);
                        find(runner, search, condition, at_rate, &mut rows)?;
                    }
                    None if runner.is_interrupted() => break,
                    None => {
                        let place = runner.next_place();
                        runner.measure(plan, place, |step| Some(rows.show(step)))?;
                    }
                }
            }
            let name = groups[0][target].target.name();
            if let Some(line) = of_sweep(&runner.store.run, &name) {
                runner.console.say(&line);
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
    let max_error_rate = runner.judge.limits.tolerated.max_error_rate;
    let shares: Vec<f64> = shares.collect();
    let mut open = Vec::new();
    for group in groups {
        let mut capacities = Vec::new();
        for plan in group {
            if runner.is_interrupted() {
                return Ok(Vec::new());
            }
            // A full server breaks limits that are meant for its shares.
            let place = runner.next_place();
            let step =
                runner.explore(plan, place, |step| Some(rows.show_with(step, "  capacity")))?;
            let (rate, failed) = (step.summary.rate, step.summary.failure_share());
            if rate == 0.0 || failed > max_error_rate {
                runner.fail(
                    Verdict::Requests,
                    "  this capacity is not to be relied on, as requests failed",
                );
            }
            capacities.push(rate);
        }
        if capacities.contains(&0.0) {
            continue;
        }
        for share in &shares {
            let plans = group.iter().zip(&capacities);
            let plans = plans.map(|(plan, capacity)| args.at_rate(plan, capacity * share));
            open.push(plans.collect());
        }
    }
    Ok(open)
}

/// Finds the highest rate that keeps a condition. Windows that are measured again are not kept.
fn find(
    runner: &mut Runner,
    mut search: Search,
    condition: &Condition,
    at_rate: impl Fn(f64) -> Plan,
    rows: &mut Rows,
) -> Result<(), StartError> {
    let tolerated = runner.judge.limits.tolerated.clone();
    let read = |step: &Step| Outcome::of(step, condition, &tolerated);
    let (begin, first) = (runner.steps().len(), runner.next_place().measurement);
    let mut window = 0;
    while let Some(rate) = search.next()
        && !runner.is_interrupted()
    {
        window += 1;
        let place = place_at(runner, rate, first);
        let show = |step: &Step| Some(rows.show_with(step, &format!("  {}", read(step))));
        let outcome = read(runner.explore(&at_rate(rate).of_trial(window), place, show)?);
        if outcome == Outcome::Interrupted {
            break;
        }
        if search.tried(rate, &outcome) {
            runner.store.run.steps.pop();
        }
    }
    let end = search.end();
    let found = search.found();
    for step in &mut runner.store.run.steps[begin..] {
        let is_found = found.is_some_and(|rate| is_at(step, rate, first));
        step.set_aside = is_set_aside(&read(step), end, is_found);
    }
    let result = search.result(condition);
    match end {
        End::NotFound if !runner.is_interrupted() => runner.fail(Verdict::Condition, &result),
        End::Machine if !runner.is_interrupted() => runner.fail(Verdict::Warnings, &result),
        _ => runner.console.say(&result),
    }
    judge_found(runner, &search, first);
    Ok(())
}

/// Returns true if a search that ended like this does not rely on a window. `is_found`: it is at the rate that
/// was found. Other rates showed the way; where this machine is the limit, only disturbed windows show that.
fn is_set_aside(outcome: &Outcome, end: End, is_found: bool) -> bool {
    match outcome {
        Outcome::Broken(_) => true,
        Outcome::Disturbed(_) => end != End::Machine,
        Outcome::Kept(_) => end == End::Machine || (end == End::Found && !is_found),
        Outcome::Undecided | Outcome::Interrupted => false,
    }
}

/// Judges the windows of the rate that a search found, on which alone it relies.
fn judge_found(runner: &mut Runner, search: &Search, first: usize) {
    let Some(rate) = search.found() else {
        return;
    };
    let steps = runner.store.run.steps.iter();
    for step in steps.filter(|step| !step.set_aside && is_at(step, rate, first)) {
        for line in runner.judge.step(step, Kind::Throughput, true) {
            runner.console.remark(&line);
        }
    }
}

/// Returns true for a step at this rate, of a search whose measurements are numbered from `first` on.
fn is_at(step: &Step, rate: f64, first: usize) -> bool {
    let planned = step.settings.planned_rate.map(f64::to_bits);
    step.measurement >= first && planned == Some(rate.to_bits())
}

/// Returns the place of another window at a rate: those of one rate are trials of one measurement.
/// The measurements of the search are numbered from `first` on.
fn place_at(runner: &Runner, rate: f64, first: usize) -> Place {
    let mut steps = runner.steps().iter().rev();
    let last = steps.find(|step| is_at(step, rate, first));
    last.map_or_else(
        || runner.next_place(),
        |step| Place {
            measurement: step.measurement,
            trial: step.trial + 1,
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_relies_on_the_rate_that_it_found_or_on_what_disturbed_it() {
        let [kept, broken] = [Outcome::Kept(1000.0), Outcome::Broken("not met")];
        let disturbed = Outcome::Disturbed(vec!["FOREIGN_LOAD"]);
        let relies = |outcome, end, is_found| !is_set_aside(outcome, end, is_found);
        for end in [End::Found, End::NotFound, End::Machine] {
            assert!(!relies(&broken, end, true), "{end:?}");
            assert_eq!(relies(&kept, end, true), end != End::Machine, "{end:?}");
            assert_eq!(relies(&kept, end, false), end == End::NotFound, "{end:?}");
            assert_eq!(relies(&disturbed, end, true), end == End::Machine);
        }
    }
}
