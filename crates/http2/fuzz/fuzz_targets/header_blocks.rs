//! Any header blocks, each after its length: no panic, and the caches change no meaning.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|blocks: &[u8]| {
    for [cached, plain] in netping_http2::compared(blocks) {
        assert_eq!(cached, plain);
    }
});
