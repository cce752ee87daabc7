//! What a relay passes on, and what it never makes look like a clean end.

use std::{
    io::{ErrorKind, Read, Write},
    net::{IpAddr, Ipv4Addr, Shutdown as Direction, SocketAddr, TcpListener, TcpStream},
    thread::{self, JoinHandle},
    time::Duration,
};

use clap::Parser;
use netping_proxy::{Args, SERVICE};
use netping_serving::{Listening, Shutdown, StartError};
use socket2::{Domain, SockRef, Socket, Type};

/// Far beyond what any answer takes; a test that waits this long has failed.
const PATIENCE: Duration = Duration::from_secs(20);

/// An address on a free port.
const ANY: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// What each socket may keep where a test stops a reader, in bytes: the kernel's own choice grows to many MiB.
const KERNEL_BUFFER: usize = 256 << 10;

/// What a stopped reader is sent, in bytes.
const TOTAL: usize = 64 << 20;

/// What is read and written at once, in bytes.
const CHUNK: usize = 64 << 10;

/// The length after which the test's bytes repeat: no power of two, so that no lost buffer goes unnoticed.
const PERIOD: usize = 251;

/// A relay in this process, on free ports; dropping it drains it.
struct Relay {
    address: SocketAddr,
    metrics: SocketAddr,
    shutdown: Shutdown,
    thread: Option<JoinHandle<()>>,
}

impl Relay {
    fn start(to: SocketAddr, flags: &[&str]) -> Self {
        let args = args(&to.to_string(), flags);
        let listening: Listening = Listening::bind(&args.common, 0, 1).unwrap();
        let address = listening.service.local_addr().unwrap();
        let metrics = listening.metrics.as_ref().unwrap().local_addr().unwrap();
        let shutdown = Shutdown::new();
        let switch = shutdown.clone();
        let thread = Some(thread::spawn(move || {
            (SERVICE.serve)(listening, &args, &switch).unwrap()
        }));
        Self {
            address,
            metrics,
            shutdown,
            thread,
        }
    }

    /// A connection through the relay: the client's end and the server's.
    fn connect(&self, upstream: &TcpListener) -> (TcpStream, TcpStream) {
        let mut client = TcpStream::connect(self.address).unwrap();
        let (mut server, _) = upstream.accept().unwrap();
        for end in [&client, &server] {
            end.set_read_timeout(Some(PATIENCE)).unwrap();
        }
        // The upstream may speak first; and once a byte has passed, the relay knows both sides.
        server.write_all(b"!").unwrap();
        assert_eq!(read_exactly(&mut client, 1), b"!");
        (client, server)
    }

    /// A connection whose client has written until nothing went any further, and how many bytes that were.
    fn stalled(&self, upstream: &TcpListener) -> (TcpStream, TcpStream, usize) {
        let (mut client, server) = self.connect(upstream);
        SockRef::from(&client)
            .set_send_buffer_size(KERNEL_BUFFER)
            .unwrap();
        // Were it too short for a slow machine, the writer would only stop earlier.
        client
            .set_write_timeout(Some(Duration::from_millis(300)))
            .unwrap();
        let written = write_pattern(&mut client, 0);
        (client, server, written)
    }

    /// The value of a metric, as it stands in the text.
    fn metric(&self, name: &str) -> Option<String> {
        let mut stream = TcpStream::connect(self.metrics).unwrap();
        stream
            .write_all(b"GET /metrics HTTP/1.1\r\nhost: test\r\n\r\n")
            .unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        assert!(text.starts_with("HTTP/1.1 200"), "{text}");
        text.lines().find_map(|line| {
            line.strip_prefix(name)?
                .strip_prefix(' ')
                .map(str::to_owned)
        })
    }

    /// How many errors of this kind the relay has counted.
    fn errors(&self, kind: &str) -> u64 {
        let count = self.metric(&format!("netping_errors_total{{kind=\"{kind}\"}}"));
        count.map_or(0, |count| count.parse().unwrap())
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.shutdown.trigger();
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            assert!(thread::panicking() || ended.is_ok());
        }
    }
}

fn args(to: &str, flags: &[&str]) -> Args {
    let base = [
        "proxy",
        "--listen",
        "127.0.0.1:0",
        "--metrics",
        "127.0.0.1:0",
        "--to",
        to,
    ];
    Args::parse_from(base.iter().chain(flags))
}

/// A listener to relay to.
fn upstream() -> TcpListener {
    let listener = TcpListener::bind(ANY).unwrap();
    // Accepted connections inherit the one, the wait for them is bounded by the other.
    SockRef::from(&listener)
        .set_recv_buffer_size(KERNEL_BUFFER)
        .unwrap();
    SockRef::from(&listener)
        .set_read_timeout(Some(PATIENCE))
        .unwrap();
    listener
}

/// A socket that has a port to itself, and where it is.
fn bound() -> (Socket, SocketAddr) {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.bind(&ANY.into()).unwrap();
    let address = socket.local_addr().unwrap().as_socket().unwrap();
    (socket, address)
}

/// Waits for a state that comes by itself.
fn eventually(what: &str, state: impl Fn() -> bool) {
    let tries = PATIENCE.as_millis() / 10;
    assert!(
        (0..tries).any(|_| state() || {
            thread::sleep(Duration::from_millis(10));
            false
        }),
        "it never came: {what}"
    );
}

/// Reads to the end, which must be a clean one.
fn read_all(stream: &mut TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    bytes
}

fn read_exactly(stream: &mut TcpStream, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    stream.read_exact(&mut bytes).unwrap();
    bytes
}

/// How a read fails.
fn read_error(stream: &mut TcpStream) -> ErrorKind {
    stream
        .read(&mut [0])
        .expect_err("the stream goes on, or has ended cleanly")
        .kind()
}

/// Closes with a reset.
fn reset(stream: TcpStream) {
    SockRef::from(&stream)
        .set_linger(Some(Duration::ZERO))
        .unwrap();
    drop(stream);
}

/// A chunk of the test's bytes for each place in the period.
fn pattern() -> Vec<u8> {
    (0..CHUNK + PERIOD)
        .map(|place| (place % PERIOD) as u8)
        .collect()
}

/// Writes the test's bytes from `offset` on, until all are written or a write times out. Returns how far it came.
fn write_pattern(stream: &mut TcpStream, mut offset: usize) -> usize {
    let pattern = pattern();
    while offset < TOTAL {
        let length = CHUNK.min(TOTAL - offset);
        match stream.write(&pattern[offset % PERIOD..][..length]) {
            Ok(written) => offset += written,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::WouldBlock, "{error}");
                break;
            }
        }
    }
    offset
}

/// Reads the test's bytes to their end. Returns how many there were.
fn read_pattern(stream: &mut TcpStream) -> usize {
    let pattern = pattern();
    let mut chunk = vec![0; CHUNK];
    let mut offset = 0;
    loop {
        let read = stream.read(&mut chunk).unwrap();
        if read == 0 {
            return offset;
        }
        assert!(
            chunk[..read] == pattern[offset % PERIOD..][..read],
            "wrong bytes after {offset}"
        );
        offset += read;
    }
}

#[test]
fn bytes_pass_both_ways_and_either_side_may_end_first() {
    let upstream = upstream();
    let relay = Relay::start(upstream.local_addr().unwrap(), &[]);

    let (mut client, mut server) = relay.connect(&upstream);
    client.write_all(b"request").unwrap();
    client.shutdown(Direction::Write).unwrap();
    assert_eq!(read_all(&mut server), b"request");
    server.write_all(b"reply").unwrap();
    drop(server);
    assert_eq!(read_all(&mut client), b"reply");

    let (mut client, mut server) = relay.connect(&upstream);
    server.shutdown(Direction::Write).unwrap();
    assert_eq!(read_all(&mut client), b"");
    client.write_all(b"late").unwrap();
    drop(client);
    assert_eq!(read_all(&mut server), b"late");

    eventually("no connection", || {
        relay.metric("netping_connections").as_deref() == Some("0")
    });
    assert_eq!(relay.errors("io"), 0);
    assert_eq!(relay.metric("netping_requests_total").as_deref(), Some("0"));
}

#[test]
fn a_client_is_reset_when_the_upstream_refuses() {
    // Bound, so that nobody else gets the port, and not listening.
    let (_refusing, address) = bound();
    let relay = Relay::start(address, &[]);
    let end = TcpStream::connect(relay.address).and_then(|mut client| {
        client.set_read_timeout(Some(PATIENCE))?;
        client.read(&mut [0])
    });
    assert_eq!(end.unwrap_err().kind(), ErrorKind::ConnectionReset);
    assert_eq!(relay.errors("upstream_refused"), 1);
}

#[test]
fn an_upstream_that_does_not_answer_times_out() {
    let (full, address) = bound();
    // Room for one connection that is not accepted; the kernel drops what the next ones send.
    full.listen(0).unwrap();
    let flags = [
        "--workers",
        "1",
        "--connect-timeout",
        "200ms",
        "--drain-timeout",
        "100ms",
    ];
    let relay = Relay::start(address, &flags);
    let _clients = [(); 8].map(|()| TcpStream::connect(relay.address).unwrap());
    eventually("a time-out", || relay.errors("upstream_timeout") > 0);
}

#[test]
fn a_reset_of_either_side_reaches_the_other() {
    let upstream = upstream();
    let relay = Relay::start(upstream.local_addr().unwrap(), &[]);

    let (client, mut server) = relay.connect(&upstream);
    reset(client);
    assert_eq!(read_error(&mut server), ErrorKind::ConnectionReset);

    let (mut client, server) = relay.connect(&upstream);
    reset(server);
    assert_eq!(read_error(&mut client), ErrorKind::ConnectionReset);
}

#[test]
fn a_reset_is_noticed_after_the_end_of_the_stream() {
    let upstream = upstream();
    let relay = Relay::start(upstream.local_addr().unwrap(), &[]);
    let (client, mut server) = relay.connect(&upstream);
    client.shutdown(Direction::Write).unwrap();
    assert_eq!(read_all(&mut server), b"");
    reset(client);
    eventually("the reset", || server.take_error().unwrap().is_some());
}

#[test]
fn a_reset_is_noticed_behind_bytes_that_nobody_reads() {
    let upstream = upstream();
    let relay = Relay::start(
        upstream.local_addr().unwrap(),
        &["--recv-buffer", "262144", "--send-buffer", "262144"],
    );
    let (client, server, _) = relay.stalled(&upstream);
    reset(client);
    eventually("the reset", || server.take_error().unwrap().is_some());
}

#[test]
fn a_slow_reader_stops_its_writer_and_gets_every_byte() {
    let upstream = upstream();
    let relay = Relay::start(
        upstream.local_addr().unwrap(),
        &["--recv-buffer", "262144", "--send-buffer", "262144"],
    );
    let (mut client, mut server, written) = relay.stalled(&upstream);
    // Four kernel buffers, which Linux doubles, and the relay's own make little more than 2 MiB.
    assert!(
        written < TOTAL / 8,
        "{written} bytes went where nobody read"
    );
    client.set_write_timeout(Some(PATIENCE)).unwrap();
    let writer = thread::spawn(move || write_pattern(&mut client, written));
    assert_eq!(read_pattern(&mut server), TOTAL);
    assert_eq!(writer.join().unwrap(), TOTAL);
}

#[test]
fn a_quiet_connection_is_reset_by_the_idle_deadline_only() {
    let upstream = upstream();
    let relay = Relay::start(
        upstream.local_addr().unwrap(),
        &["--first-byte-timeout", "1ms", "--idle-timeout", "300ms"],
    );
    let (mut client, mut server) = relay.connect(&upstream);
    assert_eq!(read_error(&mut client), ErrorKind::ConnectionReset);
    assert_eq!(read_error(&mut server), ErrorKind::ConnectionReset);
    eventually("the count", || relay.errors("idle_timeout") > 0);
    assert_eq!(relay.errors("first_byte_timeout"), 0);
}

#[test]
fn a_drain_lets_connections_finish() {
    let upstream = upstream();
    let relay = Relay::start(upstream.local_addr().unwrap(), &["--drain-timeout", "20s"]);
    let (mut client, mut server) = relay.connect(&upstream);
    // What the relay still accepts below ends at once.
    drop(upstream);
    relay.shutdown.trigger();
    eventually("a closed port", || {
        TcpStream::connect(relay.address).is_err()
    });
    client.write_all(b"last").unwrap();
    assert_eq!(read_exactly(&mut server, 4), b"last");
    server.write_all(b"reply").unwrap();
    drop(server);
    assert_eq!(read_all(&mut client), b"reply");
}

#[test]
fn a_drain_resets_what_does_not_finish() {
    let upstream = upstream();
    let relay = Relay::start(
        upstream.local_addr().unwrap(),
        &["--drain-timeout", "100ms"],
    );
    let (mut client, mut server) = relay.connect(&upstream);
    relay.shutdown.trigger();
    assert_eq!(read_error(&mut client), ErrorKind::ConnectionReset);
    assert_eq!(read_error(&mut server), ErrorKind::ConnectionReset);
}

#[test]
fn what_cannot_work_is_refused_at_the_start() {
    let start = |args: &Args| {
        let shutdown = Shutdown::new();
        // Whatever starts after all, ends.
        shutdown.trigger();
        (SERVICE.serve)(
            Listening::bind(&args.common, 0, 1).unwrap(),
            args,
            &shutdown,
        )
    };
    // A label has at most 63 bytes, so no resolver needs to ask for this one.
    let nowhere = format!("{}:80", "x".repeat(64));
    assert!(matches!(
        start(&args(&nowhere, &[])),
        Err(StartError::System(_))
    ));
    assert!(matches!(
        start(&args("127.0.0.1:80", &["--work", "1us"])),
        Err(StartError::Flags(_))
    ));
    for wrong in [
        "localhost",
        ":80",
        "localhost:0",
        "localhost:http",
        "tcp://localhost:80",
    ] {
        assert!(
            Args::try_parse_from(["proxy", "--to", wrong]).is_err(),
            "{wrong}"
        );
    }
}
