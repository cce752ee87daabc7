//! Errors of encrypted streams.

use std::io;

/// Limit on a handshake message, in bytes. Those of the pattern have 48.
pub(super) const MAX_HANDSHAKE: usize = 1024;

/// A [`Noise`](super::Noise) connection failed. The error is inside an [`io::Error`]: see
/// [`io::Error::get_ref`].
#[derive(Debug, PartialEq, thiserror::Error)]
pub enum NoiseError {
    /// This side failed, for example for lack of randomness.
    #[error("the encryption failed on this side: {0}")]
    Local(snow::Error),
    /// The peer's handshake message does not decrypt.
    #[error(
        "the handshake failed: the peer has another pre-shared key, or speaks another protocol"
    )]
    Handshake,
    /// The peer announced a handshake message of this many bytes.
    #[error("a handshake message of {0} bytes, over {limit}: the peer speaks another protocol", limit = MAX_HANDSHAKE)]
    HandshakeTooLong(usize),
    /// The peer closed before the handshake was done.
    #[error("the peer closed during the handshake: it may have another pre-shared key")]
    HandshakeClosed,
    /// A message does not decrypt.
    #[error("a message was tampered with, replayed or put out of order")]
    Transport,
    /// The stream ended inside a message.
    #[error("the connection ended inside an encrypted message")]
    Truncated,
}

impl From<NoiseError> for io::Error {
    fn from(error: NoiseError) -> Self {
        let kind = match error {
            NoiseError::Local(_) => io::ErrorKind::Other,
            NoiseError::HandshakeClosed | NoiseError::Truncated => io::ErrorKind::UnexpectedEof,
            NoiseError::Handshake | NoiseError::HandshakeTooLong(_) | NoiseError::Transport => {
                io::ErrorKind::InvalidData
            }
        };
        Self::new(kind, error)
    }
}
