//! Any change to the ciphertext of a stream: the receiver reads a prefix of the sent bytes and then
//! fails or ends, and bytes instead of a handshake are refused.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use netping_protocol::psk::{Key, Noise};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex},
    runtime::{Builder, Runtime},
};

/// More than any stream of this test takes.
const CAPACITY: usize = 1 << 20;

const SENT: &[u8] = b"the first message, and then another";

static KEY: LazyLock<Key> = LazyLock::new(|| Key::generate().expect("random numbers"));
static RUNTIME: LazyLock<Runtime> =
    LazyLock::new(|| Builder::new_current_thread().build().expect("a runtime"));

fuzz_target!(|input: (u16, Vec<u8>)| {
    let (place, bytes) = input;
    RUNTIME.block_on(async {
        refuse(&bytes).await;
        change(usize::from(place), &bytes).await;
    });
});

async fn refuse(bytes: &[u8]) {
    let (near, mut far) = duplex(CAPACITY);
    far.write_all(bytes).await.expect("room for the bytes");
    far.shutdown().await.expect("an open stream");
    assert!(Noise::accept(near, &KEY).await.is_err());
}

async fn change(place: usize, bytes: &[u8]) {
    // Both ends speak to this test, which passes their bytes on.
    let (near, mut near_wire) = duplex(CAPACITY);
    let (far, mut far_wire) = duplex(CAPACITY);
    let wire = async {
        pass(&mut near_wire, &mut far_wire).await;
        pass(&mut far_wire, &mut near_wire).await;
    };
    let (sender, receiver, ()) =
        tokio::join!(Noise::connect(near, &KEY), Noise::accept(far, &KEY), wire);
    let (mut sender, mut receiver) = (sender.expect("a handshake"), receiver.expect("a handshake"));
    let (first, second) = SENT.split_at(SENT.len() / 2);
    for part in [first, second] {
        sender.write_all(part).await.expect("room for a message");
    }
    drop(sender);
    let mut sealed = Vec::new();
    near_wire
        .read_to_end(&mut sealed)
        .await
        .expect("ciphertext");
    let start = place % (sealed.len() + 1);
    let end = (start + bytes.len()).min(sealed.len());
    sealed.splice(start..end, bytes.iter().copied());
    far_wire
        .write_all(&sealed)
        .await
        .expect("room for the bytes");
    drop(far_wire);
    let mut received = Vec::new();
    let _ = receiver.read_to_end(&mut received).await;
    assert!(SENT.starts_with(&received), "{received:?}");
}

/// Passes one handshake message on.
async fn pass(from: &mut DuplexStream, to: &mut DuplexStream) {
    let length = from.read_u16().await.expect("a length");
    let mut message = vec![0; usize::from(length)];
    from.read_exact(&mut message).await.expect("a message");
    to.write_u16(length).await.expect("room for a length");
    to.write_all(&message).await.expect("room for a message");
}
