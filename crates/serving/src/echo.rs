//! Echo on one byte stream: lines or frames in, replies out.

use std::io;

use bytes::BytesMut;
use netping_protocol::codec::{Codec, LINGER, Violation};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    time,
};

use crate::{chassis::Chassis, connection::Connection};

/// Bytes of replies to pipelined requests that are gathered before they are written.
const CHUNK: usize = 64 << 10;

/// Initial size of a stream's buffers, in bytes. Larger requests grow them.
const BUFFER: usize = 4 << 10;

/// Serves one stream to its end. Counts its requests on `connection` and its errors on `chassis`.
pub async fn echo<S>(stream: &mut S, codec: Codec, connection: &Connection, chassis: &Chassis)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut echo = Echo {
        stream,
        codec,
        connection,
        chassis,
        input: BytesMut::with_capacity(BUFFER),
        output: BytesMut::with_capacity(BUFFER),
    };
    match echo.run().await {
        Ok(()) if !echo.input.is_empty() => chassis.count_error("eof_in_request"),
        Ok(()) => {}
        // The reaper has counted it.
        Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
        Err(error) => {
            tracing::debug!("connection: {error}");
            chassis.count_failure(&error);
        }
    }
}

struct Echo<'a, S> {
    stream: &'a mut S,
    codec: Codec,
    connection: &'a Connection,
    chassis: &'a Chassis,
    input: BytesMut,
    output: BytesMut,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Echo<'_, S> {
    async fn run(&mut self) -> io::Result<()> {
        loop {
            if let Err(violation) = self.answer().await? {
                self.refuse(&violation).await;
                return Ok(());
            }
            if !self.output.is_empty() {
                self.stream.write_all(&self.output).await?;
                // TLS may have buffered a part.
                self.stream.flush().await?;
                self.output.clear();
            }
            if self.input.capacity() - self.input.len() < BUFFER / 2 {
                self.input.reserve(BUFFER);
            }
            match self.stream.read_buf(&mut self.input).await {
                Ok(0) => return Ok(()),
                Ok(_) => {}
                // A TLS peer closed without saying so: a request that is cut off shows it.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }

    /// Appends the replies to all whole requests in the input.
    async fn answer(&mut self) -> io::Result<Result<(), Violation>> {
        let load = self.chassis.load();
        loop {
            let request = match self.codec.next(&mut self.input) {
                Ok(Some(request)) => request,
                Ok(None) => return Ok(Ok(())),
                Err(violation) => return Ok(Err(violation)),
            };
            load.apply().await;
            if let Err(violation) = self.codec.reply(&request, &mut self.output) {
                return Ok(Err(violation));
            }
            // Counted before the reply leaves, so that a peer that has the reply finds it counted.
            self.connection.count_requests(1);
            if self.output.len() >= CHUNK {
                self.stream.write_all(&self.output).await?;
                self.output.clear();
            }
        }
    }

    /// Tells the peer how it broke the protocol, and closes.
    async fn refuse(&mut self, violation: &Violation) {
        tracing::debug!("closing a connection: {violation}");
        self.chassis.count_error(violation.kind());
        self.codec.refuse(violation, &mut self.output);
        goodbye(self.stream, &self.output).await;
        self.input.clear();
    }
}

/// Writes the last bytes, then reads and discards the peer's: closing with unread bytes would reset
/// the connection, and the peer would lose the last bytes.
pub(crate) async fn goodbye<S: AsyncRead + AsyncWrite + Unpin>(stream: &mut S, last: &[u8]) {
    let goodbye = async {
        stream.write_all(last).await?;
        stream.shutdown().await?;
        let mut discarded = [0; BUFFER];
        while stream.read(&mut discarded).await? > 0 {}
        io::Result::Ok(())
    };
    // The connection is done, however this ends.
    let _ = time::timeout(LINGER, goodbye).await;
}
