//! A server, as far as it can be reached and tells of itself.

use std::time::Duration;

use netping_client::{
    clock_offset,
    engine::{self, Observer, Phase},
    interrupt::Interrupt,
    plan::{Extent, Plan, Warmup},
    probe::metrics::{Probe, Reading, ServerSource},
    workload::first_call::first_call,
};
use netping_results::{
    format::thousands,
    metric::{P50, P99},
    run::Place,
};
use netping_system::host::boot_id;

use super::finding::{Finding, Findings, State};
use crate::run::{clock_demand::check_offset, step::step, store::tool};

/// Requests whose round trips are shown.
const REQUESTS: u64 = 1000;

/// A run that nobody watches.
struct Unwatched;

impl Observer for Unwatched {
    fn phase(&self, _: Phase, _: Option<Duration>) {}
    fn tick(&self, _: Duration, _: f64) {}
}

/// Looks at the server of `plan`, for runs with so many connections; its clock may be off by
/// `max_clock_error`.
pub fn findings(
    plan: &Plan,
    connections: u64,
    max_clock_error: Option<Duration>,
    interrupt: &Interrupt,
) -> Vec<Finding> {
    let mut found = Findings::about(&plan.target.url.to_string());
    if !about_round_trips(&mut found, plan, interrupt) {
        return found.all;
    }
    match Probe::new(plan.target.server.clone()).read() {
        Ok(reading) => about_metrics(&mut found, &reading, connections),
        Err(_) if plan.target.server == ServerSource::Nowhere => {}
        Err(reason) => {
            let reason = if reason.is_empty() {
                "none of netping's".to_owned()
            } else {
                reason
            };
            found.add(
                "metrics",
                reason,
                State::Warning,
                "open the port 1000 above the server's, or say where they are (--server-metrics): without them, the server's \
                 CPU time is unknown",
            );
        }
    }
    about_clock(&mut found, plan, max_clock_error);
    found.all
}

/// Sends requests, one after another. Returns false if the server does not answer.
fn about_round_trips(found: &mut Findings, plan: &Plan, interrupt: &Interrupt) -> bool {
    let mut plan = plan.clone();
    plan.execution.warmup = Warmup::Time(Duration::ZERO);
    plan.execution.extent = Extent::Requests(REQUESTS);
    let measured = first_call(&plan, interrupt, &Unwatched)
        .and_then(|()| engine::run(&plan, interrupt, &Unwatched));
    match measured {
        Ok(measured) => {
            let step = step(&plan, &measured, Place::ALONE);
            let times = &step.summary.service_time;
            let failed = step.summary.accounting.failed();
            let (p50, p99) = (P50.cell_of_times(times), P99.cell_of_times(times));
            found.unless(
                failed == 0,
                State::Wrong,
                (
                    "round trip",
                    format!(
                        "p50 {p50} us, p99 {p99} us, {failed} of {} failed",
                        thousands(REQUESTS as f64)
                    ),
                ),
                "look at its log, and at what lies between",
            );
            true
        }
        Err(error) => {
            found.add(
                "reachable",
                error.to_string(),
                State::Wrong,
                "start it, or open its port in the firewall",
            );
            false
        }
    }
}

fn about_metrics(found: &mut Findings, reading: &Reading, connections: u64) {
    let own = tool().version;
    match reading.version() {
        Some(version) => found.unless(
            version == own,
            State::Wrong,
            ("netping", version.to_owned()),
            &format!("this is netping {own}: copy the binaries of one build to all hosts"),
        ),
        None => found.ok("netping", "an older version, or not netping's"),
    }
    if let Some(most) = reading.max_connections() {
        found.unless(
            connections <= most,
            State::Wrong,
            ("max connections", thousands(most as f64)),
            "raise its --max-connections, and its limit on open files",
        );
    }
    if let Some(most) = reading.somaxconn() {
        found.unless(
            most >= connections.min(4096),
            State::Warning,
            ("somaxconn", thousands(most as f64)),
            "raise net.core.somaxconn on its host",
        );
    }
    found.unless(
        reading.boot_id().is_none() || reading.boot_id() != boot_id().as_deref(),
        State::Warning,
        (
            "host",
            reading
                .boot_id()
                .map_or("unknown", |id| id.get(..8).unwrap_or(id))
                .to_owned(),
        ),
        "it is this machine: client and server share its cores",
    );
}

fn about_clock(found: &mut Findings, plan: &Plan, max: Option<Duration>) {
    if !plan.load.kind.is_prepared() && clock_offset::tells_time(plan.target.url.scheme.protocol())
    {
        match clock_offset::measure(&plan.target) {
            Ok(offset) => {
                let (own, uncertainty) = (offset.offset_ns as f64, offset.uncertainty_ns() as f64);
                let value = format!(
                    "{:.1} us from this host's, +-{:.1}",
                    own / 1e3,
                    uncertainty / 1e3
                );
                let good = max.is_none_or(|max| check_offset(&offset, max).is_ok());
                let remedy = "synchronise both with the same time server (chrony)";
                found.unless(good, State::Wrong, ("clock", value), remedy);
            }
            Err(error) => found.add(
                "clock",
                error.to_string(),
                State::Warning,
                "use servers of this version",
            ),
        }
    }
}
