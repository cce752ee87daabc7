//! This machine, as a run would find it.

use std::{fs, path::Path};

use aws_lc_rs::digest::{SHA256, digest};
use netping_measure::distribution::Distribution;
use netping_results::{
    format::plural,
    metric::{P50, P99},
    run::HostClock,
};
use netping_system::{cores, limits::raise_open_files};

use super::{floor, network, processors, wake};
use crate::{
    commands::clock::quality,
    environment,
    observation::{Grade, Observation, Observations},
    run::store::tool,
};

/// Share of the cores that other programs may keep busy.
const IDLE: f64 = 0.3;

/// Looks at the machine, for runs with this number of connections.
pub fn look(clock: &HostClock, connections: u64) -> Vec<Observation> {
    raise_open_files();
    let environment = environment::fingerprint();
    let mut found = Observations::about("this host");
    about_program(&mut found);
    found.all.extend(environment::settings(&environment).all);
    let cpus = cores::own();
    processors::look(&mut found, Path::new("/"), &cpus);
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split(' ').next().map(str::parse::<f64>);
    if let Some(Ok(load)) = load {
        let is_idle = load <= environment.cpus as f64 * IDLE;
        let own = found.add("load of the last minute", load.to_string());
        own.warn_unless(is_idle, "end what else runs here, or wait");
    }
    environment::room(&mut found, connections);
    let queue = environment.system.get("somaxconn");
    if let Some(Ok(most)) = queue.map(|most| most.parse()) {
        environment::queue_room(&mut found, connections, most);
    }
    network::look(&mut found, Path::new("/"), environment.cpus);
    found.add("clock", quality(clock)).warn_unless(
        clock.synchronized == Some(true),
        "for clients in step: run chrony, or give --clock-server",
    );
    about_waking(&mut found, &cpus);
    about_floor(&mut found);
    found.all
}

fn about_program(found: &mut Observations) {
    let tool = tool();
    let commit = tool.commit.unwrap_or_else(|| "unknown commit".to_owned());
    found.add("netping", format!("{} ({commit})", tool.version));
    if let Ok(program) = fs::read("/proc/self/exe") {
        let sum = digest(&SHA256, &program);
        let hex = sum.as_ref().iter().map(|byte| format!("{byte:02x}"));
        found.add("sha256", hex.collect::<String>());
    }
}

/// Measures between two cores, if there are two.
fn about_waking(found: &mut Observations, cpus: &[usize]) {
    let cores = cores::by_core(cpus);
    let [one, other, ..] = &cores[..] else { return };
    for (what, busy) in [
        ("waking a thread, asleep for 1 ms", false),
        ("waking a thread, busy polling", true),
    ] {
        match wake::times([one[0], other[0]], busy) {
            Ok(times) => tell_times(found, what, &times),
            Err(error) => found
                .add(what, error.to_string())
                .object_unless(false, "raise the limit on threads: ulimit -u"),
        }
    }
}

fn about_floor(found: &mut Observations) {
    for (what, busy) in [
        ("loopback round trip", false),
        ("loopback round trip, busy polling", true),
    ] {
        match floor::round_trips(busy) {
            Ok(times) => tell_times(found, what, &times),
            Err(error) => found
                .add(what, error.to_string())
                .object_unless(false, "TCP over 127.0.0.1 does not work here"),
        }
    }
}

fn tell_times(found: &mut Observations, what: &'static str, times: &Distribution) {
    let (p50, p99) = (P50.tell_times(times), P99.tell_times(times));
    found.add(what, format!("p50 {p50}, p99 {p99}"));
}

/// Returns a sentence about the observations.
pub fn verdict(found: &[Observation]) -> String {
    let count = |state| found.iter().filter(|own| own.state == state).count() as u64;
    match (count(Grade::Wrong), count(Grade::Warning)) {
        (0, 0) => "ready".to_owned(),
        (0, warnings) => format!("ready, with {}", plural(warnings, "warning")),
        (wrong, _) => format!("NOT READY: {} would spoil a run", plural(wrong, "finding")),
    }
}
