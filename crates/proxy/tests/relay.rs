//! The relay passes everything on, and never makes a failure look like a clean end.

use std::{
    io::{ErrorKind, Read, Write},
    net::{IpAddr, Ipv4Addr, Shutdown as Direction, SocketAddr, TcpListener, TcpStream},
    thread,
    time::Duration,
};

use netping_proxy::{ProxyArgs, SERVICE};
use netping_serving::{
    ServeError,
    args::ServerArgs,
    testing::{PATIENCE, TestServer, eventually},
};
use socket2::{Domain, SockRef, Socket, Type};

/// An address on a free port.
const ANY: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// Buffer of each socket where a test stops a reader, in bytes. The kernel's default grows to many
/// MiB.
const KERNEL_BUFFER: usize = 256 << 10;

/// Bytes that a stopped reader is sent.
const TOTAL: usize = 64 << 20;

/// Bytes that are read and written at once.
const CHUNK: usize = 64 << 10;

/// Period of the test's bytes: not a power of two, so that no lost buffer goes unnoticed.
const PERIOD: usize = 251;

/// A relay in this process, on free ports.
struct Relay(TestServer);

impl Relay {
    fn start(to: SocketAddr, flags: &[&str]) -> Self {
        let to = to.to_string();
        let flags = [&["--to", &to], flags].concat();
        Self(TestServer::start(&SERVICE, &flags))
    }

    /// Opens a connection through the relay. Returns the client's end and the server's.
    fn connect(&self, upstream: &TcpListener) -> (TcpStream, TcpStream) {
        let mut client = TcpStream::connect(self.0.address()).unwrap();
        let (mut server, _) = upstream.accept().unwrap();
        for end in [&client, &server] {
            end.set_read_timeout(Some(PATIENCE)).unwrap();
        }
        // The upstream may speak first; and once a byte has passed, the relay knows both sides.
        server.write_all(b"!").unwrap();
        assert_eq!(read_exactly(&mut client, 1), b"!");
        (client, server)
    }

    /// Opens a connection whose client has written until the writes blocked. Returns its ends and
    /// the number of written bytes.
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
}

fn parse(to: &str, flags: &[&str]) -> Result<ServerArgs<ProxyArgs>, clap::Error> {
    let base = ["proxy", "--listen", "127.0.0.1:0", "--to", to];
    SERVICE.parse(base.iter().chain(flags))
}

/// A listener to relay to.
fn upstream() -> TcpListener {
    let listener = TcpListener::bind(ANY).unwrap();
    // Accepted connections inherit the buffer size; the timeout bounds the accept.
    SockRef::from(&listener)
        .set_recv_buffer_size(KERNEL_BUFFER)
        .unwrap();
    SockRef::from(&listener)
        .set_read_timeout(Some(PATIENCE))
        .unwrap();
    listener
}

/// Binds a socket to a free port.
fn bound() -> (Socket, SocketAddr) {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.bind(&ANY.into()).unwrap();
    let address = socket.local_addr().unwrap().as_socket().unwrap();
    (socket, address)
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

/// Returns the error of a read that must fail.
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

/// Returns the test's bytes: a chunk for each place in the period.
fn pattern() -> Vec<u8> {
    (0..CHUNK + PERIOD)
        .map(|place| (place % PERIOD) as u8)
        .collect()
}

/// Writes the test's bytes from `offset` on, until all are written or a write times out. Returns
/// how far it came.
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

    relay.0.await_connections(0);
    assert_eq!(relay.0.errors("io"), 0);
    assert_eq!(
        relay.0.metric("netping_requests_total").as_deref(),
        Some("0")
    );
}

#[test]
fn a_client_is_reset_when_the_upstream_refuses() {
    // Bound, so that nobody else gets the port, and not listening.
    let (_refusing, address) = bound();
    let relay = Relay::start(address, &[]);
    let end = TcpStream::connect(relay.0.address()).and_then(|mut client| {
        client.set_read_timeout(Some(PATIENCE))?;
        client.read(&mut [0])
    });
    assert_eq!(end.unwrap_err().kind(), ErrorKind::ConnectionReset);
    assert_eq!(relay.0.errors("upstream_refused"), 1);
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
    let _clients = [(); 8].map(|()| TcpStream::connect(relay.0.address()).unwrap());
    eventually("a time-out", || relay.0.errors("upstream_timeout") > 0);
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
    eventually("the count", || relay.0.errors("idle_timeout") > 0);
    assert_eq!(relay.0.errors("first_byte_timeout"), 0);
}

#[test]
fn a_drain_lets_connections_finish() {
    let upstream = upstream();
    let relay = Relay::start(upstream.local_addr().unwrap(), &["--drain-timeout", "20s"]);
    let (mut client, mut server) = relay.connect(&upstream);
    // What the relay still accepts below ends at once.
    drop(upstream);
    relay.0.shut_down();
    eventually("a closed port", || {
        TcpStream::connect(relay.0.address()).is_err()
    });
    // For longer than servers wait that say goodbye themselves.
    client
        .set_read_timeout(Some(Duration::from_millis(1500)))
        .unwrap();
    assert_eq!(read_error(&mut client), ErrorKind::WouldBlock);
    client.set_read_timeout(None).unwrap();
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
    relay.0.shut_down();
    assert_eq!(read_error(&mut client), ErrorKind::ConnectionReset);
    assert_eq!(read_error(&mut server), ErrorKind::ConnectionReset);
}

#[test]
fn wrong_flags_are_rejected_at_the_start() {
    let start = |to: &str, flags: &[&str]| {
        let args = parse(to, flags).unwrap();
        let listening = SERVICE.bind(&args).unwrap();
        // Whatever starts after all, ends.
        listening.shutdown.trigger();
        (SERVICE.serve)(listening, &args)
    };
    // A label has at most 63 bytes, so no resolver needs to ask for this one.
    let nowhere = format!("{}:80", "x".repeat(64));
    assert!(matches!(start(&nowhere, &[]), Err(ServeError::System(_))));
    assert!(matches!(
        start("127.0.0.1:80", &["--work", "1us"]),
        Err(ServeError::Flags(_))
    ));
    for wrong in [
        "localhost",
        ":80",
        "localhost:0",
        "localhost:http",
        "tcp://localhost:80",
    ] {
        assert!(parse(wrong, &[]).is_err(), "{wrong}");
    }
}
