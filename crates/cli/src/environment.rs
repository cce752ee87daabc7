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

use crate::observation::{Grade, Observations};

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
        Some(
            line.strip_prefix("model name")?
                .split_once(": ")?
                .1
                .to_owned(),
        )
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
    found.add("cores", cores).unless(
        environment.cpus > 1,
        Grade::Warning,
        "give it more: the client shares its core with the kernel's network stack",
    );
    let is_unlimited: fn(&str) -> bool = |quota| quota.starts_with("max");
    for (name, what, is_fine, remedy) in [
        (
            "cgroup_cpu_max",
            "cgroup cpu.max",
            is_unlimited,
            "lift the limit: threads are stopped when it is used up",
        ),
        (
            "governor",
            "governor",
            |governor| governor != "powersave",
            "set it to performance: cpupower frequency-set -g performance",
        ),
        (
            "clock_source",
            "clock source",
            is_fast_clock,
            "choose tsc if the machine has a stable one: each time stamp costs a system call",
        ),
    ] {
        if let Some(value) = environment.system.get(name) {
            found
                .add(what, value)
                .unless(is_fine(value), Grade::Warning, remedy);
        }
    }
    found
}

/// Returns true if the kernel's clock source is read without a system call.
fn is_fast_clock(source: &str) -> bool {
    matches!(
        source,
        "tsc" | "kvm-clock" | "hyperv_clocksource_tsc_page" | "arch_sys_counter"
    )
}

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
    found.add("open files", thousands(files as f64)).unless(
        connections + OWN_FILES <= files,
        Grade::Wrong,
        remedy,
    );
    if let Some(ports) = ephemeral_ports() {
        let remedy = "widen net.ipv4.ip_local_port_range, or use several clients or addresses";
        found
            .add("ephemeral ports", thousands(ports as f64))
            .unless(connections <= ports, Grade::Wrong, remedy);
    }
}

/// Looks at the room that a server has, which accepts this number of connections at `most`.
pub fn server_room(found: &mut Observations, connections: u64, most: u64) {
    let remedy = "raise its --max-connections, and its limit on open files";
    found.add("max connections", thousands(most as f64)).unless(
        connections <= most,
        Grade::Wrong,
        remedy,
    );
}

/// Returns the number of ports from which connections to one address may come.
fn ephemeral_ports() -> Option<u64> {
    let range = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").ok()?;
    let mut ends = range.split_ascii_whitespace().map(str::parse::<u64>);
    let (low, high) = (ends.next()?.ok()?, ends.next()?.ok()?);
    Some((high + 1).saturating_sub(low))
}
