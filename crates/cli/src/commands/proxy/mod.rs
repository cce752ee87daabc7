//! `netping proxy`: the overhead of proxies over the direct path, and their maximum throughput.

pub mod args;

use std::time::Duration;

use anyhow::Context;
use netping_client::plan::Plan;
use netping_report::finding::{MOST_CHANGE, at_most};
use netping_results::{
    comparison::{Family, claims},
    format::{plural, thousands},
    run::{Kind, Run, Step},
};

use self::args::ProxyComparisonArgs;
use crate::{commands::measure, error::Verdict, run::trials};

/// The standard deviation of a difference from trial to trial that a plan assumes, as a share.
const ASSUMED_SPREAD: f64 = 0.05;

pub fn run(args: &ProxyComparisonArgs) -> anyhow::Result<Verdict> {
    let groups = args.groups()?;
    let trials = args.shared.trials.trials(1);
    let is_compared = |group: &[Plan]| args.is_compared(group);
    measure(Kind::Proxy, args.shared.output.options()?, |runner| {
        // All paths first, so that a missing proxy is found before the others are measured.
        for plan in groups.iter().take(1).flatten() {
            let name = plan.target.label.clone().unwrap_or_default();
            runner.call(plan).context(name)?;
        }
        let compared = groups.iter().filter(|group| is_compared(group));
        let promise = promise(&runner.store.run, compared, trials.count);
        runner.console.say(&promise);
        let measured = trials::run_comparing(runner, trials, &groups, is_compared, failures);
        Ok(measured?)
    })
}

/// Says which differences the trials of these groups will be able to show.
fn promise<'a>(run: &Run, compared: impl Iterator<Item = &'a Vec<Plan>>, trials: u32) -> String {
    let (mut paths, mut all_claims) = (0, 0);
    for group in compared {
        paths = group.len();
        let settings = group[0].settings(Duration::ZERO);
        all_claims += (paths - 1) * claims(run.compared_by(&settings));
    }
    let family = Family {
        claims: all_claims,
        at_any_time: false,
        is_apart: false,
        margin: None,
    };
    let design = format!(
        "{} of {}",
        plural(trials.into(), "trial"),
        plural(paths as u64, "path")
    );
    let percent = |share: f64| format!("{:.0} %", share * 100.0);
    match family.detectable(trials, ASSUMED_SPREAD) {
        Some(least) => format!(
            "{design}: with {}, and differences that vary by {} from trial to trial, a difference of {} is shown in 80 % of \
             such runs",
            plural(all_claims as u64, "claim"),
            percent(ASSUMED_SPREAD),
            at_most(least, MOST_CHANGE, percent),
        ),
        None => format!(
            "{design}: what varies from trial to trial stays unknown; --trials 6 and more show differences"
        ),
    }
}

/// Returns the line printed right after a step: only its failures, since its numbers are shown with
/// the other trials.
fn failures(step: &Step) -> Option<String> {
    let (name, trial) = (step.label.as_deref().unwrap_or_default(), step.trial);
    let numbers = [step.summary.unserved(), step.summary.scheduled];
    let [failed, all] = numbers.map(|number| thousands(number as f64));
    let line = format!("{name}, trial {trial}: {failed} of {all} requests failed");
    (numbers[0] > 0).then_some(line)
}
