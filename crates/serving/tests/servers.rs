//! The chassis under bad peers, by the servers that stand on it.

use std::{
    io::Write,
    net::{Shutdown as Direction, TcpStream},
    time::Duration,
};

use netping_protocol::{
    frame::{MAGIC, Reply, RequestHeader},
    payload::repeat_into,
};
use netping_serving::{
    clock,
    testing::{TestServer, eventually, read_all, read_line},
};

/// Starts both servers that speak lines and frames.
fn both(flags: &[&str]) -> [TestServer; 2] {
    [
        TestServer::start(&netping_server_threads::SERVICE, flags),
        TestServer::start(&netping_server_tokio::SERVICE, flags),
    ]
}

fn echoes(server: &TestServer) -> bool {
    let mut stream = server.connect();
    stream.write_all(b"ping\n").unwrap();
    read_line(&mut stream) == "ping\n"
}

#[test]
fn lines_and_frames_share_a_port_and_may_be_pipelined() {
    for server in both(&[]) {
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
        frames.shutdown(Direction::Write).unwrap();
        assert_eq!(read_all(&mut frames), b"\0\0\0\x02ab\0\0\0\x03cdc");
        assert_eq!(server.metric("netping_requests_total").unwrap(), "5");
    }
}

#[test]
fn an_endless_line_gets_an_error_and_does_not_disturb_others() {
    for server in both(&["--max-line", "1000"]) {
        let mut bad = server.connect();
        // The server may close while this is being written.
        let _ = bad.write_all(&vec![b'x'; 10 << 20]);
        let _ = bad.shutdown(Direction::Write);
        assert_eq!(
            String::from_utf8(read_all(&mut bad)).unwrap(),
            "error: a line longer than 1000 bytes (the server's --max-line)\n"
        );
        server.await_error("line_too_long");
        assert!(echoes(&server));
    }
}

#[test]
fn an_over_long_frame_is_refused_by_its_header() {
    for server in both(&["--max-frame", "1000"]) {
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
        server.await_error("frame_too_long");
        assert!(echoes(&server));
    }
}

#[test]
fn an_end_within_a_request_is_counted() {
    for server in both(&[]) {
        let mut bad = server.connect();
        bad.write_all(b"half a li").unwrap();
        drop(bad);
        server.await_error("eof_in_request");
    }
}

#[test]
fn connections_over_the_limit_are_closed_and_counted() {
    for server in both(&["--max-connections", "1"]) {
        let mut first = server.connect();
        first.write_all(b"a\n").unwrap();
        assert_eq!(read_line(&mut first), "a\n");
        assert_eq!(read_all(&mut server.connect()), b"");
        server.await_error("max_connections");
        drop(first);
        eventually("a free place", || {
            let mut next = server.connect();
            next.write_all(b"b\n").is_ok() && read_line(&mut next) == "b\n"
        });
    }
}

#[test]
fn a_connection_that_is_idle_makes_room_for_another() {
    for server in both(&["--max-connections", "2"]) {
        let idle = [(); 2].map(|()| server.connect());
        eventually("room", || echoes(&server));
        assert!(server.errors("max_connections") > 0);
        let [mut first, _second] = idle;
        assert_eq!(read_all(&mut first), b"");
    }
}

#[test]
fn a_connection_whose_reply_takes_its_time_is_not_idle() {
    for server in both(&["--max-connections", "1"]) {
        let mut bulk = server.connect();
        let reply = Reply::Bytes(16 << 20);
        let request = RequestHeader { payload: 1, reply }.encode();
        bulk.write_all(&[&MAGIC[..], &request, b"x"].concat())
            .unwrap();
        // It is not read until an idle one would have made room.
        let since = clock::now();
        while since.elapsed() < Duration::from_millis(1500) {
            assert_eq!(read_all(&mut server.connect()), b"");
        }
        bulk.shutdown(Direction::Write).unwrap();
        assert_eq!(read_all(&mut bulk).len(), 4 + (16 << 20));
    }
}

#[test]
fn silent_and_idle_connections_are_closed_by_the_idle_deadline_only() {
    let flags = ["--first-byte-timeout", "1ms", "--idle-timeout", "400ms"];
    for server in both(&flags) {
        assert_eq!(read_all(&mut server.connect()), b"");
        server.await_error("idle_timeout");
        assert_eq!(server.errors("first_byte_timeout"), 0);
        let mut idle = server.connect();
        idle.write_all(b"a\n").unwrap();
        assert_eq!(read_all(&mut idle), b"a\n");
        eventually("another", || server.errors("idle_timeout") == 2);
    }
}

#[test]
fn a_request_that_does_not_go_on_is_cut_off_and_counted() {
    for server in both(&["--request-timeout", "200ms"]) {
        for (request, reply) in [
            (&b"whole\nhalf a li"[..], &b"whole\n"[..]),
            (&MAGIC[..2], b""),
        ] {
            let before = server.errors("request_timeout");
            let mut slow = server.connect();
            slow.write_all(request).unwrap();
            assert_eq!(read_all(&mut slow), reply);
            eventually("a counted error", || {
                server.errors("request_timeout") > before
            });
        }
        assert!(echoes(&server));
    }
}

#[test]
fn a_request_that_has_come_may_take_longer_than_its_limit() {
    for server in both(&["--request-timeout", "2s", "--delay", "2500ms"]) {
        let mut stream = server.connect();
        stream.write_all(b"one\ntw").unwrap();
        assert_eq!(read_line(&mut stream), "one\n");
        // A part of it has come before, and the rest now.
        stream.write_all(b"o\n").unwrap();
        assert_eq!(read_line(&mut stream), "two\n");
    }
}

#[test]
fn long_replies_come_whole() {
    const LENGTH: u32 = 1_000_003;
    for server in both(&[]) {
        let mut frames = server.connect();
        let reply = Reply::Bytes(LENGTH);
        let header = RequestHeader { payload: 2, reply }.encode();
        let request = [&header[..], b"ab"].concat();
        frames
            .write_all(&[&MAGIC[..], &request, &request].concat())
            .unwrap();
        frames.shutdown(Direction::Write).unwrap();
        let mut one = LENGTH.to_be_bytes().to_vec();
        repeat_into(b"ab", LENGTH as usize, &mut one);
        assert!(read_all(&mut frames) == [&one[..], &one].concat());
    }
}

#[test]
fn a_reply_that_nobody_takes_is_cut_off_and_counted() {
    let limit = ["--reply-timeout", "200ms"];
    let polling = TestServer::start(
        &netping_server_threads::SERVICE,
        &[&limit[..], &["--busy-poll"]].concat(),
    );
    for server in both(&limit).into_iter().chain([polling]) {
        let mut resting = server.connect();
        resting.write_all(b"one\n").unwrap();
        assert_eq!(read_line(&mut resting), "one\n");
        let mut unread = server.connect();
        let reply = Reply::Bytes(16 << 20);
        let request = RequestHeader { payload: 1, reply }.encode();
        unread
            .write_all(&[&MAGIC[..], &request, b"x"].concat())
            .unwrap();
        server.await_error("reply_timeout");
        server.await_connections(1);
        let came = read_all(&mut unread).len();
        assert!(came < 16 << 20, "{came}");
        // Its reply was taken, and that longer ago than the limit.
        resting.write_all(b"two\n").unwrap();
        assert_eq!(read_line(&mut resting), "two\n");
        assert!(echoes(&server));
        assert_eq!(server.errors("reply_timeout"), 1);
    }
}

#[test]
fn a_server_that_holds_too_much_refuses_connections() {
    for server in both(&["--max-memory", "1"]) {
        eventually("a refused connection", || {
            let stream = server.connect();
            // It is closed before or after this.
            let _ = stream.shutdown(Direction::Write);
            drop(stream);
            server.errors("max_memory") > 0
        });
    }
}

#[test]
fn a_drain_answers_received_requests_and_closes_idle_connections() {
    for server in both(&["--delay", "300ms", "--drain-timeout", "20s"]) {
        let mut idle = server.connect();
        let mut busy = server.connect();
        busy.write_all(b"last\n").unwrap();
        // The delay has begun once the server has read the request and waits.
        server.await_connections(2);
        server.shut_down();
        assert_eq!(read_all(&mut idle), b"");
        assert_eq!(read_all(&mut busy), b"last\n");
        eventually("a closed port", || {
            TcpStream::connect(server.address()).is_err()
        });
    }
}

#[test]
fn work_is_burnt_for_each_request() {
    for flags in [
        &["--work", "20ms"][..],
        &["--work", "20ms", "--work-on", "blocking-pool"],
    ] {
        for server in both(flags) {
            let cpu = || {
                server
                    .metric("process_cpu_seconds_total")
                    .unwrap()
                    .parse::<f64>()
                    .unwrap()
            };
            let before = cpu();
            assert!(echoes(&server) && echoes(&server));
            // Other tests of this process add to it.
            assert!(cpu() - before >= 0.04);
        }
    }
}
