//! Limits of the system: files, and a log that cannot be written.

use std::{
    fs::OpenOptions,
    net::TcpStream,
    process::{Command, Stdio},
    time::Duration,
};

use netping_benches::processes::{Server, wait};
use nix::sys::signal::Signal;

use crate::{Fault, Kind, Outcome, serves, word};

pub const FAULTS: [Fault; 2] = [
    Fault {
        what: "no file descriptors left",
        promised: "less than 0.3 s of CPU in 1 s, and served afterwards",
        servers: Kind::is_tcp,
        try_it: no_files,
    },
    Fault {
        what: "log on a full disk, then SIGTERM",
        promised: "served, and ended with 0",
        servers: |_| true,
        try_it: full_log,
    },
];

fn no_files(kind: &Kind) -> Outcome {
    let server = kind.start(&[]);
    serves(&server, kind);
    let open = server.metric("process_open_fds").unwrap_or(0.0);
    // Room for a scrape of the metrics.
    let limit = open as u64 + 10;
    let pid = server.process.id().to_string();
    let limited = Command::new("prlimit")
        .args(["--pid", &pid, &format!("--nofile={limit}:{limit}")])
        .status();
    if !limited.is_ok_and(|status| status.success()) {
        return Outcome {
            came: "prlimit (util-linux) is missing".to_owned(),
            kept: true,
        };
    }
    let used = || cpu_seconds(server.process.id());
    let streams: Vec<_> = (0..100)
        .map(|_| TcpStream::connect(server.address()))
        .collect();
    let before = used();
    wait(Duration::from_secs(1));
    let spent = used() - before;
    drop(streams);
    let honest = serves(&server, kind);
    Outcome {
        came: format!("{spent:.2} s of CPU; afterwards {}", word(honest)),
        kept: honest && spent < 0.3,
    }
}

/// Returns the CPU time of a process, in seconds.
fn cpu_seconds(pid: u32) -> f64 {
    let usage = netping_system::process::Usage::of(pid);
    usage.map_or(f64::NAN, |usage| usage.cpu_seconds)
}

fn full_log(kind: &Kind) -> Outcome {
    let full = OpenOptions::new().write(true).open("/dev/full");
    let log = Stdio::from(full.expect("/dev/full"));
    let flags = kind.all(&["--max-connections", "3"]);
    let mut server = Server::start_logging_to(["127.0.0.1:0"; 2], kind.server, &flags, log);
    // Each that is refused is logged.
    for _ in 0..20 {
        let streams: Vec<_> = (0..6)
            .map(|_| TcpStream::connect(server.address()))
            .collect();
        drop(streams);
    }
    let mut honest = false;
    for _ in 0..20 {
        honest = serves(&server, kind);
        if honest {
            break;
        }
        wait(Duration::from_millis(100));
    }
    server.process.signal(Signal::SIGTERM);
    let code = server.ended_within(Duration::from_secs(7));
    Outcome {
        came: format!(
            "{}, exit code {}",
            word(honest),
            code.map_or_else(|| "none".to_owned(), |code| code.to_string())
        ),
        kept: honest && code == Some(0),
    }
}
