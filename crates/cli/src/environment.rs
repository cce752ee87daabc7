//! The machine that the client runs on.

use std::{
    collections::BTreeMap,
    fs,
    hash::{BuildHasher, RandomState},
    path::Path,
};

use netping_results::run::Environment;
use netping_system::{cores, limits::open_files};
use nix::sys::utsname::uname;

/// Descriptors that the client needs besides its connections.
pub const OWN_FILES: u64 = 64;

/// Returns the machine's fingerprint for result files.
pub fn fingerprint() -> Environment {
    let unknown = || "unknown".to_owned();
    let (host, kernel) = uname().map_or_else(
        |_| (unknown(), unknown()),
        |name| {
            (
                name.nodename().to_string_lossy().into_owned(),
                name.release().to_string_lossy().into_owned(),
            )
        },
    );
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpuinfo.lines().find_map(|line| {
        line.strip_prefix("model name")?
            .split_once(": ")
            .map(|(_, name)| name)
    });
    Environment {
        host,
        kernel,
        cpu_model: model.map_or_else(unknown, str::to_owned),
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
    let content = |path: &Path| {
        let text = fs::read_to_string(path).ok()?;
        Some(text.split_whitespace().collect::<Vec<_>>().join(" ")).filter(|text| !text.is_empty())
    };
    let mut found = BTreeMap::new();
    for (name, path) in SETTINGS {
        found.extend(content(Path::new(path)).map(|text| (name.to_owned(), text)));
    }
    let each = |folder: &str, file: &str, name: &str| {
        let mut all = BTreeMap::new();
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let key = format!("{name}.{}", entry.file_name().to_string_lossy());
            let path = if file.is_empty() {
                entry.path()
            } else {
                entry.path().join(file)
            };
            all.extend(content(&path).map(|text| (key, text)));
        }
        all
    };
    // In Mbit/s; virtual cards may not tell.
    found.extend(each("/sys/class/net", "speed", "network_mbits"));
    found.extend(each(
        "/sys/devices/system/cpu/vulnerabilities",
        "",
        "mitigation",
    ));
    found
}

/// Returns the settings that make results worse than necessary, with remedies.
pub fn warnings(environment: &Environment) -> Vec<String> {
    let setting = |name: &str| environment.system.get(name).map_or("", String::as_str);
    let mut warnings = Vec::new();
    if setting("governor") == "powersave" {
        warnings.push(
            "the CPU governor is 'powersave': set it to 'performance' (cpupower frequency-set)"
                .to_owned(),
        );
    }
    let clock = setting("clock_source");
    if !clock.is_empty() && !is_fast_clock(clock) {
        warnings.push(format!(
            "the clock source '{clock}' is slow: each time stamp costs a system call"
        ));
    }
    let quota = setting("cgroup_cpu_max");
    if !matches!(quota.split(' ').next(), Some("" | "max")) {
        warnings.push(format!(
            "a cgroup limits the CPU time (cpu.max: {quota}): measured stalls may be its doing"
        ));
    }
    if environment.cpus == 1 {
        warnings
            .push("there is one core: a server on this host shares it with the client".to_owned());
    }
    if environment.open_files < 4096 {
        warnings.push(format!(
            "only {} files may be open: raise it with 'ulimit -n'",
            environment.open_files
        ));
    }
    warnings
}

/// Returns true if the kernel's clock source is read without a system call.
pub fn is_fast_clock(source: &str) -> bool {
    matches!(
        source,
        "tsc" | "kvm-clock" | "hyperv_clocksource_tsc_page" | "arch_sys_counter"
    )
}

/// Returns a seed that no other run has, short enough to type.
pub fn random_seed() -> u64 {
    RandomState::new().hash_one(0) & u64::from(u32::MAX)
}

/// Returns the limits that `connections` to one server exceed, with remedies.
pub fn objections(connections: u64, server_limit: Option<u64>) -> Vec<String> {
    let mut objections = Vec::new();
    let files = open_files();
    if connections + OWN_FILES > files {
        objections.push(format!(
            "{connections} connections exceed this process's limit of {files} open files; raise it with 'ulimit -n' or use fewer"
        ));
    }
    if let Some(ports) = ephemeral_ports()
        && connections > ports
    {
        objections.push(format!(
            "{connections} connections to one address exceed its {ports} ephemeral ports; widen \
             net.ipv4.ip_local_port_range or use fewer"
        ));
    }
    if let Some(limit) = server_limit
        && connections > limit
    {
        objections.push(format!(
            "{connections} connections exceed the server's limit of {limit}; raise its --max-connections or its \
             'ulimit -n', or use fewer"
        ));
    }
    objections
}

/// Returns the number of ports from which connections to one address may come.
pub fn ephemeral_ports() -> Option<u64> {
    let range = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").ok()?;
    let mut ends = range.split_ascii_whitespace().map(str::parse::<u64>);
    let (low, high) = (ends.next()?.ok()?, ends.next()?.ok()?);
    Some((high + 1).saturating_sub(low))
}
