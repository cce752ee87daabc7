//! `netping proxy`: what proxies add to the direct path, and the most that goes through them.

use std::{cmp::Ordering, time::Duration};

use humantime::format_duration;
use netping_measure::{
    cost::ServerDemand,
    statistics::{difference::Difference, estimate::Estimate},
};
use netping_report::table::{Column, Table};
use netping_results::{
    format::{micros, optional, signed, thousands},
    metric,
    overhead::Overhead,
    run::Step,
};
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};

use super::Failed;
use crate::{
    args::ProxyArgs,
    engine::Phase,
    error::StartError,
    plan::Plan,
    run::{Session, Verdict, trials},
};

const PATHS: [Column; 6] = [
    Column::text("path", 0),
    Column::number("req/s", 0),
    Column::number("failed", 0),
    Column::number("cpu us", 0),
    Column::number("core %", 0),
    Column::number("RSS MiB", 0),
];

const ADDED: [Column; 8] = [
    Column::text("via", 0),
    Column::text("measure", 0),
    Column::number("direct us", 0),
    Column::number("via us", 0),
    Column::number("+us", 0),
    Column::number("95% interval", 0),
    Column::number("+%", 0),
    Column::number("p", 0),
];

const MOST: [Column; 8] = [
    Column::text("path", 0),
    Column::number("callers", 0),
    Column::number("req/s", 0),
    Column::number("+-95%", 0),
    Column::number("to direct", 0),
    Column::number("95% interval", 0),
    Column::number("p", 0),
    Column::number("failed", 0),
];

/// Bytes of a MiB.
const MIB: f64 = 1_048_576.0;

/// Runs the command.
///
/// # Errors
/// [`Failed`].
pub fn run(args: &ProxyArgs) -> Result<Verdict, Failed> {
    let (rates, most) = (args.at_rates()?, args.at_most()?);
    let mut session = Session::begin(&args.output)?;
    // All paths at once: nobody wants to hear of a proxy that is not there when half of the others are measured.
    for plan in rates.first().or(most.first()).into_iter().flatten() {
        if let Err(error) = session.reach(plan) {
            return Err(named(plan, session.abandon(error)));
        }
    }
    session.remark(&outlook(
        args.trials.trials,
        rates.iter().chain(&most).flatten(),
    ));
    if let Err(error) = measure(&mut session, args, &rates, &most) {
        return Err(session.abandon(error));
    }
    session.say(&legend(args.trials.trials));
    Ok(session.finish())
}

/// A failure to start, with the path that it concerns.
fn named(plan: &Plan, failed: Failed) -> Failed {
    match (failed, &plan.label) {
        (Failed::Start(StartError::Interrupted), _) => StartError::Interrupted.into(),
        (failed, Some(name)) => anyhow::anyhow!("{name}: {failed}").into(),
        (failed, None) => failed,
    }
}

/// How many steps there are, and how long they take at least.
fn outlook<'a>(trials: u32, plans: impl Iterator<Item = &'a Plan>) -> String {
    let length = |plan: &Plan| -> Duration {
        [Phase::Warmup, Phase::Measure]
            .into_iter()
            .filter_map(|phase| plan.planned(phase))
            .sum()
    };
    let lengths: Vec<Duration> = plans.map(length).collect();
    let seconds = lengths
        .iter()
        .sum::<Duration>()
        .saturating_mul(trials)
        .as_secs();
    format!(
        "{} steps, {} at least",
        lengths.len() * trials as usize,
        format_duration(Duration::from_secs(seconds))
    )
}

fn measure(
    session: &mut Session,
    args: &ProxyArgs,
    rates: &[Vec<Plan>],
    most: &[Vec<Plan>],
) -> Result<(), StartError> {
    let mut random = ChaCha8Rng::seed_from_u64(args.trials.order_seed);
    for group in rates {
        if session.is_interrupted() {
            return Ok(());
        }
        let paths = trials::interleave(session, &args.trials, group, &mut random, failures)?;
        let Some(paths) = trials::whole(paths) else {
            return Ok(());
        };
        let rate = group
            .first()
            .and_then(|plan| plan.arrival.rate())
            .unwrap_or_default();
        show(
            session,
            &format!("open loop, {} req/s planned", thousands(rate)),
            &paths,
        );
    }
    let mut sweep = Vec::new();
    for group in most {
        if session.is_interrupted() {
            break;
        }
        sweep.extend(trials::whole(trials::interleave(
            session,
            &args.trials,
            group,
            &mut random,
            failures,
        )?));
    }
    if !sweep.is_empty() {
        show_most(session, &sweep);
    }
    Ok(())
}

/// What is said of a step at once: only that requests failed, since its numbers come with those of the other trials.
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

/// Shows and keeps what each proxy adds in one setting. Each path has its trials; the direct one is the first.
fn show(session: &mut Session, title: &str, paths: &[Vec<Step>]) {
    let Some((direct, proxies)) = paths.split_first() else {
        return;
    };
    let used: Vec<_> = paths.iter().map(|path| path_row(path)).collect();
    let mut rows = Vec::new();
    for proxy in proxies {
        let overheads = Overhead::between(name(proxy), direct, proxy);
        // Where nothing came back there is no overhead.
        let doubtful = overheads
            .first()
            .map_or(failed(direct) + failed(proxy), |overhead| overhead.failed)
            > 0;
        for metric in metric::OVERHEAD {
            let overhead = overheads
                .iter()
                .find(|overhead| overhead.measure == metric.name);
            rows.push(overhead_row(
                marked(proxy, doubtful),
                metric.name.to_owned(),
                overhead,
            ));
        }
        session.add_overheads(&overheads);
    }
    session.say(&format!(
        "{title}\n{}\n{}",
        Table::whole(&PATHS, &used),
        Table::whole(&ADDED, &rows)
    ));
    if paths.iter().any(|path| failed(path) > 0) {
        session.say(
            "* requests failed on this path or on the direct one: the times are of the successful requests alone and do \
             not describe the proxy",
        );
    }
}

/// How many requests of a path were answered and failed, and what its proxy or server used for them.
fn path_row(path: &[Step]) -> Vec<String> {
    let of: Vec<(&Step, &ServerDemand)> = path
        .iter()
        .filter_map(|step| Some((step, step.cost.server.as_ref()?)))
        .collect();
    let cpu: f64 = of.iter().map(|(_, demand)| demand.cpu_seconds).sum();
    let answered: u64 = of.iter().map(|(step, _)| step.summary.arrived()).sum();
    let seconds: f64 = of.iter().map(|(step, _)| step.summary.seconds).sum();
    let resident = of
        .iter()
        .filter_map(|(_, demand)| demand.resident_bytes)
        .max();
    let share = |part: f64, whole: f64| (whole > 0.0).then(|| part / whole);
    vec![
        marked(path, failed(path) > 0),
        thousands(rate(path)),
        thousands(failed(path) as f64),
        optional(share(cpu * 1e6, answered as f64)),
        optional(share(cpu * 1e2, seconds)),
        optional(resident.map(|bytes| bytes as f64 / MIB)),
    ]
}

fn overhead_row(via: String, measure: String, overhead: Option<&Overhead>) -> Vec<String> {
    let cell = |of: fn(&Overhead) -> Option<String>| {
        overhead.and_then(of).unwrap_or_else(|| "-".to_owned())
    };
    vec![
        via,
        measure,
        cell(|overhead| Some(micros(overhead.direct_us))),
        cell(|overhead| Some(micros(overhead.via_us))),
        cell(|overhead| Some(signed(overhead.added_us))),
        cell(|overhead| {
            overhead
                .interval_us
                .map(|[low, high]| format!("{}..{}", signed(low), signed(high)))
        }),
        cell(|overhead| overhead.relative().map(percent)),
        cell(|overhead| overhead.p_value.map(probability)),
    ]
}

/// Shows the most that went on each path, and what its proxy added with as many callers as made the most of the direct
/// one. The sweep has a group of paths for each number of callers.
fn show_most(session: &mut Session, sweep: &[Vec<Vec<Step>>]) {
    let by_rate = |a: &[Step], b: &[Step]| -> Ordering { rate(a).total_cmp(&rate(b)) };
    let Some(fullest) = sweep.iter().max_by(|a, b| by_rate(&a[0], &b[0])) else {
        return;
    };
    let best = |path: usize| {
        sweep
            .iter()
            .map(|group| group[path].as_slice())
            .max_by(|a, b| by_rate(a, b))
    };
    let paths: Vec<&[Step]> = (0..fullest.len()).filter_map(best).collect();
    let rows: Vec<_> = paths.iter().map(|path| most_row(paths[0], path)).collect();
    session.say(&format!(
        "the most that goes: closed loops, the number of callers with the highest mean rate\n{}",
        Table::whole(&MOST, &rows)
    ));
    let callers = fullest[0].first().map_or(0, |step| step.settings.callers);
    show(
        session,
        &format!("closed loop, {callers} callers, with which the direct path was at its most"),
        fullest,
    );
}

fn most_row(direct: &[Step], path: &[Step]) -> Vec<String> {
    let half_width = Estimate::of(&rates(path)).and_then(|estimate| estimate.half_width);
    let is_direct = name(path) == name(direct);
    let difference = Difference::of_means(&rates(direct), &rates(path), 1).filter(|_| !is_direct);
    let cell = |show: fn(Difference) -> String| difference.map(show).unwrap_or_default();
    let times =
        (rate(direct) > 0.0 && !is_direct).then(|| percent(rate(path) / rate(direct) - 1.0));
    vec![
        marked(path, failed(path) > 0),
        path.first()
            .map_or(0, |step| step.settings.callers)
            .to_string(),
        thousands(rate(path)),
        half_width.map_or_else(|| "-".to_owned(), thousands),
        times.unwrap_or_default(),
        cell(|difference| {
            format!(
                "{}..{}",
                percent(difference.interval[0]),
                percent(difference.interval[1])
            )
        }),
        cell(|difference| probability(difference.p_value)),
        thousands(failed(path) as f64),
    ]
}

/// What the tables show.
fn legend(trials: u32) -> String {
    let trust = if trials > 1 {
        format!(
            "{trials} trials of each path, in random order. p: the probability of such a difference by chance, adjusted\n\
             for the measures compared; Welch's test over the trials, for quantiles whole trials drawn anew.\n"
        )
    } else {
        "One trial tells nothing of chance: for intervals and p-values, give --trials 3 or more.\n"
            .to_owned()
    };
    format!(
        "+us: what a proxy adds to the response time on the direct path, measured from when a request was due.\n{trust}\
         cpu us, core %, RSS: of each request, of the window and at its end (the most of all trials), of the server on\n\
         the direct path and of the proxy on the others; '-': nobody tells (--server-pid, --proxy-pid, --proxy-metrics)."
    )
}

/// The name of a path.
fn name(path: &[Step]) -> &str {
    path.first()
        .and_then(|step| step.label.as_deref())
        .unwrap_or_default()
}

fn marked(path: &[Step], doubtful: bool) -> String {
    format!("{}{}", name(path), if doubtful { "*" } else { "" })
}

/// Verified replies per second in each trial.
fn rates(path: &[Step]) -> Vec<f64> {
    path.iter().map(|step| step.summary.rate).collect()
}

/// The mean of those.
fn rate(path: &[Step]) -> f64 {
    Estimate::of(&rates(path)).map_or(0.0, |estimate| estimate.mean)
}

/// Requests without a verified reply.
fn failed(path: &[Step]) -> u64 {
    path.iter().map(|step| step.summary.unserved()).sum()
}

fn percent(share: f64) -> String {
    format!("{:+.1}%", share * 100.0)
}

fn probability(p: f64) -> String {
    if p < 0.001 {
        "<0.001".to_owned()
    } else {
        format!("{p:.3}")
    }
}
