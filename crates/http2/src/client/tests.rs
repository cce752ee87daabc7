mod streaming;

use bytes::Bytes;

use super::*;
use crate::{
    frame::{self, flag},
    head::Target,
};

fn head() -> Head {
    let target = Target {
        method: "POST",
        scheme: "http",
        authority: "localhost",
        path: "/",
    };
    Head::new(target, [])
}

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

fn goaway(last: u32, reason: u8) -> Vec<u8> {
    let payload = [&last.to_be_bytes()[..], &[0, 0, 0, reason]].concat();
    frame(kind::GOAWAY, 0, 0, &payload)
}

/// `:status: 200`.
const OK: &[u8] = &[0x88];

fn headers(stream: u32, flags: u8, block: &[u8]) -> Vec<u8> {
    frame(kind::HEADERS, flags | flag::END_HEADERS, stream, block)
}

/// A connection whose server has sent its settings, and whose output has been written.
fn greeted() -> Client {
    let mut client = Client::new(Config::default());
    received(&mut client, &frame(kind::SETTINGS, 0, 0, &[])).unwrap();
    sent(&mut client);
    client
}

/// Receives bytes; returns what became of which request.
fn received(client: &mut Client, bytes: &[u8]) -> Result<Vec<(u32, String)>, Error> {
    let mut events = Vec::new();
    let taken = client.receive(bytes, |slot, event| {
        let event = match event {
            Event::Head(fields) => format!("head {}", fields.status().unwrap()),
            Event::Data(data) => format!("data {}", data.len()),
            Event::Trailers(fields) => format!("trailers {}", fields.iter().count()),
            Event::Left(goaway) => format!("Left({goaway})"),
            other => format!("{other:?}"),
        };
        events.push((slot.0, event));
    })?;
    assert_eq!(taken, bytes.len());
    Ok(events)
}

/// Takes the output, in whole frames.
fn sent(client: &mut Client) -> Vec<(Header, Vec<u8>)> {
    let mut output = Vec::new();
    while !client.output().is_empty() {
        output.extend_from_slice(client.output());
        client.written(client.output().len());
    }
    let mut rest = output.strip_prefix(PREFACE).unwrap_or(&output);
    let mut frames = Vec::new();
    while let Some((header, payload)) = frame::first(rest, 1 << 24).unwrap() {
        frames.push((header, payload.to_vec()));
        rest = &rest[frame::HEADER + payload.len()..];
    }
    assert!(rest.is_empty());
    frames
}

/// Returns the bodies' bytes and the end in some frames, of the stream.
fn body_of(frames: &[(Header, Vec<u8>)], id: u32) -> (usize, bool) {
    let own = frames
        .iter()
        .filter(|(header, _)| header.kind == kind::DATA && header.stream == id);
    own.fold((0, false), |(length, _), (header, payload)| {
        (length + payload.len(), header.has(flag::END_STREAM))
    })
}

fn request(client: &mut Client, length: usize) -> Slot {
    let body = Bytes::from(vec![b'x'; length]);
    client.request(&head(), Body::Shared(&body)).unwrap()
}

/// Returns the error of a connection with a request on stream 1, and what it tells the server.
fn rejected(bytes: &[u8]) -> Reason {
    let mut client = greeted();
    request(&mut client, 0);
    sent(&mut client);
    let error = received(&mut client, bytes).expect_err("an error");
    let told = sent(&mut client);
    let (header, payload) = told.last().unwrap();
    assert_eq!(header.kind, kind::GOAWAY);
    assert_eq!(payload[..4], [0; 4]);
    assert_eq!(payload[4..8], error.reason.0.to_be_bytes());
    assert_eq!(&payload[8..], error.detail.as_bytes());
    assert!(client.is_spent());
    assert_eq!(received(&mut client, &[]).unwrap_err(), error);
    error.reason
}

#[test]
fn a_malformed_frame_is_an_error_by_name() {
    use kind::{
        CONTINUATION, DATA, GOAWAY, HEADERS, PING, PRIORITY, PUSH_PROMISE, RST_STREAM, SETTINGS,
        WINDOW_UPDATE,
    };
    let ok = headers(1, 0, OK);
    let after = |frame: Vec<u8>| [ok.clone(), frame].concat();
    let ended = |frame: Vec<u8>| [headers(1, flag::END_STREAM, OK), frame].concat();
    let open = || frame(HEADERS, 0, 1, OK);
    for (bytes, reason) in [
        (frame(DATA, 0, 0, b"x"), Reason::PROTOCOL_ERROR),
        (frame(DATA, 0, 3, b"x"), Reason::PROTOCOL_ERROR),
        (frame(DATA, 0, 2, b"x"), Reason::PROTOCOL_ERROR),
        (
            after(frame(DATA, flag::PADDED, 1, b"\x01")),
            Reason::PROTOCOL_ERROR,
        ),
        (
            after(frame(DATA, flag::PADDED, 1, b"")),
            Reason::FRAME_SIZE_ERROR,
        ),
        (ended(frame(DATA, 0, 1, b"x")), Reason::STREAM_CLOSED),
        (ended(headers(1, 0, OK)), Reason::STREAM_CLOSED),
        (headers(0, 0, OK), Reason::PROTOCOL_ERROR),
        (headers(2, 0, OK), Reason::PROTOCOL_ERROR),
        (headers(3, 0, OK), Reason::PROTOCOL_ERROR),
        (
            headers(1, flag::PRIORITY, &[0; 4]),
            Reason::FRAME_SIZE_ERROR,
        ),
        (headers(1, flag::PADDED, &[2, 0x88]), Reason::PROTOCOL_ERROR),
        (headers(1, 0, &[0x80]), Reason::COMPRESSION_ERROR),
        (frame(CONTINUATION, 4, 1, OK), Reason::PROTOCOL_ERROR),
        (
            [open(), frame(CONTINUATION, 4, 3, OK)].concat(),
            Reason::PROTOCOL_ERROR,
        ),
        (
            [open(), frame(PING, 0, 0, &[0; 8])].concat(),
            Reason::PROTOCOL_ERROR,
        ),
        ([open(), headers(1, 0, OK)].concat(), Reason::PROTOCOL_ERROR),
        (frame(PRIORITY, 0, 0, &[0; 5]), Reason::PROTOCOL_ERROR),
        (frame(PRIORITY, 0, 1, &[0; 4]), Reason::FRAME_SIZE_ERROR),
        (frame(RST_STREAM, 0, 0, &[0; 4]), Reason::PROTOCOL_ERROR),
        (frame(RST_STREAM, 0, 1, &[0; 5]), Reason::FRAME_SIZE_ERROR),
        (frame(RST_STREAM, 0, 3, &[0; 4]), Reason::PROTOCOL_ERROR),
        (frame(SETTINGS, 0, 1, &[]), Reason::PROTOCOL_ERROR),
        (frame(SETTINGS, 0, 0, &[0; 5]), Reason::FRAME_SIZE_ERROR),
        (
            frame(SETTINGS, flag::ACK, 0, &[0; 6]),
            Reason::FRAME_SIZE_ERROR,
        ),
        (setting(2, 1), Reason::PROTOCOL_ERROR),
        (setting(4, 1 << 31), Reason::FLOW_CONTROL_ERROR),
        (setting(5, 1), Reason::PROTOCOL_ERROR),
        (
            frame(PUSH_PROMISE, 4, 1, &[0, 0, 0, 2, 0x88]),
            Reason::PROTOCOL_ERROR,
        ),
        (frame(PING, 0, 1, &[0; 8]), Reason::PROTOCOL_ERROR),
        (frame(PING, 0, 0, &[0; 7]), Reason::FRAME_SIZE_ERROR),
        (frame(GOAWAY, 0, 1, &[0; 8]), Reason::PROTOCOL_ERROR),
        (frame(GOAWAY, 0, 0, &[0; 7]), Reason::FRAME_SIZE_ERROR),
        (
            [goaway(1, 0), goaway(3, 0)].concat(),
            Reason::PROTOCOL_ERROR,
        ),
        (
            frame(WINDOW_UPDATE, 0, 0, &[0; 3]),
            Reason::FRAME_SIZE_ERROR,
        ),
        (update(0, 0), Reason::PROTOCOL_ERROR),
        (update(1, 0), Reason::PROTOCOL_ERROR),
        (update(3, 1), Reason::PROTOCOL_ERROR),
        (update(0, 0x7FFF_FFFF), Reason::FLOW_CONTROL_ERROR),
        (update(1, 0x7FFF_FFFF), Reason::FLOW_CONTROL_ERROR),
        (
            [update(1, 1), setting(4, 0x7FFF_FFFF)].concat(),
            Reason::FLOW_CONTROL_ERROR,
        ),
        (vec![0, 0x40, 1, 0, 0, 0, 0, 0, 1], Reason::FRAME_SIZE_ERROR),
    ] {
        assert_eq!(rejected(&bytes), reason, "{bytes:?}");
    }
}

#[test]
fn a_server_that_does_not_begin_with_settings_is_refused() {
    let begun = |bytes: &[u8]| {
        let mut client = Client::new(Config::default());
        received(&mut client, bytes).unwrap_err()
    };
    let ping = begun(&frame(kind::PING, 0, 0, &[0; 8]));
    assert_eq!(ping.reason, Reason::PROTOCOL_ERROR);
    let acknowledgement = begun(&frame(kind::SETTINGS, flag::ACK, 0, &[]));
    assert_eq!(acknowledgement.reason, Reason::PROTOCOL_ERROR);
    let old = begun(b"HTTP/1.1 400 Bad Request\r\n\r\n");
    assert_eq!(old, Error::protocol("the server answers in HTTP/1"));
}

#[test]
fn abuse_is_an_error_by_name() {
    for (frame, times) in [
        (frame(kind::PING, 0, 0, &[0; 8]), 1001),
        (setting(3, 100), 1001),
        (frame(kind::PING, flag::ACK, 0, &[0; 8]), 10_001),
        (frame(99, 0, 0, b"x"), 10_001),
        (headers(1, 0, &[0x08, 3, b'1', b'0', b'0']), 10_001),
    ] {
        assert_eq!(rejected(&frame.repeat(times)), Reason::ENHANCE_YOUR_CALM);
    }
    let empty = [
        headers(1, 0, OK),
        frame(kind::DATA, 0, 1, b"").repeat(10_001),
    ]
    .concat();
    assert_eq!(rejected(&empty), Reason::ENHANCE_YOUR_CALM);
    let long = frame(kind::CONTINUATION, 0, 1, &[0x88; 16_384]).repeat(4);
    let long = [frame(kind::HEADERS, 0, 1, OK), long].concat();
    assert_eq!(rejected(&long), Reason::ENHANCE_YOUR_CALM);
    let endless = frame(kind::CONTINUATION, 0, 1, &[]).repeat(65);
    let endless = [frame(kind::HEADERS, 0, 1, OK), endless].concat();
    assert_eq!(rejected(&endless), Reason::ENHANCE_YOUR_CALM);
}

#[test]
fn a_ping_is_answered_with_its_own_bytes_and_again_after_a_write() {
    let mut client = greeted();
    // A connection that lives for days has many of them.
    for _ in 0..30_000 {
        received(&mut client, &frame(kind::PING, 0, 0, b"12345678")).unwrap();
        let answer = (Header::new(kind::PING, flag::ACK, 0), b"12345678".to_vec());
        assert_eq!(sent(&mut client), [answer]);
    }
}

#[test]
fn a_reply_is_told_part_by_part() {
    let mut client = greeted();
    let slot = request(&mut client, 10);
    let frames = sent(&mut client);
    assert_eq!(frames[0].0.kind, kind::HEADERS);
    assert_eq!(body_of(&frames, 1), (10, true));
    let bytes = [
        // An interim reply, the head with padding and priority, a body with padding, and trailers in two frames.
        headers(1, 0, &[0x08, 3, b'1', b'0', b'3']),
        headers(
            1,
            flag::PADDED | flag::PRIORITY,
            &[2, 0, 0, 0, 0, 9, 0x88, 0, 0],
        ),
        frame(kind::PRIORITY, 0, 1, &[0; 5]),
        frame(kind::DATA, flag::PADDED, 1, b"\x03abc\0\0\0"),
        frame(77, 0xFF, 5, b"unknown"),
        frame(kind::HEADERS, flag::END_STREAM, 1, b"\x00\x01a"),
        frame(kind::CONTINUATION, flag::END_HEADERS, 1, b"\x01b"),
    ];
    let events = received(&mut client, &bytes.concat()).unwrap();
    let events: Vec<_> = events.into_iter().map(|(_, event)| event).collect();
    assert_eq!(events, ["head 200", "data 3", "trailers 1", "End"]);
    client.close(slot);
    // RST_STREAM with NO_ERROR after it is nothing.
    assert_eq!(
        received(&mut client, &frame(kind::RST_STREAM, 0, 1, &[0; 4])),
        Ok(vec![])
    );
    assert_eq!(sent(&mut client), []);
    // Trailers alone.
    request(&mut client, 10);
    let events = received(&mut client, &headers(3, flag::END_STREAM, OK)).unwrap();
    assert_eq!(events, [(0, "head 200".into()), (0, "End".into())]);
}

#[test]
fn a_long_reply_may_have_any_number_of_empty_frames_in_between() {
    let mut client = greeted();
    let slot = request(&mut client, 0);
    received(&mut client, &headers(1, 0, OK)).unwrap();
    for _ in 0..30_000 {
        let bytes = [frame(kind::DATA, 0, 1, b""), frame(kind::DATA, 0, 1, b"x")].concat();
        received(&mut client, &bytes).unwrap();
        client.release(slot, 1);
    }
}

#[test]
fn any_number_of_replies_may_have_interim_ones() {
    let mut client = greeted();
    for id in (1..24_000).step_by(2) {
        let slot = request(&mut client, 0);
        let interim = headers(id, 0, &[0x08, 3, b'1', b'0', b'3']);
        let bytes = [interim, headers(id, flag::END_STREAM, OK)].concat();
        received(&mut client, &bytes).unwrap();
        client.close(slot);
        sent(&mut client);
    }
}

#[test]
fn a_malformed_reply_ends_its_request_alone() {
    for (bytes, detail) in [
        (headers(1, 0, b"\x00\x01a\x01b"), "no status"),
        (
            headers(1, flag::END_STREAM, &[0x08, 3, b'1', b'0', b'0']),
            "interim",
        ),
        (headers(1, 0, &[0x08, 3, b'1', b'0', b'1']), "101"),
        (headers(1, 0, b"\x88\x00\x01A\x01b"), "name"),
        (frame(kind::DATA, 0, 1, b"x"), "before its head"),
        (
            [headers(1, 0, OK), headers(1, 0, b"\x00\x01a\x01b")].concat(),
            "not the end",
        ),
        (
            [headers(1, 0, OK), headers(1, flag::END_STREAM, OK)].concat(),
            "have a status",
        ),
        (
            [
                headers(1, 0, b"\x88\x0f\x0d\x012"),
                frame(kind::DATA, 0, 1, b"abc"),
            ]
            .concat(),
            "longer than its content-length",
        ),
        (
            [
                headers(1, 0, b"\x88\x0f\x0d\x012"),
                frame(kind::DATA, 1, 1, b"a"),
            ]
            .concat(),
            "shorter than its content-length",
        ),
    ] {
        let mut client = greeted();
        request(&mut client, 1);
        request(&mut client, 1);
        sent(&mut client);
        let events = received(&mut client, &bytes).unwrap();
        let (slot, event) = events.last().unwrap();
        assert!(*slot == 0 && event.starts_with("Malformed"), "{event}");
        assert!(event.contains(detail), "{detail}: {event}");
        let told = sent(&mut client);
        let reset = (Header::new(kind::RST_STREAM, 0, 1), vec![0, 0, 0, 1]);
        assert_eq!(told, [reset]);
        let events = received(&mut client, &headers(3, flag::END_STREAM, OK)).unwrap();
        assert_eq!(events.last().unwrap(), &(1, "End".into()));
    }
}

#[test]
fn the_length_of_a_body_that_does_not_come_is_no_error() {
    let mut client = greeted();
    let target = Target {
        method: "HEAD",
        scheme: "http",
        authority: "localhost",
        path: "/",
    };
    let body = Body::Short(&[]);
    client.request(&Head::new(target, []), body).unwrap();
    for _ in 0..2 {
        client.request(&head(), body).unwrap();
    }
    let bare = headers(1, flag::END_STREAM, b"\x88\x0f\x0d\x012");
    assert_eq!(received(&mut client, &bare).unwrap()[1].1, "End");
    // 304, and 204.
    for (id, status) in [(3, 0x8B), (5, 0x89)] {
        let block = [&[status][..], b"\x0f\x0d\x012"].concat();
        let reply = headers(id, flag::END_STREAM, &block);
        assert_eq!(received(&mut client, &reply).unwrap()[1].1, "End");
    }
}

#[test]
fn bodies_keep_to_the_windows_and_the_frame_size() {
    let mut client = greeted();
    request(&mut client, 100_000);
    let frames = sent(&mut client);
    assert_eq!(body_of(&frames, 1), (65_535, false));
    assert!(frames.iter().all(|(_, payload)| payload.len() <= 16_384));
    // The connection's window is empty, so that a second request sends no body.
    request(&mut client, 5);
    assert_eq!(body_of(&sent(&mut client), 3), (0, false));
    // Room on the connection is for the one whose own window has room.
    received(&mut client, &update(0, 10)).unwrap();
    let frames = sent(&mut client);
    assert_eq!(
        (body_of(&frames, 1), body_of(&frames, 3)),
        ((0, false), (5, true))
    );
    received(&mut client, &update(1, 1000)).unwrap();
    assert_eq!(body_of(&sent(&mut client), 1), (5, false));
    received(&mut client, &update(0, 1 << 20)).unwrap();
    assert_eq!(body_of(&sent(&mut client), 1), (995, false));
    // A smaller window makes that of the stream negative: by 65,535 of what it had.
    received(&mut client, &setting(4, 0)).unwrap();
    received(&mut client, &update(1, 65_535)).unwrap();
    assert_eq!(sent(&mut client).len(), 1);
    received(&mut client, &update(1, 7)).unwrap();
    assert_eq!(body_of(&sent(&mut client), 1), (7, false));
    // Larger again, and larger frames.
    let bytes = [setting(5, 1 << 20), setting(4, 1 << 20)].concat();
    received(&mut client, &bytes).unwrap();
    let frames = sent(&mut client);
    assert_eq!(body_of(&frames, 1), (100_000 - 65_535 - 5 - 995 - 7, true));
    assert!(frames.iter().any(|(_, payload)| payload.len() > 16_384));
}

#[test]
fn a_large_body_passes_through_a_small_buffer() {
    let mut client = greeted();
    let most = 0x7FFF_FFFF - 65_535;
    received(
        &mut client,
        &[setting(4, 0x7FFF_FFFF), update(0, most)].concat(),
    )
    .unwrap();
    sent(&mut client);
    request(&mut client, 16 << 20);
    assert!(client.output().len() < 300 << 10);
    let mut length = 0;
    while !client.output().is_empty() {
        length += client.output().len();
        assert!(client.output().len() < 300 << 10);
        client.written(client.output().len());
    }
    assert!(length > 16 << 20);
}

#[test]
fn a_server_that_exceeds_a_window_is_refused() {
    let mut full = headers(1, 0, OK);
    for length in [16_384, 16_384, 16_384, 16_383] {
        full.extend(frame(kind::DATA, 0, 1, &vec![0; length]));
    }
    let mut client = greeted();
    let slot = request(&mut client, 0);
    received(&mut client, &full).unwrap();
    sent(&mut client);
    let mut other = greeted();
    request(&mut other, 0);
    received(&mut other, &full).unwrap();
    let error = received(&mut other, &frame(kind::DATA, 0, 1, b"x")).unwrap_err();
    assert_eq!(error.reason, Reason::FLOW_CONTROL_ERROR);
    // Half of it is announced at once: for the stream and for the connection.
    client.release(slot, 32_766);
    assert_eq!(sent(&mut client), []);
    client.release(slot, 1);
    let increment = 32_767_u32.to_be_bytes().to_vec();
    let updates = [1, 0].map(|id| (Header::new(kind::WINDOW_UPDATE, 0, id), increment.clone()));
    assert_eq!(sent(&mut client), updates);
    received(&mut client, &frame(kind::DATA, 0, 1, &[0; 16_384])).unwrap();
}

#[test]
fn the_window_of_one_stream_is_not_that_of_the_connection() {
    let config = Config {
        stream_window: 10,
        connection_window: 1 << 20,
        ..Config::default()
    };
    let mut client = Client::new(config);
    received(&mut client, &frame(kind::SETTINGS, 0, 0, &[])).unwrap();
    request(&mut client, 0);
    received(&mut client, &headers(1, 0, OK)).unwrap();
    let error = received(&mut client, &frame(kind::DATA, 0, 1, &[0; 11])).unwrap_err();
    assert_eq!(error.reason, Reason::FLOW_CONTROL_ERROR);
}

#[test]
fn padding_that_gives_room_back_has_taken_it_before() {
    for (stream_window, connection_window) in [(65_535, 1 << 20), (1 << 20, 65_535)] {
        let config = Config {
            stream_window,
            connection_window,
            ..Config::default()
        };
        let mut client = Client::new(config);
        received(&mut client, &frame(kind::SETTINGS, 0, 0, &[])).unwrap();
        request(&mut client, 0);
        received(&mut client, &headers(1, 0, OK)).unwrap();
        let padded = frame(
            kind::DATA,
            flag::PADDED,
            1,
            &[&[255, b'x'][..], &[0; 255]].concat(),
        );
        received(&mut client, &padded.repeat(1000)).unwrap();
        // A thousand bytes of content are held, and at most half of the window is not announced again.
        let content = frame(kind::DATA, 0, 1, &[0; 10_000]);
        received(&mut client, &content.repeat(3)).unwrap();
        let error = received(&mut client, &content.repeat(4)).unwrap_err();
        assert_eq!(error.reason, Reason::FLOW_CONTROL_ERROR);
    }
}

#[test]
fn padding_and_what_comes_for_a_cancelled_request_give_room_back() {
    let mut client = greeted();
    let slot = request(&mut client, 0);
    sent(&mut client);
    let mut bytes = headers(1, 0, OK);
    // One byte of each 200 is content.
    let padded = [&[198][..], b"x", &[0; 198]].concat();
    for _ in 0..200 {
        bytes.extend(frame(kind::DATA, flag::PADDED, 1, &padded));
    }
    received(&mut client, &bytes).unwrap();
    let ids: Vec<_> = sent(&mut client)
        .iter()
        .map(|(header, _)| header.stream)
        .collect();
    assert_eq!(ids, [1, 0]);
    client.close(slot);
    let cancel = (Header::new(kind::RST_STREAM, 0, 1), vec![0, 0, 0, 8]);
    assert_eq!(sent(&mut client), [cancel]);
    let mut room = 0;
    for _ in 0..8 {
        let events = received(&mut client, &frame(kind::DATA, 0, 1, &[0; 16_384]));
        assert_eq!(events, Ok(vec![]));
        for (header, payload) in sent(&mut client) {
            assert_eq!((header.kind, header.stream), (kind::WINDOW_UPDATE, 0));
            room += frame::number(payload.try_into().unwrap());
        }
    }
    assert!(room > 8 * 16_384 - 33_000, "{room}");
    // The table follows a cancelled request's head too: 62 is its field.
    received(&mut client, &headers(1, 1, b"\x40\x01a\x01b")).unwrap();
    request(&mut client, 0);
    assert!(received(&mut client, &headers(3, 0, &[0x88, 0x80 + 62])).is_ok());
    // Its end has come.
    let error = received(&mut client, &frame(kind::DATA, 0, 1, b"x")).unwrap_err();
    assert_eq!(error.reason, Reason::STREAM_CLOSED);
}

#[test]
fn bytes_not_released_of_a_reply_that_ends_give_the_connection_room() {
    let mut client = greeted();
    for id in (1..200).step_by(2) {
        let slot = request(&mut client, 0);
        let bytes = [headers(id, 0, OK), frame(kind::DATA, 1, id, &[0; 10_000])].concat();
        received(&mut client, &bytes).unwrap();
        client.close(slot);
    }
}

#[test]
fn requests_wait_for_a_stream_in_their_order() {
    let mut client = Client::new(Config::default());
    // Before its settings, a server is believed to allow a hundred.
    let slots: Vec<_> = (0..102).map(|_| request(&mut client, 3)).collect();
    let opened = |frames: &[(Header, Vec<u8>)]| {
        let heads = frames
            .iter()
            .filter(|(header, _)| header.kind == kind::HEADERS);
        heads.map(|(header, _)| header.stream).collect::<Vec<_>>()
    };
    assert_eq!(opened(&sent(&mut client)).len(), 100);
    received(&mut client, &setting(3, 1)).unwrap();
    let end = |client: &mut Client, id| {
        let events = received(client, &headers(id, flag::END_STREAM, OK)).unwrap();
        client.close(Slot(events[0].0));
        opened(&sent(client))
    };
    for id in (1..199).step_by(2) {
        assert_eq!(end(&mut client, id), []);
    }
    // One that does not wait any more is left out.
    client.close(slots[100]);
    assert_eq!(end(&mut client, 199), [201]);
    received(&mut client, &setting(3, 0)).unwrap();
    let waits = request(&mut client, 3);
    assert_eq!(end(&mut client, 201), []);
    received(&mut client, &setting(3, 5)).unwrap();
    let frames = sent(&mut client);
    assert_eq!(
        (opened(&frames), body_of(&frames, 203)),
        (vec![203], (3, true))
    );
    client.close(waits);
    let cancel = (Header::new(kind::RST_STREAM, 0, 203), vec![0, 0, 0, 8]);
    assert_eq!(sent(&mut client), [cancel]);
}

#[test]
fn goaway_leaves_the_later_requests_and_those_that_wait() {
    let mut client = greeted();
    received(&mut client, &setting(3, 3)).unwrap();
    let slots: Vec<_> = (0..4).map(|_| request(&mut client, 1)).collect();
    let given_up = request(&mut client, 1);
    client.close(given_up);
    sent(&mut client);
    let events = received(&mut client, &goaway(0x7FFF_FFFF, 0)).unwrap();
    assert_eq!(events, [(3, "Left(NO_ERROR)".into())]);
    assert!(client.is_spent() && client.request(&head(), Body::Short(&[])).is_none());
    let payload = [&[0, 0, 0, 3, 0, 0, 0, 11], &b"max\x1b"[..], &[b'x'; 100]].concat();
    let events = received(&mut client, &frame(kind::GOAWAY, 0, 0, &payload)).unwrap();
    let said = format!("ENHANCE_YOUR_CALM (max\\x1b{})", "x".repeat(60));
    assert_eq!(events, [(2, format!("Left({said})"))]);
    assert_eq!(client.goaway().map(Goaway::to_string), Some(said));
    for (id, slot) in [(1, 0), (3, 1)] {
        let events = received(&mut client, &headers(id, flag::END_STREAM, OK)).unwrap();
        assert_eq!(events[1], (slot, "End".into()));
    }
    for slot in slots {
        client.close(slot);
    }
    assert_eq!(sent(&mut client), []);
}

#[test]
fn no_request_waits_for_an_identifier_that_is_not_left() {
    let mut client = greeted();
    received(&mut client, &setting(3, 1)).unwrap();
    client.streams.skip_to(0x7FFF_FFFD);
    let [first, second] = [(); 2].map(|()| request(&mut client, 1));
    assert!(client.request(&head(), Body::Short(&[])).is_none());
    assert_eq!(client.waiting().collect::<Vec<_>>(), [second]);
    client.close(first);
    assert!(client.waiting().next().is_none());
    assert!(client.is_spent());
}

#[test]
fn a_connection_that_has_failed_opens_no_stream() {
    let mut client = greeted();
    received(&mut client, &setting(3, 1)).unwrap();
    let [first, second] = [(); 2].map(|()| request(&mut client, 1));
    received(&mut client, &update(0, 0)).unwrap_err();
    client.close(first);
    assert_eq!(client.waiting().collect::<Vec<_>>(), [second]);
}

#[test]
fn requests_that_are_left_are_told_in_their_order() {
    let mut client = greeted();
    let [first, second] = [(); 2].map(|()| request(&mut client, 1));
    client.close(first);
    // It has the place of the first one.
    let third = request(&mut client, 1);
    let events = received(&mut client, &goaway(0, 0)).unwrap();
    let told: Vec<_> = events.iter().map(|(slot, _)| *slot).collect();
    assert_eq!(told, [second.0, third.0]);
}

#[test]
fn a_refused_stream_is_not_processed_and_a_reset_one_may_be() {
    let reset = |id, reason| frame(kind::RST_STREAM, 0, id, &[0, 0, 0, reason]);
    let mut client = greeted();
    for _ in 0..3 {
        request(&mut client, 100_000);
    }
    let bytes = [reset(1, 7), reset(3, 8), headers(5, 0, OK), reset(5, 7)].concat();
    let events = received(&mut client, &bytes).unwrap();
    let expected = [
        "Refused",
        "Reset(CANCEL)",
        "head 200",
        "Reset(REFUSED_STREAM)",
    ];
    assert!(events.iter().map(|(_, event)| event).eq(expected.iter()));
    sent(&mut client);
    // Nothing more of their bodies is sent.
    received(&mut client, &update(0, 1 << 20)).unwrap();
    assert_eq!(sent(&mut client), []);
}

#[test]
fn a_reply_that_is_whole_before_its_request_ends_it() {
    let mut client = greeted();
    request(&mut client, 100_000);
    sent(&mut client);
    let events = received(&mut client, &headers(1, flag::END_STREAM, OK)).unwrap();
    assert_eq!(events[1].1, "End");
    let cancel = (Header::new(kind::RST_STREAM, 0, 1), vec![0, 0, 0, 8]);
    assert_eq!(sent(&mut client), [cancel]);
}

#[test]
fn a_long_head_is_continued() {
    let value = vec![b'v'; 40_000];
    let target = Target {
        method: "GET",
        scheme: "http",
        authority: "localhost",
        path: "/",
    };
    let head = Head::new(target, [(&b"x"[..], &*value)]);
    let mut client = greeted();
    client.request(&head, Body::Short(&[])).unwrap();
    let frames = sent(&mut client);
    let kinds: Vec<_> = frames
        .iter()
        .map(|(header, _)| (header.kind, header.flags))
        .collect();
    let expected = [
        (kind::HEADERS, flag::END_STREAM),
        (kind::CONTINUATION, 0),
        (kind::CONTINUATION, flag::END_HEADERS),
    ];
    assert_eq!(kinds, expected);
    assert!(frames.iter().all(|(_, payload)| payload.len() <= 16_384));
}

#[test]
fn a_goodbye_is_without_an_error() {
    let mut client = greeted();
    client.say_goodbye();
    assert_eq!(
        sent(&mut client),
        [(Header::new(kind::GOAWAY, 0, 0), vec![0; 8])]
    );
}

#[test]
fn a_reply_without_a_body_may_tell_its_length_and_nothing_else() {
    let get = Target {
        method: "HEAD",
        scheme: "http",
        authority: "localhost",
        path: "/",
    };
    // `content-length: 2`, as a literal with the name's index.
    let length = [OK, &[0x0F, 0x0D, 1, b'2']].concat();
    for (body, says) in [(&b""[..], "End"), (b"ab", "does not allow")] {
        let mut client = greeted();
        let slot = client
            .request(&Head::new(get, []), Body::Short(&[]))
            .unwrap();
        let data = frame(kind::DATA, flag::END_STREAM, 1, body);
        let events = received(&mut client, &[headers(1, 0, &length), data].concat()).unwrap();
        assert!(events[1].1.contains(says), "{events:?}");
        assert_eq!((events[1].0, events.len()), (slot.0, 2));
    }
}
