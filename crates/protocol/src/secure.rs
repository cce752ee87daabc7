//! Byte streams over TCP in clear text, in TLS or in Noise, and their handshakes; and in clear text
//! on Unix domain sockets.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
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

/// A byte stream, encrypted or not.
#[derive(Debug)]
pub enum Stream {
    /// Clear text.
    Plain(TcpStream),
    /// Clear text on a Unix domain socket.
    Unix(UnixStream),
    /// TLS.
    Tls(Box<TlsStream<TcpStream>>),
    /// Noise, with a pre-shared key.
    Psk(Box<Noise<TcpStream>>),
}

impl Stream {
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
    pub async fn connect(&self, stream: TcpStream) -> io::Result<Stream> {
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
    pub async fn accept(
        &self,
        stream: TcpStream,
    ) -> Result<Stream, (io::Error, Option<TcpStream>)> {
        match self {
            Self::Plain => Ok(Stream::Plain(stream)),
            Self::Tls(config) => {
                let accepting = TlsAcceptor::from(Arc::clone(config)).accept(stream);
                match accepting.into_fallible().await {
                    Ok(stream) => Ok(Stream::Tls(Box::new(stream.into()))),
                    Err((error, stream)) => Err((error, Some(stream))),
                }
            }
            Self::Psk(key) => match Noise::accept(stream, key).await {
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

macro_rules! delegate {
    ($self:expr, $stream:ident => $call:expr) => {
        match $self {
            Stream::Plain($stream) => $call,
            Stream::Unix($stream) => $call,
            Stream::Tls($stream) => $call,
            Stream::Psk($stream) => $call,
        }
    };
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        delegate!(self.get_mut(), stream => Pin::new(stream).poll_read(cx, buf))
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        delegate!(self.get_mut(), stream => Pin::new(stream).poll_write(cx, data))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        delegate!(self.get_mut(), stream => Pin::new(stream).poll_write_vectored(cx, data))
    }

    fn is_write_vectored(&self) -> bool {
        delegate!(self, stream => stream.is_write_vectored())
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        delegate!(self.get_mut(), stream => Pin::new(stream).poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        delegate!(self.get_mut(), stream => Pin::new(stream).poll_shutdown(cx))
    }
}
