//! Results for the tests of the formats.

use netping_measure::{
    aggregate::Aggregate, cost::Cost, histogram::record, recorder::Interval, sample::LoopKind,
    times::Time, window::Window,
};
use netping_results::{
    fixtures,
    run::{Environment, Run, Step, StepSettings},
};

/// A label with everything that some format has a meaning for.
pub const HOSTILE: &str = "a,b \"c\" |d| \\e\nf/g=h";

/// A closed-loop step of one second with these service times, in nanoseconds.
pub fn step(target: &str, callers: usize, times: &[u64]) -> Step {
    let mut interval = Interval::new(0);
    for &time in times {
        record(&mut interval.times[Time::Service], time);
    }
    let mut collector = Aggregate::new(LoopKind::Closed);
    collector.add(interval);
    let step = fixtures::of(&collector.finish(Window {
        start: 0,
        end: 1_000_000_000,
    }));
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
    let run = fixtures::run(steps);
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
