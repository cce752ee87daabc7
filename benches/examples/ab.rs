//! Whether comparisons may be believed: forty of a server with itself, and forty with one that works 20 us more.
//!
//! `cargo run --release -p netping-benches --example ab` takes about five minutes.

use std::time::Duration;

use netping_benches::{plan, run, start};
use netping_client::plan::Extent;
use netping_protocol::target::Target;
use netping_report::{Difference, Shown, Summary};

const COMPARISONS: usize = 40;
const TRIALS: usize = 6;

/// What is compared, and whether more of it is better: as `netping --trials` does.
const MEASURES: [fn(&Summary) -> Option<f64>; 3] = [
    |summary| Some(summary.rate),
    |summary| summary.response_time.quantile(50.0).map(|time| time as f64),
    |summary| summary.response_time.quantile(99.0).map(|time| time as f64),
];

fn main() {
    let server = |flags: &[&str]| start(&netping_server_tokio::SERVICE, &[&["--workers", "1"], flags].concat());
    let (a, b) = (server(&[]), server(&["--work", "20us"]));
    for (name, second) in [("A/A", &a), ("A/B, --work 20us", &b)] {
        let differ = (0..COMPARISONS).filter(|&number| differs(&a, second, number)).count();
        println!("{name}: {differ} of {COMPARISONS} comparisons show a difference");
    }
}

/// Whether a comparison shows a difference by any measure.
fn differs(first: &Target, second: &Target, number: usize) -> bool {
    let measure = |target: &Target| run(&plan(target, Extent::Time(Duration::from_millis(200)))).collected.summary();
    let mut summaries = [Vec::new(), Vec::new()];
    for trial in 0..TRIALS {
        // Both orders come equally often.
        for side in if (number + trial).is_multiple_of(2) { [0, 1] } else { [1, 0] } {
            summaries[side].push(measure([first, second][side]));
        }
    }
    MEASURES.iter().any(|of| {
        let [first, second] = summaries.each_ref().map(|summaries| summaries.iter().filter_map(of).collect::<Vec<_>>());
        Difference::between(&first, &second, MEASURES.len())
            .is_some_and(|difference| difference.shown(true) != Shown::NoDifference)
    })
}
