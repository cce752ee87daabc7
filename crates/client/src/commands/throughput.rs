//! `netping throughput`: many callers at once.

use netping_measure::{statistics::knee::knee, status::Status, summary::Summary};
use netping_report::table::{Column, Table};
use netping_results::{
    condition::Condition,
    format::{micros, nanos_as_micros, optional, thousands},
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
    let closed = Table::new(vec![
        Column::number("callers", 7),
        Column::number("conns", 5).spare(1),
        Column::number("req/s", 9),
        Column::number("+-%", 4),
        Column::number("p50 us", 6),
        Column::number("p99 us", 6),
        Column::number("p99.9 us", 8).spare(3),
        Column::number("max us", 7).spare(2),
        Column::number("cli us", 6),
        Column::number("srv us", 6),
        Column::number("failed", 6),
    ]);
    let open = Table::new(vec![
        Column::number("planned/s", 9),
        Column::number("req/s", 9),
        Column::number("service p50", 6),
        Column::number("p99 us", 6),
        Column::number("response p50", 6),
        Column::number("p99 us", 6),
        Column::number("max us", 7).spare(1),
        Column::number("lag p50", 6).spare(2),
        Column::number("p99 us", 6).spare(3),
        Column::number("failed", 6),
    ]);
    let mut heading = None;
    let mut show = |step: &Step| {
        let (table, row, arrivals) = match step.settings.planned_rate {
            None => (&closed, closed_row(step), "closed loop".to_owned()),
            Some(_) => (
                &open,
                open_row(step),
                format!("open loop, {} arrivals", step.settings.arrivals),
            ),
        };
        let row = table.row(&row) + &message_line(step);
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

fn closed_row(step: &Step) -> Vec<String> {
    let summary = &step.summary;
    let time = &summary.response_time;
    vec![
        step.settings.callers.to_string(),
        step.settings.connections.to_string(),
        thousands(summary.rate),
        error_bar(summary),
        nanos_as_micros(time.quantile(50.0)),
        nanos_as_micros(time.quantile(99.0)),
        nanos_as_micros(time.quantile(99.9)),
        nanos_as_micros(time.max),
        optional(step.cost.client_cpu_us_per_request),
        optional(step.cost.server_cpu_us_per_request()),
        thousands((summary.scheduled - summary.accounting.ok) as f64),
    ]
}

/// What rpcx-benchmark says of a run with its message.
fn message_line(step: &Step) -> String {
    if step.settings.message.is_none() {
        return String::new();
    }
    let time = &step.summary.service_time;
    let mean = time
        .mean
        .map_or_else(|| "-".to_owned(), |mean| micros(mean / 1e3));
    let [median, max, min, p999] =
        [time.quantile(50.0), time.max, time.min, time.quantile(99.9)].map(nanos_as_micros);
    let tps = thousands(step.summary.rate);
    format!(
        "\n  TPS {tps}; in us: mean {mean}, median {median}, max {max}, min {min}, p99.9 {p999}"
    )
}

/// Half the width of the rate's 95 % interval, in per cent of the rate.
fn error_bar(summary: &Summary) -> String {
    let half = summary
        .precision
        .rate_half_width
        .filter(|_| summary.rate > 0.0);
    half.map_or_else(
        || "-".to_owned(),
        |half| format!("{:.1}", half / summary.rate * 100.0),
    )
}

fn open_row(step: &Step) -> Vec<String> {
    let summary = &step.summary;
    vec![
        thousands(step.settings.planned_rate.unwrap_or_default()),
        thousands(summary.rate),
        nanos_as_micros(summary.service_time.quantile(50.0)),
        nanos_as_micros(summary.service_time.quantile(99.0)),
        nanos_as_micros(summary.response_time.quantile(50.0)),
        nanos_as_micros(summary.response_time.quantile(99.0)),
        nanos_as_micros(summary.response_time.max),
        nanos_as_micros(summary.lag.quantile(50.0)),
        nanos_as_micros(summary.lag.quantile(99.0)),
        thousands((summary.scheduled - summary.accounting.ok) as f64),
    ]
}
