//! The handshake: one message from either side, with an empty payload.

use std::io;

use snow::{Builder, HandshakeState};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::{
    cipher::Resolver,
    error::{MAX_HANDSHAKE, NoiseError},
    key::Key,
};

pub(super) const PATTERN: &str = "Noise_NNpsk0_25519_ChaChaPoly_BLAKE2s";

/// Length of the field before each message, in bytes.
pub(super) const HEADER: usize = 2;

const PROLOGUE: &[u8] = b"netping/1";

/// Returns the builder of either side of the handshake.
pub(super) fn builder(key: &Key) -> Result<Builder<'_>, snow::Error> {
    Builder::with_resolver(PATTERN.parse()?, Box::new(Resolver))
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
