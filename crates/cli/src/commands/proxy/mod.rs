//! `netping proxy`: the overhead of proxies over the direct path, and their maximum throughput.

pub mod args;

use netping_client::{error::StartError, plan::Plan};
use netping_report::text;
use netping_results::{
    format::thousands,
    run::{Kind, Step},
};
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};

use self::args::{ProxyArgs, ProxyPlans};
use crate::{
    error::{Failed, Verdict},
    run::{
        self, Runner,
        trials::{self, Trials},
    },
};

pub fn run(args: &ProxyArgs) -> Result<Verdict, Failed> {
    let plans = args.plans()?;
    let trials = args.shared.trials.trials();
    run::run(Kind::Proxy, args.shared.output.options()?, |runner| {
        let ProxyPlans { rates, closed } = &plans;
        // All paths first, so that a missing proxy is found before the others are measured.
        for plan in rates.first().or(closed.first()).into_iter().flatten() {
            runner.call(plan).map_err(|error| named(plan, error))?;
        }
        let all = rates.iter().chain(closed).flatten();
        runner.console.progress.outline(all, trials.count);
        Ok(measure(runner, trials, &plans)?)
    })
}

/// Adds the path to a failure to start.
fn named(plan: &Plan, error: StartError) -> Failed {
    match (error, &plan.target.label) {
        (error @ StartError::Interrupted, _) | (error, None) => error.into(),
        (error, Some(name)) => anyhow::anyhow!("{name}: {error}").into(),
    }
}

fn measure(
    runner: &mut Runner,
    trials: Trials,
    ProxyPlans { rates, closed }: &ProxyPlans,
) -> Result<(), StartError> {
    let groups = [&rates[..], closed].concat();
    runner.design(trials.design(&groups, 0));
    let mut random = ChaCha8Rng::seed_from_u64(trials.order_seed);
    let (mut first, mut outcome) = (0, Ok(()));
    for group in &groups {
        outcome = trials::interleave(runner, trials, group, first, &mut random, failures);
        if outcome.is_err() || runner.is_interrupted() {
            break;
        }
        first += group.len();
    }
    if !runner.steps().is_empty() {
        runner.say(&text::tables(runner.run()));
    }
    outcome
}

/// Returns the line printed right after a step: only its failures, since its numbers are shown with
/// the other trials.
fn failures(step: &Step) -> Option<String> {
    let failed = step.summary.unserved();
    (failed > 0).then(|| {
        format!(
            "{}, trial {}: {} of {} requests failed",
            step.label.as_deref().unwrap_or_default(),
            step.trial,
            thousands(failed as f64),
            thousands(step.summary.scheduled as f64)
        )
    })
}
