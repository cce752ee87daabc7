//! Queues: the response times that netping measured against those that follow from the same
//! arrivals and service times. How late the client is when a caller is free depends on the machine,
//! and counts as service.

use std::time::Duration;

use netping_benches::{plan, run, start};
use netping_client::plan::{Arrival, Extent, Plan, Warmup};
use netping_measure::{
    counts::Counts, sample::Sample, statistics::queue::response_times, times::Time, window::Window,
};

use crate::{Tell, Truth};

/// The mean time of service, in seconds, and that of the way to the server and back.
const SERVICE: f64 = 0.005;
const OVERHEAD: f64 = 0.000_2;

/// The longest difference that counts as none, in nanoseconds; or 1 %.
const NEAR: f64 = 200_000.0;
const SHARE: f64 = 0.01;

/// Checks queues with fixed and with exponential service, one and eight callers, who are the
/// servers of the queue, at this share of their capacity.
pub fn check(load: f64, tell: Tell<'_>) {
    let fixed = start(&netping_server_tokio::SERVICE, &["--delay", "5ms"]);
    let exponential = start(&netping_server_tokio::SERVICE, &["--delay", "exp:5ms"]);
    let queues = [
        ("M/D/1", &fixed, 1, 1),
        ("M/D/8", &fixed, 8, 1),
        ("M/D/8", &fixed, 8, 8),
        ("M/M/8", &exponential, 8, 1),
        ("M/M/8", &exponential, 8, 8),
    ];
    for (seed, (name, target, callers, workers)) in (0..).zip(queues) {
        let rate = load * callers as f64 / (SERVICE + OVERHEAD);
        let mut plan = plan(target, Extent::Time(Duration::from_secs(8)));
        plan.load.arrival = Arrival::Poisson { rate, seed };
        plan.load.callers = callers;
        plan.load.connections = callers;
        plan.execution.workers = workers;
        let percent = load * 100.0;
        let what = format!("{name} at {percent:.0} %, client workers: {workers}; mean and p99");
        tell(compare(what, plan));
    }
}

fn compare(what: String, mut plan: Plan) -> Truth {
    plan.execution.warmup = Warmup::Time(Duration::from_secs(1));
    plan.execution.keep_samples = true;
    let callers = plan.load.callers;
    let measurement = run(&plan);
    let window = measurement.totals.window;
    let measured = &measurement.totals.histograms.times[Time::Response];
    let replayed = replay(measurement.report.samples, callers, window);
    let (mean, p99) = (
        [mean(measured), mean(&replayed)],
        [quantile(measured), quantile(&replayed)],
    );
    let near = |[a, b]: [f64; 2]| (a - b).abs() <= NEAR.max(b * SHARE);
    let text = |which: usize| format!("{:.2} and {:.2} ms", mean[which] / 1e6, p99[which] / 1e6);
    Truth {
        what,
        expected: text(1),
        found: text(0),
        passed: Some(near(mean) && near(p99)),
    }
}

/// Returns the response times in the window of these requests, served as they came.
fn replay(mut samples: Vec<Sample>, servers: usize, window: Window) -> Counts {
    samples.sort_unstable_by_key(|sample| sample.intended);
    let requests: Vec<(u64, u64)> = samples
        .iter()
        .map(|sample| (sample.intended, sample.end - sample.free))
        .collect();
    let mut times = netping_measure::histogram::histogram();
    for ((arrival, _), time) in requests.iter().zip(response_times(&requests, servers)) {
        if window.contains(*arrival) {
            netping_measure::histogram::record(&mut times, time);
        }
    }
    Counts::from(&times)
}

fn mean(times: &Counts) -> f64 {
    let sum: f64 = times
        .iter()
        .map(|(time, count)| time as f64 * count as f64)
        .sum();
    sum / times.len() as f64
}

fn quantile(times: &Counts) -> f64 {
    times.quantile(0.99).unwrap_or_default() as f64
}
