//! `netping ladder`: every server on this machine, from the plainest up.

use netping_report::{
    Step,
    format::{micros, nanos_as_micros, optional, thousands},
    table::{Column, Table},
};

use super::Failed;
use crate::{
    args::LadderArgs,
    server_process::ServerProcess,
    session::{Session, Verdict},
};

/// The rungs, from the plainest up, each with its server for `netping serve`.
const RUNGS: [(&str, &str); 3] = [("TCP, threads", "threads"), ("TCP, tokio", "tokio"), ("gRPC, tonic", "grpc")];

const COLUMNS: [Column; 9] = [
    Column::text("rung", 0),
    Column::number("p50 us", 0),
    Column::number("step us", 0),
    Column::number("peak req/s", 0),
    Column::number("step", 0),
    Column::number("callers", 0),
    Column::number("p99 us", 0),
    Column::number("cli us", 0),
    Column::number("srv us", 0),
];

/// What is shown of a rung.
struct Rung {
    name: &'static str,
    /// The steps: one caller, then the sweep.
    steps: Vec<Step>,
}

/// Runs the command.
///
/// # Errors
/// [`Failed`].
pub fn run(args: &LadderArgs) -> Result<Verdict, Failed> {
    let mut session = Session::begin(&args.output)?;
    let mut rungs = Vec::new();
    for (name, server) in RUNGS {
        if session.is_interrupted() {
            break;
        }
        let server = ServerProcess::start(server)?;
        let mut steps = Vec::new();
        for plan in args.plans(name, server.target(), server.source())? {
            if session.is_interrupted() {
                break;
            }
            match session.measure(&plan, |_| None) {
                Ok(step) => steps.push(step.clone()),
                Err(error) => return Err(session.abandon(error)),
            }
        }
        rungs.push(Rung { name, steps });
    }
    session.say(&table(&rungs));
    session.say(
        "p50: one caller. peak: the best step of the sweep, with its callers, p99, and CPU of client and server per \
         request.\nstep: to the rung above. Client and servers share this machine and its loopback: compare rungs, not \
         machines.",
    );
    Ok(session.finish())
}

fn table(rungs: &[Rung]) -> String {
    let mut above: Option<(f64, f64)> = None;
    let rows: Vec<Vec<String>> = rungs
        .iter()
        .filter_map(|rung| {
            let (alone, sweep) = rung.steps.split_first()?;
            let peak = sweep.iter().max_by(|a, b| a.summary.rate.total_cmp(&b.summary.rate)).unwrap_or(alone);
            let p50 = alone.summary.service_time.quantile(50.0).map(|time| time as f64 / 1e3);
            let rate = peak.summary.rate;
            let step =
                above.zip(p50).map(|((before, _), p50)| format!("{}{}", sign(p50 - before), micros(p50 - before)));
            let ratio = above.map(|(_, before)| format!("x{:.2}", rate / before));
            above = p50.map(|p50| (p50, rate));
            Some(vec![
                rung.name.to_owned(),
                optional(p50),
                step.unwrap_or_default(),
                thousands(rate),
                ratio.unwrap_or_default(),
                peak.settings.callers.to_string(),
                nanos_as_micros(peak.summary.service_time.quantile(99.0)),
                optional(peak.cost.client_cpu_us_per_request),
                optional(peak.cost.server_cpu_us_per_request()),
            ])
        })
        .collect();
    Table::whole(&COLUMNS, &rows)
}

fn sign(difference: f64) -> &'static str {
    if difference < 0.0 { "" } else { "+" }
}
