//! The machine that the client runs on.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    fs,
    hash::{BuildHasher, RandomState},
    path::PathBuf,
};

use netping_results::{format::thousands, run::Environment};
use netping_system::{cores, limits::open_files};
use nix::sys::utsname::uname;

use crate::observation::Observations;

/// Descriptors that the client needs besides its connections.
const OWN_FILES: u64 = 64;

/// Returns the machine's fingerprint for result files.
pub fn fingerprint() -> Environment {
    let unknown = || "unknown".to_owned();
    let name = uname();
    let name = name.as_ref().ok();
    let text = |text: &OsStr| text.to_string_lossy().into_owned();
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = |line: &str| {
        let (_, model) = line.strip_prefix("model name")?.split_once(": ")?;
        Some(model.to_owned())
    };
    Environment {
        host: name.map_or_else(unknown, |name| text(name.nodename())),
        kernel: name.map_or_else(unknown, |name| text(name.release())),
        cpu_model: cpuinfo.lines().find_map(model).unwrap_or_else(unknown),
        cpus: cores::own().len(),
        open_files: open_files(),
        system: system(),
    }
}

/// Names in result files and the kernel's files that they stand for.
const SETTINGS: [(&str, &str); 10] = [
    (
        "clock_source",
        "/sys/devices/system/clocksource/clocksource0/current_clocksource",
    ),
    (
        "governor",
        "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
    ),
    ("hypervisor", "/sys/hypervisor/type"),
    ("machine", "/sys/class/dmi/id/product_name"),
    ("smt", "/sys/devices/system/cpu/smt/active"),
    ("somaxconn", "/proc/sys/net/core/somaxconn"),
    ("ephemeral_ports", "/proc/sys/net/ipv4/ip_local_port_range"),
    (
        "congestion_control",
        "/proc/sys/net/ipv4/tcp_congestion_control",
    ),
    ("cgroup_cpu_max", "/sys/fs/cgroup/cpu.max"),
    ("cgroup_memory_max", "/sys/fs/cgroup/memory.max"),
];

/// Returns the system's settings; those that it does not tell are left out.
fn system() -> BTreeMap<String, String> {
    let mut paths: Vec<(String, PathBuf)> = Vec::new();
    paths.extend(SETTINGS.map(|(name, path)| (name.to_owned(), path.into())));
    // The speeds of network cards, in Mbit/s, which virtual ones may not tell.
    for (folder, file, name) in [
        ("/sys/class/net", "speed", "network_mbits"),
        ("/sys/devices/system/cpu/vulnerabilities", "", "mitigation"),
    ] {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let name = format!("{name}.{}", entry.file_name().to_string_lossy());
            let path = entry.path();
            let is_file = file.is_empty();
            paths.push((name, if is_file { path } else { path.join(file) }));
        }
    }
    let settings = paths.into_iter().filter_map(|(name, path)| {
        let text = fs::read_to_string(path).ok()?;
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        Some((name, text)).filter(|(_, text)| !text.is_empty())
    });
    settings.collect()
}

/// Looks at the settings that may make results worse than necessary.
pub fn settings(environment: &Environment) -> Observations {
    let mut found = Observations::about("this host");
    let cores = format!("{} of {}", environment.cpus, environment.cpu_model);
    found.add("cores", cores).warn_unless(
        environment.cpus > 1,
        "give it more: the client shares its core with the kernel's network stack",
    );
    if let Some(quota) = environment.system.get("cgroup_cpu_max") {
        let remedy = "lift the limit: threads are stopped when it is used up";
        let own = found.add("cgroup cpu.max", quota);
        own.warn_unless(quota.starts_with("max"), remedy);
    }
    if let Some(governor) = environment.system.get("governor") {
        let remedy = "set it to performance: cpupower frequency-set -g performance";
        let own = found.add("governor", governor);
        own.warn_unless(governor != "powersave", remedy);
    }
    if let Some(source) = environment.system.get("clock_source") {
        let remedy =
            "choose tsc if the machine has a stable one: each time stamp costs a system call";
        let own = found.add("clock source", source);
        own.warn_unless(FAST_CLOCKS.contains(&source.as_str()), remedy);
    }
    found
}

/// The kernel's clock sources that are read without a system call.
const FAST_CLOCKS: [&str; 4] = [
    "tsc",
    "kvm-clock",
    "hyperv_clocksource_tsc_page",
    "arch_sys_counter",
];

/// Returns a seed that no other run has, short enough to type.
pub fn random_seed() -> u64 {
    RandomState::new().hash_one(0) & u64::from(u32::MAX)
}

/// Looks at the room that this host has for `connections` to one server.
pub fn room(found: &mut Observations, connections: u64) {
    let files = open_files();
    let remedy = format!(
        "raise the hard limit for {connections} connections: ulimit -n, or LimitNOFILE of a systemd unit"
    );
    let own = found.add("open files", thousands(files as f64));
    own.object_unless(connections + OWN_FILES <= files, remedy);
    if let Some(ports) = ephemeral_ports() {
        let remedy = "widen net.ipv4.ip_local_port_range, or use several clients or addresses";
        let own = found.add("ephemeral ports", thousands(ports as f64));
        own.object_unless(connections <= ports, remedy);
    }
}

/// Looks at the room that a server has, which accepts this number of connections at `most`.
pub fn server_room(found: &mut Observations, connections: u64, most: u64) {
    let own = found.add("max connections", thousands(most as f64));
    let remedy = "raise its --max-connections, and its limit on open files";
    own.object_unless(connections <= most, remedy);
}

/// Looks at the room for connections that come at once to servers whose host queues `most`.
pub fn queue_room(found: &mut Observations, connections: u64, most: u64) {
    let own = found.add("somaxconn", thousands(most as f64));
    let remedy =
        "raise net.core.somaxconn on the servers' host, or it drops connections that come at once";
    own.warn_unless(most >= connections.min(4096), remedy);
}

/// Returns the number of ports from which connections to one address may come.
fn ephemeral_ports() -> Option<u64> {
    let range = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").ok()?;
    let mut ends = range.split_ascii_whitespace().map(str::parse::<u64>);
    let (low, high) = (ends.next()?.ok()?, ends.next()?.ok()?);
    Some((high + 1).saturating_sub(low))
}
