//! Any bytes from a server, in any chunks: no panic, and the same events and output as in one chunk, but for the
//! parts in which data come.

#![no_main]

use libfuzzer_sys::fuzz_target;
use netping_http2::{
    Config,
    client::{Body, Client, Event},
    head::{Head, Target},
};

/// Requests that are sent first: with a body that the windows do not hold, with a short one, and without.
const BODIES: [usize; 3] = [100_000, 10, 0];

/// The results of a server's bytes: events, output, and the error or the bytes left.
type Outcome = (Vec<(usize, String)>, Vec<u8>, Result<usize, String>);

fn receive(client: &mut Client, head: &Head, chunks: &[&[u8]]) -> Outcome {
    for length in BODIES {
        client.request(head, Body::Short(&vec![b'x'; length]));
    }
    if let Some(stream) = client.stream(head) {
        client.send(stream, Body::Short(&[b'y'; 100_000]), false);
        client.send(stream, Body::Short(b"z"), true);
    }
    let (mut events, mut input) = (Vec::<(usize, String)>::new(), Vec::new());
    for chunk in chunks {
        input.extend_from_slice(chunk);
        let taken = client.receive(&input, |slot, event| {
            let Event::Data(data) = event else {
                return events.push((slot.index(), format!("{event:?}")));
            };
            let data = data.escape_ascii();
            match events.last_mut() {
                Some((of, text)) if *of == slot.index() && text.starts_with("data") => {
                    text.push_str(&data.to_string());
                }
                _ => events.push((slot.index(), format!("data {data}"))),
            }
        });
        match taken {
            Ok(taken) => drop(input.drain(..taken)),
            Err(error) => return (events, client.output().to_vec(), Err(error.to_string())),
        }
    }
    (events, client.output().to_vec(), Ok(input.len()))
}

fuzz_target!(|input: (Vec<u8>, Vec<u8>)| {
    let (lengths, mut bytes) = input;
    // Most inputs would fail with their first frame otherwise.
    let greeting = b"\0\0\0\x04\0\0\0\0\0".to_vec();
    bytes.splice(..0, greeting);
    let target = Target {
        method: "POST",
        scheme: "http",
        authority: "localhost",
        path: "/",
    };
    let head = Head::new(target, []);
    let mut chunks = Vec::new();
    let mut rest = &bytes[..];
    for length in lengths {
        let (chunk, after) = rest.split_at(usize::from(length).min(rest.len()));
        chunks.push(chunk);
        rest = after;
    }
    chunks.push(rest);
    let new = || Client::new(Config::default());
    let whole = receive(&mut new(), &head, &[&bytes]);
    assert_eq!(receive(&mut new(), &head, &chunks), whole);
});
