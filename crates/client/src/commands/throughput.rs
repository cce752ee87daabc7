//! `netping throughput`: many callers at once.

use netping_measure::{statistics::knee::knee, status::Status, summary::Summary};
use netping_report::steps::StepTable;
use netping_results::{
    condition::Condition,
    format::{nanos_as_micros, thousands},
    metric::{self, Metric},
    run::Step,
};

use super::Failed;
use crate::{
    args::ThroughputArgs,
    engine::Phase,
    error::StartError,
    plan::Plan,
    run::{
        Session, Verdict,
        search::{self, Measured, Search},
        trials,
    },
};

/// Runs the command.
///
/// # Errors
/// [`Failed`].
pub fn run(args: &ThroughputArgs) -> Result<Verdict, Failed> {
    let groups = args.groups()?;
    let mut session = Session::begin(&args.output)?;
    if let Err(error) = session.reach_all(&groups[0]) {
        return Err(session.abandon(error));
    }
    if args.trials.trials > 1 {
        return Ok(trials::run(session, &args.trials, &groups)?.finish());
    }
    let (closed, open) = (StepTable::closed(), StepTable::open());
    let mut heading = None;
    let mut show = |step: &Step| {
        let (table, arrivals) = match step.settings.planned_rate {
            None => (&closed, "closed loop".to_owned()),
            Some(_) => (
                &open,
                format!("open loop, {} arrivals", step.settings.arrivals),
            ),
        };
        let row = table.row(step) + &message_line(step);
        // The target and the titles stand above the rows that they are for.
        if heading.as_ref() == Some(&step.target) {
            return row;
        }
        heading = Some(step.target.clone());
        let what = match step.settings.payload_bytes {
            0 => String::new(),
            bytes => format!("{bytes} bytes, "),
        };
        format!(
            "{}  {what}{arrivals}\n{}\n{row}",
            step.target,
            table.header()
        )
    };
    // Target by target, so that each has its rows together.
    for target in 0..groups[0].len() {
        for group in &groups {
            let plan = &group[target];
            let result = match &args.find {
                Some(condition) => find(&mut session, args, plan, condition, &mut show),
                None if session.is_interrupted() => break,
                None => session.step(plan, &mut show),
            };
            if let Err(error) = result {
                return Err(session.abandon(error));
            }
        }
        if let Some(line) = knee_line(session.steps(), &groups[0][target].target.to_string()) {
            session.say(&line);
        }
    }
    Ok(session.finish())
}

/// Where a target's sweep over callers has its knee.
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
    Some(format!(
        "knee: {} callers with {} req/s and p99 {} us; with more, the rate grows by less than 5%, and p99 goes on to {} us",
        sweep[at].settings.callers,
        thousands(points[at].0),
        nanos_as_micros(points[at].1),
        nanos_as_micros(points[at + 1].1),
    ))
}

/// Looks for the highest rate that keeps the condition.
fn find(
    session: &mut Session,
    args: &ThroughputArgs,
    plan: &Plan,
    condition: &Condition,
    show: &mut impl FnMut(&Step) -> String,
) -> Result<(), StartError> {
    // A lower rate would leave too few samples in a window to tell. A tenth more, as random arrivals are not exactly so many.
    let enough = |seconds: f64| condition.samples() as f64 / seconds * 1.1;
    let mut search = Search::new(window(plan).map_or(0.0, enough));
    while let Some(rate) = search.next()
        && !session.is_interrupted()
    {
        let (mut kept, mut outcome) = (None, None);
        let plan = args.at_rate(plan, rate);
        session.explore(&plan, |step| {
            let whole = step.status == Status::Complete;
            kept = Some(search::is_kept(step, condition, args.output.max_error_rate))
                .filter(|_| whole);
            let Summary {
                rate, precision, ..
            } = &step.summary;
            outcome = Some(Measured {
                rate: *rate,
                half_width: precision.rate_half_width,
            });
            let word = match kept {
                None => "interrupted",
                Some(None) => "too few samples to tell",
                Some(Some(true)) => "kept",
                Some(Some(false)) => "not kept",
            };
            Some(format!("{}  {word}", show(step)))
        })?;
        match kept {
            None => break,
            Some(Some(kept)) => search.tried(rate, outcome.filter(|_| kept)),
            Some(None) => {
                session.fail(&format!(
                    "{condition} takes {} samples in a window to tell: measure longer (-d)",
                    thousands(condition.samples() as f64)
                ));
                return Ok(());
            }
        }
    }
    session.say(&search.result(condition));
    Ok(())
}

/// How long a plan's window is, in seconds; `None`: until so many requests are done.
fn window(plan: &Plan) -> Option<f64> {
    plan.planned(Phase::Measure)
        .map(|window| window.as_secs_f64())
}

/// The summary line that rpcx-benchmark prints for a run with its message.
fn message_line(step: &Step) -> String {
    if step.settings.message.is_none() {
        return String::new();
    }
    let time = |metric: &Metric| metric.cell(metric.of_times(&step.summary.service_time));
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
