//! `netping proxy`: the overhead of proxies over the direct path, and their maximum throughput.

pub mod args;

use anyhow::Context;
use netping_results::{
    format::thousands,
    run::{Kind, Step},
};

use self::args::ProxyComparisonArgs;
use crate::{commands::measure, error::Verdict, run::trials};

pub fn run(args: &ProxyComparisonArgs) -> anyhow::Result<Verdict> {
    let groups = args.groups()?;
    let trials = args.shared.trials.trials();
    measure(Kind::Proxy, args.shared.output.options()?, |runner| {
        // All paths first, so that a missing proxy is found before the others are measured.
        for plan in groups.iter().take(1).flatten() {
            let name = plan.target.label.clone().unwrap_or_default();
            runner.call(plan).context(name)?;
        }
        Ok(trials::run(runner, trials, &groups, failures)?)
    })
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
