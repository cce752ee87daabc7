//! The fault matrix: what servers and the client promise under faults, and what came of it.
//!
//! `cargo run --release -p netping-benches --example faults` takes about two minutes and prints a
//! table; `--long` tries every fault five times and adds servers with TLS and with a pre-shared key. It
//! exits with 1 if a promise was not kept.
//!
//! Servers and clients are processes of their own: this program is also `netping` itself.

mod http2;
mod limits;
mod peer;
mod peers;
mod quic;
mod relay;
mod restarts;

use std::{
    env,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
};

use netping_benches::processes::{self, Server, netping, plain};
use netping_protocol::{
    psk::Key,
    scheme::Scheme,
    secure::Connector,
    tls::{self, ClientOptions},
};
use netping_report::table::{Column, Table};

/// A server under test: its name in the table, that of `netping serve`, its flags, those of a client,
/// and the handshake of a peer.
struct Kind {
    name: &'static str,
    server: &'static str,
    flags: Vec<String>,
    client: Vec<String>,
    connector: Connector,
}

impl Kind {
    /// Starts the server with its flags and these.
    fn start(&self, flags: &[&str]) -> Server {
        Server::start(self.server, &self.all(flags))
    }

    /// Returns the server's flags, and these.
    fn all<'a>(&'a self, flags: &[&'a str]) -> Vec<&'a str> {
        let own = self.flags.iter().map(String::as_str);
        own.chain(flags.iter().copied()).collect()
    }

    /// Returns a client's flags.
    fn client(&self) -> Vec<&str> {
        self.client.iter().map(String::as_str).collect()
    }

    fn is_tcp(&self) -> bool {
        self.is_lines() || self.is_grpc()
    }

    /// Returns true if connections over TCP begin with a handshake.
    fn is_secure_tcp(&self) -> bool {
        self.is_tcp() && !matches!(self.connector, Connector::Plain)
    }

    fn is_lines(&self) -> bool {
        ["threads", "tokio"].contains(&self.server)
    }

    fn is_grpc(&self) -> bool {
        self.server == "grpc"
    }

    fn is_quic(&self) -> bool {
        self.server == "quic"
    }
}

/// The outcome of a fault.
struct Outcome {
    came: String,
    kept: bool,
}

/// A fault: its name, the promise, whether a server can have it, and the trial.
struct Fault {
    what: &'static str,
    promised: &'static str,
    servers: fn(&Kind) -> bool,
    try_it: fn(&Kind) -> Outcome,
}

const COLUMNS: [Column; 5] = [
    Column::text("fault"),
    Column::text("server"),
    Column::text("promised"),
    Column::text("came"),
    Column::text(""),
];

/// Repetitions of each fault with `--long`.
const REPETITIONS: usize = 5;

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    let is_long = args == ["--long"];
    if !is_long && !args.is_empty() {
        return processes::main(&args);
    }
    let folder = env::temp_dir().join(format!("netping-faults-{}", std::process::id()));
    let certificates = folder.to_str().expect("a path of UTF-8").to_owned();
    for what in [&["certs"][..], &["certs", "--psk"]] {
        let made = plain(&[what, &["--out", &certificates]].concat());
        assert!(made.status.success(), "no keys in {certificates}");
    }
    let failed = check(is_long, &folder);
    // The folder is this program's own.
    let _ = std::fs::remove_dir_all(&folder);
    ExitCode::from(u8::from(failed))
}

/// Tries every fault on every server that can have it, and prints the table. Returns true if a
/// promise was not kept.
fn check(is_long: bool, certificates: &Path) -> bool {
    let faults = [
        &peers::FAULTS[..],
        &http2::FAULTS,
        &quic::FAULTS,
        &limits::FAULTS,
        &relay::FAULTS,
        &restarts::FAULTS,
    ];
    let (mut rows, mut failed) = (Vec::new(), false);
    for fault in faults.into_iter().flatten() {
        for kind in kinds(is_long, certificates) {
            if !(fault.servers)(&kind) {
                continue;
            }
            let outcome = if is_long {
                repeated(|| (fault.try_it)(&kind))
            } else {
                tried((fault.try_it)(&kind), || (fault.try_it)(&kind))
            };
            failed |= !outcome.kept;
            let verdict = if outcome.kept { "kept" } else { "BROKEN" };
            eprintln!("{}, {}: {}: {verdict}", fault.what, kind.name, outcome.came);
            let row = [
                fault.what,
                kind.name,
                fault.promised,
                &outcome.came,
                verdict,
            ];
            rows.push(row.map(str::to_owned).to_vec());
        }
    }
    println!("{}", Table::whole(&COLUMNS, &rows));
    failed
}

/// Returns the first outcome that breaks the promise, or the last.
fn repeated(try_it: impl Fn() -> Outcome) -> Outcome {
    let mut outcome = try_it();
    for _ in 1..REPETITIONS {
        if !outcome.kept {
            break;
        }
        outcome = try_it();
    }
    outcome
}

/// Returns an outcome, or that of a second try: a busy machine may make a server late.
fn tried(first: Outcome, again: impl Fn() -> Outcome) -> Outcome {
    if first.kept {
        return first;
    }
    let second = again();
    Outcome {
        came: format!("{}; at first {}", second.came, first.came),
        kept: second.kept,
    }
}

/// Returns the servers under test.
fn kinds(is_long: bool, certificates: &Path) -> Vec<Kind> {
    let path = |name: &str| -> PathBuf { certificates.join(name) };
    let flags = |flags: &[(&str, &str)]| -> Vec<String> {
        let words = flags.iter().flat_map(|(flag, file)| {
            let file = path(file);
            [*flag, file.to_str().expect("a path of UTF-8")].map(str::to_owned)
        });
        words.collect()
    };
    let clear = |name, server| Kind {
        name,
        server,
        flags: Vec::new(),
        client: Vec::new(),
        connector: Connector::Plain,
    };
    let tls = |name, server, scheme: Scheme| {
        let options = ClientOptions {
            ca: Some(path("ca.pem")),
            ..ClientOptions::default()
        };
        let config = tls::client(&options, scheme.alpn()).expect("a configuration");
        let host = "localhost".try_into().expect("a name");
        Kind {
            name,
            server,
            flags: flags(&[("--tls-cert", "server.pem"), ("--tls-key", "server.key")]),
            client: flags(&[("--tls-ca", "ca.pem")]),
            connector: Connector::Tls(Arc::new(config), host),
        }
    };
    let mut kinds = vec![
        clear("threads", "threads"),
        clear("tokio", "tokio"),
        clear("grpc", "grpc"),
        tls("quic", "quic", Scheme::Quic),
    ];
    if is_long {
        let key = Key::read(&path("psk.key")).expect("a key");
        kinds.extend([
            tls("threads, TLS", "threads", Scheme::TcpTls),
            tls("tokio, TLS", "tokio", Scheme::TcpTls),
            tls("grpc, TLS", "grpc", Scheme::GrpcTls),
            Kind {
                name: "tokio, PSK",
                server: "tokio",
                flags: flags(&[("--psk-file", "psk.key")]),
                client: flags(&[("--psk-file", "psk.key")]),
                connector: Connector::Psk(Arc::new(key)),
            },
        ]);
    }
    kinds
}

/// Returns true if an honest client is served without a failure.
fn serves(server: &Server, kind: &Kind) -> bool {
    let latency = ["latency", &server.url, "-n", "200", "--warmup", "0s"];
    let said = netping(&[&latency[..], &server.metrics(), &kind.client()].concat());
    said.output.status.code() == Some(0)
}

/// Says whether an honest client was served.
fn word(honest: bool) -> &'static str {
    if honest { "served" } else { "NOT served" }
}

/// Returns the server's resident memory, in MiB.
fn memory(server: &Server) -> f64 {
    let bytes = server.metric("process_resident_memory_bytes");
    bytes.unwrap_or(f64::NAN) / f64::from(1 << 20)
}

/// Returns the number of errors of a kind that the server has counted.
fn errors(server: &Server, kind: &str) -> f64 {
    let name = format!("netping_errors_total{{kind=\"{kind}\"}}");
    server.metric(&name).unwrap_or(0.0)
}
