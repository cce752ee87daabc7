//! Truths about simulated data: the tests of the statistics, which have fixed seeds.

use std::{env, process::Command};

use crate::{Tell, Truth};

/// A truth: the situation, the right answer, the crate and the test.
type Simulation = (&'static str, &'static str, &'static str, &'static str);

const SIMULATIONS: [Simulation; 12] = [
    (
        "M/D/1, M/D/8, M/M/8 at 50, 80, 90 %, simulated",
        "queueing theory's means, to 2 %",
        "netping-measure",
        "replayed_queues_have_the_times_of_queueing_theory",
    ),
    (
        "intervals of rates: noise, AR(1), levels, pauses, drifts",
        "cover in 93 % where shown",
        "netping-measure",
        "the_rates_interval_covers_its_mean",
    ),
    (
        "intervals of p50 and p99: M/M/1 at 80 %, lognormal",
        "cover in 93 % where shown",
        "netping-measure",
        "the_intervals_of_quantiles_cover_them",
    ),
    (
        "A/A: commands of 20 comparisons",
        "alarms in 5 % at most",
        "netping-measure",
        "whole_commands_raise_few_false_alarms",
    ),
    (
        "smallest detectable difference; equivalence",
        "found in 70..90 %; wrong in 5 %",
        "netping-measure",
        "power_and_false_alarms_are_as_promised",
    ),
    (
        "differences of 2, 5 and 10 % in recorded noise",
        "found in 70..90 % where detectable",
        "netping-measure",
        "the_smallest_detectable_difference_is_found_in_recorded_noise",
    ),
    (
        "ladders of 6, 10 and 20 rounds that drift",
        "all intervals hold in 95 % or more",
        "netping-measure",
        "all_intervals_of_a_ladder_hold_together",
    ),
    (
        "--until: looks after every trial",
        "cover in 95 % or more",
        "netping",
        "looking_often_does_not_make_the_interval_wrong",
    ),
    (
        "--find at a noise of 10 and 30 %",
        "a fresh window passes in 80 % or more",
        "netping",
        "a_lucky_window_decides_nothing",
    ),
    (
        "--warmup auto: none, 1 s, 9 s of ramp",
        "found within 1 s",
        "netping-measure",
        "a_ramp_is_found",
    ),
    (
        "--warmup auto: never steady",
        "said",
        "netping-measure",
        "a_rate_that_rises_all_the_time_is_never_steady",
    ),
    (
        "two levels of times, and long tails",
        "told apart",
        "netping-measure",
        "one_level_is_one_however_long_its_tail",
    ),
];

/// Runs the tests.
pub fn check(tell: Tell<'_>) {
    for simulation in &SIMULATIONS {
        tell(run(simulation));
    }
}

fn run((what, expected, package, test): &Simulation) -> Truth {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["test", "--quiet", "--package", package, "--lib", "--", test])
        .output();
    let passed = output.is_ok_and(|output| {
        let said = String::from_utf8_lossy(&output.stdout);
        output.status.success() && said.contains("1 passed")
    });
    Truth {
        what: (*what).to_owned(),
        expected: (*expected).to_owned(),
        found: format!("test {test}"),
        passed: Some(passed),
    }
}
