//! Helpers of the fuzz targets.

use bytes::BytesMut;
use netping_protocol::{
    codec::{Codec, Limits, Request, Violation},
    frame::TIMES,
};

/// Small limits, so that short inputs exceed them.
pub const LIMITS: Limits = Limits {
    max_line: 64,
    max_frame: 64,
};

/// The result of serving a stream: the replies, and the violation or the number of bytes left.
pub type Served = (Vec<u8>, Result<usize, Violation>);

/// Serves a stream whose bytes arrive in these chunks. The times in its replies are 0: they are those of
/// the clock.
pub fn serve<'a>(mut codec: Codec, chunks: impl IntoIterator<Item = &'a [u8]>) -> Served {
    let (mut input, mut output) = (Vec::new(), BytesMut::new());
    for chunk in chunks {
        input.extend_from_slice(chunk);
        match answer(&mut codec, &input, &mut output) {
            Ok(left) => drop(input.drain(..input.len() - left)),
            Err(violation) => return (output.to_vec(), Err(violation)),
        }
    }
    (output.to_vec(), Ok(input.len()))
}

/// Answers the whole requests; returns the number of bytes left.
fn answer(codec: &mut Codec, mut left: &[u8], output: &mut BytesMut) -> Result<usize, Violation> {
    while let Some(request) = codec.next(&mut left)? {
        let is_times = matches!(request, Request::Times(_));
        let mut rest = codec.reply(request, output);
        while let Some(part) = rest.next(output) {
            output.extend_from_slice(part);
        }
        if is_times {
            let start = output.len() - TIMES;
            output[start..].fill(0);
        }
    }
    Ok(left.len())
}

/// Asserts that a stream gets the same replies in one chunk and in chunks of the given lengths.
pub fn assert_chunks_do_not_matter(codec: impl Fn() -> Codec, lengths: &[u8], bytes: &[u8]) {
    assert_eq!(
        serve(codec(), chunks(lengths, bytes)),
        serve(codec(), [bytes])
    );
}

/// Returns the chunks of a stream that have the given lengths, which repeat. A length of 0 stands for 256.
pub fn chunks<'a>(lengths: &[u8], bytes: &'a [u8]) -> Vec<&'a [u8]> {
    let mut chunks = Vec::new();
    let mut rest = bytes;
    let mut lengths = lengths.iter().cycle();
    while !rest.is_empty() {
        let length = match lengths.next() {
            None => rest.len(),
            Some(0) => 256,
            Some(&length) => usize::from(length),
        };
        let (chunk, after) = rest.split_at(length.min(rest.len()));
        chunks.push(chunk);
        rest = after;
    }
    chunks
}
