//! `netping proxy`: the overhead of proxies over the direct path, and their maximum throughput.

pub mod args;

use std::cmp::Ordering;

use netping_client::{error::StartError, plan::Plan};
use netping_measure::{
    cost::ServerDemand,
    statistics::{difference::Difference, estimate::Estimate},
};
use netping_report::table::{Column, Table};
use netping_results::{
    format::{micros, optional, signed, thousands},
    metric::{self, Metric},
    overhead::Overhead,
    run::{Run, Step},
};
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};

use self::args::{ProxyArgs, ProxyPlans};
use super::text::{columns, probability};
use crate::{
    error::{Failed, Verdict},
    run::{
        self, Runner,
        trials::{self, Trials, interval, percent},
    },
};

const PATHS: &str = "<path|req/s|failed|cpu us|core %|RSS MiB";

/// Columns of the overheads; a column for each proxy follows.
const ADDED: &str = "<difference of|direct us";

const MAXIMUM: &str = "<path|callers|req/s|+-95%|to direct|95% interval|p|failed";

const MIB: f64 = 1_048_576.0;

pub fn run(args: &ProxyArgs) -> Result<Verdict, Failed> {
    let plans = args.plans()?;
    let trials = args.shared.trials.trials();
    run::run(args.shared.output.options()?, |runner| {
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

/// Returns the tables of a run of this command.
pub(super) fn table(run: &Run) -> String {
    let (mut rates, mut sweep) = (Vec::new(), Vec::new());
    for group in trials::groups_of(run) {
        match group[0][0].settings.planned_rate {
            Some(rate) => rates.push((rate, group)),
            None => sweep.push(group),
        }
    }
    let settings = rates.iter().map(|(rate, paths)| setting(*rate, paths).0);
    let mut parts: Vec<String> = settings.collect();
    parts.extend(maximum(&sweep));
    let paths = rates.first().map(|(_, paths)| paths).or(sweep.first());
    parts.extend(paths.map(|paths| legend(paths[0].len(), !rates.is_empty())));
    parts.join("\n")
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
    runner.name_targets(rates.iter().chain(closed).flatten());
    let mut random = ChaCha8Rng::seed_from_u64(trials.order_seed);
    let mut sweep = Vec::new();
    let mut shown = None;
    for group in rates.iter().chain(closed) {
        if runner.is_interrupted() {
            break;
        }
        let paths = trials::interleave(runner, trials, group, &mut random, failures)?;
        let Some(paths) = trials::whole(paths) else {
            break;
        };
        let trials = paths[0].len();
        let rate = group.first().and_then(|plan| plan.load.arrival.rate());
        shown = Some((trials, !rates.is_empty()));
        match rate {
            Some(rate) => {
                let (text, overheads) = setting(rate, &paths);
                runner.say(&text);
                runner.add_overheads(&overheads);
            }
            None => sweep.push(paths),
        }
    }
    if let Some(text) = maximum(&sweep) {
        runner.say(&text);
    }
    if let Some((trials, has_rates)) = shown {
        runner.say(&legend(trials, has_rates));
    }
    Ok(())
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

/// Returns the tables of one planned rate, and the overhead of each proxy. Each path has its trials;
/// the direct path is the first.
fn setting(rate: f64, paths: &[Vec<Step>]) -> (String, Vec<Overhead>) {
    let title = format!("open loop, {} req/s planned", thousands(rate));
    let mut parts = vec![resources(&title, paths)];
    let Some((direct, proxies)) = paths.split_first() else {
        return (String::new(), Vec::new());
    };
    let overheads: Vec<Vec<Overhead>> = proxies
        .iter()
        .map(|proxy| Overhead::between(name(proxy), direct, proxy))
        .collect();
    let mut titles = columns(ADDED);
    titles.extend(proxies.iter().map(|proxy| {
        let doubtful = failed(direct) + failed(proxy) > 0;
        Column::named(format!("{} us", marked(proxy, doubtful)))
    }));
    let row = |metric: &&Metric| {
        let of = |own: &&Overhead| own.measure == metric.name;
        let found: Vec<_> = overheads.iter().map(|own| own.iter().find(of)).collect();
        let direct = found.iter().flatten().next();
        let direct = direct.map_or_else(|| "-".to_owned(), |any| micros(any.direct_us));
        let mut row = vec![metric.name.to_owned(), direct];
        row.extend(found.into_iter().map(added));
        row
    };
    let rows: Vec<_> = metric::OVERHEAD.iter().map(row).collect();
    parts.push(Table::whole(&titles, &rows));
    if paths.iter().any(|path| failed(path) > 0) {
        parts.push(
            "* requests failed on this path or on the direct one: the times are those of the successful requests and do \
             not describe the proxy"
                .to_owned(),
        );
    }
    (parts.join("\n"), overheads.concat())
}

/// Returns the rate and the resources of each path in one setting.
fn resources(title: &str, paths: &[Vec<Step>]) -> String {
    let rows: Vec<_> = paths.iter().map(|path| path_row(path)).collect();
    format!("{title}\n{}", Table::whole(&columns(PATHS), &rows))
}

/// Returns the rate and failures of a path, and the resources of its proxy or server.
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

/// Returns an overhead with its interval, after `~` where no difference is shown.
fn added(overhead: Option<&Overhead>) -> String {
    let Some(overhead) = overhead else {
        return "-".to_owned();
    };
    let added = signed(overhead.added_us);
    match overhead.interval_us {
        None => added,
        Some(ends @ [low, high]) => {
            let mark = if low <= 0.0 && 0.0 <= high { "~ " } else { "" };
            format!("{mark}{added} ({})", interval(ends, signed))
        }
    }
}

/// Returns the maximum throughput of each path, and the resources with the number of callers at which
/// the direct path has its maximum. The sweep has a group of paths for each number of callers.
///
/// There is no overhead: with a fixed number of callers, a response time is that number over the
/// rate (Little's law), and says nothing that the rate does not.
fn maximum(sweep: &[Vec<Vec<Step>>]) -> Option<String> {
    let by_rate = |a: &[Step], b: &[Step]| -> Ordering { rate(a).total_cmp(&rate(b)) };
    let fullest = sweep.iter().max_by(|a, b| by_rate(&a[0], &b[0]))?;
    let best = |path: usize| {
        sweep
            .iter()
            .map(|group| group[path].as_slice())
            .max_by(|a, b| by_rate(a, b))
    };
    let paths: Vec<&[Step]> = (0..fullest.len()).filter_map(best).collect();
    let rows: Vec<_> = paths
        .iter()
        .map(|path| maximum_row(paths[0], path, paths.len() - 1))
        .collect();
    let callers = fullest[0].first().map_or(0, |step| step.settings.callers);
    let title = format!(
        "closed loop, {callers} callers, with which the direct path had its maximum throughput"
    );
    Some(format!(
        "maximum throughput: closed loops, the number of callers with the highest mean rate\n{}\n{}",
        Table::whole(&columns(MAXIMUM), &rows),
        resources(&title, fullest)
    ))
}

/// Returns the row of a path; its difference to the direct one is one of `comparisons`.
fn maximum_row(direct: &[Step], path: &[Step], comparisons: usize) -> Vec<String> {
    let half_width = Estimate::of(&rates(path)).and_then(|estimate| estimate.half_width);
    let is_direct = name(path) == name(direct);
    let difference = Difference::of_means(&rates(direct), &rates(path), comparisons);
    let difference = difference.filter(|_| !is_direct);
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
        cell(|difference| interval(difference.interval, percent)),
        cell(|difference| probability(difference.p_value)),
        thousands(failed(path) as f64),
    ]
}

/// Returns the legend of the tables, with that of overheads if there are such.
fn legend(trials: usize, has_overheads: bool) -> String {
    let trust = if trials > 1 {
        format!(
            "{trials} trials of each path, in random order, paired: differences are taken within each trial (Student's \
             t-test). With 95 % probability, the intervals of a proxy's nine rows all hold. ~: no difference shown.\n"
        )
    } else {
        "One trial cannot tell differences from chance: for intervals, give --trials 3 or more.\n"
            .to_owned()
    };
    let added = if has_overheads {
        "Under each proxy: the time that it adds. A row is the difference of the two paths' quantiles (or of another \
         measure), not a quantile of differences. Response times begin when a request was due.\n"
    } else {
        ""
    };
    format!(
        "{added}{trust}cpu us: per request; core %: over the window; RSS: at its end (the maximum of all trials); of the server on the \
         direct path and of the proxy on the others; '-': unknown (--server-pid, --proxy-pid, --proxy-metrics)."
    )
}

fn name(path: &[Step]) -> &str {
    path.first()
        .and_then(|step| step.label.as_deref())
        .unwrap_or_default()
}

fn marked(path: &[Step], doubtful: bool) -> String {
    format!("{}{}", name(path), if doubtful { "*" } else { "" })
}

/// Returns the rate of each trial, in verified replies per second.
fn rates(path: &[Step]) -> Vec<f64> {
    path.iter().map(|step| step.summary.rate).collect()
}

fn rate(path: &[Step]) -> f64 {
    Estimate::of(&rates(path)).map_or(0.0, |estimate| estimate.mean)
}

/// Returns the number of requests without a verified reply.
fn failed(path: &[Step]) -> u64 {
    path.iter().map(|step| step.summary.unserved()).sum()
}
