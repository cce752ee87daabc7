//! Any bytes as replies of HTTP/1.1, in any chunks: no panic, and the same replies as in one chunk.

#![no_main]

use libfuzzer_sys::fuzz_target;
use netping_protocol::http1::ReplyReader;
use netping_protocol_fuzz::chunks;

/// The replies on a stream: the status, the body and the end of each whole reply, and whether the
/// stream is refused.
type Read = (Vec<(u16, Vec<u8>, bool)>, bool);

fuzz_target!(|input: (bool, Vec<u8>, Vec<u8>)| {
    let (to_head, lengths, bytes) = input;
    let method = if to_head { "HEAD" } else { "GET" };
    let in_chunks = read(method, chunks(&lengths, &bytes));
    assert_eq!(in_chunks, read(method, [&bytes[..]]));
});

fn read<'a>(method: &str, chunks: impl IntoIterator<Item = &'a [u8]>) -> Read {
    let mut reader = ReplyReader::new(method);
    let (mut input, mut body, mut replies) = (Vec::new(), Vec::new(), Vec::new());
    for chunk in chunks {
        input.extend_from_slice(chunk);
        while !input.is_empty() {
            let Ok(progress) = reader.read(&input, |part| body.extend_from_slice(part)) else {
                return (replies, true);
            };
            input.drain(..progress.used);
            if !progress.is_whole {
                break;
            }
            replies.push((reader.status(), std::mem::take(&mut body), reader.is_last()));
        }
    }
    if reader.end() {
        replies.push((reader.status(), body, reader.is_last()));
    }
    (replies, false)
}
