//! What the client finds out about its machine.

use std::{
    fs,
    net::{SocketAddr, UdpSocket},
};

use netping_protocol::target::Target;
use netping_report::Environment;
use nix::sys::{
    resource::{Resource, getrlimit, setrlimit},
    utsname::uname,
};

use crate::{cores, engine};

/// Descriptors that the client needs beside its connections.
const OWN_FILES: u64 = 64;

/// The machine's fingerprint, as result files have it.
pub fn fingerprint() -> Environment {
    let unknown = || "unknown".to_owned();
    let (host, kernel) = uname().map_or_else(
        |_| (unknown(), unknown()),
        |name| (name.nodename().to_string_lossy().into_owned(), name.release().to_string_lossy().into_owned()),
    );
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model =
        cpuinfo.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": ").map(|(_, name)| name));
    Environment {
        host,
        kernel,
        cpu_model: model.map_or_else(unknown, str::to_owned),
        cpus: cores::own().len(),
        open_files: open_files(),
    }
}

/// Raises the limit on open files to the hard limit. Where that is refused, the limit stays.
pub fn raise_open_files() {
    if let Ok((_, hard)) = getrlimit(Resource::RLIMIT_NOFILE) {
        let _ = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
    }
}

fn open_files() -> u64 {
    getrlimit(Resource::RLIMIT_NOFILE).map_or(1024, |(soft, _)| soft)
}

/// Whether a target is on this host: one of its addresses is this host's own.
pub fn is_own(target: &Target) -> bool {
    // Only an address of its own can be bound; port 0 disturbs nobody.
    let bound = |address: &SocketAddr| UdpSocket::bind((address.ip(), 0)).is_ok();
    engine::resolve(target).is_ok_and(|endpoint| endpoint.addresses.iter().any(bound))
}

/// What stands against opening `connections` to one server, if anything, with what to do about it.
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

fn ephemeral_ports() -> Option<u64> {
    let range = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").ok()?;
    let mut ends = range.split_ascii_whitespace().map(str::parse::<u64>);
    let (low, high) = (ends.next()?.ok()?, ends.next()?.ok()?);
    Some((high + 1).saturating_sub(low))
}
