//! TCP connections below all protocols: plain, or with the kernel's time stamps.

use std::{
    io::{self, IoSlice},
    pin::Pin,
    task::{Context, Poll},
};

use netping_protocol::secure;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
};

use super::stamped::Stamped;

/// A byte stream of the client, encrypted or not.
pub type Stream = secure::Stream<Socket>;

/// A TCP connection.
#[derive(Debug)]
pub enum Socket {
    /// As it is.
    Plain(TcpStream),
    /// With the times at which requests left and replies came.
    Stamped(Stamped),
}

impl secure::Socket for Socket {
    fn try_read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.try_read(buffer),
            Self::Stamped(stream) => stream.try_read(buffer),
        }
    }
}

/// Writes methods that call those of the same name of either connection.
macro_rules! delegate {
    ($($poll:ident($($arg:ident: $kind:ty)?) -> $out:ty;)*) => {$(
        fn $poll(
            self: Pin<&mut Self>,
            cx: &mut Context<'_>,
            $($arg: $kind)?
        ) -> Poll<io::Result<$out>> {
            match self.get_mut() {
                Self::Plain(stream) => Pin::new(stream).$poll(cx, $($arg)?),
                Self::Stamped(stream) => Pin::new(stream).$poll(cx, $($arg)?),
            }
        }
    )*};
}

impl AsyncRead for Socket {
    delegate! { poll_read(buf: &mut ReadBuf<'_>) -> (); }
}

impl AsyncWrite for Socket {
    delegate! {
        poll_write(data: &[u8]) -> usize;
        poll_write_vectored(data: &[IoSlice<'_>]) -> usize;
        poll_flush() -> ();
        poll_shutdown() -> ();
    }

    fn is_write_vectored(&self) -> bool {
        true
    }
}
