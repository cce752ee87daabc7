//! `netping throughput`: requests from many callers at once.

pub mod args;

use netping_client::{error::StartError, plan::Plan};
use netping_measure::{statistics::knee::knee, status::Status};
use netping_report::steps::StepTable;
use netping_results::{
    condition::Condition,
    format::{nanos_as_micros, thousands},
    metric::{self, Metric},
    run::Step,
};

use self::args::ThroughputArgs;
use super::text::requests;
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
    run::run(options, |runner| {
        runner.call_all(&groups[0])?;
        let mut rows = Rows::new();
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
                    None => drop(runner.measure(plan, |step| Some(rows.show(step)))?),
                }
            }
            if let Some(line) = knee_line(runner.steps(), &groups[0][target].target.url.to_string())
            {
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
            let step = runner.explore(plan, |step| Some(rows.show(step) + "  capacity"))?;
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

/// The rows of all steps, under a heading for each target.
pub(super) struct Rows {
    closed: StepTable,
    open: StepTable,
    /// The target and the arrivals of the rows above.
    heading: Option<(String, String)>,
}

impl Rows {
    pub(super) fn new() -> Self {
        Self {
            closed: StepTable::closed(),
            open: StepTable::open(),
            heading: None,
        }
    }

    pub(super) fn show(&mut self, step: &Step) -> String {
        let (table, arrivals) = match step.settings.planned_rate {
            None => (&self.closed, "closed loop".to_owned()),
            Some(_) => (
                &self.open,
                format!("open loop, {} arrivals", step.settings.arrivals),
            ),
        };
        let row = table.row(step) + &message_line(step) + &stream_line(step);
        let label = step.label.as_deref();
        let name = label.map_or_else(String::new, |label| format!("{label}  ")) + &step.target;
        let heading = Some((name.clone(), arrivals.clone()));
        if self.heading == heading {
            return row;
        }
        self.heading = heading;
        let what = requests(&step.settings).map_or_else(String::new, |what| format!("{what}, "));
        format!("{name}  {what}{arrivals}\n{}\n{row}", table.header())
    }
}

/// Returns what the messages of a step's calls came to, if these stream.
fn stream_line(step: &Step) -> String {
    if step.messages.is_none() {
        return String::new();
    }
    let cell = |metric: &Metric| metric.cell_of_step(step);
    format!(
        "\n  messages/s: {} received, {} sent; to the first in us: p50 {}, p99 {}",
        cell(&metric::MESSAGES_RECEIVED),
        cell(&metric::MESSAGES_SENT),
        cell(&metric::FIRST_MESSAGE_P50),
        cell(&metric::FIRST_MESSAGE_P99),
    )
}

/// Returns the knee of a target's sweep over callers.
fn knee_line(steps: &[Step], target: &str) -> Option<String> {
    let sweep: Vec<&Step> = steps.iter().filter(|step| step.target == target).collect();
    let rises = sweep
        .windows(2)
        .all(|pair| pair[0].settings.callers < pair[1].settings.callers);
    let closed = sweep
        .iter()
        .all(|step| step.settings.planned_rate.is_none());
    if !rises || !closed {
        return None;
    }
    let points: Vec<_> = sweep
        .iter()
        .map(|step| (step.summary.rate, step.summary.response_time.quantile(99.0)))
        .collect();
    let at = knee(&points)?;
    let growth = if points[at + 1].0 < points[at].0 {
        "falls"
    } else {
        "grows by less than 5%"
    };
    Some(format!(
        "knee: {} callers with {} req/s and p99 {} us; with more callers, the rate {growth}, and p99 rises to {} us",
        sweep[at].settings.callers,
        thousands(points[at].0),
        nanos_as_micros(points[at].1),
        nanos_as_micros(points[at + 1].1),
    ))
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
    while let Some(rate) = search.next()
        && !runner.is_interrupted()
    {
        let (mut kept, mut measured) = (None, None);
        runner.explore(&at_rate(rate), |step| {
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

/// Returns the lowest rate with enough samples in a window to decide on a condition; a tenth more,
/// since random arrivals vary.
fn least_rate(plan: &Plan, condition: &Condition) -> f64 {
    plan.execution.extent.duration().map_or(0.0, |window| {
        condition.samples() as f64 / window.as_secs_f64() * 1.1
    })
}

/// Returns the line that rpcx-benchmark prints after a run with its message.
fn message_line(step: &Step) -> String {
    if step.settings.message.is_none() {
        return String::new();
    }
    let time = |metric: &Metric| metric.cell_of_times(&step.summary.service_time);
    format!(
        "\n  TPS {}; in us: mean {}, median {}, max {}, min {}, p99.9 {}",
        metric::RATE.show(step.summary.rate),
        time(&metric::MEAN),
        time(&metric::P50),
        time(&metric::MAX),
        time(&metric::MIN),
        time(&metric::P999),
    )
}
