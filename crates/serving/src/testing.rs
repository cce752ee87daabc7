//! A server within a test's process, and helpers for talking to it.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    sync::Arc,
    thread::{self, JoinHandle},
    time::Duration,
};

use clap::{Args, Command, FromArgMatches};
use netping_protocol::secure;
use tokio::net::UnixStream;

use crate::{
    Accepted, Chassis, Profile, args::CommonArgs, guarded::Guarded, service::Service,
    shutdown::Shutdown,
};

/// Time after which a test has failed: far more than any answer takes.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// An address with a free port.
const FREE: &str = "127.0.0.1:0";

/// A server in this process, on free ports. Dropping it drains it and waits for its end.
#[derive(Debug)]
pub struct TestServer {
    address: SocketAddr,
    metrics: SocketAddr,
    shutdown: Shutdown,
    thread: Option<JoinHandle<()>>,
}

impl TestServer {
    /// Starts `service` with these flags.
    ///
    /// # Panics
    /// Panics if the server does not start.
    pub fn start<A: Args + Send + 'static>(service: &Service<A>, flags: &[&str]) -> Self {
        let base = [service.name, "--listen", FREE, "--metrics", FREE];
        let args = service.parse(base.iter().chain(flags)).unwrap();
        let listening = service.bind(&args).unwrap();
        let address = listening.address().unwrap();
        let metrics = listening.metrics.as_ref().unwrap().local_addr().unwrap();
        let (serve, shutdown) = (service.serve, listening.shutdown.clone());
        let thread = thread::spawn(move || serve(listening, &args).unwrap());
        Self {
            address,
            metrics,
            shutdown,
            thread: Some(thread),
        }
    }

    /// Returns the address for requests.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Tells the server to drain and end.
    pub fn shut_down(&self) {
        self.shutdown.trigger();
    }

    /// Connects over TCP, with [`PATIENCE`] for reads.
    ///
    /// # Panics
    /// Panics if the server does not accept.
    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// Returns the value of a metric, as it stands in the text.
    ///
    /// # Panics
    /// Panics if the metrics cannot be read.
    pub fn metric(&self, name: &str) -> Option<String> {
        let mut stream = TcpStream::connect(self.metrics).unwrap();
        stream
            .write_all(b"GET /metrics HTTP/1.1\r\nhost: test\r\n\r\n")
            .unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        assert!(text.starts_with("HTTP/1.1 200"), "{text}");
        let (name, mut lines) = (format!("{name} "), text.lines());
        lines.find_map(|line| line.strip_prefix(&name).map(str::to_owned))
    }

    /// Returns the number of errors of this kind.
    ///
    /// # Panics
    /// Panics if the metrics cannot be read.
    pub fn errors(&self, kind: &str) -> u64 {
        self.metric(&format!("netping_errors_total{{kind=\"{kind}\"}}"))
            .map_or(0, |count| count.parse().unwrap())
    }

    /// Waits until the server has counted an error of this kind.
    ///
    /// # Panics
    /// Panics if none comes.
    pub fn await_error(&self, kind: &str) {
        eventually(kind, || self.errors(kind) > 0);
    }

    /// Waits until this many connections are open.
    ///
    /// # Panics
    /// Panics if it does not come to that.
    pub fn await_connections(&self, count: usize) {
        let count = count.to_string();
        eventually("the number of connections", || {
            self.metric("netping_connections").as_ref() == Some(&count)
        });
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.shutdown.trigger();
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            assert!(thread::panicking() || ended.is_ok());
        }
    }
}

/// Returns a connection that a server with the default flags has accepted, and its peer.
///
/// # Panics
/// Panics if the system refuses a socket.
pub fn accepted() -> (Accepted, Arc<Chassis>, UnixStream) {
    accepted_with(Profile::ECHO)
}

/// Returns the same of a server with this profile.
///
/// # Panics
/// Panics if the system refuses a socket.
pub fn accepted_with(profile: Profile) -> (Accepted, Arc<Chassis>, UnixStream) {
    let flags = CommonArgs::augment_args(Command::new("test")).get_matches_from(["test"]);
    let args = CommonArgs::from_arg_matches(&flags).unwrap();
    let chassis = Arc::new(Chassis::new(&args, profile, Shutdown::default()));
    let (ours, theirs) = UnixStream::pair().unwrap();
    let guard = chassis.admit_task().unwrap();
    (
        Guarded::new(secure::Stream::Unix(ours), guard),
        chassis,
        theirs,
    )
}

/// Waits for a state that comes by itself.
///
/// # Panics
/// Panics if it does not come.
pub fn eventually(what: &str, state: impl Fn() -> bool) {
    for _ in 0..PATIENCE.as_millis() / 10 {
        if state() {
            return;
        }
        thread::sleep(Duration::from_millis(10));
    }
    panic!("it never came: {what}");
}

/// Reads one line, or the rest if the stream ends before.
///
/// # Panics
/// Panics if the line is not UTF-8.
pub fn read_line(stream: &mut TcpStream) -> String {
    let mut line = Vec::new();
    let mut byte = [0];
    while !line.ends_with(b"\n") && stream.read(&mut byte).unwrap_or(0) == 1 {
        line.push(byte[0]);
    }
    String::from_utf8(line).unwrap()
}

/// Reads to the end; a reset after the last byte is an end too.
pub fn read_all(stream: &mut TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes);
    bytes
}
