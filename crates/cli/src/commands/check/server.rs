//! A server, as far as it can be reached and tells of itself.

use std::time::Duration;

use netping_client::{
    clock_offset, engine,
    interrupt::Interrupt,
    plan::{Extent, Plan, Warmup},
    probe::metrics::{Probe, Reading, ServerSource},
    workload::first_call::first_call,
};
use netping_measure::times::Time;
use netping_results::{
    format::thousands,
    metric::{P50, P99},
    run::Place,
};
use netping_system::host::boot_id;

use crate::{
    environment,
    observation::{Grade, Observation, Observations},
    run::{
        clock_demand::check_offset,
        progress::{Progress, ProgressForm},
        step::step,
        store::tool,
    },
};

/// Requests whose round trips are shown.
const REQUESTS: u64 = 1000;

/// Looks at the server of `plan`, for runs with this number of connections; its clock may be off by
/// `max_clock_error`.
pub fn look(
    plan: &Plan,
    connections: u64,
    max_clock_error: Option<Duration>,
    interrupt: &Interrupt,
) -> Vec<Observation> {
    let mut found = Observations::about(&plan.target.url.to_string());
    if !about_round_trips(&mut found, plan, interrupt) {
        return found.all;
    }
    match Probe::new(plan.target.server.clone()).read() {
        Ok(reading) => about_metrics(&mut found, &reading, connections),
        Err(_) if plan.target.server == ServerSource::Nowhere => {}
        Err(reason) => {
            let is_silent = reason.is_empty();
            let reason = if is_silent {
                "none of netping's".to_owned()
            } else {
                reason
            };
            found.add("metrics", reason).unless(
                false,
                Grade::Warning,
                "open the port 1000 above the server's, or say where they are (--server-metrics): without them, the server's \
                 CPU time is unknown",
            );
        }
    }
    about_clock(&mut found, plan, max_clock_error);
    found.all
}

/// Sends requests, one after another. Returns false if the server does not answer.
fn about_round_trips(found: &mut Observations, plan: &Plan, interrupt: &Interrupt) -> bool {
    let mut plan = plan.clone();
    plan.execution.warmup = Warmup::Time(Duration::ZERO);
    plan.execution.extent = Extent::Requests(REQUESTS);
    let unseen = Progress::new(ProgressForm::None, None, interrupt);
    let measured =
        first_call(&plan, interrupt, &unseen).and_then(|()| engine::run(&plan, interrupt, &unseen));
    let measured = match measured {
        Ok(measured) => measured,
        Err(error) => {
            let remedy = "start it, or open its port in the firewall";
            found
                .add("reachable", error.to_string())
                .unless(false, Grade::Wrong, remedy);
            return false;
        }
    };
    let summary = step(&plan, &measured, Place::ALONE).summary;
    let times = &summary.times[Time::Service];
    let failed = summary.accounting.failed();
    let (p50, p99) = (P50.cell_of_times(times), P99.cell_of_times(times));
    let requests = thousands(REQUESTS as f64);
    let value = format!("p50 {p50} us, p99 {p99} us, {failed} of {requests} failed");
    let remedy = "look at its log, and at what lies between";
    found
        .add("round trip", value)
        .unless(failed == 0, Grade::Wrong, remedy);
    true
}

fn about_metrics(found: &mut Observations, reading: &Reading, connections: u64) {
    let own = tool().version;
    let version = reading.version();
    let remedy = format!("this is netping {own}: copy the binaries of one build to all hosts");
    found
        .add(
            "netping",
            version.unwrap_or("an older version, or not netping's"),
        )
        .unless(
            version.is_none_or(|version| version == own),
            Grade::Wrong,
            remedy,
        );
    if let Some(most) = reading.max_connections() {
        environment::server_room(found, connections, most);
    }
    if let Some(most) = reading.somaxconn() {
        found.add("somaxconn", thousands(most as f64)).unless(
            most >= connections.min(4096),
            Grade::Warning,
            "raise net.core.somaxconn on its host",
        );
    }
    let id = reading.boot_id();
    let shown = id.map_or("unknown", |id| id.get(..8).unwrap_or(id));
    found.add("host", shown).unless(
        id.is_none() || id != boot_id().as_deref(),
        Grade::Warning,
        "it is this machine: client and server share its cores",
    );
}

fn about_clock(found: &mut Observations, plan: &Plan, max: Option<Duration>) {
    let protocol = plan.target.url.scheme.protocol();
    if plan.load.kind.is_prepared() || !clock_offset::tells_time(protocol) {
        return;
    }
    match clock_offset::measure(&plan.target) {
        Ok(offset) => {
            let (own, uncertainty) = (offset.offset_ns as f64, offset.uncertainty_ns() as f64);
            let (own, uncertainty) = (own / 1e3, uncertainty / 1e3);
            found
                .add(
                    "clock",
                    format!("{own:.1} us from this host's, +-{uncertainty:.1}"),
                )
                .unless(
                    max.is_none_or(|max| check_offset(&offset, max).is_ok()),
                    Grade::Wrong,
                    "synchronise both with the same time server (chrony)",
                );
        }
        Err(error) => found.add("clock", error.to_string()).unless(
            false,
            Grade::Warning,
            "use servers of this version",
        ),
    }
}
