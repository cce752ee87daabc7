//! Reliability of comparisons: forty of a server with itself, and forty with one that spends 20 us
//! more per request.
//!
//! `cargo run --release -p netping-benches --example ab` takes about four minutes.

use std::time::Duration;

use netping_benches::{plan, run, start};
use netping_client::plan::{Extent, Warmup};
use netping_measure::{
    counts::Counts,
    statistics::{
        difference::{Difference, Finding},
        side::Side,
    },
    summary::Summary,
};
use netping_protocol::target::Target;

const COMPARISONS: usize = 40;
const TRIALS: usize = 10;

/// Enough to keep the server's core busy, so that its work shows.
const CALLERS: usize = 16;

/// Quantities compared: the rate and two quantiles, as `netping --trials` does.
const MEASURES: usize = 3;

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
        run(&plan).totals
    };
    let (mut rates, mut times) = ([Vec::new(), Vec::new()], [Vec::new(), Vec::new()]);
    for trial in 0..TRIALS {
        // Both orders come equally often.
        for side in if (number + trial).is_multiple_of(2) {
            [0, 1]
        } else {
            [1, 0]
        } {
            let totals = measure([first, second][side]);
            rates[side].push(Summary::of(&totals).rate);
            times[side].push(Counts::from(&totals.response));
        }
    }
    let by_rate = Difference::of_means(&rates[0], &rates[1], MEASURES);
    let by_quantile = |percent| {
        let side = |at: usize| Side::of_quantile(&times[at].iter().collect::<Vec<_>>(), percent);
        Difference::between(side(0)?, side(1)?, MEASURES)
    };
    [by_rate, by_quantile(50.0), by_quantile(99.0)]
        .iter()
        .flatten()
        .any(|difference| difference.finding(true) != Finding::NoDifference)
}
