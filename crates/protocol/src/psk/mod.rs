//! Connections under a pre-shared key: the Noise framework, `Noise_NNpsk0_25519_ChaChaPoly_BLAKE2s`.
//!
//! Both sides hold the same 32 bytes, a [`Key`]. [`Noise`] wraps a byte stream on which nothing has been sent yet;
//! nobody without the key can read or change what goes over it. Who learns the key later cannot read what was recorded.
//!
//! Every Noise message, of the handshake and after it, is preceded by its length (u16 BE). The handshake is one message
//! from either side with an empty payload; its prologue is `netping/1`. A transport message has at most 65535 bytes of
//! ciphertext, the last 16 of which are the tag. Its nonce is a counter, so that a replayed message does not decrypt.
//!
//! Noise has no closing message: an end between two messages is an end, whoever made it. Lines and frames show whether
//! they are whole.

mod key;

use std::{
    fmt, io,
    pin::{Pin, pin},
    task::{Context, Poll, Waker, ready},
};

use bytes::{Buf, BytesMut};
use snow::{Builder, HandshakeState, TransportState};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};

use crate::tls::Negotiated;

pub use key::{KEY_LENGTH, Key, KeyError};

const PATTERN: &str = "Noise_NNpsk0_25519_ChaChaPoly_BLAKE2s";
const PROLOGUE: &[u8] = b"netping/1";
/// The longest handshake message that is read, in bytes. Those of the pattern have 48.
const MAX_HANDSHAKE: usize = 1024;
/// The length before each message, in bytes.
const HEADER: usize = 2;
const TAG: usize = 16;
const MAX_MESSAGE: usize = u16::MAX as usize;

/// Why a [`Noise`] connection failed. It is inside an [`io::Error`]: see [`io::Error::get_ref`].
#[derive(Debug, PartialEq, thiserror::Error)]
pub enum NoiseError {
    /// This side could not do its part, such as for want of randomness.
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

/// A byte stream under a [`Key`].
///
/// A write is encrypted and sent at once, as far as the stream beneath takes it. The rest of its message, 64 KiB at
/// most, goes out with the next call of any kind, or with a read that waits in another task: who writes and then reads
/// need not flush. Who writes while nobody reads must.
pub struct Noise<S> {
    stream: S,
    cipher: Cipher,
    /// Ciphertext as it came in.
    input: BytesMut,
    /// What was decrypted and not yet read.
    plain: BytesMut,
    /// Ciphertext to be sent: one message, or what is left of it.
    sealed: BytesMut,
    /// Who waits in a read: sends what a write has left behind.
    reader: Option<Waker>,
    /// Who waits in a write: the stream has room for one waker, and a read that sends in its place replaces it.
    writer: Option<Waker>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Noise<S> {
    /// Opens a connection as the client. There is no time limit: that is the caller's.
    ///
    /// # Errors
    /// Those of `stream`, and a [`NoiseError`]: `InvalidData` from a peer that does not have the key,
    /// `UnexpectedEof` from one that closes, as a server does that has another.
    pub async fn connect(mut stream: S, key: &Key) -> io::Result<Self> {
        let mut state = handshake(key)
            .and_then(Builder::build_initiator)
            .map_err(NoiseError::Local)?;
        send(&mut stream, &mut state).await?;
        receive(&mut stream, &mut state).await?;
        Self::new(stream, state)
    }

    /// Opens a connection as the server. There is no time limit: that is the caller's.
    ///
    /// Someone without the key can replay a client's first message and get this far, but no further: nothing it sends
    /// then decrypts.
    ///
    /// # Errors
    /// Those of [`Noise::connect`].
    pub async fn accept(mut stream: S, key: &Key) -> io::Result<Self> {
        let mut state = handshake(key)
            .and_then(Builder::build_responder)
            .map_err(NoiseError::Local)?;
        receive(&mut stream, &mut state).await?;
        send(&mut stream, &mut state).await?;
        Self::new(stream, state)
    }

    fn new(stream: S, state: HandshakeState) -> io::Result<Self> {
        let cipher = Cipher(state.into_transport_mode().map_err(NoiseError::Local)?);
        let (input, plain, sealed) = (BytesMut::new(), BytesMut::new(), BytesMut::new());
        Ok(Self {
            stream,
            cipher,
            input,
            plain,
            sealed,
            reader: None,
            writer: None,
        })
    }

    /// Sends what is sealed.
    fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.sealed.is_empty() {
            match ready!(Pin::new(&mut self.stream).poll_write(cx, &self.sealed))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                sent => self.sealed.advance(sent),
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Sends what is sealed, for a caller that waits until all of it is sent.
    fn poll_drain(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let sent = self.poll_send(cx);
        if sent.is_pending() {
            park(&mut self.writer, cx);
        }
        sent
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Noise<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        // A failure to send is the next write's to report: what the peer has sent can still be read.
        if !this.sealed.is_empty()
            && this.poll_send(cx).is_ready()
            && let Some(writer) = this.writer.take()
        {
            writer.wake();
        }
        if buf.remaining() == 0 {
            return Poll::Ready(Ok(()));
        }
        // More than once where a read ends inside a message, or a message is empty.
        while this.plain.is_empty() {
            let opened = this.cipher.open(&mut this.input, &mut this.plain);
            if !this.plain.is_empty() {
                // What came before a bad message is good. The next read meets the bad one again.
                break;
            }
            opened?;
            this.input.reserve(HEADER + MAX_MESSAGE);
            let Poll::Ready(read) = pin!(this.stream.read_buf(&mut this.input)).poll(cx) else {
                park(&mut this.reader, cx);
                return Poll::Pending;
            };
            if read? == 0 {
                let whole = this.input.is_empty();
                return Poll::Ready(if whole {
                    Ok(())
                } else {
                    Err(NoiseError::Truncated.into())
                });
            }
        }
        let length = this.plain.len().min(buf.remaining());
        buf.put_slice(&this.plain[..length]);
        this.plain.advance(length);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Noise<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        ready!(this.poll_drain(cx))?;
        let length = buf.len().min(MAX_MESSAGE - TAG);
        if length > 0 {
            this.cipher.seal(&buf[..length], &mut this.sealed)?;
        }
        // This caller goes its way; one that waits in a read, perhaps in another task, sends the rest.
        if this.poll_send(cx)?.is_pending()
            && let Some(reader) = this.reader.take()
        {
            reader.wake();
        }
        Poll::Ready(Ok(length))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(this.poll_drain(cx))?;
        Pin::new(&mut this.stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(this.poll_drain(cx))?;
        Pin::new(&mut this.stream).poll_shutdown(cx)
    }
}

impl<S: fmt::Debug> fmt::Debug for Noise<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Noise")
            .field("stream", &self.stream)
            .finish_non_exhaustive()
    }
}

/// The messages after the handshake, without any stream.
struct Cipher(TransportState);

impl Cipher {
    /// Appends `plain` to `output` as one message. It has at most 65519 bytes.
    fn seal(&mut self, plain: &[u8], output: &mut BytesMut) -> Result<(), NoiseError> {
        let start = output.len();
        let message = start + HEADER;
        output.resize(message + plain.len() + TAG, 0);
        match self.0.write_message(plain, &mut output[message..]) {
            Ok(length) => output[start..message].copy_from_slice(&(length as u16).to_be_bytes()),
            Err(error) => {
                output.truncate(start);
                return Err(NoiseError::Local(error));
            }
        }
        Ok(())
    }

    /// Takes the whole messages off `input` and appends what they hold to `output`.
    ///
    /// One that does not decrypt stays where it is, so that every later call fails too.
    fn open(&mut self, input: &mut BytesMut, output: &mut BytesMut) -> Result<(), NoiseError> {
        while let Some((header, rest)) = input.split_first_chunk::<HEADER>() {
            let length = usize::from(u16::from_be_bytes(*header));
            let plain = length.checked_sub(TAG).ok_or(NoiseError::Transport)?;
            let Some(message) = rest.get(..length) else {
                break;
            };
            let start = output.len();
            output.resize(start + plain, 0);
            if self.0.read_message(message, &mut output[start..]).is_err() {
                output.truncate(start);
                return Err(NoiseError::Transport);
            }
            input.advance(HEADER + length);
        }
        Ok(())
    }
}

/// What the two sides of every [`Noise`] connection use.
pub fn negotiated() -> Negotiated {
    Negotiated {
        protocol: PATTERN.to_owned(),
        cipher_suite: "ChaChaPoly_BLAKE2s".to_owned(),
        key_exchange: "X25519".to_owned(),
        resumed: Some(false),
    }
}

fn handshake(key: &Key) -> Result<Builder<'_>, snow::Error> {
    Builder::new(PATTERN.parse()?)
        .prologue(PROLOGUE)?
        .psk(0, &key.0)
}

async fn send<S: AsyncWrite + Unpin>(stream: &mut S, state: &mut HandshakeState) -> io::Result<()> {
    let mut bytes = [0; HEADER + MAX_HANDSHAKE];
    let length = state
        .write_message(&[], &mut bytes[HEADER..])
        .map_err(NoiseError::Local)?;
    bytes[..HEADER].copy_from_slice(&(length as u16).to_be_bytes());
    stream.write_all(&bytes[..HEADER + length]).await?;
    stream.flush().await
}

async fn receive<S: AsyncRead + Unpin>(
    stream: &mut S,
    state: &mut HandshakeState,
) -> io::Result<()> {
    let mut bytes = [0; MAX_HANDSHAKE];
    let length = usize::from(stream.read_u16().await.map_err(closed)?);
    let message = bytes
        .get_mut(..length)
        .ok_or(NoiseError::HandshakeTooLong(length))?;
    stream.read_exact(message).await.map_err(closed)?;
    // No room for a payload: a message that has one is refused.
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

fn park(slot: &mut Option<Waker>, cx: &Context<'_>) {
    slot.get_or_insert_with(|| cx.waker().clone())
        .clone_from(cx.waker());
}

#[cfg(test)]
mod tests {
    use tokio::io::{DuplexStream, duplex};

    use super::*;

    static KEY: Key = Key([7; KEY_LENGTH]);

    /// Both ends of a connection whose stream holds less than a message.
    async fn pair() -> (Noise<DuplexStream>, Noise<DuplexStream>) {
        let (near, far) = duplex(1000);
        tokio::try_join!(Noise::connect(near, &KEY), Noise::accept(far, &KEY)).unwrap()
    }

    fn reason(error: &io::Error) -> &NoiseError {
        error.get_ref().unwrap().downcast_ref().unwrap()
    }

    #[tokio::test]
    async fn every_length_survives_the_wire_without_a_flush() {
        for length in [0, 1, 65_519, 65_520, 200_000] {
            let (mut near, mut far) = pair().await;
            let sent: Vec<u8> = (0..length).map(|index: usize| index as u8).collect();
            let (mut taken, mut echoed) = (vec![0; length], Vec::new());
            let asking = async {
                near.write_all(&sent).await?;
                near.read_to_end(&mut echoed).await
            };
            let answering = async {
                far.read_exact(&mut taken).await?;
                far.write_all(&taken).await?;
                far.shutdown().await
            };
            tokio::try_join!(asking, answering).unwrap();
            assert!(echoed == sent, "{length} bytes");
        }
    }

    #[tokio::test]
    async fn a_reader_in_another_task_sends_what_the_writer_left() {
        let (near, mut far) = pair().await;
        let (mut reader, mut writer) = tokio::io::split(near);
        let reading = tokio::spawn(async move { reader.read_u8().await.unwrap() });
        tokio::spawn(async move {
            writer.write_all(&vec![1; 200_000]).await.unwrap();
            std::future::pending::<()>().await;
        });
        far.read_exact(&mut vec![0; 200_000]).await.unwrap();
        far.write_all(&[2]).await.unwrap();
        assert_eq!(reading.await.unwrap(), 2);
    }

    #[tokio::test]
    async fn an_empty_message_is_no_end() {
        let (mut near, mut far) = pair().await;
        near.cipher.seal(b"", &mut near.sealed).unwrap();
        near.write_all(b"x").await.unwrap();
        assert_eq!(far.read_u8().await.unwrap(), b'x');
    }

    #[tokio::test]
    async fn another_key_is_refused_on_both_sides() {
        let (near, far) = duplex(1000);
        let other = Key([8; KEY_LENGTH]);
        let (near, far) = tokio::join!(Noise::connect(near, &other), Noise::accept(far, &KEY));
        let (near, far) = (near.unwrap_err(), far.unwrap_err());
        assert_eq!(
            (near.kind(), reason(&near)),
            (io::ErrorKind::UnexpectedEof, &NoiseError::HandshakeClosed)
        );
        assert_eq!(
            (far.kind(), reason(&far)),
            (io::ErrorKind::InvalidData, &NoiseError::Handshake)
        );
    }

    #[tokio::test]
    async fn a_peer_without_the_key_is_refused_while_it_waits() {
        let http = (
            b"GET / HTTP/1.1\r\n".to_vec(),
            NoiseError::HandshakeTooLong(0x4745),
        );
        let guess = ([&[0_u8, 48][..], &[9; 48]].concat(), NoiseError::Handshake);
        for (bytes, expected) in [http, guess] {
            let (near, mut server) = duplex(1000);
            let (far, mut client) = duplex(1000);
            server.write_all(&bytes).await.unwrap();
            client.write_all(&bytes).await.unwrap();
            assert_eq!(
                reason(&Noise::connect(near, &KEY).await.unwrap_err()),
                &expected
            );
            assert_eq!(
                reason(&Noise::accept(far, &KEY).await.unwrap_err()),
                &expected
            );
        }
    }

    #[tokio::test]
    async fn a_changed_stream_ends_for_good() {
        type Change = fn(&mut [u8]);
        // Two messages of 21 bytes each: 2 of length, 3 of text, 16 of tag.
        let cases: [(Change, &str); 4] = [
            (|tampered| tampered[24] ^= 1, "one"),
            (|shortened| shortened[22] = 3, "one"),
            (|replayed| replayed.copy_within(..21, 21), "one"),
            (|reordered| reordered.rotate_left(21), ""),
        ];
        for (change, good) in cases {
            let received = receive_changed(|sealed| change(sealed)).await;
            assert_eq!(received, (good.to_owned(), io::ErrorKind::InvalidData));
        }
        let received = receive_changed(|sealed| sealed.truncate(41)).await;
        assert_eq!(received, ("one".to_owned(), io::ErrorKind::UnexpectedEof));
    }

    /// What is read of the messages "one" and "two" after a change to their ciphertext, and the error after that.
    async fn receive_changed(change: impl FnOnce(&mut BytesMut)) -> (String, io::ErrorKind) {
        let (mut near, mut far) = pair().await;
        near.cipher.seal(b"one", &mut near.sealed).unwrap();
        near.cipher.seal(b"two", &mut near.sealed).unwrap();
        change(&mut near.sealed);
        near.shutdown().await.unwrap();
        let mut received = String::new();
        let mut bytes = [0; 8];
        let error = loop {
            match far.read(&mut bytes).await {
                Ok(length) => received.push_str(std::str::from_utf8(&bytes[..length]).unwrap()),
                Err(error) => break error,
            }
        };
        let again = far.read(&mut bytes).await.unwrap_err();
        assert_eq!(
            (again.kind(), reason(&again)),
            (error.kind(), reason(&error))
        );
        (received, error.kind())
    }
}
