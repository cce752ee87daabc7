//! Connections with a pre-shared key: the Noise framework, `Noise_NNpsk0_25519_ChaChaPoly_BLAKE2s`.
//!
//! Both sides hold the same 32 bytes, a [`Key`]. [`Noise`] wraps a byte stream on which nothing has
//! been sent yet. Nobody without the key can read or change its content; a key that leaks later
//! does not reveal recorded traffic.
//!
//! Every Noise message, during the handshake and after it, is preceded by its length (u16 BE). The
//! handshake is one message from either side with an empty payload; its prologue is `netping/1`. A
//! transport message has at most 65535 bytes of ciphertext, the last 16 of which are the tag. Its
//! nonce is a counter, so a replayed message does not decrypt.
//!
//! Noise has no closing message: an end between two messages is accepted, even if an attacker
//! caused it. Lines and frames show whether they are whole.

mod cipher;
mod error;
mod handshake;
mod key;
mod stream;

use crate::tls::Negotiated;

pub use error::NoiseError;
pub use key::{KEY_LENGTH, Key};
pub use stream::Noise;

/// Returns what every [`Noise`] connection negotiates.
pub fn negotiated() -> Negotiated {
    Negotiated {
        protocol: handshake::PATTERN.to_owned(),
        cipher_suite: "ChaChaPoly_BLAKE2s".to_owned(),
        key_exchange: "X25519".to_owned(),
        resumed: Some(false),
    }
}
