//! Result files for tests.

use std::collections::BTreeMap;

use netping_measure::{
    aggregate::{Aggregate, Totals},
    anatomy::{self, Parts, Served},
    cost::Cost,
    recorder::{Interval, Recorder, Sink},
    sample::{LoopKind, Sample},
    status::Status,
    window::Window,
};
use netping_measure::{
    bulk::{BulkRun, Direction},
    error_kind::ErrorKind,
};

use crate::bulk::BulkSettings;
use crate::comparison::{Comparison, Standing};
use crate::estimate::Estimate;
use crate::metric::Metric;
use crate::run::{Environment, Kind, Place, Run, SCHEMA_VERSION, Step, StepSettings, Tool};
use crate::transfer::Transfer;
use crate::warning::{ForeignLoad, SideOfCpus};

/// Start of the windows on the run's clock, in nanoseconds: later than the longest time.
const BEGIN: u64 = 100_000_000_000;

/// Start of the windows by the time of day, in nanoseconds since 1970.
pub const STARTED_AT: u64 = 1_700_000_000_000_000_000;

const SECOND: u64 = 1_000_000_000;

/// Returns the load of other programs on the client's CPUs.
pub fn foreign_load() -> ForeignLoad {
    ForeignLoad {
        side: SideOfCpus::Client,
        others: 0.1,
        steal: 0.0,
        waited: 0.0,
        busiest: None,
    }
}

/// Returns the parts of a request: the times until it was sent, away, and until the end, in nanoseconds from its start;
/// the server's times count from there, too.
///
/// # Panics
/// Panics if the server's times are not among the time away.
pub fn parts([send, away, wake]: [u64; 3], served: Option<Served>) -> Parts {
    let request = Sample {
        intended: 0,
        free: 0,
        start: 0,
        end: send + away + wake,
    };
    anatomy::parts(request, send, send + away, served).unwrap()
}

struct Keep<'a>(&'a mut Aggregate);

impl Sink for Keep<'_> {
    fn hand_on(&mut self, interval: Interval) {
        self.0.add(interval);
    }

    fn spare(&mut self) -> Option<Interval> {
        None
    }
}

/// Returns a closed loop over so many seconds, with replies after `times` nanoseconds in each.
pub fn step(seconds: u64, times: impl Fn(u64) -> Vec<u64>) -> Step {
    let window = Window {
        start: BEGIN,
        end: BEGIN + seconds * SECOND,
    };
    let mut aggregate = Aggregate::new(LoopKind::Closed);
    let mut recorder = Recorder::new(LoopKind::Closed, Keep(&mut aggregate));
    for second in 0..seconds {
        let end = BEGIN + second * SECOND + SECOND / 2;
        for time in times(second) {
            let start = end - time;
            recorder.record(
                window,
                Sample {
                    // However long it took, it counts.
                    intended: start.max(window.start),
                    free: start,
                    start,
                    end,
                },
                Ok(()),
            );
        }
    }
    recorder.finish();
    let step = of(&aggregate.finish(window));
    let settings = StepSettings {
        callers: 8,
        connections: 8,
        workers: 2,
        ..step.settings
    };
    let cost = Cost {
        client_worker_cpu_seconds: vec![0.5, 0.5],
        client_cpu_us_per_request: Some(10.0),
        ..Cost::default()
    };
    Step {
        settings,
        cost,
        ..step
    }
}

/// Returns a comparison with a base of 1,000.
pub fn comparison(metric: &'static Metric, change: f64, interval: Option<[f64; 2]>) -> Comparison {
    let value = Some(Estimate {
        value: 1000.0,
        interval: None,
        trials: 1,
        missing: 0,
        is_bound: false,
    });
    Comparison {
        metric,
        base: value,
        new: value,
        change: Some(change),
        interval,
        p_value: None,
        detectable: None,
        is_equivalent: false,
        noise: None,
        is_alike: true,
        standing: Standing::Sound,
    }
}

/// Returns totals as a step of one caller.
pub fn of(totals: &Totals) -> Step {
    let settings = StepSettings {
        arrivals: "closed".to_owned(),
        callers: 1,
        connections: 1,
        workers: 1,
        client: "line".to_owned(),
        payload_bytes: 4,
        duration_seconds: Some(totals.window.seconds()),
        timeout_seconds: 5.0,
        ..StepSettings::default()
    };
    let place = Place {
        measurement: 0,
        trial: 1,
    };
    Step {
        window_started_at: Some(STARTED_AT),
        ..Step::of("tcp://127.0.0.1:8004".to_owned(), place, settings, totals)
    }
}

/// Returns a whole run of throughput, in which steps of like targets and settings are trials of one
/// measurement.
pub fn run(mut steps: Vec<Step>) -> Run {
    let mut known: Vec<(String, u32)> = Vec::new();
    for step in &mut steps {
        let name = format!("{} {}", step.name(), step.settings.in_words());
        let measurement = known.iter().position(|(own, _)| *own == name);
        let measurement = measurement.unwrap_or_else(|| {
            known.push((name, 0));
            known.len() - 1
        });
        known[measurement].1 += 1;
        step.measurement = measurement;
        step.trial = known[measurement].1;
    }
    Run {
        schema_version: SCHEMA_VERSION,
        status: Status::Complete,
        tool: tool(),
        command_line: vec!["netping".to_owned(), "throughput".to_owned()],
        started_at: "2024-01-01T00:00:00Z".to_owned(),
        environment: Environment {
            host: "alpha".to_owned(),
            kernel: "6.1".to_owned(),
            cpu_model: "EPYC".to_owned(),
            cpus: 2,
            open_files: 1024,
            system: BTreeMap::from([("governor".to_owned(), "performance".to_owned())]),
        },
        order_seed: None,
        kind: Kind::Throughput,
        pairings: Vec::new(),
        looks: 1,
        margin: None,
        proof: None,
        replaced: None,
        allowed: Vec::new(),
        steps,
        clock: None,
        parts: Vec::new(),
    }
}

/// Returns the program that wrote them.
pub fn tool() -> Tool {
    Tool {
        name: "netping".to_owned(),
        version: "0.1.0".to_owned(),
        commit: None,
    }
}

/// Returns a run of a bulk stream of 1 GiB that took this many seconds.
pub fn bulk_run(seconds: f64) -> BulkRun {
    BulkRun {
        seconds,
        first_byte_seconds: 0.001,
        bytes: 1 << 30,
        message_bytes: None,
        gib_per_second: 1.0 / seconds,
        client_cpu_seconds_per_gib: None,
        server_cpu_seconds_per_gib: None,
        server_system_seconds_per_gib: None,
        server_softirq_seconds_per_gib: None,
        client_resident_bytes: None,
        server_resident_bytes: None,
    }
}

/// Returns the steps of a bulk measurement, each of which moved 1 GiB in this many seconds.
pub fn bulk(target: &str, seconds: &[f64]) -> Vec<Step> {
    let step =
        |(trial, seconds): (u32, &f64)| transfer(target, trial, *seconds, Ok(bulk_run(*seconds)));
    (1..).zip(seconds).map(step).collect()
}

/// Returns the step of a bulk stream that broke off after 0.5 s.
pub fn failed_transfer() -> Step {
    transfer("grpc://h:8005", 1, 0.5, Err(ErrorKind::Reset))
}

fn transfer(target: &str, trial: u32, seconds: f64, outcome: Result<BulkRun, ErrorKind>) -> Step {
    let settings = BulkSettings {
        direction: Direction::Down,
        size_bytes: 1 << 30,
        chunk_bytes: 65_536,
        streams: 1,
        window_bytes: None,
        frame_bytes: None,
        verify: true,
        probes_per_s: None,
    };
    let place = Place {
        measurement: 0,
        trial,
    };
    let transfer = Transfer {
        outcome,
        seconds,
        started_at: Some(STARTED_AT),
    };
    transfer.step(target.to_owned(), settings, place)
}
