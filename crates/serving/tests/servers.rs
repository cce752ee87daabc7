//! What a bad peer may do to a server on the chassis, and what it may not.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    thread::{self, JoinHandle},
    time::Duration,
};

use clap::Parser;
use netping_protocol::frame::{MAGIC, Reply, RequestHeader};
use netping_serving::{CommonArgs, Listening, Service, Shutdown};

/// Far beyond what any answer takes; a test that waits this long has failed.
const PATIENCE: Duration = Duration::from_secs(20);

/// A server in this process, on free ports; dropping it drains it.
struct Server {
    address: SocketAddr,
    metrics: SocketAddr,
    shutdown: Shutdown,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    fn start<A>(service: &Service<A>, flags: &[&str]) -> Self
    where
        A: Parser + AsRef<CommonArgs> + Send + 'static,
    {
        let base = [
            "server",
            "--listen",
            "127.0.0.1:0",
            "--metrics",
            "127.0.0.1:0",
        ];
        let args = A::parse_from(base.iter().chain(flags));
        let listening: Listening =
            Listening::bind(args.as_ref(), 0, (service.sockets)(&args)).unwrap();
        let address = listening.service.local_addr().unwrap();
        let metrics = listening.metrics.as_ref().unwrap().local_addr().unwrap();
        let shutdown = Shutdown::new();
        let (serve, switch) = (service.serve, shutdown.clone());
        let thread = Some(thread::spawn(move || {
            serve(listening, &args, &switch).unwrap()
        }));
        Self {
            address,
            metrics,
            shutdown,
            thread,
        }
    }

    /// Both servers that speak lines and frames.
    fn both(flags: &[&str]) -> [Self; 2] {
        [
            Self::start(&netping_server_threads::SERVICE, flags),
            Self::start(&netping_server_tokio::SERVICE, flags),
        ]
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    fn echoes(&self) -> bool {
        let mut stream = self.connect();
        stream.write_all(b"ping\n").unwrap();
        read_line(&mut stream) == "ping\n"
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

    /// Waits until the server has counted an error of this kind.
    fn await_error(&self, kind: &str, count: u64) {
        let name = format!("netping_errors_total{{kind=\"{kind}\"}}");
        eventually(&name, || {
            self.metric(&name)
                .is_some_and(|value| value.parse::<u64>().unwrap() >= count)
        });
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shutdown.trigger();
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            assert!(thread::panicking() || ended.is_ok());
        }
    }
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

fn read_line(stream: &mut TcpStream) -> String {
    let mut line = Vec::new();
    let mut byte = [0];
    while !line.ends_with(b"\n") && stream.read(&mut byte).unwrap_or(0) == 1 {
        line.push(byte[0]);
    }
    String::from_utf8(line).unwrap()
}

fn read_all(stream: &mut TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    // A reset after the last byte ends it too.
    let _ = stream.read_to_end(&mut bytes);
    bytes
}

#[test]
fn lines_and_frames_share_a_port_and_may_be_pipelined() {
    for server in Server::both(&[]) {
        let mut lines = server.connect();
        lines.write_all(b"one\ntwo\n\n").unwrap();
        assert_eq!(
            [
                read_line(&mut lines),
                read_line(&mut lines),
                read_line(&mut lines)
            ],
            ["one\n", "two\n", "\n"]
        );

        let mut frames = server.connect();
        let header = |reply| RequestHeader { payload: 2, reply }.encode();
        frames
            .write_all(
                &[
                    &MAGIC[..],
                    &header(Reply::Echo),
                    b"ab",
                    &header(Reply::Bytes(3)),
                    b"cd",
                ]
                .concat(),
            )
            .unwrap();
        frames.shutdown(std::net::Shutdown::Write).unwrap();
        assert_eq!(read_all(&mut frames), b"\0\0\0\x02ab\0\0\0\x03cdc");
        assert_eq!(server.metric("netping_requests_total").unwrap(), "5");
    }
}

#[test]
fn a_line_that_never_ends_gets_an_answer_and_the_others_do_not_notice() {
    for server in Server::both(&["--max-line", "1000"]) {
        let mut bad = server.connect();
        // The server may close while this is being written.
        let _ = bad.write_all(&vec![b'x'; 10 << 20]);
        let _ = bad.shutdown(std::net::Shutdown::Write);
        assert_eq!(
            String::from_utf8(read_all(&mut bad)).unwrap(),
            "error: a line longer than 1000 bytes (the server's --max-line)\n"
        );
        server.await_error("line_too_long", 1);
        assert!(server.echoes());
    }
}

#[test]
fn a_frame_over_the_limit_is_refused_before_it_is_sent() {
    for server in Server::both(&["--max-frame", "1000"]) {
        let mut bad = server.connect();
        bad.write_all(&MAGIC).unwrap();
        bad.write_all(
            &RequestHeader {
                payload: 4_000_000_000,
                reply: Reply::Echo,
            }
            .encode(),
        )
        .unwrap();
        let answer = String::from_utf8_lossy(&read_all(&mut bad)[4..]).into_owned();
        assert!(
            answer.contains("4000000000 bytes, longer than 1000 (the server's --max-frame)"),
            "{answer}"
        );
        server.await_error("frame_too_long", 1);
        assert!(server.echoes());
    }
}

#[test]
fn an_end_within_a_request_is_counted() {
    for server in Server::both(&[]) {
        let mut bad = server.connect();
        bad.write_all(b"half a li").unwrap();
        drop(bad);
        server.await_error("eof_in_request", 1);
    }
}

#[test]
fn connections_over_the_limit_are_closed_and_counted() {
    for server in Server::both(&["--max-connections", "1"]) {
        let mut first = server.connect();
        first.write_all(b"a\n").unwrap();
        assert_eq!(read_line(&mut first), "a\n");
        assert_eq!(read_all(&mut server.connect()), b"");
        server.await_error("max_connections", 1);
        drop(first);
        eventually("a free place", || {
            let mut next = server.connect();
            next.write_all(b"b\n").is_ok() && read_line(&mut next) == "b\n"
        });
    }
}

#[test]
fn silent_and_idle_connections_are_closed_by_their_deadlines() {
    let flags = ["--first-byte-timeout", "200ms", "--idle-timeout", "400ms"];
    for server in Server::both(&flags) {
        assert_eq!(read_all(&mut server.connect()), b"");
        server.await_error("first_byte_timeout", 1);
        let mut idle = server.connect();
        idle.write_all(b"a\n").unwrap();
        assert_eq!(read_all(&mut idle), b"a\n");
        server.await_error("idle_timeout", 1);
    }
    let grpc = Server::start(&netping_server_grpc::SERVICE, &flags);
    let mut silent = grpc.connect();
    // Half of HTTP/2's preface is no beginning.
    silent.write_all(b"PRI * HTTP/2").unwrap();
    read_all(&mut silent);
    grpc.await_error("first_byte_timeout", 1);
}

#[test]
fn a_drain_answers_what_has_come_and_closes_what_is_idle() {
    for server in Server::both(&["--delay", "300ms", "--drain-timeout", "20s"]) {
        let mut idle = server.connect();
        let mut busy = server.connect();
        busy.write_all(b"last\n").unwrap();
        // The delay has begun once the server has read the request and waits.
        eventually("two connections", || {
            server.metric("netping_connections").as_deref() == Some("2")
        });
        server.shutdown.trigger();
        assert_eq!(read_all(&mut idle), b"");
        assert_eq!(read_all(&mut busy), b"last\n");
        eventually("a closed port", || {
            TcpStream::connect(server.address).is_err()
        });
    }
}

#[test]
fn a_drain_ends_though_a_peer_is_silent() {
    let server = Server::start(&netping_server_grpc::SERVICE, &["--drain-timeout", "100ms"]);
    let mut silent = server.connect();
    eventually("a connection", || {
        server.metric("netping_connections").as_deref() == Some("1")
    });
    server.shutdown.trigger();
    read_all(&mut silent);
}

#[test]
fn work_is_burnt_for_each_request() {
    for flags in [
        &["--work", "20ms"][..],
        &["--work", "20ms", "--work-on", "blocking-pool"],
    ] {
        for server in Server::both(flags) {
            let cpu = || {
                server
                    .metric("process_cpu_seconds_total")
                    .unwrap()
                    .parse::<f64>()
                    .unwrap()
            };
            let before = cpu();
            assert!(server.echoes() && server.echoes());
            // Other tests of this process add to it.
            assert!(cpu() - before >= 0.04);
        }
    }
}
