//! A server, as far as it can be reached and tells of itself.

use std::time::Duration;

use netping_client::{
    clock_offset, engine,
    error::StartError,
    interrupt::Interrupt,
    plan::{Extent, Plan, Warmup},
    probe::metrics::{Probe, Reading, ServerSource},
    transport,
    workload::first_call::first_call,
};
use netping_measure::times::Time;
use netping_report::text;
use netping_results::{
    format::thousands,
    metric::{P50, P99},
    run::{Place, Step},
    time_unit,
};

use crate::{
    args::anatomy,
    environment,
    observation::{Observation, Observations},
    run::{
        clock_demand::check_offset,
        progress::{Progress, ProgressForm},
        step::step,
        store::tool,
    },
};

/// Requests whose round trips are shown, and those that are taken apart.
const REQUESTS: u64 = 1000;
const TAKEN_APART: u64 = 200;

/// Most times that round trips are taken apart until some have parts: on a busy machine, the kernel takes its time to
/// begin with time stamps.
const MOST_TRIES: usize = 5;

/// Time in which the kernel begins to stamp what comes, once it has been asked.
const FIRST_STAMPS: Duration = Duration::from_millis(200);

/// Looks at the server of `plan`, for runs with this number of connections; its clock may be off by
/// `max_clock_error`.
pub fn look(
    plan: &Plan,
    connections: u64,
    max_clock_error: Option<Duration>,
    interrupt: &Interrupt,
) -> Vec<Observation> {
    let mut found = Observations::about(&plan.target.name());
    if !about_round_trips(&mut found, plan, interrupt) {
        return found.all;
    }
    match Probe::new(plan.target.server.clone()).read() {
        Ok(reading) => about_metrics(&mut found, &reading, connections),
        Err(_) if plan.target.server == ServerSource::Nowhere => {}
        Err(reason) => {
            let told = Some(&*reason).filter(|reason| !reason.is_empty());
            found.add("metrics", told.unwrap_or("none of netping's")).warn_unless(false,
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
    let unseen = Progress::new(ProgressForm::None, None, interrupt);
    let measured = first_call(plan, interrupt, &unseen)
        .and_then(|()| measure(plan, Duration::ZERO, REQUESTS, interrupt));
    let summary = match measured {
        Ok(step) => step.summary,
        Err(error) => {
            let own = found.add("reachable", error.to_string());
            own.object_unless(false, "start it, or open its port in the firewall");
            return false;
        }
    };
    let times = &summary.times[Time::Service];
    let failed = summary.accounting.failed();
    let (p50, p99) = (P50.tell_times(times), P99.tell_times(times));
    let requests = thousands(REQUESTS as f64);
    let value = format!("p50 {p50}, p99 {p99}, {failed} of {requests} failed");
    let remedy = "look at its log, and at what lies between";
    found
        .add("round trip", value)
        .object_unless(failed == 0, remedy);
    if failed == 0 && !interrupt.is_set() {
        about_parts(found, plan, interrupt);
    }
    true
}

/// Takes round trips apart, where that is possible: on their own, as it costs time.
fn about_parts(found: &mut Observations, plan: &Plan, interrupt: &Interrupt) {
    let mut plan = plan.clone();
    if anatomy::objection(&plan).is_some() || !transport::has_stamps() {
        return;
    }
    plan.execution.anatomy = true;
    let largest = (0..MOST_TRIES).find_map(|_| {
        let measured = measure(&plan, FIRST_STAMPS, TAKEN_APART, interrupt);
        let parts = measured.ok().and_then(|step| step.anatomy);
        parts.as_ref().and_then(text::largest_part)
    });
    let is_known = largest.is_some();
    let unknown = || "unknown: the kernel's time stamps did not come in time".to_owned();
    found
        .add("where the time goes", largest.unwrap_or_else(unknown))
        .object_unless(is_known, "try again when less runs here");
}

/// Measures this number of requests after a warm-up.
fn measure(
    plan: &Plan,
    warmup: Duration,
    requests: u64,
    interrupt: &Interrupt,
) -> Result<Step, StartError> {
    let mut plan = plan.clone();
    plan.execution.warmup = Warmup::Time(warmup);
    plan.execution.extent = Extent::Requests(requests);
    let unseen = Progress::new(ProgressForm::None, None, interrupt);
    let measured = engine::run(&plan, interrupt, &unseen)?;
    Ok(step(&plan, &measured, Place::ALONE))
}

fn about_metrics(found: &mut Observations, reading: &Reading, connections: u64) {
    let own = tool().version;
    let version = reading.version();
    let remedy = format!("this is netping {own}: copy the binaries of one build to all hosts");
    let shown = version.unwrap_or("an older version, or not netping's");
    let is_same = version.is_none_or(|version| version == own);
    found.add("netping", shown).object_unless(is_same, remedy);
    if let Some(most) = reading.max_connections() {
        environment::server_room(found, connections, most);
    }
    if let Some(most) = reading.somaxconn() {
        environment::queue_room(found, connections, most);
    }
    let id = reading.boot_id();
    let shown = id.map_or("unknown", |id| id.get(..8).unwrap_or(id));
    found.add("host", shown).warn_unless(
        !reading.is_of_this_host(),
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
            let times = [offset.offset_ns as f64, offset.uncertainty_ns() as f64];
            let [own, uncertainty] = times.map(time_unit::time);
            let value = format!("{own} from this host's, +-{uncertainty}");
            let is_good = max.is_none_or(|max| check_offset(&offset, max).is_ok());
            let remedy = "synchronise both with the same time server (chrony)";
            found.add("clock", value).object_unless(is_good, remedy);
        }
        Err(error) => found
            .add("clock", error.to_string())
            .warn_unless(false, "use servers of this version"),
    }
}
