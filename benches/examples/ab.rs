//! Reliability of comparisons: forty of a server with itself, and forty with one that spends 20 us
//! more per request.
//!
//! `cargo run --release -p netping-benches --example ab` takes about four minutes.

use std::time::Duration;

use netping_benches::{plan, run, start};
use netping_client::plan::{Extent, Warmup};
use netping_measure::{
    statistics::{difference::Difference, together::Together},
    summary::Summary,
    times::Time,
};
use netping_protocol::target::Target;

const COMPARISONS: usize = 40;
const TRIALS: usize = 10;

/// Enough to keep the server's core busy, so that its work shows.
const CALLERS: usize = 16;

/// Quantities compared: the rate and two quantiles, as `netping --trials` does.
const MEASURES: usize = 3;

/// Relative resolution of a value, that of a histogram's slots.
const RESOLUTION: f64 = 1e-3;

fn main() {
    let server = |flags: &[&str]| {
        start(
            &netping_server_tokio::SERVICE,
            &[&["--workers", "1"], flags].concat(),
        )
    };
    let (a, b) = (server(&[]), server(&["--work", "20us"]));
    for (name, second) in [("A/A", &a), ("A/B, --work 20us", &b)] {
        let differ = (0..COMPARISONS)
            .filter(|&number| differs(&a, second, number))
            .count();
        println!("{name}: {differ} of {COMPARISONS} comparisons show a difference");
    }
}

/// Returns true if a comparison shows a difference in any quantity.
fn differs(first: &Target, second: &Target, number: usize) -> bool {
    let ms = Duration::from_millis;
    let measure = |target: &Target| {
        let mut plan = plan(target, Extent::Time(ms(130)));
        plan.execution.warmup = Warmup::Time(ms(20));
        plan.load.callers = CALLERS;
        plan.load.connections = CALLERS;
        let summary = Summary::of(&run(&plan).totals);
        let time = |percent| {
            let time = summary.times[Time::Response].quantile(percent);
            time.map(|time| time as f64)
        };
        [Some(summary.rate), time(50.0), time(99.0)]
    };
    let mut logarithms: [[Vec<f64>; MEASURES]; 2] = Default::default();
    for trial in 0..TRIALS {
        // Both orders come equally often.
        for side in if (number + trial).is_multiple_of(2) {
            [0, 1]
        } else {
            [1, 0]
        } {
            let values = measure([first, second][side]);
            for (all, value) in logarithms[side].iter_mut().zip(values) {
                all.extend(value.map(f64::ln));
            }
        }
    }
    let [first, second] = logarithms;
    first.iter().zip(&second).any(|(a, b)| {
        let interval = Difference::paired(a, b, RESOLUTION)
            .and_then(|own| own.interval(Together::fixed(MEASURES)));
        interval.is_some_and(|[low, high]| low > 0.0 || high < 0.0)
    })
}
