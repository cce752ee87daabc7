//! `--prove`: what a run could see on this machine, shown by something planted between its windows.

use std::{thread, time::Duration};

use anyhow::Context;
use netping_client::{
    engine::{self, Silent},
    error::StartError,
    interrupt::Interrupt,
    plan::{Arrival, Destination, Extent, Plan, Trust, Warmup, shuffled},
    transport,
};
use netping_measure::times::Time;
use netping_protocol::secure::Connector;
use netping_results::{
    metric::P50,
    run::{Kind, Pairing, Place, Proof, Run, Step},
};
use netping_system::signals;
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};

use super::step::step;
use crate::{environment, server_process::ServerProcess};

/// The service time of the first server, and the share by which that of the second is longer.
const SERVICE: Duration = Duration::from_millis(10);
const DIFFERENCE: f64 = 0.02;

/// The length of the stall.
const STALL: Duration = Duration::from_millis(300);

/// The fewest trials of each server, and the length of their windows and of the time before them.
const TRIALS: u32 = 10;
const WINDOW: Duration = Duration::from_millis(250);
const WARM_UP: Duration = Duration::from_millis(100);

/// The callers, each on a connection of its own.
const CALLERS: usize = 8;

/// Requests per second of the open loop in which the stall is planted.
const RATE: f64 = 200.0;

/// The window of that loop, and the time from its start to the stall.
const STALL_WINDOW: Duration = Duration::from_secs(1);
const BEFORE_STALL: Duration = Duration::from_millis(300);

/// Two servers of which it is known how long they take, and what was measured of them so far.
#[derive(Debug)]
pub struct Planted {
    servers: [ServerProcess; 2],
    plans: [Plan; 2],
    steps: Vec<Step>,
    random: ChaCha8Rng,
}

impl Planted {
    /// Starts the servers on these cores, or on any if there are none.
    ///
    /// # Errors
    /// If one does not start.
    pub fn start(cores: &[usize]) -> anyhow::Result<Self> {
        let server = |time: Duration| {
            let delay = format!("{}us", time.as_micros());
            let flags = ["--delay", &delay].map(Into::into);
            ServerProcess::start("tokio", &flags, cores)
        };
        let servers = [server(SERVICE)?, server(SERVICE.mul_f64(1.0 + DIFFERENCE))?];
        Ok(Self {
            plans: servers.each_ref().map(plan),
            servers,
            steps: Vec::new(),
            random: ChaCha8Rng::seed_from_u64(environment::random_seed()),
        })
    }

    /// Measures a window of each, in random order, as one trial.
    ///
    /// # Errors
    /// [`StartError`] if a server does not answer.
    pub fn measure(&mut self, interrupt: &Interrupt) -> Result<(), StartError> {
        let trial = self.trials() + 1;
        for measurement in shuffled(self.plans.len(), &mut self.random) {
            if interrupt.is_set() {
                break;
            }
            let plan = &self.plans[measurement];
            let measured = engine::run(plan, interrupt, &Silent)?;
            let place = Place { measurement, trial };
            self.steps.push(step(plan, &measured, place));
        }
        Ok(())
    }

    /// Returns the number of trials so far.
    fn trials(&self) -> u32 {
        self.steps.last().map_or(0, |step| step.trial)
    }

    /// Measures the trials that are missing and a stall, and returns what was seen; `None` if the user ends it.
    /// `of` is the run in which all this was planted.
    ///
    /// # Errors
    /// If a server does not answer.
    pub fn finish(mut self, of: &Run, interrupt: &Interrupt) -> anyhow::Result<Option<Proof>> {
        while self.trials() < TRIALS && !interrupt.is_set() {
            self.measure(interrupt)?;
        }
        if interrupt.is_set() {
            return Ok(None);
        }
        let stalled = self.stall(interrupt)?;
        if interrupt.is_set() {
            return Ok(None);
        }
        let trials = self.trials();
        let run = of_trials(of, self.steps);
        let compared = run.compared();
        let medians = compared.first().and_then(|own| own.by(&P50));
        let seen = medians.and_then(|own| own.base);
        Ok(Some(Proof {
            service_ns: SERVICE.as_nanos() as u64,
            seen_service_ns: seen.map(|own| own.value as u64),
            stall_seconds: STALL.as_secs_f64(),
            seen_stall_seconds: stalled.map(|longest| longest as f64 / 1e9),
            trials,
            difference: DIFFERENCE,
            seen_difference: medians.and_then(|own| own.change),
            interval: medians.and_then(|own| own.interval),
            detectable: medians.and_then(|own| own.detectable),
        }))
    }

    /// Measures an open loop in which the first server stops for a while; returns the longest response time, in
    /// nanoseconds.
    fn stall(&self, interrupt: &Interrupt) -> anyhow::Result<Option<u64>> {
        let plan = in_open_loop(self.plans[0].clone());
        let pid = self.servers[0].pid();
        let stopping = thread::Builder::new().spawn(move || {
            thread::sleep(WARM_UP + BEFORE_STALL);
            signals::stop(pid);
            thread::sleep(STALL);
            signals::resume(pid);
        });
        let stopping = stopping.context("cannot start a thread")?;
        let measured = engine::run(&plan, interrupt, &Silent);
        // It does nothing that could panic.
        let _ = stopping.join();
        Ok(step(&plan, &measured?, Place::ALONE).summary.times[Time::Response].max)
    }
}

/// Returns the run of these trials, of whatever kind the run is in which they were planted.
fn of_trials(of: &Run, steps: Vec<Step>) -> Run {
    Run {
        kind: Kind::Throughput,
        looks: 1,
        margin: None,
        pairings: vec![Pairing::new(0, 1)],
        steps,
        ..of.clone()
    }
}

/// Returns the plan of the open loop in which the server stops for a while. What is due meanwhile waits for a caller.
fn in_open_loop(mut plan: Plan) -> Plan {
    plan.load.arrival = Arrival::Constant(RATE);
    plan.load.max_backlog = (RATE * STALL_WINDOW.as_secs_f64()) as usize;
    plan.execution.extent = Extent::Time(STALL_WINDOW);
    plan
}

fn plan(server: &ServerProcess) -> Plan {
    let clear = (Connector::Plain, Trust::default());
    let target = Destination::new(server.target.clone(), server.source.clone(), clear);
    let mut plan = Plan::new(target, transport::Kind::Line);
    plan.load.callers = CALLERS;
    plan.load.connections = CALLERS;
    plan.execution.warmup = Warmup::Time(WARM_UP);
    plan.execution.extent = Extent::Time(WINDOW);
    plan
}

#[cfg(test)]
mod tests {
    use netping_client::probe::metrics::ServerSource;
    use netping_results::fixtures;

    use super::*;

    #[test]
    fn what_is_due_while_the_server_stops_waits_for_a_caller() {
        let url = "tcp://127.0.0.1:1".parse().unwrap();
        let clear = (Connector::Plain, Trust::default());
        let target = Destination::new(url, ServerSource::Nowhere, clear);
        let plan = in_open_loop(Plan::new(target, transport::Kind::Line));
        assert!(plan.load.max_backlog as f64 >= RATE * STALL.as_secs_f64());
    }

    #[test]
    fn what_is_planted_is_compared_by_times_in_a_run_of_any_kind() {
        let step = |at: usize| Step {
            measurement: at % 2,
            trial: at as u32 / 2 + 1,
            target: format!("tcp://h:{at}"),
            ..fixtures::step(1, |second| {
                let longer = at as u64 % 2 * 200_000;
                vec![10_000_000 + longer + second * 10; 1000]
            })
        };
        let steps: Vec<Step> = (0..10).map(step).collect();
        for kind in [Kind::Ladder, Kind::Proxy, Kind::Latency] {
            let planted_in = Run {
                kind,
                looks: 50,
                margin: Some(0.05),
                ..fixtures::run(Vec::new())
            };
            let run = of_trials(&planted_in, steps.clone());
            let compared = run.compared();
            let change = compared[0].by(&P50).and_then(|own| own.change);
            assert!(
                change.is_some_and(|change| (change - 0.02).abs() < 1e-3),
                "{kind:?}: {change:?}"
            );
            assert_eq!((run.looks, run.margin), (1, None));
        }
    }
}
