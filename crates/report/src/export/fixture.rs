//! Results for the tests of the formats.

use std::collections::BTreeMap;

use crate::{
    BulkRun, BulkSettings, BulkStep, BulkSummary, Collector, Cost, Direction, Environment,
    Estimate, Interval, LoopKind, Run, Status, Step, StepSettings, Window, record, sample,
};

/// A label with everything that some format has a meaning for.
pub const HOSTILE: &str = "a,b \"c\" |d| \\e\nf/g=h";

/// A closed-loop step of one second with these service times, in nanoseconds.
pub fn step(target: &str, callers: usize, times: &[u64]) -> Step {
    let mut interval = Interval::new(0);
    for &time in times {
        record(&mut interval.service, time);
    }
    let mut collector = Collector::new(LoopKind::Closed);
    collector.add(interval);
    let step = sample::of(&collector.finish(
        Window {
            start: 0,
            end: 1_000_000_000,
        },
        &[],
        0,
    ));
    let settings = StepSettings {
        callers,
        connections: callers,
        warmup_seconds: 0.5,
        ..step.settings
    };
    let cost = Cost {
        client_cpu_us_per_request: Some(7.25),
        ..Cost::default()
    };
    Step {
        target: target.to_owned(),
        settings,
        cost,
        ..step
    }
}

/// A run of these steps.
pub fn run(steps: Vec<Step>) -> Run {
    let run = sample::run(steps);
    Run {
        command_line: ["netping", "latency", "tcp://h:2", "tcp://h:1"]
            .map(str::to_owned)
            .to_vec(),
        started_at: "2026-01-02T03:04:05Z".to_owned(),
        environment: Environment {
            cpu_model: "a processor".to_owned(),
            cpus: 8,
            ..run.environment
        },
        ..run
    }
}

/// A bulk measurement of two runs.
pub fn bulk() -> BulkStep {
    let run = |seconds: f64| BulkRun {
        seconds,
        first_byte_seconds: 0.001,
        bytes: 1 << 30,
        gib_per_second: 1.0 / seconds,
        client_cpu_seconds_per_gib: None,
        server_cpu_seconds_per_gib: None,
        client_resident_bytes: None,
        server_resident_bytes: None,
    };
    BulkStep {
        target: "grpc://h:3".to_owned(),
        status: Status::Complete,
        settings: BulkSettings {
            direction: Direction::Down,
            size_bytes: 1 << 30,
            chunk_bytes: 65_536,
            streams: 1,
            window_bytes: None,
            frame_bytes: None,
            verify: true,
        },
        runs: vec![run(0.5), run(0.25)],
        summary: Some(BulkSummary {
            gib_per_second: Estimate {
                mean: 3.0,
                half_width: Some(1.5),
            },
            sd: Some(1.0),
            first_byte_seconds: 0.001,
            client_cpu_seconds_per_gib: Some(0.4),
            server_cpu_seconds_per_gib: None,
        }),
        errors: BTreeMap::new(),
        security: None,
        doubts: Vec::new(),
    }
}
