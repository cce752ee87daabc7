//! Streamed bodies of requests, long frames, and output in parts.

use std::io::IoSlice;

use super::*;

/// A stream on a new connection, whose windows are these; the output has been written.
fn streaming(stream_window: u32, connection_window: u32) -> (Client, Slot) {
    let mut client = Client::new(Config::default());
    let more = update(0, connection_window - DEFAULT);
    received(&mut client, &setting(4, stream_window)).unwrap();
    received(&mut client, &more).unwrap();
    let slot = client.stream(&head()).unwrap();
    assert_eq!(body_of(&sent(&mut client), 1), (0, false));
    (client, slot)
}

#[test]
fn pieces_of_a_stream_are_sent_at_once_as_far_as_the_window_allows() {
    let (mut client, slot) = streaming(10, 100_000);
    assert!(client.send(slot, Body::Short(b"abcd"), false));
    assert_eq!(body_of(&sent(&mut client), 1), (4, false));
    assert_eq!((client.unsent(slot), client.next_sent()), (0, None));
    assert!(client.send(slot, Body::Short(b"efghijkl"), false));
    assert_eq!(body_of(&sent(&mut client), 1), (6, false));
    // Nothing is to be written: the server holds the rest back.
    assert_eq!((client.unsent(slot), client.next_sent()), (2, None));
    received(&mut client, &update(1, 1)).unwrap();
    assert_eq!((client.unsent(slot), client.next_sent()), (1, None));
    received(&mut client, &update(1, 5)).unwrap();
    assert_eq!((client.unsent(slot), client.next_sent()), (0, Some(slot)));
    assert_eq!(client.next_sent(), None);
    assert_eq!(body_of(&sent(&mut client), 1), (2, false));
    assert!(client.send(slot, Body::Short(&[]), true));
    assert_eq!(body_of(&sent(&mut client), 1), (0, true));
    // The body is whole.
    assert!(!client.send(slot, Body::Short(b"m"), false));
    assert_eq!(sent(&mut client), []);
    let reply = [
        headers(1, 0, OK),
        frame(kind::DATA, flag::END_STREAM, 1, b"x"),
    ]
    .concat();
    received(&mut client, &reply).unwrap();
    // It has been sent before the reply's end.
    assert_eq!(sent(&mut client), []);
}

#[test]
fn the_end_of_a_stream_may_come_with_its_last_piece_or_behind_what_is_held_back() {
    let (mut client, slot) = streaming(10, 100_000);
    client.send(slot, Body::Short(b"ab"), true);
    assert_eq!(body_of(&sent(&mut client), 1), (2, true));
    let (mut client, slot) = streaming(10, 100_000);
    client.send(slot, Body::Short(&[b'x'; 11]), false);
    // A piece that comes too early follows those before.
    client.send(slot, Body::Short(&[b'y'; 2]), false);
    client.send(slot, Body::Short(&[]), true);
    assert_eq!(client.unsent(slot), 3);
    received(&mut client, &update(1, 2)).unwrap();
    assert_eq!(body_of(&sent(&mut client), 1), (12, false));
    received(&mut client, &update(1, 2)).unwrap();
    let frames = sent(&mut client);
    assert_eq!(body_of(&frames, 1), (1, true));
    assert_eq!(frames[0].1, b"y");
    // Whoever sent the last piece waits for that, too.
    assert_eq!((client.next_sent(), client.next_sent()), (Some(slot), None));
}

#[test]
fn a_stream_that_waits_for_another_keeps_what_it_is_given() {
    let mut client = Client::new(Config::default());
    received(&mut client, &setting(3, 1)).unwrap();
    let first = request(&mut client, 0);
    let slot = client.stream(&head()).unwrap();
    client.send(slot, Body::Short(b"ab"), false);
    sent(&mut client);
    assert_eq!((client.unsent(slot), client.next_sent()), (2, None));
    let last = client.stream(&head()).unwrap();
    client.send(last, Body::Short(b"abc"), true);
    client.close(first);
    assert_eq!((client.unsent(slot), client.next_sent()), (0, Some(slot)));
    assert_eq!(body_of(&sent(&mut client), 3), (2, false));
    client.close(slot);
    assert_eq!((client.unsent(last), client.next_sent()), (0, Some(last)));
    assert_eq!(body_of(&sent(&mut client), 5), (3, true));
}

#[test]
fn a_stream_takes_nothing_after_its_end() {
    let (mut client, slot) = streaming(10, 100_000);
    client.send(slot, Body::Short(&[b'x'; 11]), false);
    sent(&mut client);
    received(&mut client, &headers(1, flag::END_STREAM, OK)).unwrap();
    // The rest of the body is not wanted.
    let cancel = (Header::new(kind::RST_STREAM, 0, 1), vec![0, 0, 0, 8]);
    assert_eq!(sent(&mut client), [cancel]);
    assert_eq!(client.unsent(slot), 0);
    assert!(!client.send(slot, Body::Short(b"m"), true));
    assert_eq!(sent(&mut client), []);
}

/// A connection with a request, for frames of up to 100,000 bytes. The head of the reply has come.
fn with_large_frames() -> (Client, Slot) {
    let mut client = Client::new(Config {
        stream_window: 200_000,
        connection_window: 200_000,
        frame: 100_000,
    });
    let settings = &sent(&mut client)[0].1;
    assert_eq!(settings[12..], [0, 5, 0, 1, 0x86, 0xA0]);
    received(&mut client, &frame(kind::SETTINGS, 0, 0, &[])).unwrap();
    let slot = request(&mut client, 0);
    received(&mut client, &headers(1, 0, OK)).unwrap();
    sent(&mut client);
    (client, slot)
}

#[test]
fn data_are_given_as_they_come() {
    let (mut client, slot) = with_large_frames();
    let payload = [&[3][..], &vec![b'x'; 99_996], &[0; 3]].concat();
    let whole = frame(kind::DATA, flag::PADDED | flag::END_STREAM, 1, &payload);
    // Neither the header alone nor with the padding's length to come is enough.
    for length in [0, 8, 9] {
        assert_eq!(client.receive(&whole[..length], |_, _| panic!()), Ok(0));
    }
    assert_eq!(received(&mut client, &whole[..10]), Ok(vec![]));
    let data = |length| vec![(slot.0, format!("data {length}"))];
    assert_eq!(received(&mut client, &whole[10..15]), Ok(data(5)));
    assert_eq!(received(&mut client, &[]), Ok(vec![]));
    // The whole frame counts, with its padding.
    assert_eq!(client.unreleased(), 100_000 - 4);
    assert_eq!(received(&mut client, &whole[15..100_007]), Ok(data(99_991)));
    let end = vec![(slot.0, "End".to_owned())];
    assert_eq!(received(&mut client, &whole[100_007..]), Ok(end));
    assert_eq!(client.unreleased(), 0);
}

#[test]
fn the_rest_of_a_frame_is_skipped_that_nobody_wants_any_more() {
    let (mut client, slot) = with_large_frames();
    let whole = frame(kind::DATA, flag::END_STREAM, 1, &[b'x'; 1000]);
    received(&mut client, &whole[..100]).unwrap();
    client.close(slot);
    assert_eq!(client.unreleased(), 0);
    let other = request(&mut client, 0);
    assert_eq!(other, slot);
    assert_eq!(received(&mut client, &whole[100..]), Ok(vec![]));
    assert_eq!(client.unreleased(), 0);
    // It was the last one of its stream.
    let error = received(&mut client, &frame(kind::DATA, 0, 1, b"x")).unwrap_err();
    assert_eq!(error.reason, Reason::STREAM_CLOSED);
}

#[test]
fn only_data_may_be_as_long_as_the_frames_that_are_allowed() {
    let long = |kind, length| {
        let (mut client, _) = with_large_frames();
        let header = Header::new(kind, 0, 1).encode(length);
        client
            .receive(&header, |_, _| {})
            .map_err(|error| error.reason)
    };
    let too_long = Err(Reason::FRAME_SIZE_ERROR);
    assert_eq!(long(kind::DATA, 100_000), Ok(9));
    assert_eq!(long(kind::DATA, 100_001), too_long);
    assert_eq!(long(kind::HEADERS, 65_536), Ok(0));
    assert_eq!(long(kind::HEADERS, 65_537), too_long);
}

fn joined(slices: &[IoSlice<'_>]) -> Vec<u8> {
    slices.iter().flat_map(|slice| slice.to_vec()).collect()
}

#[test]
fn large_parts_of_a_shared_body_are_written_where_they_lie() {
    let (mut client, slot) = streaming(100_000, 200_000);
    let body: Bytes = (0..50_000_u32)
        .map(|at| (at * 7 + (at >> 8)) as u8)
        .collect();
    assert!(client.send(slot, Body::Shared(&body), false));
    assert!(client.send(slot, Body::Short(b"end"), true));
    let mut expected = Vec::new();
    for part in body.chunks(16_384) {
        expected.extend(frame(kind::DATA, 0, 1, part));
    }
    expected.extend(frame(kind::DATA, flag::END_STREAM, 1, b"end"));
    let is_shared = |part: &[u8]| body.as_ptr_range().contains(&part.as_ptr());
    let mut slices = [IoSlice::new(&[]); 20];
    let count = client.parts(&mut slices);
    assert_eq!(joined(&slices[..count]), expected);
    // Three frames are whole, and the rest is copied.
    let shared = slices[..count].iter().map(|part| is_shared(part));
    assert!(shared.eq([false, true, false, true, false, true, false]));
    assert_eq!(client.parts(&mut slices[..2]), 2);
    // Any number of bytes may be written at once.
    let mut written = Vec::new();
    for length in [5, 4, 20_000, 16_375, 1, 8, 13_000]
        .into_iter()
        .chain([3].into_iter().cycle())
    {
        if client.output().is_empty() {
            break;
        }
        assert!(client.is_in_parts() || written.len() > 49_000);
        let mut slices = [IoSlice::new(&[]); 20];
        let count = client.parts(&mut slices);
        let all = joined(&slices[..count]);
        assert!(all.starts_with(client.output()));
        let length = length.min(all.len());
        written.extend_from_slice(&all[..length]);
        client.written(length);
    }
    assert!(written == expected);
    assert!(!client.is_in_parts());
}

#[test]
fn the_output_holds_no_more_of_a_body_than_it_has_room_for() {
    let (mut client, slot) = streaming(2_000_000, 2_000_000);
    let body = Bytes::from(vec![b'x'; 1_000_000]);
    client.send(slot, Body::Shared(&body), true);
    let unsent = client.unsent(slot);
    let mut slices = [IoSlice::new(&[]); 100];
    let count = client.parts(&mut slices);
    let waiting = joined(&slices[..count]).len();
    // It is cut between frames only.
    assert!(waiting < (256 << 10) + 16_384 + 20 * 9, "{waiting}");
    assert!(body.len() - unsent < waiting);
    // All of it goes through, with one end.
    let frames = sent(&mut client);
    assert_eq!(body_of(&frames, 1), (1_000_000, true));
    let ends = frames
        .iter()
        .filter(|(header, _)| header.has(flag::END_STREAM));
    assert_eq!(ends.count(), 1);
}
