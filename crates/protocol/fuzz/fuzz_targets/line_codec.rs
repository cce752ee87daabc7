//! Any bytes on a new connection, in any chunks: no panic, and the same replies as in one chunk.

#![no_main]

use libfuzzer_sys::fuzz_target;
use netping_protocol::codec::Codec;
use netping_protocol_fuzz::{LIMITS, assert_chunks_do_not_matter};

fuzz_target!(|input: (Vec<u8>, Vec<u8>)| {
    let (lengths, bytes) = input;
    assert_chunks_do_not_matter(|| Codec::new(LIMITS), &lengths, &bytes);
});
