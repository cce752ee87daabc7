use bytes::Bytes;

use super::*;
use crate::{
    frame::{self, HEADER, PREFACE, flag},
    head::Head,
};

/// The length of the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct PathLength(usize);

impl Route for PathLength {
    fn of(request: &Request) -> Self {
        Self(request.path().len())
    }
}

const CONFIG: Config = Config {
    receiving: Receiving {
        stream_window: 70_000,
        connection_window: 100_000,
        frame: 1 << 14,
    },
    streams: 3,
};

/// `POST`, `http`, `/`.
const HEAD: &[u8] = &[0x83, 0x86, 0x84];

const REJECTED: usize = 1024;

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let header = Header::new(kind, flags, stream).encode(payload.len());
    [&header, payload].concat()
}

fn setting(id: u8, value: u32) -> Vec<u8> {
    let payload = [&[0, id][..], &value.to_be_bytes()].concat();
    frame(kind::SETTINGS, 0, 0, &payload)
}

fn update(stream: u32, increment: u32) -> Vec<u8> {
    frame(kind::WINDOW_UPDATE, 0, stream, &increment.to_be_bytes())
}

fn headers(stream: u32, flags: u8, block: &[u8]) -> Vec<u8> {
    frame(kind::HEADERS, flags | flag::END_HEADERS, stream, block)
}

fn data(stream: u32, flags: u8, length: usize) -> Vec<u8> {
    frame(kind::DATA, flags, stream, &vec![b'x'; length])
}

fn reset(stream: u32) -> Vec<u8> {
    frame(kind::RST_STREAM, 0, stream, &[0, 0, 0, 8])
}

/// A connection whose client has introduced itself, and whose output has been written.
fn greeted() -> Server<PathLength> {
    let mut server = Server::new(CONFIG);
    let settings = frame(kind::SETTINGS, 0, 0, &[]);
    let settled = frame(kind::SETTINGS, flag::ACK, 0, &[]);
    let events = received(&mut server, &[PREFACE, &settings, &settled].concat());
    assert_eq!(events, Ok(vec![]));
    sent(&mut server);
    server
}

/// Receives bytes; returns what came in which slot.
fn received(server: &mut Server<PathLength>, bytes: &[u8]) -> Result<Vec<(u32, String)>, Error> {
    let (mut events, mut rest) = (Vec::new(), bytes);
    while let Some(event) = server.next(&mut rest)? {
        events.push(match event {
            Event::Request {
                slot,
                route,
                is_end,
            } => (slot.0, format!("request {} {is_end}", route.0)),
            Event::Data { slot, data, is_end } => (slot.0, format!("data {} {is_end}", data.len())),
            Event::Reset(slot) => (slot.0, "reset".to_owned()),
        });
    }
    assert!(rest.is_empty());
    Ok(events)
}

/// Takes the output, in whole frames.
fn sent(server: &mut Server<PathLength>) -> Vec<(Header, Vec<u8>)> {
    let mut output = Vec::new();
    while !server.output().is_empty() {
        output.extend_from_slice(server.output());
        server.written(server.output().len());
    }
    let (mut frames, mut rest) = (Vec::new(), &output[..]);
    while let Some((header, payload)) = frame::first(rest, 1 << 24).unwrap() {
        frames.push((header, payload.to_vec()));
        rest = &rest[HEADER + payload.len()..];
    }
    assert!(rest.is_empty());
    frames
}

/// Returns the streams that were reset, and why.
fn resets(server: &mut Server<PathLength>) -> Vec<(u32, u32)> {
    let frames = sent(server).into_iter();
    let resets = frames.filter(|(header, _)| header.kind == kind::RST_STREAM);
    resets
        .map(|(header, code)| (header.stream, u32::from_be_bytes(code.try_into().unwrap())))
        .collect()
}

fn reply(server: &mut Server<PathLength>, slot: u32, length: usize) {
    let head = Head::of_reply(Some(200), &[("content-type", "text/plain")]);
    let trailers = Head::of_reply(None, &[("grpc-status", "0")]);
    let body = Bytes::from(vec![b'x'; length]);
    server.reply_shared(Slot(slot), &head, body, &trailers);
}

/// Returns the bytes of bodies in some frames, and how many streams they end.
fn bodies(frames: &[(Header, Vec<u8>)]) -> (usize, usize) {
    let data = frames
        .iter()
        .filter(|(header, _)| header.kind == kind::DATA);
    let ends = frames
        .iter()
        .filter(|(header, _)| header.kind == kind::HEADERS && header.has(flag::END_STREAM));
    (data.map(|(_, payload)| payload.len()).sum(), ends.count())
}

/// Returns the code with which a connection ends after these bytes, on which stream 1 is open.
fn rejected(bytes: &[u8]) -> Reason {
    let mut server = greeted();
    received(&mut server, &headers(1, 0, HEAD)).unwrap();
    let error = received(&mut server, bytes).expect_err("an error");
    let told = sent(&mut server);
    let (header, payload) = told.last().unwrap();
    assert_eq!(header.kind, kind::GOAWAY);
    assert_eq!(payload[4..8], error.reason.0.to_be_bytes());
    assert_eq!(&payload[8..], error.detail.as_bytes());
    assert_eq!(received(&mut server, &[]).unwrap_err(), error);
    error.reason
}

/// Returns the code with which stream 1 is reset after these bytes, and the last event.
fn broken_off(bytes: &[u8]) -> (Reason, String) {
    let mut server = greeted();
    let mut events = received(&mut server, &headers(1, 0, HEAD)).unwrap();
    events.extend(received(&mut server, bytes).unwrap());
    let resets = resets(&mut server);
    let &[(1, code)] = &resets[..] else {
        panic!("{resets:?}");
    };
    assert_eq!(server.take_resets(), [Reason(code)]);
    assert_eq!(server.open(), 0);
    (Reason(code), events.pop().unwrap().1)
}

#[test]
fn a_violation_of_the_connection_is_an_error_by_name() {
    use kind::{
        CONTINUATION, DATA, GOAWAY, HEADERS, PING, PRIORITY, PUSH_PROMISE, RST_STREAM, SETTINGS,
        WINDOW_UPDATE,
    };
    let ended = |frame: Vec<u8>| [reset(1), frame].concat();
    let open = || frame(HEADERS, 0, 3, HEAD);
    for (bytes, reason) in [
        (data(0, 0, 1), Reason::PROTOCOL_ERROR),
        (data(2, 0, 1), Reason::PROTOCOL_ERROR),
        (data(3, 0, 1), Reason::PROTOCOL_ERROR),
        (ended(data(1, 0, 1)), Reason::STREAM_CLOSED),
        (ended(headers(1, 0, HEAD)), Reason::STREAM_CLOSED),
        (ended(update(1, 0)), Reason::PROTOCOL_ERROR),
        (
            frame(DATA, flag::PADDED, 1, b"\x01"),
            Reason::PROTOCOL_ERROR,
        ),
        (frame(DATA, flag::PADDED, 1, b""), Reason::FRAME_SIZE_ERROR),
        (data(1, 0, (1 << 14) + 1), Reason::FRAME_SIZE_ERROR),
        (headers(0, 0, HEAD), Reason::PROTOCOL_ERROR),
        (headers(2, 0, HEAD), Reason::PROTOCOL_ERROR),
        (
            [headers(5, 0, HEAD), headers(3, 0, HEAD)].concat(),
            Reason::PROTOCOL_ERROR,
        ),
        (
            headers(3, flag::PADDED, b"\x04\x83\x86\x84"),
            Reason::PROTOCOL_ERROR,
        ),
        (
            headers(3, flag::PRIORITY, b"\0\0\0\0"),
            Reason::FRAME_SIZE_ERROR,
        ),
        (
            headers(3, flag::PRIORITY, b"\0\0\0\x03\0\x83"),
            Reason::PROTOCOL_ERROR,
        ),
        (headers(3, 0, &[0x80]), Reason::COMPRESSION_ERROR),
        (frame(CONTINUATION, 0, 1, b""), Reason::PROTOCOL_ERROR),
        ([open(), data(1, 0, 1)].concat(), Reason::PROTOCOL_ERROR),
        (
            [open(), frame(CONTINUATION, 0, 5, b"")].concat(),
            Reason::PROTOCOL_ERROR,
        ),
        (frame(PRIORITY, 0, 0, &[0; 5]), Reason::PROTOCOL_ERROR),
        (frame(PRIORITY, 0, 1, &[0; 4]), Reason::FRAME_SIZE_ERROR),
        (
            frame(PRIORITY, 0, 1, &[0, 0, 0, 1, 0]),
            Reason::PROTOCOL_ERROR,
        ),
        (reset(0), Reason::PROTOCOL_ERROR),
        (reset(3), Reason::PROTOCOL_ERROR),
        (frame(RST_STREAM, 0, 1, &[0; 3]), Reason::FRAME_SIZE_ERROR),
        (frame(SETTINGS, 0, 1, &[]), Reason::PROTOCOL_ERROR),
        (frame(SETTINGS, 0, 0, &[0; 5]), Reason::FRAME_SIZE_ERROR),
        (
            frame(SETTINGS, flag::ACK, 0, &[0; 6]),
            Reason::FRAME_SIZE_ERROR,
        ),
        (setting(2, 2), Reason::PROTOCOL_ERROR),
        (setting(4, 1 << 31), Reason::FLOW_CONTROL_ERROR),
        (setting(5, 1), Reason::PROTOCOL_ERROR),
        (frame(PUSH_PROMISE, 0, 1, &[0; 4]), Reason::PROTOCOL_ERROR),
        (frame(PING, 0, 1, &[0; 8]), Reason::PROTOCOL_ERROR),
        (frame(PING, 0, 0, &[0; 7]), Reason::FRAME_SIZE_ERROR),
        (frame(GOAWAY, 0, 1, &[0; 8]), Reason::PROTOCOL_ERROR),
        (frame(GOAWAY, 0, 0, &[0; 7]), Reason::FRAME_SIZE_ERROR),
        (update(0, 0), Reason::PROTOCOL_ERROR),
        (update(0, 0x7FFF_FFFF), Reason::FLOW_CONTROL_ERROR),
        (update(3, 1), Reason::PROTOCOL_ERROR),
        (
            frame(WINDOW_UPDATE, 0, 0, &[0; 3]),
            Reason::FRAME_SIZE_ERROR,
        ),
    ] {
        assert_eq!(rejected(&bytes), reason, "{bytes:?}");
    }
}

#[test]
fn a_violation_of_a_stream_resets_it_by_name() {
    let whole = |frame: Vec<u8>| [data(1, flag::END_STREAM, 1), frame].concat();
    let with_length = |more: Vec<u8>| {
        // content-length: 2
        let head = [HEAD, &[0x0F, 13, 1, b'2']].concat();
        [reset(1), headers(3, 0, &head), more].concat()
    };
    for (bytes, reason) in [
        (whole(data(1, 0, 1)), Reason::STREAM_CLOSED),
        (
            whole(headers(1, flag::END_STREAM, b"")),
            Reason::STREAM_CLOSED,
        ),
        (update(1, 0), Reason::PROTOCOL_ERROR),
        (update(1, 0x7FFF_FFFF), Reason::FLOW_CONTROL_ERROR),
        (headers(1, 0, b""), Reason::PROTOCOL_ERROR),
        (headers(1, flag::END_STREAM, HEAD), Reason::PROTOCOL_ERROR),
        (
            headers(1, flag::END_STREAM, &[0x83]),
            Reason::PROTOCOL_ERROR,
        ),
    ] {
        assert_eq!(
            broken_off(&bytes),
            (reason, "reset".to_owned()),
            "{bytes:?}"
        );
    }
    for bytes in [
        with_length(data(3, 0, 3)),
        with_length(data(3, flag::END_STREAM, 1)),
        with_length(headers(3, flag::END_STREAM, b"")),
    ] {
        let mut server = greeted();
        received(&mut server, &headers(1, 0, HEAD)).unwrap();
        let events = received(&mut server, &bytes).unwrap();
        assert_eq!(events.last().unwrap().1, "reset", "{bytes:?}");
        assert_eq!(resets(&mut server), [(3, 1)], "{bytes:?}");
    }
    let mut server = greeted();
    let good = with_length([data(3, 0, 1), data(3, flag::END_STREAM, 1)].concat());
    received(&mut server, &headers(1, 0, HEAD)).unwrap();
    received(&mut server, &good).unwrap();
    assert_eq!(resets(&mut server), []);
}

#[test]
fn a_head_that_is_malformed_or_too_long_resets_its_stream() {
    let mut server = greeted();
    let mut long = HEAD.to_vec();
    // Seventeen fields of a kilobyte.
    for _ in 0..17 {
        long.extend(b"\x00\x01a\x7f\x81\x07");
        long.extend([b'x'; 1024]);
    }
    let bytes = [
        headers(1, 0, &[0x83]),
        headers(3, flag::END_STREAM, b""),
        frame(kind::HEADERS, flag::END_STREAM, 5, &long[..10_000]),
        frame(kind::CONTINUATION, flag::END_HEADERS, 5, &long[10_000..]),
        // Late frames of a stream that was reset.
        data(1, 0, 5),
        headers(1, flag::END_STREAM, b""),
        // The others are not disturbed.
        headers(7, 0, HEAD),
    ];
    let events = received(&mut server, &bytes.concat()).unwrap();
    assert_eq!(events, [(0, "request 1 false".to_owned())]);
    assert_eq!(resets(&mut server), [(1, 1), (3, 1), (5, 11)]);
    // The end of the first one has come: what follows it is forbidden.
    assert!(received(&mut server, &data(1, 0, 5)).is_err());
}

#[test]
fn streams_over_the_limit_are_refused() {
    let mut server = greeted();
    let bytes: Vec<_> = [1, 3, 5, 7].map(|id| headers(id, 0, HEAD)).concat();
    assert_eq!(received(&mut server, &bytes).unwrap().len(), 3);
    assert_eq!(resets(&mut server), [(7, 7)]);
    // What the client has sent already is not forbidden.
    let late = received(&mut server, &data(7, flag::END_STREAM, 9));
    assert_eq!(late, Ok(vec![]));
    // A place is free again.
    received(&mut server, &data(3, flag::END_STREAM, 1)).unwrap();
    reply(&mut server, 1, 10);
    let next = received(&mut server, &headers(9, flag::END_STREAM, HEAD)).unwrap();
    assert_eq!(next, [(1, "request 1 true".to_owned())]);
}

#[test]
fn a_reply_that_is_not_taken_can_be_given_up() {
    let mut server = greeted();
    let request = headers(1, flag::END_STREAM, HEAD);
    received(&mut server, &request).unwrap();
    reply(&mut server, 0, 70_000);
    let window = 65_535;
    assert_eq!(bodies(&sent(&mut server)), (window, 0));
    assert_eq!(server.unsent(Slot(0)), 70_000 - window);
    server.give_up(Slot(0));
    assert_eq!((server.unsent(Slot(0)), server.open()), (0, 0));
    assert_eq!(resets(&mut server), [(1, 8)]);
    // The client may not know it yet.
    let late = [update(1, 10), update(0, 10)].concat();
    assert_eq!(received(&mut server, &late), Ok(vec![]));
    assert_eq!(bodies(&sent(&mut server)), (0, 0));
}

#[test]
fn resets_that_the_client_provokes_are_bounded() {
    for limit in [REJECTED, REJECTED + 1] {
        let mut server = greeted();
        let ids = (1..).step_by(2).take(limit);
        let bytes: Vec<_> = ids
            .map(|id| headers(id, flag::END_STREAM, &[0x83]))
            .collect();
        let result = received(&mut server, &bytes.concat());
        if limit == REJECTED {
            assert_eq!(result, Ok(vec![]));
            continue;
        }
        assert_eq!(result.unwrap_err().reason, Reason::ENHANCE_YOUR_CALM);
        assert_eq!(resets(&mut server).len(), REJECTED);
    }
}

#[test]
fn refusals_count_once_the_client_knows_the_limit() {
    let all: Vec<_> = (1..)
        .step_by(2)
        .take(REJECTED + 4)
        .map(|id| headers(id, 0, HEAD))
        .collect();
    let mut server = greeted();
    let error = received(&mut server, &all.concat()).unwrap_err();
    assert_eq!(error.reason, Reason::ENHANCE_YOUR_CALM);
    // It may have sent all of them before.
    let mut server = Server::new(CONFIG);
    let greeting = [PREFACE, &frame(kind::SETTINGS, 0, 0, &[]), &all.concat()].concat();
    assert_eq!(received(&mut server, &greeting).unwrap().len(), 3);
}

#[test]
fn floods_are_errors() {
    let streams = |count: usize| (1..).step_by(2).take(count);
    let pair = |id| [headers(id, 0, HEAD), reset(id)].concat();
    let ping = frame(kind::PING, 0, 0, &[0; 8]);
    let empty = frame(kind::SETTINGS, 0, 0, &[]);
    let priority = frame(kind::PRIORITY, 0, 1, &[0; 5]);
    let mut continued = frame(kind::HEADERS, 0, 1, HEAD);
    continued.extend(frame(kind::CONTINUATION, 0, 1, b"").repeat(65));
    let mut long = frame(kind::HEADERS, 0, 1, HEAD);
    long.extend(frame(kind::CONTINUATION, 0, 1, &[0x84; 1 << 14]).repeat(4));
    for (what, bytes) in [
        ("pings", ping.repeat(1001)),
        ("settings", empty.repeat(1001)),
        ("priorities", priority.repeat(10_001)),
        (
            "empty DATA",
            [headers(1, 0, HEAD), data(1, 0, 0).repeat(10_001)].concat(),
        ),
        (
            "rapid resets",
            streams(10_001).map(pair).collect::<Vec<_>>().concat(),
        ),
        ("continuations", continued),
        ("a long block", long),
    ] {
        let error = received(&mut greeted(), &bytes).expect_err(what);
        assert_eq!(error.reason, Reason::ENHANCE_YOUR_CALM, "{what}");
    }
    // Answers that are taken are no flood: a connection that lives for days has many of them. Nor are useless
    // frames with replies in between.
    let mut server = greeted();
    for _ in 0..30 {
        received(&mut server, &ping.repeat(1000)).unwrap();
        sent(&mut server);
    }
    for id in streams(30) {
        received(&mut server, &priority.repeat(1000)).unwrap();
        received(&mut server, &headers(id, flag::END_STREAM, HEAD)).unwrap();
        reply(&mut server, 0, 1);
        sent(&mut server);
    }
}

#[test]
fn a_client_must_begin_as_in_http2() {
    for bytes in [
        &b"GET / HTTP/1.1\r\n"[..],
        b"\x16\x03\x01",
        b"PRI * HTTP/2.1",
    ] {
        let error = received(&mut Server::new(CONFIG), bytes).unwrap_err();
        assert_eq!(error.reason, Reason::PROTOCOL_ERROR);
    }
    for first in [
        headers(1, 0, HEAD),
        frame(kind::SETTINGS, flag::ACK, 0, &[]),
    ] {
        let error = received(&mut Server::new(CONFIG), &[PREFACE, &first].concat()).unwrap_err();
        assert_eq!(error.reason, Reason::PROTOCOL_ERROR);
    }
    for stray in [data(0, 0, 1), headers(0, 0, HEAD)] {
        // While no stream is open.
        let error = received(&mut greeted(), &stray).unwrap_err();
        assert_eq!(error.reason, Reason::PROTOCOL_ERROR);
    }
    // Half of it is waited for.
    let mut server = Server::<PathLength>::new(CONFIG);
    let mut half = &PREFACE[..12];
    assert_eq!(server.next(&mut half), Ok(None));
    assert_eq!(half.len(), 12);
}

#[test]
fn requests_have_room_up_to_the_windows() {
    let part = data(1, 0, 10_000);
    // Room is given back by halves of the windows.
    assert_eq!(
        received(
            &mut greeted(),
            &[headers(1, 0, HEAD), part.repeat(30)].concat()
        )
        .unwrap()
        .len(),
        31
    );
    // A frame that is larger than what is left of a window: of the stream's, and of the connection's.
    for (stream_window, connection_window) in [(70_000, 100_000), (100_000, 70_000)] {
        let mut server = Server::new(Config {
            receiving: Receiving {
                stream_window,
                connection_window,
                frame: 1 << 20,
            },
            ..CONFIG
        });
        let settings = frame(kind::SETTINGS, 0, 0, &[]);
        let head = headers(1, 0, HEAD);
        let good = [PREFACE, &settings, &head, &data(1, 0, 30_000)].concat();
        assert_eq!(received(&mut server, &good).unwrap().len(), 2);
        let error = received(&mut server, &data(1, 0, 40_001)).unwrap_err();
        assert_eq!(error.reason, Reason::FLOW_CONTROL_ERROR);
    }
    let mut server = greeted();
    let padded = frame(
        kind::DATA,
        flag::PADDED,
        1,
        &[&[200], &[0; 210][..]].concat(),
    );
    let events = received(
        &mut server,
        &[headers(1, 0, HEAD), padded.repeat(400)].concat(),
    )
    .unwrap();
    assert!(
        events[1..]
            .iter()
            .all(|(_, event)| event == "data 10 false")
    );
    let given: u32 = sent(&mut server)
        .iter()
        .filter(|(header, _)| header.kind == kind::WINDOW_UPDATE && header.stream == 1)
        .map(|(_, payload)| u32::from_be_bytes(payload[..].try_into().unwrap()))
        .sum();
    // 400 frames of 211 bytes, in steps of half the window.
    assert!((70_000..=400 * 211).contains(&given), "{given}");
}

#[test]
fn replies_follow_the_windows_of_the_client() {
    let mut server = greeted();
    received(&mut server, &headers(1, flag::END_STREAM, HEAD)).unwrap();
    reply(&mut server, 0, 200_000);
    assert_eq!(bodies(&sent(&mut server)), (65_535, 0));
    // The connection's window is still closed.
    received(&mut server, &update(1, 100_000)).unwrap();
    assert_eq!(bodies(&sent(&mut server)), (0, 0));
    received(&mut server, &update(0, 1_000_000)).unwrap();
    assert_eq!(bodies(&sent(&mut server)), (100_000, 0));
    // A larger first window concerns open streams too, and longer frames.
    received(
        &mut server,
        &[setting(5, 50_000), setting(4, 100_000)].concat(),
    )
    .unwrap();
    let frames = sent(&mut server);
    assert_eq!(bodies(&frames), (34_465, 1));
    assert_eq!(
        frames
            .iter()
            .filter(|(header, _)| header.kind == kind::DATA)
            .count(),
        1
    );
    assert_eq!(server.open(), 0);
}

#[test]
fn a_small_window_may_become_negative() {
    let mut server = greeted();
    received(&mut server, &headers(1, flag::END_STREAM, HEAD)).unwrap();
    reply(&mut server, 0, 70_000);
    assert_eq!(bodies(&sent(&mut server)).0, 65_535);
    received(
        &mut server,
        &[setting(4, 0), update(0, 100_000), update(1, 65_535)].concat(),
    )
    .unwrap();
    assert_eq!(bodies(&sent(&mut server)), (0, 0));
    received(&mut server, &update(1, 1)).unwrap();
    assert_eq!(bodies(&sent(&mut server)), (1, 0));
}

#[test]
fn a_reply_before_the_end_of_its_request_ends_it() {
    let mut server = greeted();
    received(&mut server, &headers(1, 0, HEAD)).unwrap();
    reply(&mut server, 0, 10);
    assert_eq!(resets(&mut server), [(1, 0)]);
    // No error of the client's.
    assert_eq!(server.take_resets(), []);
    let late = received(&mut server, &data(1, flag::END_STREAM, 10));
    assert_eq!((late, server.open()), (Ok(vec![]), 0));
}

#[test]
fn a_reset_frees_the_request_and_its_reply() {
    let mut server = greeted();
    let begun = received(&mut server, &[headers(1, 0, HEAD), reset(1)].concat()).unwrap();
    assert_eq!(begun[1].1, "reset");
    received(&mut server, &headers(3, flag::END_STREAM, HEAD)).unwrap();
    reply(&mut server, 0, 100_000);
    // The reply had begun: nobody waits for an event.
    assert_eq!(received(&mut server, &reset(3)), Ok(vec![]));
    assert_eq!(server.open(), 0);
    sent(&mut server);
    received(
        &mut server,
        &[update(0, 1000), headers(5, flag::END_STREAM, HEAD)].concat(),
    )
    .unwrap();
    assert_eq!(bodies(&sent(&mut server)), (0, 0));
}

#[test]
fn replies_that_are_reset_wait_in_one_place_at_most() {
    let mut server = greeted();
    let begun = |id| headers(id, flag::END_STREAM, HEAD);
    // The connection's window is used up, and those of streams are not.
    received(&mut server, &begun(1)).unwrap();
    reply(&mut server, 0, 65_535);
    for id in (3..2003).step_by(2) {
        received(&mut server, &begun(id)).unwrap();
        reply(&mut server, 0, 10);
        received(&mut server, &reset(id)).unwrap();
        sent(&mut server);
    }
    assert_eq!(server.sending, [0]);
    received(&mut server, &begun(2003)).unwrap();
    reply(&mut server, 0, 10);
    received(&mut server, &update(0, 10)).unwrap();
    assert_eq!(bodies(&sent(&mut server)), (10, 1));
    assert!(server.sending.is_empty());
}

#[test]
fn a_reply_that_was_reset_sends_nothing_in_its_turn() {
    let mut server = greeted();
    let begun = |id| headers(id, flag::END_STREAM, HEAD);
    received(&mut server, &[begun(1), begun(3)].concat()).unwrap();
    reply(&mut server, 0, 65_535);
    reply(&mut server, 1, 10);
    received(&mut server, &reset(3)).unwrap();
    sent(&mut server);
    received(&mut server, &update(0, 10)).unwrap();
    assert_eq!(sent(&mut server), []);
}

#[test]
fn a_drain_serves_what_came_before_the_client_knew() {
    let mut server = greeted();
    received(&mut server, &headers(1, 0, HEAD)).unwrap();
    server.drain();
    let told = sent(&mut server);
    let [(goaway, last), (ping, payload)] = &told[..] else {
        panic!("{told:?}");
    };
    assert_eq!(
        (goaway.kind, &last[..4]),
        (kind::GOAWAY, &[0x7F, 0xFF, 0xFF, 0xFF][..])
    );
    assert_eq!(ping.kind, kind::PING);
    // On its way when the client was told.
    assert_eq!(
        received(&mut server, &headers(3, flag::END_STREAM, HEAD))
            .unwrap()
            .len(),
        1
    );
    assert!(!server.has_left());
    let answer = frame(kind::PING, flag::ACK, 0, payload);
    received(
        &mut server,
        &[answer, headers(5, flag::END_STREAM, HEAD)].concat(),
    )
    .unwrap();
    assert!(server.has_left());
    let told = sent(&mut server);
    assert_eq!(
        (told[0].0.kind, &told[0].1[..4]),
        (kind::GOAWAY, &[0, 0, 0, 3][..])
    );
    assert_eq!(
        (told[1].0.kind, &told[1].1[..]),
        (kind::RST_STREAM, &[0, 0, 0, 7][..])
    );
    assert_eq!(server.open(), 2);
    received(&mut server, &data(1, flag::END_STREAM, 1)).unwrap();
    reply(&mut server, 0, 1);
    reply(&mut server, 1, 1);
    assert_eq!(bodies(&sent(&mut server)), (2, 2));
    assert_eq!(server.open(), 0);
}

#[test]
fn the_settings_say_what_is_allowed() {
    let mut server = Server::<PathLength>::new(CONFIG);
    let told = sent(&mut server);
    let (settings, _) = told[0].1.as_chunks::<6>();
    let value = |id| {
        let setting = settings.iter().find(|setting| setting[1] == id).unwrap();
        u32::from_be_bytes(setting[2..].try_into().unwrap())
    };
    assert_eq!([3, 4, 5, 6].map(value), [3, 70_000, 1 << 14, HEADER_LIST]);
    assert_eq!(told[1].0, Header::new(kind::WINDOW_UPDATE, 0, 0));
    assert_eq!(told[1].1, (100_000_u32 - 65_535).to_be_bytes());
}

#[test]
fn a_repeated_reply_is_a_few_bytes() {
    let mut server = greeted();
    let head = Head::of_reply(Some(200), &[("content-type", "application/grpc")]);
    let trailers = Head::of_reply(None, &[("grpc-status", "0")]);
    let mut lengths = Vec::new();
    for id in [1, 3, 5] {
        received(&mut server, &headers(id, flag::END_STREAM, HEAD)).unwrap();
        server.reply(Slot(0), &head, b"abc", &trailers);
        let frames = sent(&mut server);
        lengths.push(
            frames
                .iter()
                .map(|(_, payload)| payload.len())
                .sum::<usize>(),
        );
    }
    assert_eq!(lengths[1..], [6, 6]);
}
