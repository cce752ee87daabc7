//! The handshake: one message from either side, with an empty payload.

use std::io;

use snow::{Builder, HandshakeState};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::{HEADER, Key, PATTERN};

const PROLOGUE: &[u8] = b"netping/1";

/// Limit on a handshake message, in bytes. Those of the pattern have 48.
const MAX_HANDSHAKE: usize = 1024;

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

/// Returns the builder of either side of the handshake.
pub(super) fn builder(key: &Key) -> Result<Builder<'_>, snow::Error> {
    Builder::new(PATTERN.parse()?)
        .prologue(PROLOGUE)?
        .psk(0, &key.0)
}

/// Sends the next handshake message.
pub(super) async fn send<S: AsyncWrite + Unpin>(
    stream: &mut S,
    state: &mut HandshakeState,
) -> io::Result<()> {
    let mut bytes = [0; HEADER + MAX_HANDSHAKE];
    let length = state
        .write_message(&[], &mut bytes[HEADER..])
        .map_err(NoiseError::Local)?;
    bytes[..HEADER].copy_from_slice(&(length as u16).to_be_bytes());
    stream.write_all(&bytes[..HEADER + length]).await?;
    stream.flush().await
}

/// Receives the next handshake message.
pub(super) async fn receive<S: AsyncRead + Unpin>(
    stream: &mut S,
    state: &mut HandshakeState,
) -> io::Result<()> {
    let mut bytes = [0; MAX_HANDSHAKE];
    let length = usize::from(stream.read_u16().await.map_err(closed)?);
    let message = bytes
        .get_mut(..length)
        .ok_or(NoiseError::HandshakeTooLong(length))?;
    stream.read_exact(message).await.map_err(closed)?;
    // No room for a payload: a message with one is refused.
    state
        .read_message(message, &mut [])
        .map_err(|_| NoiseError::Handshake)?;
    Ok(())
}

fn closed(error: io::Error) -> io::Error {
    if error.kind() == io::ErrorKind::UnexpectedEof {
        NoiseError::HandshakeClosed.into()
    } else {
        error
    }
}
