//! Counters: the client's, the server's, and those of a relay between them.

use std::{
    io::{Read, Write},
    net::{Shutdown, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};

use netping_benches::processes::{Server, netping};

use crate::{Tell, Truth};

/// Counts the lines that it relays in each direction.
#[derive(Default)]
struct Lines([AtomicU64; 2]);

/// Checks that all count the same requests.
pub fn check(tell: Tell<'_>) {
    let loads = [
        ("counted requests", vec!["-c", "16", "--requests", "20000"]),
        ("timed", vec!["-c", "16", "-d", "2s"]),
        ("open loop", vec!["-c", "16", "-d", "2s", "--rate", "3k"]),
        (
            "a connection for each request",
            vec!["-c", "4", "-d", "2s", "--new-connection-per-request"],
        ),
    ];
    for (name, flags) in loads {
        tell(compare(name, &flags));
    }
}

fn compare(name: &str, flags: &[&str]) -> Truth {
    let server = Server::start("tokio", &["--workers", "1"]);
    let lines = Arc::new(Lines::default());
    let relay = relay(server.address().to_owned(), Arc::clone(&lines));
    let url = format!("tcp://{relay}");
    let fixed = [
        "throughput",
        &url,
        "--server-metrics",
        "off",
        "--no-first-call",
    ];
    let said = netping(&[&fixed[..], flags].concat());
    let summary = said.step();
    let number = |name: &str| summary[name].as_u64().unwrap_or_default();
    let client = number("ok") + number("outside_ok");
    let [to, from] = [0, 1].map(|at| lines.0[at].load(Ordering::SeqCst));
    Truth {
        what: format!("{name}: requests by client, server, relay (both ways)"),
        expected: "equal".to_owned(),
        found: format!("{client}, {}, {to}, {from}", server.requests()),
        passed: Some(client > 0 && [server.requests(), to, from] == [client; 3]),
    }
}

/// Starts a relay, a thread for each direction of a connection; returns its address.
fn relay(upstream: String, lines: Arc<Lines>) -> std::net::SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("an address");
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let Ok(server) = TcpStream::connect(&upstream) else {
                return;
            };
            let clone = |stream: &TcpStream| stream.try_clone().expect("a descriptor");
            for (at, from, to) in [
                (0, clone(&client), clone(&server)),
                (1, clone(&server), clone(&client)),
            ] {
                let _ = to.set_nodelay(true);
                let lines = Arc::clone(&lines);
                thread::spawn(move || copy(from, to, &lines.0[at]));
            }
        }
    });
    address
}

fn copy(mut from: TcpStream, mut to: TcpStream, lines: &AtomicU64) {
    let mut buffer = [0; 4096];
    while let Ok(length @ 1..) = from.read(&mut buffer) {
        let ends = buffer[..length].iter().filter(|byte| **byte == b'\n');
        lines.fetch_add(ends.count() as u64, Ordering::SeqCst);
        if to.write_all(&buffer[..length]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
}
