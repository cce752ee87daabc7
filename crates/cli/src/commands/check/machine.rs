//! This machine, as a run would find it.

use std::{fs, path::Path};

use aws_lc_rs::digest::{SHA256, digest};
use netping_measure::distribution::Distribution;
use netping_results::{
    format::{plural, thousands},
    metric::{P50, P99},
    run::{Clock, Environment},
};
use netping_system::limits::raise_open_files;

use super::{
    finding::{Finding, Findings, State},
    floor,
};
use crate::{environment, run::store::tool};

/// Share of the cores that other programs may keep busy.
const IDLE: f64 = 0.3;

/// Looks at the machine, for runs with so many connections.
pub fn findings(clock: &Clock, connections: u64) -> Vec<Finding> {
    let mut found = Findings::about("this host");
    let open_files = raise_open_files();
    let environment = environment::fingerprint();
    about_program(&mut found);
    about_cores(&mut found, &environment);
    found.unless(
        connections + environment::OWN_FILES <= open_files,
        State::Wrong,
        ("open files", thousands(open_files as f64)),
        &format!("raise the hard limit for {connections} connections: ulimit -n, or LimitNOFILE of a systemd unit"),
    );
    if let Some(ports) = environment::ephemeral_ports() {
        found.unless(
            connections <= ports,
            State::Wrong,
            ("ephemeral ports", thousands(ports as f64)),
            "widen net.ipv4.ip_local_port_range, or use several clients or addresses",
        );
    }
    if let Some(most) = environment.system.get("somaxconn") {
        let enough = most
            .parse()
            .is_ok_and(|most: u64| most >= connections.min(4096));
        found.unless(
            enough,
            State::Warning,
            ("somaxconn", most.clone()),
            "servers on this host: raise net.core.somaxconn, or connections that come at once are dropped",
        );
    }
    about_network(&mut found);
    about_clock(&mut found, clock);
    about_floor(&mut found);
    found.all
}

fn about_program(found: &mut Findings) {
    let tool = tool();
    let commit = tool.commit.unwrap_or_else(|| "unknown commit".to_owned());
    found.ok("netping", format!("{} ({commit})", tool.version));
    if let Ok(program) = fs::read("/proc/self/exe") {
        let sum = digest(&SHA256, &program);
        let hex = sum.as_ref().iter().map(|byte| format!("{byte:02x}"));
        found.ok("sha256", hex.collect::<String>());
    }
}

fn about_cores(found: &mut Findings, environment: &Environment) {
    let setting = |name: &str| environment.system.get(name).cloned();
    found.unless(
        environment.cpus > 1,
        State::Warning,
        (
            "cores",
            format!("{} of {}", environment.cpus, environment.cpu_model),
        ),
        "give it more: the client shares its core with the kernel's network stack",
    );
    if let Some(quota) = setting("cgroup_cpu_max") {
        found.unless(
            quota.starts_with("max"),
            State::Warning,
            ("cgroup cpu.max", quota),
            "lift the limit: threads are stopped when it is used up",
        );
    }
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    if let Some(load) = load
        .split(' ')
        .next()
        .and_then(|text| text.parse::<f64>().ok())
    {
        found.unless(
            load <= environment.cpus as f64 * IDLE,
            State::Warning,
            ("load of the last minute", load.to_string()),
            "end what else runs here, or wait",
        );
    }
    if let Some(governor) = setting("governor") {
        found.unless(
            governor != "powersave",
            State::Warning,
            ("governor", governor),
            "set it to performance: cpupower frequency-set -g performance",
        );
    }
    if let Some(clock) = setting("clock_source") {
        found.unless(
            environment::is_fast_clock(&clock),
            State::Warning,
            ("clock source", clock),
            "choose tsc if the machine has a stable one: each time stamp costs a system call",
        );
    }
}

/// Tells the speed and the MTU of the network cards that are up.
fn about_network(found: &mut Findings) {
    let folder = Path::new("/sys/class/net");
    let mut cards: Vec<String> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name != "lo")
        .collect();
    cards.sort();
    for name in cards {
        let read = |file: &str| {
            let text = fs::read_to_string(folder.join(&name).join(file)).ok()?;
            Some(text.trim().to_owned())
        };
        if read("operstate").as_deref() == Some("down") {
            continue;
        }
        let speed = read("speed").and_then(|speed| speed.parse::<i64>().ok());
        // Virtual cards tell none, or -1.
        let speed = speed.filter(|speed| *speed > 0);
        let speed = speed.map_or_else(
            || "unknown speed".to_owned(),
            |speed| format!("{speed} Mbit/s"),
        );
        let mtu = read("mtu").unwrap_or_else(|| "unknown".to_owned());
        found.ok("network", format!("{name}: {speed}, MTU {mtu}"));
    }
}

fn about_clock(found: &mut Findings, clock: &Clock) {
    let micros = |seconds: Option<f64>| seconds.unwrap_or_default() * 1e6;
    let value = match clock.synchronized {
        Some(true) => format!(
            "synchronised, off by an estimated {:.0} us",
            micros(clock.estimated_error_seconds)
        ),
        Some(false) => "not synchronised".to_owned(),
        None => "unknown".to_owned(),
    };
    found.unless(
        clock.synchronized == Some(true),
        State::Warning,
        ("clock", value),
        "for clients in step: run chrony, or give --clock-server",
    );
}

fn about_floor(found: &mut Findings) {
    for (what, busy) in [
        ("loopback round trip", false),
        ("loopback round trip, busy polling", true),
    ] {
        let shown = |times: Distribution| {
            let (p50, p99) = (P50.cell_of_times(&times), P99.cell_of_times(&times));
            format!("p50 {p50} us, p99 {p99} us")
        };
        match floor::round_trips(busy) {
            Ok(times) => found.ok(what, shown(times)),
            Err(error) => found.add(
                what,
                error.to_string(),
                State::Wrong,
                "TCP over 127.0.0.1 does not work here",
            ),
        }
    }
}

/// Returns a sentence about the findings.
pub fn verdict(findings: &[Finding]) -> String {
    let count = |state| {
        findings
            .iter()
            .filter(|finding| finding.state == state)
            .count()
    };
    match (count(State::Wrong), count(State::Warning)) {
        (0, 0) => "ready".to_owned(),
        (0, warnings) => format!("ready, with {}", plural(warnings as u64, "warning")),
        (wrong, _) => format!(
            "NOT READY: {} would spoil a run",
            plural(wrong as u64, "finding")
        ),
    }
}
