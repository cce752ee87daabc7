//! Relays that change a byte, cut connections, or let little through.

use std::{
    io::{self, Read, Write},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use netping_benches::processes::{Server, netping, wait};

use crate::{Fault, Kind, Outcome, restarts::Accounts};

pub const FAULTS: [Fault; 4] = [
    Fault {
        what: "a byte in 10,000 changed on the way back",
        promised: "accounts add up, no change is unseen",
        servers: Kind::is_tcp,
        try_it: corrupted,
    },
    Fault {
        what: "a datagram in 50 changed on the way back",
        promised: "accounts add up, none fails",
        servers: Kind::is_quic,
        try_it: changed_datagrams,
    },
    Fault {
        what: "connections cut after 20,000 bytes",
        promised: "accounts add up, failures and reconnects are seen",
        servers: Kind::is_tcp,
        try_it: cut,
    },
    Fault {
        what: "25 kB/s let through on each connection",
        promised: "accounts add up, none fails",
        servers: Kind::is_tcp,
        try_it: narrow,
    },
];

/// Harm that a relay does to the bytes of the server.
#[derive(Clone, Copy)]
enum Harm {
    /// Changes each byte at a multiple of this.
    Change(usize),
    /// Ends the connection after so many bytes.
    Cut(usize),
    /// Lets so many bytes through in a second, on each connection.
    Narrow(usize),
}

/// Bytes that a relay has changed.
type Changed = Arc<AtomicU64>;

/// Starts a relay to a server, until this process ends; returns its address.
fn relay(server: &str, harm: Harm, changed: &Changed) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    let (server, changed) = (server.to_owned(), Arc::clone(changed));
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let Ok(upstream) = TcpStream::connect(&server) else {
                continue;
            };
            let _ = client.set_nodelay(true);
            let _ = upstream.set_nodelay(true);
            let (Ok(to_server), Ok(from_client)) = (upstream.try_clone(), client.try_clone())
            else {
                continue;
            };
            thread::spawn(move || {
                let _ = io::copy(&mut &from_client, &mut &to_server);
                let _ = to_server.shutdown(Shutdown::Write);
            });
            let changed = Arc::clone(&changed);
            thread::spawn(move || {
                let _ = harmed(&upstream, &client, harm, &changed);
                let _ = upstream.shutdown(Shutdown::Both);
                let _ = client.shutdown(Shutdown::Both);
            });
        }
    });
    address
}

/// Starts a relay of one client's datagrams, which changes a byte of each of the server's at a multiple
/// of `every`, until this process ends; returns its address.
fn datagram_relay(server: &str, every: usize) -> String {
    let bound = || UdpSocket::bind("127.0.0.1:0").expect("a port");
    let (near, far) = (Arc::new(bound()), Arc::new(bound()));
    far.connect(server).expect("an address");
    let address = near.local_addr().expect("an address").to_string();
    let client = Arc::new(OnceLock::<SocketAddr>::new());
    let (from_client, to_server, seen) = (Arc::clone(&near), Arc::clone(&far), Arc::clone(&client));
    thread::spawn(move || {
        let mut buffer = vec![0; 1 << 16];
        while let Ok((read, sender)) = from_client.recv_from(&mut buffer) {
            let _ = seen.set(sender);
            // What is lost is sent again.
            let _ = to_server.send(&buffer[..read]);
        }
    });
    thread::spawn(move || {
        let mut buffer = vec![0; 1 << 16];
        for count in 1.. {
            let Ok(read) = far.recv(&mut buffer) else {
                continue;
            };
            if count % every == 0 {
                buffer[read / 2] ^= 0x55;
            }
            if let Some(client) = client.get() {
                let _ = near.send_to(&buffer[..read], client);
            }
        }
    });
    address
}

fn harmed(
    mut from: &TcpStream,
    mut to: &TcpStream,
    harm: Harm,
    changed: &Changed,
) -> io::Result<()> {
    let mut buffer = [0; 4096];
    let mut seen = 0;
    loop {
        let read = from.read(&mut buffer)?;
        if read == 0 {
            return Ok(());
        }
        for at in 0..read {
            seen += 1;
            match harm {
                Harm::Change(every) if seen % every == 0 => {
                    buffer[at] ^= 0x55;
                    changed.fetch_add(1, Ordering::Relaxed);
                }
                Harm::Cut(after) if seen == after => return to.write_all(&buffer[..at]),
                _ => {}
            }
        }
        if let Harm::Narrow(bytes_per_second) = harm {
            wait(Duration::from_secs_f64(
                read as f64 / bytes_per_second as f64,
            ));
        }
        to.write_all(&buffer[..read])?;
    }
}

/// The result of a load.
struct Load {
    accounts: Accounts,
    /// The exit code says that requests failed.
    fails: bool,
    reconnects: u64,
}

/// Runs a load through a relay that does harm.
fn through(kind: &Kind, harm: Harm, changed: &Changed) -> Load {
    let server = kind.start(&[]);
    let address = relay(server.address(), harm, changed);
    let timeout = match harm {
        Harm::Narrow(_) => "2s",
        _ => "500ms",
    };
    loaded(kind, &server, &address, timeout)
}

/// Runs a load with this time limit to a server by another address.
fn loaded(kind: &Kind, server: &Server, address: &str, timeout: &str) -> Load {
    let (scheme, _) = server.url.split_once("://").expect("a URL");
    let url = format!("{scheme}://{address}");
    let run = [
        "throughput",
        &url,
        "-c",
        "4",
        "-d",
        "1s",
        "--warmup",
        "0s",
        "--payload",
        "64",
    ];
    let limits = [
        "--timeout",
        timeout,
        "--no-first-call",
        "--server-metrics",
        "off",
    ];
    let said = netping(&[&run[..], &limits, &kind.client()].concat());
    Load {
        accounts: Accounts::of(&said),
        fails: said.output.status.code() == Some(1),
        reconnects: said.step()["reconnects"].as_u64().unwrap_or_default(),
    }
}

/// Changes bytes of the replies. Each change makes at least one request fail, or hits one that is open at the
/// end: none is unseen. On a connection with one request at a time, it makes no more than one fail. Nothing
/// protects the headers of HTTP/2 in clear text, so there some change is seen.
fn corrupted(kind: &Kind) -> Outcome {
    let changed = Changed::default();
    let Load {
        accounts, fails, ..
    } = through(kind, Harm::Change(10_000), &changed);
    let (changed, failed) = (changed.load(Ordering::Relaxed), accounts.failed());
    let all_seen = changed <= failed + accounts.open;
    let is_seen = match kind.is_grpc() {
        true if kind.is_secure_tcp() => all_seen,
        true => failed > 0,
        false => all_seen && failed <= changed,
    };
    accounts
        .outcome()
        .and(fails && is_seen, &format!("{changed} bytes changed"))
}

fn changed_datagrams(kind: &Kind) -> Outcome {
    let server = kind.start(&[]);
    let address = datagram_relay(server.address(), 50);
    let load = loaded(kind, &server, &address, "2s");
    none_fails(&load)
}

fn narrow(kind: &Kind) -> Outcome {
    let load = through(kind, Harm::Narrow(25_000), &Changed::default());
    none_fails(&load)
}

fn none_fails(load: &Load) -> Outcome {
    let none = !load.fails && load.reconnects == 0;
    let came = format!("{} reconnects", load.reconnects);
    load.accounts.outcome().and(none, &came)
}

fn cut(kind: &Kind) -> Outcome {
    let load = through(kind, Harm::Cut(20_000), &Changed::default());
    let came = format!("{} reconnects", load.reconnects);
    load.accounts
        .outcome()
        .and(load.fails && load.reconnects > 0, &came)
}
