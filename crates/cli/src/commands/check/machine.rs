//! This machine, as a run would find it.

use std::{fs, path::Path};

use aws_lc_rs::digest::{SHA256, digest};
use netping_results::{
    format::plural,
    metric::{P50, P99},
    run::HostClock,
};
use netping_system::limits::raise_open_files;

use super::floor;
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
    about_network(&mut found);
    found.add("clock", quality(clock)).warn_unless(
        clock.synchronized == Some(true),
        "for clients in step: run chrony, or give --clock-server",
    );
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

/// Tells the speed and the MTU of the network cards that are up.
fn about_network(found: &mut Observations) {
    let folder = Path::new("/sys/class/net");
    let entries = fs::read_dir(folder).into_iter().flatten();
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut cards: Vec<String> = names.filter(|name| name != "lo").collect();
    cards.sort();
    for name in cards {
        let read = |file: &str| {
            let text = fs::read_to_string(folder.join(&name).join(file)).ok()?;
            Some(text.trim().to_owned())
        };
        if read("operstate").as_deref() == Some("down") {
            continue;
        }
        // Virtual cards tell no speed, or -1.
        let speed = read("speed").filter(|speed| !speed.starts_with('-'));
        let speed = speed.map_or_else(|| "unknown speed".to_owned(), |own| own + " Mbit/s");
        let mtu = read("mtu").unwrap_or_else(|| "unknown".to_owned());
        found.add("network", format!("{name}: {speed}, MTU {mtu}"));
    }
}

fn about_floor(found: &mut Observations) {
    for (what, busy) in [
        ("loopback round trip", false),
        ("loopback round trip, busy polling", true),
    ] {
        match floor::round_trips(busy) {
            Ok(times) => {
                let (p50, p99) = (P50.tell_times(&times), P99.tell_times(&times));
                found.add(what, format!("p50 {p50}, p99 {p99}"));
            }
            Err(error) => found
                .add(what, error.to_string())
                .object_unless(false, "TCP over 127.0.0.1 does not work here"),
        }
    }
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
