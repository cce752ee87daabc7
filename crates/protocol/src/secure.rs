//! Byte streams over TCP in clear text, in TLS or in Noise, and their handshakes; and in clear text
//! on Unix domain sockets.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use rustls::pki_types::ServerName;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpStream, UnixStream},
};
use tokio_rustls::{TlsAcceptor, TlsConnector, TlsStream};

use crate::{
    psk::{self, Key, Noise, NoiseError},
    tls::Negotiated,
};

/// A TCP connection, or what stands in its place.
pub trait Socket: AsyncRead + AsyncWrite + Unpin {
    /// Reads what has come already. Costs no system call if the runtime has not been told of anything to
    /// read.
    ///
    /// # Errors
    /// Fails with [`WouldBlock`](io::ErrorKind::WouldBlock) if nothing has come.
    fn try_read(&self, buffer: &mut [u8]) -> io::Result<usize>;
}

impl Socket for TcpStream {
    fn try_read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        Self::try_read(self, buffer)
    }
}

/// A byte stream, encrypted or not.
#[derive(Debug)]
pub enum Stream<S = TcpStream> {
    /// Clear text.
    Plain(S),
    /// Clear text on a Unix domain socket.
    Unix(UnixStream),
    /// TLS.
    Tls(Box<TlsStream<S>>),
    /// Noise, with a pre-shared key.
    Psk(Box<Noise<S>>),
}

impl<S: Socket> Stream<S> {
    /// Returns true if the stream is encrypted.
    pub fn is_secure(&self) -> bool {
        !matches!(self, Self::Plain(_) | Self::Unix(_))
    }

    /// Returns the application protocol that the TLS handshake agreed on, if any.
    pub fn alpn(&self) -> Option<&[u8]> {
        match self {
            Self::Plain(_) | Self::Unix(_) | Self::Psk(_) => None,
            Self::Tls(stream) => stream.get_ref().1.alpn_protocol(),
        }
    }

    /// Returns the result of the handshake, or `None` in clear text.
    pub fn negotiated(&self) -> Option<Negotiated> {
        match self {
            Self::Plain(_) | Self::Unix(_) => None,
            Self::Tls(stream) => Some(Negotiated::of(stream.get_ref().1)),
            Self::Psk(_) => Some(psk::negotiated()),
        }
    }

    /// Reads what has come already. Costs no system call if the runtime has not been told of anything to
    /// read.
    ///
    /// # Errors
    /// Fails with [`WouldBlock`](io::ErrorKind::WouldBlock) if nothing has come.
    pub fn try_read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.try_read(buffer),
            Self::Unix(stream) => stream.try_read(buffer),
            Self::Tls(_) | Self::Psk(_) => {
                // No task has to be woken: the next read looks for itself.
                let mut context = Context::from_waker(Waker::noop());
                let mut buffer = ReadBuf::new(buffer);
                match Pin::new(self).poll_read(&mut context, &mut buffer) {
                    Poll::Ready(read) => read.map(|()| buffer.filled().len()),
                    Poll::Pending => Err(io::ErrorKind::WouldBlock.into()),
                }
            }
        }
    }
}

/// The client's side of the handshake.
#[derive(Debug, Clone)]
pub enum Connector {
    /// No handshake.
    Plain,
    /// TLS with a server of this name.
    Tls(Arc<rustls::ClientConfig>, ServerName<'static>),
    /// Noise with this key.
    Psk(Arc<Key>),
}

impl Connector {
    /// Performs the handshake on a new connection.
    ///
    /// # Errors
    /// Fails if the sides do not agree or the connection breaks.
    pub async fn connect<S: Socket>(&self, stream: S) -> io::Result<Stream<S>> {
        Ok(match self {
            Self::Plain => Stream::Plain(stream),
            Self::Tls(config, name) => {
                let connector = TlsConnector::from(Arc::clone(config));
                let stream = connector.connect(name.clone(), stream).await?;
                Stream::Tls(Box::new(stream.into()))
            }
            Self::Psk(key) => Stream::Psk(Box::new(Noise::connect(stream, key).await?)),
        })
    }
}

/// The server's side of the handshake.
#[derive(Debug, Clone)]
pub enum Acceptor {
    /// No handshake.
    Plain,
    /// TLS.
    Tls(Arc<rustls::ServerConfig>),
    /// Noise with this key.
    Psk(Arc<Key>),
}

impl Acceptor {
    /// Returns true if there is no handshake.
    pub fn is_plain(&self) -> bool {
        matches!(self, Self::Plain)
    }

    /// Performs the handshake on a new connection.
    ///
    /// # Errors
    /// Fails if the sides do not agree or the connection breaks. Returns the connection too if the
    /// peer may still read the reason.
    pub async fn accept(&self, tcp: TcpStream) -> Result<Stream, (io::Error, Option<TcpStream>)> {
        match self {
            Self::Plain => Ok(Stream::Plain(tcp)),
            Self::Tls(config) => {
                let accepting = TlsAcceptor::from(Arc::clone(config)).accept(tcp);
                match accepting.into_fallible().await {
                    Ok(stream) => Ok(Stream::Tls(Box::new(stream.into()))),
                    Err((error, stream)) => Err((error, Some(stream))),
                }
            }
            Self::Psk(key) => match Noise::accept(tcp, key).await {
                Ok(stream) => Ok(Stream::Psk(Box::new(stream))),
                Err(error) => Err((error, None)),
            },
        }
    }
}

/// Returns true if TLS or Noise failed: the handshake was refused, or a message is not the peer's.
pub fn is_security_error(error: &io::Error) -> bool {
    error
        .get_ref()
        .is_some_and(|inner| inner.is::<rustls::Error>() || inner.is::<NoiseError>())
}

/// Writes methods that call those of the same name of whatever stream it is.
macro_rules! delegate {
    ($($poll:ident($($arg:ident: $kind:ty)?) -> $out:ty;)*) => {$(
        fn $poll(
            self: Pin<&mut Self>,
            cx: &mut Context<'_>,
            $($arg: $kind)?
        ) -> Poll<io::Result<$out>> {
            match self.get_mut() {
                Self::Plain(stream) => Pin::new(stream).$poll(cx, $($arg)?),
                Self::Unix(stream) => Pin::new(stream).$poll(cx, $($arg)?),
                Self::Tls(stream) => Pin::new(stream).$poll(cx, $($arg)?),
                Self::Psk(stream) => Pin::new(stream).$poll(cx, $($arg)?),
            }
        }
    )*};
}

impl<S: Socket> AsyncRead for Stream<S> {
    delegate! { poll_read(buf: &mut ReadBuf<'_>) -> (); }
}

impl<S: Socket> AsyncWrite for Stream<S> {
    delegate! {
        poll_write(data: &[u8]) -> usize;
        poll_write_vectored(data: &[io::IoSlice<'_>]) -> usize;
        poll_flush() -> ();
        poll_shutdown() -> ();
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Plain(stream) => stream.is_write_vectored(),
            Self::Unix(stream) => stream.is_write_vectored(),
            Self::Tls(stream) => stream.is_write_vectored(),
            Self::Psk(stream) => stream.is_write_vectored(),
        }
    }
}
