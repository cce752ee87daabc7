//! One connection, served by one thread.

use std::{
    io::{self, Read, Write},
    mem,
    net::{Shutdown as Direction, SocketAddr, TcpStream},
    sync::Arc,
    thread,
};

use bytes::{Buf, BytesMut};
use netping_protocol::codec::{Codec, LINGER, Limits, Violation};
use netping_serving::{chassis::Chassis, connection::Connection};
use rustls::ServerConnection;

/// Bytes that are read at once, and bytes of replies to pipelined requests that are gathered.
const CHUNK: usize = 8 << 10;

/// Bytes that are read at once while the rest of a long frame is expected.
const LARGE: usize = 256 << 10;

/// Missing bytes that make a frame long.
const LONG: usize = 4 * CHUNK;

/// Bytes that are read and discarded from a peer that broke the protocol.
const LINGER_BYTES: u64 = 32 << 20;

/// A connection and the state of its thread.
pub(crate) struct ConnectionThread {
    pub stream: Arc<TcpStream>,
    /// TLS state; `None` in clear text.
    pub tls: Option<ServerConnection>,
    pub connection: Connection,
    /// True to poll the socket without sleeping.
    pub busy: bool,
    pub chassis: Chassis,
}

impl ConnectionThread {
    /// Serves the connection to its end and counts its errors.
    pub fn run(&mut self, limits: Limits) {
        let mut codec = Codec::new(limits);
        let mut input = BytesMut::new();
        if let Err(error) = self.shake_hands() {
            tracing::debug!(peer = ?self.address(), "handshake: {error}");
            if !self.connection.is_overdue() {
                self.chassis.count_error("tls");
            }
            // The alert with the reason has been sent.
            return self.wait_for_end();
        }
        match self.echo(&mut codec, &mut input) {
            Ok(()) => {
                if !input.is_empty() && !self.connection.is_overdue() {
                    self.chassis.count_error("eof_in_request");
                }
                // Tells a TLS peer that nothing was cut off. It fails only if the peer is gone.
                let _ = self.close_tls();
            }
            Err(error) => {
                tracing::debug!(peer = ?self.address(), "connection: {error}");
                self.chassis.count_failure(&error);
            }
        }
    }

    fn shake_hands(&mut self) -> io::Result<()> {
        let Some(tls) = &mut self.tls else {
            return Ok(());
        };
        // During the handshake the thread waits in the kernel; busy polling is for requests.
        let mut socket = &*self.stream;
        while tls.is_handshaking() {
            tls.complete_io(&mut socket)?;
        }
        Ok(())
    }

    fn echo(&mut self, codec: &mut Codec, input: &mut BytesMut) -> io::Result<()> {
        self.stream.set_nonblocking(self.busy)?;
        let load = self.chassis.load();
        let mut output = BytesMut::new();
        let mut chunk = [0; CHUNK];
        let mut large = Vec::new();
        let mut is_partial = false;
        loop {
            let buffer = if codec.room() < LONG {
                &mut chunk[..]
            } else {
                large.resize(LARGE, 0);
                &mut large[..]
            };
            let read = self.read(buffer)?;
            if read == 0 {
                return Ok(());
            }
            // What has come at once needs no buffer of its own.
            let was_empty = input.is_empty();
            if !was_empty {
                input.extend_from_slice(&buffer[..read]);
            }
            let mut left = if was_empty {
                &buffer[..read]
            } else {
                &input[..]
            };
            loop {
                let request = match codec.next(&mut left) {
                    Ok(Some(request)) => request,
                    Ok(None) => break,
                    Err(violation) => {
                        input.clear();
                        return self.refuse(codec, output, &violation);
                    }
                };
                // All of it has come: what follows is the server's time, not the peer's.
                if mem::take(&mut is_partial) {
                    self.connection.note_partial(false);
                }
                load.apply_blocking();
                let mut rest = match codec.reply(request, &mut output) {
                    Ok(rest) => rest,
                    Err(violation) => {
                        input.clear();
                        return self.refuse(codec, output, &violation);
                    }
                };
                // Counted before the reply leaves, so that a peer that has the reply finds it
                // counted.
                self.connection.count_requests(1);
                while rest.is_some() || output.len() >= CHUNK {
                    self.write_all(&output)?;
                    output.clear();
                    rest = rest.and_then(|rest| rest.append(&mut output));
                }
            }
            let left = left.len();
            if was_empty {
                input.extend_from_slice(&buffer[read - left..read]);
            } else {
                input.advance(input.len() - left);
            }
            if left > 0 {
                input.reserve(codec.room());
            }
            if !is_partial && left > 0 {
                is_partial = true;
                self.connection.note_partial(true);
            }
            if !output.is_empty() {
                self.write_all(&output)?;
                output.clear();
            }
        }
    }

    /// Tells the peer how it broke the protocol, and closes.
    fn refuse(
        &mut self,
        codec: &Codec,
        mut output: BytesMut,
        violation: &Violation,
    ) -> io::Result<()> {
        tracing::debug!(peer = ?self.address(), "closing a connection: {violation}");
        self.chassis.count_error(violation.kind());
        codec.refuse(violation, &mut output);
        self.stream.set_nonblocking(false)?;
        self.write_all(&output)?;
        self.close_tls()?;
        self.wait_for_end();
        Ok(())
    }

    fn close_tls(&mut self) -> io::Result<()> {
        if let Some(tls) = &mut self.tls {
            tls.send_close_notify();
            tls.write_tls(&mut &*self.stream)?;
        }
        Ok(())
    }

    /// Shuts down the sending side and waits a moment for the peer to do the same: closing with
    /// unread bytes would reset the connection, and the peer would lose the last bytes.
    fn wait_for_end(&self) {
        let wait = || {
            self.stream.set_nonblocking(false)?;
            self.stream.shutdown(Direction::Write)?;
            self.stream.set_read_timeout(Some(LINGER))?;
            io::copy(&mut (&*self.stream).take(LINGER_BYTES), &mut io::sink())
        };
        // The connection is done, however this ends.
        let _ = wait();
    }

    /// Reads at least one byte; returns 0 at the end.
    fn read(&mut self, chunk: &mut [u8]) -> io::Result<usize> {
        let read = match self.persist(|stream| stream.read(chunk)) {
            // A TLS peer closed without saying so: a request that is cut off shows it.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => 0,
            read => read?,
        };
        self.connection.count_bytes(read);
        Ok(read)
    }

    fn write_all(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let written = self.persist(|stream| stream.write(bytes))?;
            bytes = &bytes[written..];
        }
        // TLS may have buffered a part.
        if self.tls.is_some() {
            self.persist(|stream| stream.flush().map(|()| 0)).map(drop)
        } else {
            Ok(())
        }
    }

    /// Repeats a call that is interrupted or, with busy polling, would block.
    fn persist(
        &mut self,
        mut call: impl FnMut(&mut dyn ReadWrite) -> io::Result<usize>,
    ) -> io::Result<usize> {
        let mut socket = &*self.stream;
        loop {
            let result = match &mut self.tls {
                None => call(&mut socket),
                Some(tls) => call(&mut rustls::Stream::new(tls, &mut socket)),
            };
            match result {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // Another thread may need this core.
                Err(error) if self.busy && error.kind() == io::ErrorKind::WouldBlock => {
                    thread::yield_now();
                }
                result => return result,
            }
        }
    }

    fn address(&self) -> Option<SocketAddr> {
        self.stream.peer_addr().ok()
    }
}

/// A byte stream.
trait ReadWrite: Read + Write {}

impl<S: Read + Write> ReadWrite for S {}
