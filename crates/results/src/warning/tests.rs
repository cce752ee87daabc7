//! Each warning with facts that bring it, with facts just below its limit, and with the trouble next
//! to it.

use std::f64::consts::TAU;

use netping_measure::{
    counts::Counts, distribution::Distribution, error_kind::ErrorKind, quantiles::Quantiles,
    times::Time,
};

use super::*;
use crate::{
    fixtures,
    run::{Kind, Pairing, Run, Step},
};

/// The facts of one step.
struct Case {
    step: Step,
    slots: Vec<u64>,
    drain_slots: Vec<u64>,
    subject: Subject,
    warmup_failed: bool,
    shared_host: bool,
    server_restarted: bool,
    clock_step: i64,
}

impl Case {
    /// Returns eight callers that get 8,000 replies per second, each after 1 ms, for 3 s.
    fn new() -> Self {
        let mut step = fixtures::step(3, |_| vec![1_000_000; 8000]);
        step.summary.times[Time::Service].mean = Some(1e6);
        step.summary.precision.rate_half_width = Some(80.0);
        Self {
            step,
            slots: vec![800; 30],
            drain_slots: vec![8],
            subject: Subject::Server,
            warmup_failed: false,
            shared_host: false,
            server_restarted: false,
            clock_step: 0,
        }
    }

    fn warnings(&self) -> Vec<Warning> {
        let facts = Facts {
            settings: &self.step.settings,
            summary: &self.step.summary,
            cost: &self.step.cost,
            slots: &self.slots,
            drain_slots: &self.drain_slots,
            service_time: &self.step.histograms.times[Time::Service],
            subject: self.subject,
            warmup_failed: self.warmup_failed,
            shared_host: self.shared_host,
            server_restarted: self.server_restarted,
            clock_step: self.clock_step,
        };
        Warning::of_step(&facts)
    }

    /// Makes it an open loop at the rate that it has.
    fn open(&mut self) -> &mut Self {
        self.step.settings.planned_rate = Some(8000.0);
        self
    }

    /// Takes this CPU time and run delay of the busier worker, as shares of the window.
    fn worker(&mut self, cpu: f64, delay: f64) {
        self.step.cost.client_worker_cpu_seconds = vec![0.3, 3.0 * cpu];
        self.step.cost.client_worker_run_delay_seconds = vec![0.0, 3.0 * delay];
    }

    /// Takes this mean service time as a multiple of the one that fits the callers.
    fn mean(&mut self, share: f64) {
        self.step.summary.times[Time::Service].mean = Some(1e6 * share);
    }

    /// Lets one request fail, and each caller pause for this share of the window.
    fn fail_and_pause(&mut self, share: Option<f64>) {
        let errors = &mut self.step.summary.accounting.errors;
        errors.insert(ErrorKind::Reset, 1);
        self.step.cost.client_between_requests_seconds = share.map(|share| 8.0 * 3.0 * share);
    }

    /// Takes one caller on a shared machine, and these service times.
    fn alone(&mut self, times: &[(u64, u64)]) {
        self.shared_host = true;
        self.step.settings.callers = 1;
        self.mean(0.125);
        self.step.histograms.times[Time::Service] = Counts::from(times.to_vec());
    }

    /// Takes no reply in the window's last slots.
    fn silent_at_the_end(&mut self, slots: usize) {
        self.slots[30 - slots..].fill(0);
        self.drain_slots.clear();
    }
}

/// Returns times that are all the same.
fn always(nanoseconds: u64) -> Distribution {
    Distribution {
        count: 24_000,
        quantiles: Quantiles::of(|_| Some(nanoseconds)),
        ..Distribution::default()
    }
}

/// Returns the warnings about a step in which something is changed.
fn step(change: impl FnOnce(&mut Case)) -> Vec<Warning> {
    let mut case = Case::new();
    change(&mut case);
    case.warnings()
}

/// Returns the warnings about a bulk stream with this many runs, of which some failed.
fn bulk(runs: usize, failed: usize, client_cpu_share: f64) -> Vec<Warning> {
    let mut steps = fixtures::bulk("grpc://h:8005", &vec![1.0; runs]);
    steps.extend(vec![fixtures::failed_transfer(); failed]);
    for step in &mut steps {
        step.cost.client_worker_cpu_seconds = vec![client_cpu_share * step.summary.seconds];
        step.warn_of_transfer(false);
    }
    let kinds = Warnings::of(&fixtures::run(steps)).kinds.into_iter();
    kinds.map(|found| found.worst).collect()
}

/// Returns a trial with these replies per second, p50 and p99.
fn trial([rate, p50, p99]: [f64; 3]) -> Step {
    let mut step = fixtures::step(1, |_| vec![1_000_000; 10]);
    step.summary.rate = rate;
    step.summary.times[Time::Response].quantiles = Quantiles::of(|percent| match percent {
        50.0 => Some(p50 as u64),
        99.0 => Some(p99 as u64),
        _ => None,
    });
    step
}

/// Returns the warnings about the trials with these medians, as multiples of 1 ms.
fn trials(medians: &[f64]) -> Vec<Warning> {
    let trials = medians.iter().map(|median| trial([1e3, 1e6 * median, 1e9]));
    let found = Warnings::of_several_steps(&fixtures::run(trials.collect()));
    found.into_iter().map(|(_, warning)| warning).collect()
}

/// Returns a run with a step for each of these targets, with its callers and connections.
fn side_by_side(steps: &[(&str, [usize; 2])]) -> Run {
    let step = |(target, [callers, connections]): &(&str, [usize; 2])| {
        let mut step = fixtures::step(1, |_| vec![1_000_000; 10]);
        step.target = (*target).to_owned();
        (step.settings.callers, step.settings.connections) = (*callers, *connections);
        step
    };
    fixtures::run(steps.iter().map(step).collect())
}

/// Returns the warnings about targets that were measured side by side.
fn unequal(steps: &[(&str, [usize; 2])]) -> Vec<Warning> {
    let found = Warnings::of_several_steps(&side_by_side(steps));
    found.into_iter().map(|(_, warning)| warning).collect()
}

fn names(warnings: &[Warning]) -> Vec<&'static str> {
    warnings.iter().map(Warning::name).collect()
}

/// A limit of a warning.
struct Row {
    name: &'static str,
    severity: Severity,
    /// The warnings about facts just beyond the limit,
    brings: Vec<Warning>,
    /// just below it,
    below: Vec<Warning>,
    /// and about the trouble next to it, with their names.
    beside: (Vec<Warning>, &'static [&'static str]),
}

#[expect(clippy::too_many_lines, reason = "a table of every warning")]
fn rows() -> Vec<Row> {
    let note = Severity::Note;
    let invalid = Severity::Invalid;
    let row = |name, severity, brings, below, beside| Row {
        name,
        severity,
        brings,
        below,
        beside,
    };
    vec![
        row(
            "CLIENT_BOUND",
            note,
            step(|case| case.worker(0.72, 0.0)),
            step(|case| case.worker(0.68, 0.0)),
            (
                step(|case| case.step.cost.client_host.throttled_seconds = Some(1.0)),
                &["CLIENT_THROTTLED"],
            ),
        ),
        // A worker that waits for its CPU has less of it to use.
        row(
            "CLIENT_BOUND",
            note,
            step(|case| case.worker(0.6, 0.17)),
            step(|case| case.worker(0.6, 0.13)),
            (
                step(|case| {
                    case.worker(1.0, 0.0);
                    case.step.settings.busy_poll = true;
                }),
                &[],
            ),
        ),
        row(
            "CLIENT_BOUND",
            invalid,
            step(|case| case.worker(0.92, 0.0)),
            step(|case| case.worker(0.1, 0.85)),
            (
                step(|case| {
                    case.worker(1.0, 0.0);
                    case.subject = Subject::Both;
                }),
                &[],
            ),
        ),
        row(
            "CLIENT_BOUND",
            invalid,
            bulk(3, 0, 0.96),
            bulk(3, 0, 0.94),
            (bulk(3, 1, 0.1), &["ERRORS"]),
        ),
        row(
            "CLIENT_STARVED",
            invalid,
            step(|case| {
                case.open().step.summary.times[Time::ClientLate] = always(520_000);
            }),
            step(|case| {
                case.open().step.summary.times[Time::ClientLate] = always(480_000);
            }),
            (
                step(|case| {
                    case.open().step.summary.times[Time::NoCallerFree] = always(520_000);
                }),
                &["NO_CALLER_FREE"],
            ),
        ),
        row(
            "CLIENT_STARVED",
            invalid,
            step(|case| {
                case.open().step.summary.times[Time::ClientLate] = always(1_050_000);
                case.step.summary.times[Time::Response] = always(10_000_000);
            }),
            step(|case| {
                case.open().step.summary.times[Time::ClientLate] = always(950_000);
                case.step.summary.times[Time::Response] = always(10_000_000);
            }),
            (
                step(|case| {
                    case.open().step.summary.times[Time::Response] = always(10_000_000);
                }),
                &[],
            ),
        ),
        row(
            "CLIENT_THROTTLED",
            invalid,
            step(|case| case.step.cost.client_host.throttled_seconds = Some(0.0315)),
            step(|case| case.step.cost.client_host.throttled_seconds = Some(0.0285)),
            (
                step(|case| case.step.cost.client_host.steal_seconds = Some(1.0)),
                &[],
            ),
        ),
        row(
            "NO_CALLER_FREE",
            note,
            step(|case| {
                case.open().step.summary.times[Time::NoCallerFree] = always(520_000);
            }),
            step(|case| {
                case.open().step.summary.times[Time::NoCallerFree] = always(480_000);
            }),
            (
                step(|case| {
                    case.open().step.summary.times[Time::ClientLate] = always(520_000);
                }),
                &["CLIENT_STARVED"],
            ),
        ),
        row(
            "BEHIND_SCHEDULE",
            invalid,
            step(|case| {
                case.open().step.summary.times[Time::Lag] = always(1_050_000);
            }),
            step(|case| {
                case.open().step.summary.times[Time::Lag] = always(950_000);
            }),
            // A closed loop has no schedule.
            (
                step(|case| case.step.summary.times[Time::Lag] = always(1_050_000)),
                &[],
            ),
        ),
        row(
            "BEHIND_SCHEDULE",
            invalid,
            step(|case| {
                case.open().step.summary.accounting.not_sent = 1;
            }),
            step(|case| {
                case.open().step.summary.accounting.not_sent = 0;
            }),
            (
                step(|case| {
                    case.open().step.summary.accounting.in_flight = 1;
                }),
                &["ERRORS"],
            ),
        ),
        row(
            "BEHIND_SCHEDULE",
            invalid,
            step(|case| {
                case.open().step.summary.rate = 0.9895 * 8000.0;
            }),
            step(|case| {
                case.open().step.summary.rate = 0.9905 * 8000.0;
            }),
            // Random arrivals were fewer than planned, and all were served.
            (
                step(|case| case.step.settings.planned_rate = Some(8200.0)),
                &[],
            ),
        ),
        row(
            "NOT_STEADY",
            invalid,
            // 10.5 and 9.5 % less than in the second half.
            step(|case| case.slots[15..].fill(894)),
            step(|case| case.slots[15..].fill(884)),
            (step(|case| case.slots[15..18].fill(0)), &["STALLED"]),
        ),
        row(
            "NOT_STEADY",
            invalid,
            step(|case| case.warmup_failed = true),
            step(|case| case.warmup_failed = false),
            (
                step(|case| case.step.summary.precision.rate_half_width = Some(1600.0)),
                &["NOISY"],
            ),
        ),
        row(
            "STALLED",
            note,
            step(|case| {
                case.slots.fill(21);
                case.slots[9] = 0;
            }),
            step(|case| {
                case.slots.fill(19);
                case.slots[9] = 0;
            }),
            (step(|case| case.silent_at_the_end(10)), &["SERVER_GONE"]),
        ),
        row(
            "STALLED",
            note,
            // 10.5 and 9.5 median service times.
            step(|case| {
                case.slots[9..12].fill(0);
                case.step.summary.times[Time::Service].quantiles = always(28_571_000).quantiles;
            }),
            step(|case| {
                case.slots[9..12].fill(0);
                case.step.summary.times[Time::Service].quantiles = always(31_579_000).quantiles;
            }),
            (step(|case| case.slots[9..12].fill(400)), &["NOT_STEADY"]),
        ),
        row(
            "STALLED",
            note,
            step(|case| {
                case.open().step.settings.callers = 100;
                case.drain_slots = vec![0, 0, 0, 52];
            }),
            step(|case| {
                case.open().step.settings.callers = 100;
                case.drain_slots = vec![0, 0, 0, 48];
            }),
            // One caller's reply was lost.
            (step(|case| case.drain_slots = vec![7, 0, 0, 1]), &[]),
        ),
        row(
            "SERVER_GONE",
            invalid,
            step(|case| case.silent_at_the_end(5)),
            step(|case| case.silent_at_the_end(4)),
            (
                step(|case| {
                    case.silent_at_the_end(5);
                    case.drain_slots = vec![8];
                }),
                &["STALLED"],
            ),
        ),
        row(
            "SERVER_RESTARTED",
            invalid,
            step(|case| case.server_restarted = true),
            step(|case| case.server_restarted = false),
            (step(|case| case.silent_at_the_end(10)), &["SERVER_GONE"]),
        ),
        row(
            "NOISY",
            note,
            step(|case| case.step.summary.precision.rate_half_width = Some(840.0)),
            step(|case| case.step.summary.precision.rate_half_width = Some(760.0)),
            (step(|case| case.warmup_failed = true), &["NOT_STEADY"]),
        ),
        row(
            "TOO_FEW_SAMPLES",
            note,
            step(|case| {
                case.open().step = fixtures::step(3, |_| vec![8_000_000; 333]);
                case.step.settings.callers = 8;
            }),
            step(|case| case.step = fixtures::step(3, |_| vec![8_000_000; 334])),
            (
                step(|case| {
                    case.step.summary.times[Time::Response] = Distribution::default();
                    case.step.summary.accounting.ok = 0;
                    case.step
                        .summary
                        .accounting
                        .errors
                        .insert(ErrorKind::Refused, 24_000);
                    case.mean(1.0);
                }),
                &["ERRORS"],
            ),
        ),
        row(
            "FEW_RUNS",
            note,
            bulk(2, 0, 0.1),
            bulk(3, 0, 0.1),
            (bulk(3, 1, 0.1), &["ERRORS"]),
        ),
        row(
            "ERRORS",
            invalid,
            step(|case| case.step.summary.accounting.in_flight = 1),
            step(|case| case.step.summary.accounting.in_flight = 0),
            // In the warm-up.
            (
                step(|case| case.step.summary.accounting.outside_errors = 1),
                &[],
            ),
        ),
        row(
            "ERRORS",
            invalid,
            bulk(3, 1, 0.1),
            bulk(3, 0, 0.1),
            (bulk(2, 0, 0.1), &["FEW_RUNS"]),
        ),
        row(
            "LITTLES_LAW",
            invalid,
            step(|case| case.mean(0.979)),
            step(|case| case.mean(0.981)),
            // A caller that opens a connection for each request also closes it.
            (
                step(|case| {
                    case.mean(0.5);
                    case.step.settings.requests_per_connection = Some(1);
                }),
                &[],
            ),
        ),
        row(
            "LITTLES_LAW",
            invalid,
            step(|case| case.mean(1.021)),
            step(|case| case.mean(1.019)),
            // In an open loop it holds by definition.
            (step(|case| case.open().mean(0.5)), &[]),
        ),
        row(
            "LITTLES_LAW",
            invalid,
            step(|case| case.fail_and_pause(Some(0.021))),
            step(|case| case.fail_and_pause(Some(0.019))),
            // Callers wait before they connect anew, which is the server's doing.
            (
                step(|case| {
                    case.mean(0.5);
                    case.fail_and_pause(None);
                }),
                &["ERRORS"],
            ),
        ),
        row(
            "BIMODAL",
            note,
            step(|case| case.alone(&[(10_000, 9000), (15_500, 1000)])),
            step(|case| case.alone(&[(10_000, 9000), (14_500, 1000)])),
            // Eight callers wait for each other.
            (
                step(|case| {
                    case.alone(&[(10_000, 9000), (15_500, 1000)]);
                    case.step.settings.callers = 8;
                    case.mean(1.0);
                }),
                &["SHARED_HOST"],
            ),
        ),
        row(
            "SHARED_HOST",
            note,
            step(|case| case.shared_host = true),
            step(|case| case.shared_host = false),
            (
                step(|case| case.step.cost.client_host.steal_seconds = Some(1.0)),
                &[],
            ),
        ),
        row(
            "CLOCK_STEP",
            note,
            step(|case| case.clock_step = -1),
            step(|case| case.clock_step = 0),
            (
                step(|case| case.server_restarted = true),
                &["SERVER_RESTARTED"],
            ),
        ),
        row(
            "UNLIKE_TRIALS",
            note,
            trials(&[1.0, 1.0, 1.0, 1.52]),
            trials(&[1.0, 1.0, 1.0, 1.48]),
            // Three do not tell which of them is the odd one.
            (trials(&[1.0, 1.0, 25.0]), &[]),
        ),
        row(
            "UNLIKE_TRIALS",
            note,
            trials(&[1.0, 1.0, 1.0, 1.0 / 1.52]),
            trials(&[1.0, 1.0, 1.0, 1.0 / 1.48]),
            (trials(&[1.0, 2.0, 4.0, 8.0, 16.0, 32.0]), &[]),
        ),
        // The median deviation of these logarithms is 0.05: ten standard deviations are 0.7413.
        row(
            "UNLIKE_TRIALS",
            note,
            trials(&[-0.05, -0.05, 0.0, 0.05, 0.05, 0.025 + 0.7413 * 1.05].map(f64::exp)),
            trials(&[-0.05, -0.05, 0.0, 0.05, 0.05, 0.025 + 0.7413 * 0.95].map(f64::exp)),
            (trials(&[1.0, 1.0, 1.0, 25.0, 25.0, 25.0]), &[]),
        ),
        row(
            "UNEQUAL_CONNECTIONS",
            note,
            unequal(&[("a", [64, 64]), ("b", [64, 63])]),
            unequal(&[("a", [64, 64]), ("b", [64, 64])]),
            // One target swept over its connections.
            (unequal(&[("a", [64, 64]), ("a", [64, 1])]), &[]),
        ),
        // Callers that differ are no like load.
        row(
            "UNEQUAL_CONNECTIONS",
            note,
            unequal(&[("a", [64, 1]), ("a", [64, 16]), ("b", [64, 64])]),
            unequal(&[("a", [64, 1]), ("a", [64, 64]), ("b", [64, 64])]),
            (unequal(&[("a", [64, 64]), ("b", [8, 8])]), &[]),
        ),
    ]
}

#[test]
fn each_warning_comes_at_its_limit_and_for_no_other_trouble() {
    assert_eq!(names(&Case::new().warnings()), [""; 0]);
    let rows = rows();
    for (at, row) in rows.iter().enumerate() {
        let name = row.name;
        let own = row.brings.iter().find(|warning| warning.name() == name);
        let severity = own.map(Warning::severity);
        let brings = names(&row.brings);
        assert_eq!(severity, Some(row.severity), "row {at}: {name}: {brings:?}");
        let below = names(&row.below);
        assert!(!below.contains(&name), "row {at}: {name} below its limit");
        let (beside, expected) = &row.beside;
        assert_eq!(&names(beside), expected, "row {at}: beside {name}");
        assert!(!expected.contains(&name));
    }
    for name in NAMES {
        assert!(
            rows.iter().any(|row| row.name == *name),
            "{name} is untested"
        );
    }
}

#[test]
fn a_limit_of_the_client_invalidates_from_nine_tenths_on() {
    let severity = |busiest_worker| Warning::from(ClientBound { busiest_worker }).severity();
    assert_eq!(
        [0.89, 0.91].map(severity),
        [Severity::Note, Severity::Invalid]
    );
}

#[test]
fn nothing_measured_is_invalid_and_a_little_is_not() {
    let samples = |samples| Warning::from(TooFewSamples { samples }).severity();
    assert_eq!([0, 1].map(samples), [Severity::Invalid, Severity::Note]);
    let runs = |runs| Warning::from(FewRuns { runs }).severity();
    assert_eq!([0, 1].map(runs), [Severity::Invalid, Severity::Note]);
}

#[test]
fn the_client_is_blamed_for_its_own_pauses_alone() {
    let is_blamed = |in_system, between| {
        let callers = 8.0;
        let law = LittlesLaw {
            callers,
            in_system,
            between,
        };
        Warning::from(law).remedy().contains("(--workers)")
    };
    assert!(is_blamed(7.0, Some(0.52)) && !is_blamed(7.0, Some(0.48)));
    assert!(is_blamed(7.0, None) && !is_blamed(9.0, None));
}

#[test]
fn a_remedy_names_the_flags_that_are_there() {
    let bimodal = Warning::from(Bimodal {
        low_p50: 1,
        high_p50: 2,
        high_share: 0.5,
    });
    let text = "give client and server cores of their own (taskset), or quote both levels";
    assert_eq!(bimodal.remedy_with(|_| false), text);
    assert_eq!(bimodal.remedy(), text.replace("taskset", "taskset, --pin"));
    let noisy = Warning::from(Noisy { half_width: 0.2 });
    assert_eq!(
        noisy.remedy_with(|flag| flag == "-d"),
        "measure longer (-d), repeat, and look for other load"
    );
}

#[test]
fn a_stall_is_seen_wherever_it_is() {
    let with = |from: usize, to: usize, drain_slots: &[u64]| {
        let warnings = step(|case| {
            case.slots = (0..30).map(|at| 99 + at % 3).collect();
            case.slots[from..to].fill(0);
            case.drain_slots = drain_slots.to_vec();
        });
        names(&warnings)
    };
    assert_eq!(with(0, 0, &[]), [""; 0]);
    for (from, to) in [(0, 2), (14, 16), (14, 15), (10, 25)] {
        assert_eq!(with(from, to, &[8]), ["STALLED"], "{from}..{to}");
    }
    // From the end of the window on: all eight callers wait.
    assert_eq!(with(0, 0, &[0, 0, 0, 8]), ["STALLED"]);
    assert_eq!(with(0, 0, &[4, 0, 0, 8]), ["STALLED"]);
    assert_eq!(with(28, 30, &[0, 0, 0, 8]), ["STALLED"]);
    // Later, the callers had their replies.
    assert_eq!(with(0, 0, &[4, 4, 0, 0, 8]), [""; 0]);
    assert_eq!(with(15, 30, &[]), ["SERVER_GONE"]);
}

#[test]
fn a_drift_is_more_than_chance_and_has_a_bound() {
    let drift = |slots: Vec<u64>| {
        let warnings = step(|case| case.slots = slots);
        match &warnings[..] {
            [Warning::NotSteady(found)] => Some(found.clone()),
            others => {
                assert_eq!(names(others), [""; 0]);
                None
            }
        }
    };
    let levels = |low: u64, high: u64| -> Vec<u64> {
        let level = |slot| if slot < 15 { low } else { high };
        (0..30).map(|slot| level(slot) + slot % 3).collect()
    };
    assert_eq!(drift(levels(100, 105)), None);
    let found = drift(levels(100, 150)).unwrap();
    assert!((found.drift + 0.33).abs() < 0.02, "{found:?}");
    assert_eq!((found.from, found.to), (Some(0.0), Some(1.5)));
    // Few replies, so that the zeros around them are no stall.
    let burst = (0..40).map(|slot| u64::from((10..25).contains(&slot)));
    let found = drift(burst.collect()).unwrap();
    assert_eq!(
        Warning::from(found).to_string(),
        "from 1.0 s to 2.5 s the rate was at least 1000.0% higher than in the rest"
    );
}

#[test]
fn a_trial_far_off_the_others_is_named() {
    let medians = [8.06, 8.16, 8.04, 8.23, 8.04, 208.0];
    let trial = |p50: &f64| trial([120_000.0, p50 * 1000.0, 250_000.0]);
    let run = fixtures::run(medians.iter().map(trial).collect());
    let warnings = Warnings::of_run(&run);
    let [found] = &warnings.kinds[..] else {
        panic!("{warnings:?}");
    };
    assert_eq!(
        (found.worst.name(), &found.steps[..]),
        ("UNLIKE_TRIALS", &[5][..])
    );
    assert_eq!(
        found.worst.to_string(),
        "the p50 of trial 6 is 25.8 times the median of the others"
    );
    assert!(warnings.is_valid());
}

#[test]
fn of_a_trials_metrics_the_one_furthest_off_is_told() {
    let mut steps = vec![trial([1000.0, 1e6, 1e7]); 5];
    steps[2] = trial([100.0, 2e6, 1e7]);
    steps[4] = trial([1000.0, 1e6, 3e7]);
    // One without a p99 is no reason to judge the others by less.
    steps[0].summary.times[Time::Response].quantiles = Quantiles::of(|_| None);
    let found = Warnings::of_several_steps(&fixtures::run(steps));
    let told: Vec<String> = found
        .iter()
        .map(|(at, own)| format!("{at}: {own}"))
        .collect();
    assert_eq!(
        told,
        [
            "2: the rate of trial 3 is 0.100 times the median of the others",
            "4: the p99 of trial 5 is 3.00 times the median of the others",
        ]
    );
}

#[test]
fn targets_with_unequal_connections_are_told_with_their_numbers() {
    let run = side_by_side(&[
        ("tcp://h:8004", [8, 8]),
        ("tcp://h:8004", [1000, 1000]),
        ("quic://h:8006", [8, 8]),
        ("quic://h:8006", [1000, 10]),
        ("grpc://h:8005", [1000, 1]),
        ("grpc://h:8005", [1000, 16]),
    ]);
    let warnings = Warnings::of_run(&run);
    let [found] = &warnings.kinds[..] else {
        panic!("{warnings:?}");
    };
    assert_eq!(found.steps, [1, 3, 4, 5]);
    assert_eq!(
        found.worst.to_string(),
        "tcp://h:8004 had 1,000 connections, quic://h:8006 10 and grpc://h:8005 1 to 16"
    );
    let remedy = found.worst.remedy_with(|flag| flag == "--connections");
    assert!(
        remedy.starts_with("to compare them, give all the same number (--connections);"),
        "{remedy}"
    );
    assert!(warnings.is_valid());
}

#[test]
fn targets_are_named_in_the_order_of_their_measurements() {
    let mut run = side_by_side(&[("a", [8, 8]), ("b", [8, 1])]);
    run.steps.reverse();
    let told = Warnings::of_run(&run).kinds.remove(0).worst.to_string();
    assert_eq!(told, "a had 8 connections and b 1");
}

#[test]
fn where_measurements_are_compared_connections_are_those_of_their_pairs() {
    let targets = [
        ("TCP", [64, 64]),
        ("QUIC", [64, 64]),
        ("QUIC", [64, 4]),
        ("gRPC", [64, 4]),
    ];
    let concerned = |pairs: &[[usize; 2]]| -> Vec<usize> {
        let mut run = side_by_side(&targets);
        run.pairings = pairs
            .iter()
            .map(|[base, new]| Pairing::new(*base, *new))
            .collect();
        let found = Warnings::of_several_steps(&run);
        found.into_iter().map(|(at, _)| at).collect()
    };
    // As a ladder does: like with like, and one rung with itself on fewer connections.
    assert_eq!(concerned(&[[0, 1], [1, 2], [2, 3]]), [0; 0]);
    assert_eq!(concerned(&[[0, 1], [0, 3]]), [0, 1, 3]);
    assert_eq!(concerned(&[[0, 2], [0, 3]]), [0, 2, 3]);
    assert_eq!(concerned(&[[0, 9]]), [0; 0]);
}

#[test]
fn bulk_streams_may_differ_in_streams() {
    let mut steps = fixtures::bulk("grpc://h:1", &[1.0; 3]);
    steps.extend(fixtures::bulk("tcp://h:2", &[1.0; 3]));
    for step in &mut steps[3..] {
        step.settings.connections = 8;
    }
    let mut run = fixtures::run(steps);
    assert_eq!(Warnings::of_several_steps(&run), []);
    run.pairings = vec![Pairing::new(0, 1)];
    assert_eq!(Warnings::of_several_steps(&run), []);
}

#[test]
fn trials_are_compared_within_their_measurement() {
    let mut steps = vec![trial([1000.0, 1e6, 1e7]); 9];
    for step in &mut steps[5..] {
        *step = trial([10.0, 1e8, 1e9]);
    }
    let mut run = fixtures::run(steps);
    assert_eq!(Warnings::of_several_steps(&run).len(), 4);
    for step in &mut run.steps[5..] {
        step.measurement = 1;
    }
    assert_eq!(Warnings::of_several_steps(&run), []);
}

#[test]
fn trials_are_held_against_each_other_by_what_their_kind_of_run_claims() {
    let mut steps = vec![trial([1000.0, 1e6, 1e7]); 6];
    steps[3] = trial([1000.0, 3e6, 9e7]);
    let told = |kind, callers| {
        let mut run = fixtures::run(steps.clone());
        run.kind = kind;
        for step in &mut run.steps {
            step.settings.callers = callers;
        }
        let found = Warnings::of_several_steps(&run).into_iter();
        let told: Vec<String> = found.map(|(_, own)| own.to_string()).collect();
        told.join("; ")
    };
    let by_p99 = "the p99 of trial 4 is 9.00 times the median of the others";
    assert_eq!(told(Kind::Throughput, 8), by_p99);
    let by_p50 = "the p50 of trial 4 is 3.00 times the median of the others";
    assert_eq!(told(Kind::Ladder, 1), by_p50);
    assert_eq!(told(Kind::Ladder, 8), "");
}

/// Returns a number of the standard normal distribution, from a generator of Lehmer's kind and the
/// transformation of Box and Muller.
fn normal(state: &mut u64) -> f64 {
    let mut uniform = || {
        *state = *state * 48_271 % 2_147_483_647;
        *state as f64 / 2_147_483_647.0
    };
    let radius = (-2.0 * uniform().ln()).sqrt();
    radius * (TAU * uniform()).cos()
}

#[test]
fn trials_that_differ_by_chance_are_seldom_called_unlike() {
    let mut state = 7;
    let mut alarms = 0;
    for set in 0..1000 {
        let deviation = 0.02 + 0.18 * f64::from(set) / 1000.0;
        let mut near = |level: f64| level * (deviation * normal(&mut state)).exp();
        let steps = (0..6).map(|_| trial([near(1000.0), near(1e6), near(1e7)]));
        let run = fixtures::run(steps.collect());
        alarms += usize::from(!Warnings::of_several_steps(&run).is_empty());
    }
    assert!(alarms < 10, "{alarms} of 1,000");
}

#[test]
fn the_worst_of_a_kind_speaks_for_it_and_decides() {
    let step = |busiest_worker: f64| {
        let mut step = fixtures::step(3, |_| vec![1_000_000; 1000]);
        step.warnings = vec![ClientBound { busiest_worker }.into()];
        step
    };
    let mut run = fixtures::run([0.75, 0.99, 0.8].map(step).to_vec());
    let warnings = Warnings::of(&run);
    let busiest_worker = 0.99;
    let found = Found {
        worst: ClientBound { busiest_worker }.into(),
        varies: true,
        steps: vec![0, 1, 2],
    };
    assert_eq!(warnings.kinds, [found]);
    assert!(!warnings.is_valid());
    run.steps.truncate(1);
    assert!(Warnings::of(&run).is_valid());
}

#[test]
fn a_kind_is_written_and_read_by_its_name() {
    let mut all: Vec<Warning> = rows().into_iter().flat_map(|row| row.brings).collect();
    all.push(
        Errors {
            share: 0.5,
            time_share: 0.25,
        }
        .into(),
    );
    for warning in all {
        let json = serde_json::to_value(&warning).unwrap();
        assert_eq!(json["name"], warning.name());
        assert_eq!(serde_json::from_value::<Warning>(json).unwrap(), warning);
    }
    let shared = serde_json::to_string(&Warning::from(SharedHost)).unwrap();
    assert_eq!(shared, r#"{"name":"SHARED_HOST"}"#);
    let bound = r#"{"name":"CLIENT_BOUND","busiest_worker":0.93}"#;
    let busiest_worker = 0.93;
    assert_eq!(
        serde_json::from_str::<Warning>(bound).unwrap(),
        ClientBound { busiest_worker }.into()
    );
}
