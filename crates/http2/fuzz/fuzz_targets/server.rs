//! Any bytes from a client, in any chunks: no panic, and the same events and output as in one chunk.

#![no_main]

use libfuzzer_sys::fuzz_target;
use netping_http2::{
    Config,
    head::Head,
    server::{self, Event, Request, Route, Server},
};

/// The length of the reply: that of the path, in kilobytes.
#[derive(Debug, Clone, Copy)]
struct Length(usize);

impl Route for Length {
    fn of(request: &Request) -> Self {
        Self(request.path().len() << 10)
    }
}

/// The results of a client's bytes: events, output, and the error or the bytes left.
type Outcome = (Vec<String>, Vec<u8>, Result<usize, String>);

/// Takes the chunks, and replies to each second request that is whole.
fn receive(chunks: &[&[u8]], heads: &[Head; 2]) -> Outcome {
    let mut server = Server::<Length>::new(server::Config {
        receiving: Config::default(),
        streams: 5,
    });
    let (mut events, mut input, mut lengths) = (Vec::new(), Vec::new(), Vec::new());
    for chunk in chunks {
        input.extend_from_slice(chunk);
        let mut rest = &input[..];
        loop {
            let event = match server.next(&mut rest) {
                Ok(Some(event)) => event,
                Ok(None) => break,
                Err(error) => return (events, server.output().to_vec(), Err(error.to_string())),
            };
            events.push(format!("{event:?}"));
            let whole = match event {
                Event::Request { slot, route, is_end } => {
                    lengths.resize(lengths.len().max(slot.index() + 1), 0);
                    lengths[slot.index()] = route.0;
                    is_end.then_some(slot)
                }
                Event::Data { slot, is_end, .. } => is_end.then_some(slot),
                Event::Reset(_) => None,
            };
            if let Some(slot) = whole.filter(|_| events.len() % 2 == 0) {
                let body = vec![b'x'; lengths[slot.index()]];
                server.reply(slot, &heads[0], &body, &heads[1]);
            }
        }
        let taken = input.len() - rest.len();
        input.drain(..taken);
    }
    (events, server.output().to_vec(), Ok(input.len()))
}

fuzz_target!(|input: (Vec<u8>, Vec<u8>)| {
    let (lengths, mut bytes) = input;
    // Most inputs would fail with their first bytes otherwise.
    let greeting = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0".to_vec();
    bytes.splice(..0, greeting);
    let heads = [
        Head::of_reply(Some(200), &[("content-type", "text/plain")]),
        Head::of_reply(None, &[("grpc-status", "0")]),
    ];
    let mut chunks = Vec::new();
    let mut rest = &bytes[..];
    for length in lengths {
        let (chunk, after) = rest.split_at(usize::from(length).min(rest.len()));
        chunks.push(chunk);
        rest = after;
    }
    chunks.push(rest);
    assert_eq!(receive(&chunks, &heads), receive(&[&bytes], &heads));
});
