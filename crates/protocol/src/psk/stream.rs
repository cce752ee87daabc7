//! The encrypted stream after the handshake.

use std::{
    fmt, io,
    pin::{Pin, pin},
    task::{Context, Poll, Waker, ready},
};

use bytes::{Buf, BytesMut};
use snow::{Builder, HandshakeState, TransportState};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};

use super::{
    cipher::TAG,
    error::NoiseError,
    handshake::{self, HEADER},
    key::Key,
};

/// Longest ciphertext of a message, in bytes.
const MAX_MESSAGE: usize = u16::MAX as usize;

/// A byte stream that is encrypted with a [`Key`].
///
/// A write is encrypted and sent at once, as far as the inner stream takes it. The rest of its
/// message, 64 KiB at most, is sent by the next call of any kind, or by a read that waits in
/// another task. A task that writes and then reads need not flush; one that only writes must.
pub struct Noise<S> {
    stream: S,
    cipher: Cipher,
    /// Received ciphertext.
    input: BytesMut,
    /// Decrypted bytes that have not been read.
    plain: BytesMut,
    /// Ciphertext to send: the rest of one message.
    sealed: BytesMut,
    /// Waker of the pending read, which also sends the rest of a write.
    reader: Option<Waker>,
    /// Waker of the pending write. The inner stream holds a single waker, which a read that sends
    /// replaces.
    writer: Option<Waker>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Noise<S> {
    /// Performs the handshake as the client. A time limit is up to the caller.
    ///
    /// # Errors
    /// Fails if `stream` fails, and with a [`NoiseError`]: `InvalidData` if the peer does not have
    /// the key, `UnexpectedEof` if it closes, as a server with another key does.
    pub async fn connect(mut stream: S, key: &Key) -> io::Result<Self> {
        let mut state = handshake::builder(key)
            .and_then(Builder::build_initiator)
            .map_err(NoiseError::Local)?;
        handshake::send(&mut stream, &mut state).await?;
        handshake::receive(&mut stream, &mut state).await?;
        Self::new(stream, state)
    }

    /// Performs the handshake as the server. A time limit is up to the caller.
    ///
    /// A peer without the key that replays a client's first message gets this far, but no further:
    /// nothing that it sends decrypts.
    ///
    /// # Errors
    /// Fails as [`Noise::connect`] does.
    pub async fn accept(mut stream: S, key: &Key) -> io::Result<Self> {
        let mut state = handshake::builder(key)
            .and_then(Builder::build_responder)
            .map_err(NoiseError::Local)?;
        handshake::receive(&mut stream, &mut state).await?;
        handshake::send(&mut stream, &mut state).await?;
        Self::new(stream, state)
    }

    fn new(stream: S, state: HandshakeState) -> io::Result<Self> {
        let cipher = Cipher(state.into_transport_mode().map_err(NoiseError::Local)?);
        Ok(Self {
            stream,
            cipher,
            input: BytesMut::new(),
            plain: BytesMut::new(),
            sealed: BytesMut::new(),
            reader: None,
            writer: None,
        })
    }

    /// Sends the sealed bytes.
    fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.sealed.is_empty() {
            match ready!(Pin::new(&mut self.stream).poll_write(cx, &self.sealed))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                sent => self.sealed.advance(sent),
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Sends the sealed bytes, for a caller that waits until all of them are sent.
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
        // The next write reports a failure to send: bytes from the peer can still be read.
        if !this.sealed.is_empty()
            && this.poll_send(cx).is_ready()
            && let Some(writer) = this.writer.take()
        {
            writer.wake();
        }
        if buf.remaining() == 0 {
            return Poll::Ready(Ok(()));
        }
        // Repeats if a read ends inside a message, or a message is empty.
        while this.plain.is_empty() {
            let opened = this.cipher.open(&mut this.input, &mut this.plain);
            if !this.plain.is_empty() {
                // Bytes before a bad message are good. The next read meets the bad one again.
                break;
            }
            opened?;
            this.input.reserve(HEADER + MAX_MESSAGE);
            let Poll::Ready(read) = pin!(this.stream.read_buf(&mut this.input)).poll(cx) else {
                park(&mut this.reader, cx);
                return Poll::Pending;
            };
            match read? {
                0 if this.input.is_empty() => return Poll::Ready(Ok(())),
                0 => return Poll::Ready(Err(NoiseError::Truncated.into())),
                _ => {}
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
        // A pending read, perhaps in another task, sends the rest.
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

/// Encryption of the messages after the handshake, without a stream.
struct Cipher(TransportState);

impl Cipher {
    /// Appends `plain`, at most 65519 bytes, to `output` as one message.
    fn seal(&mut self, plain: &[u8], output: &mut BytesMut) -> Result<(), NoiseError> {
        let start = output.len();
        let message = start + HEADER;
        output.resize(message + plain.len() + TAG, 0);
        let sealed = self.0.write_message(plain, &mut output[message..]);
        let length = sealed.inspect_err(|_| output.truncate(start));
        let length = length.map_err(NoiseError::Local)? as u16;
        output[start..message].copy_from_slice(&length.to_be_bytes());
        Ok(())
    }

    /// Takes all whole messages off `input` and appends their payloads to `output`.
    ///
    /// A message that does not decrypt stays in `input`, so every later call fails too.
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

fn park(slot: &mut Option<Waker>, cx: &Context<'_>) {
    slot.get_or_insert_with(|| cx.waker().clone())
        .clone_from(cx.waker());
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncWriteExt, DuplexStream, duplex};

    use super::{super::key::KEY_LENGTH, *};

    static KEY: Key = Key([7; KEY_LENGTH]);

    /// Returns both ends of a connection whose inner stream holds less than a message.
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
    async fn a_reader_in_another_task_sends_the_rest_of_a_write() {
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
    async fn an_empty_message_does_not_end_the_stream() {
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
    async fn a_changed_stream_fails_for_good() {
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

    #[tokio::test]
    async fn an_end_between_two_messages_looks_like_the_peers() {
        let (mut near, mut far) = pair().await;
        near.cipher.seal(b"one", &mut near.sealed).unwrap();
        near.cipher.seal(b"two", &mut near.sealed).unwrap();
        near.sealed.truncate(21);
        near.shutdown().await.unwrap();
        let mut received = String::new();
        far.read_to_string(&mut received).await.unwrap();
        assert_eq!(received, "one");
    }

    #[tokio::test]
    async fn a_session_that_was_recorded_opens_nothing() {
        // What each side sends first: 2 bytes of length, 32 of a public key, 16 of tag.
        const FIRST: usize = 50;
        let (near, mut to_client) = duplex(1000);
        let (mut to_server, far) = duplex(1000);
        let client = async {
            let mut near = Noise::connect(near, &KEY).await?;
            near.write_all(b"secret").await?;
            near.shutdown().await
        };
        let server = async {
            let (mut far, mut told) = (Noise::accept(far, &KEY).await?, String::new());
            far.read_to_string(&mut told).await?;
            Ok(told)
        };
        let recording = async {
            let (mut recorded, mut answer) = (vec![0; FIRST], [0; FIRST]);
            to_client.read_exact(&mut recorded).await?;
            to_server.write_all(&recorded).await?;
            to_server.read_exact(&mut answer).await?;
            to_client.write_all(&answer).await?;
            to_client.read_to_end(&mut recorded).await?;
            to_server.write_all(&recorded[FIRST..]).await?;
            to_server.shutdown().await?;
            Ok::<_, io::Error>(recorded)
        };
        let ((), told, recorded) = tokio::try_join!(client, server, recording).unwrap();
        assert_eq!(told, "secret");
        let (mut near, far) = duplex(1000);
        near.write_all(&recorded).await.unwrap();
        let mut far = Noise::accept(far, &KEY).await.unwrap();
        let error = far.read_u8().await.unwrap_err();
        assert_eq!(reason(&error), &NoiseError::Transport);
    }

    /// Changes the ciphertext of the messages "one" and "two". Returns the bytes that are read, and
    /// the error after them.
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
