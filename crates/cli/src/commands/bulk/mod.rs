//! `netping bulk`: the throughput of bulk streams, and the settings that matter for it.

pub mod args;

use netping_client::{
    clock::{Clock, Moment, Monotonic},
    plan::shuffled,
    workload::bulk::{Bulk, BulkPlan, Ended},
};
use netping_results::{
    bulk::BulkSettings,
    format::on_one_line,
    run::{Kind, Pairing, Place},
    transfer::Transfer,
};
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};

use self::args::BulkArgs;
use crate::{commands::measure, environment, error::Verdict, run::Runner};

pub fn run(args: &BulkArgs) -> anyhow::Result<Verdict> {
    let mut plans = args.plans()?;
    measure(Kind::Bulk, args.options()?, |runner| {
        for plan in &mut plans {
            runner.complete(&mut plan.target);
        }
        let mut streams = Bulk::open(&plans, &runner.interrupt)?;
        tell_security(runner, &plans, &streams);
        measure_rounds(runner, args, &plans, &mut streams);
        for (plan, bulk) in plans.iter().zip(&streams) {
            if let Some(note) = bulk.server_note() {
                let (name, note) = (plan.target.name(), on_one_line(note));
                let line = format!("  {name}: server CPU time unknown: {note}");
                runner.console.remark(&line);
            }
        }
        Ok(())
    })
}

fn tell_security(runner: &Runner, plans: &[BulkPlan], streams: &[Bulk]) {
    let mut before = None;
    for (plan, bulk) in plans.iter().zip(streams) {
        if let Some(negotiated) = bulk.negotiated() {
            let security = plan.target.trust.security(negotiated.clone());
            runner.console.security(&security, before.as_ref());
            before = Some(security);
        }
    }
}

/// Measures each combination once per round, in random order, until the end or an interrupt.
fn measure_rounds(runner: &mut Runner, args: &BulkArgs, plans: &[BulkPlan], streams: &mut [Bulk]) {
    let pairings = Pairing::against_first(0..plans.len()).collect();
    let seed = args.order_seed.unwrap_or_else(environment::random_seed);
    runner.design(seed, pairings);
    let clock = Monotonic::start();
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    for trial in 1..=args.runs {
        for measurement in shuffled(plans.len(), &mut random) {
            if runner.is_interrupted() {
                return;
            }
            let (plan, bulk) = (&plans[measurement], &mut streams[measurement]);
            let progress = format!("run {trial} of {}  {}", args.runs, name(plan));
            runner.console.progress.begin(&progress);
            let (mut started_at, begun) = (Moment::now().nanos(), clock.now());
            let outcome = bulk.run_with_probe(&runner.interrupt);
            runner.console.progress.end();
            let mut seconds = (clock.now() - begun) as f64 / 1e9;
            let mut probe = None;
            let outcome = match outcome {
                Ok((run, beside)) => {
                    (seconds, started_at, probe) = (run.seconds, bulk.started_at(), beside);
                    Ok(run)
                }
                Err(Ended::Failed(failure)) => {
                    let (kind, detail) = (failure.kind, failure.into_detail());
                    let line = format!("  {}: a run failed: {kind} ({detail})", name(plan));
                    runner.console.remark(&line);
                    Err(kind)
                }
                Err(Ended::Interrupted) => return,
            };
            let started_at = Some(started_at);
            let transfer = Transfer {
                seconds,
                outcome,
                started_at,
            };
            let place = Place { measurement, trial };
            let target = plan.target.url.to_string();
            let mut step = transfer.step(target, plan.settings.clone(), place);
            step.settings.timeout_seconds = plan.timeout.as_secs_f64();
            step.probe = probe.map(Box::new);
            step.label.clone_from(&plan.target.label);
            let negotiated = bulk.negotiated().cloned();
            step.security = negotiated.map(|own| plan.target.trust.security(own));
            step.cost.balances = bulk.balances().to_vec();
            step.path = bulk.path().cloned();
            step.warn_of_transfer(plan.target.is_own_host());
            runner.keep([step]);
        }
    }
}

fn name(plan: &BulkPlan) -> String {
    let size = BulkSettings::shown(plan.settings.size_bytes);
    let chunk = BulkSettings::shown(plan.settings.chunk_bytes);
    format!("{} {size} in {chunk}", plan.target.name())
}
