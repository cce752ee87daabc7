//! One connection, served by one thread.

use std::{
    io::{self, IoSlice, Read, Write},
    mem,
    net::{Shutdown as Direction, SocketAddr, TcpStream},
    sync::Arc,
    thread,
};

use bytes::BytesMut;
use netping_protocol::codec::{Codec, LINGER, Limits, PART, Violation};
use netping_serving::{Active, Chassis, Connection, Held, Wait};
use rustls::ServerConnection;

/// Bytes of room to read into, and bytes of replies to pipelined requests that are gathered.
const CHUNK: usize = 8 << 10;

/// Bytes that are read and discarded from a peer that broke the protocol.
const LINGER_BYTES: u64 = 32 << 20;

/// A connection and the state of its thread.
pub(crate) struct ConnectionThread {
    pub stream: Arc<TcpStream>,
    /// TLS state; `None` in clear text.
    pub tls: Option<ServerConnection>,
    pub connection: Arc<Connection>,
    /// The wait of a write for the peer.
    pub write: Wait<Arc<Connection>>,
    /// True to poll the socket without sleeping.
    pub busy: bool,
    pub chassis: Arc<Chassis>,
}

impl ConnectionThread {
    /// Serves the connection to its end and counts its errors.
    pub fn run(&mut self, limits: Limits) {
        if let Err(error) = self.shake_hands() {
            tracing::debug!(peer = ?self.address(), "handshake: {error}");
            if self.connection.closed().is_none() {
                self.chassis.shared().count("tls");
            }
            // The alert with the reason has been sent.
            return self.wait_for_end();
        }
        self.connection.set_ready();
        let (mut codec, mut output) = (Codec::new(limits), BytesMut::new());
        match self.echo(&mut codec, &mut output) {
            Ok(unanswered) => {
                if unanswered > 0 && self.connection.closed().is_none() {
                    self.chassis.shared().count("eof_in_request");
                }
                // Tells a TLS peer that nothing was cut off. It fails only if the peer is gone.
                let _ = self.close_tls();
            }
            Err(error) => match error.downcast() {
                Ok(violation) => {
                    codec.refuse(&violation, &mut output);
                    self.refuse(&violation, &output);
                }
                // The reaper has closed it, and counted that.
                Err(_) if self.connection.closed().is_some() => {}
                Err(error) => {
                    tracing::debug!(peer = ?self.address(), "connection: {error}");
                    self.chassis.count_failure(&error);
                }
            },
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

    /// Answers requests until the peer closes; returns the bytes of a request that is not whole.
    fn echo(&mut self, codec: &mut Codec, output: &mut BytesMut) -> io::Result<usize> {
        self.stream.set_nonblocking(self.busy)?;
        let load = self.chassis.load;
        let mut input = vec![0; CHUNK];
        let mut filled = 0;
        let mut is_partial = false;
        let mut held = Held::nothing(&self.connection);
        loop {
            let read = self.read(&mut input[filled..])?;
            if read == 0 {
                return Ok(filled);
            }
            filled += read;
            let mut left = &input[..filled];
            while let Some(request) = codec.next(&mut left)? {
                // All of it has come: what follows is the server's time, not the peer's.
                if mem::take(&mut is_partial) {
                    self.connection.note_partial(false);
                }
                let mut replying =
                    (!load.is_immediate()).then(|| Active::begin(Arc::clone(&self.connection)));
                load.apply_blocking();
                let mut rest = codec.reply(request, output);
                // Counted before the reply leaves, so that a peer that has the reply finds it
                // counted.
                self.connection.count_requests(1);
                while let Some(part) = rest.next(output) {
                    replying.get_or_insert_with(|| Active::begin(Arc::clone(&self.connection)));
                    self.write_all([output, part])?;
                    output.clear();
                }
                if output.len() >= CHUNK {
                    self.write_all([output, &[]])?;
                    output.clear();
                }
            }
            let answered = filled - left.len();
            if answered > 0 {
                input.copy_within(answered..filled, 0);
                filled -= answered;
            }
            let room = codec.room().max(CHUNK / 2);
            input.resize(input.len().max(filled + room), 0);
            // The codec limits it, nothing else does.
            let _ = held.set(input.capacity() as u64);
            self.write_all([output, &[]])?;
            output.clear();
            if output.capacity() > PART {
                *output = BytesMut::new();
            }
            if !is_partial && filled > 0 {
                is_partial = true;
                self.connection.note_partial(true);
            }
        }
    }

    /// Tells the peer how it broke the protocol, and closes.
    fn refuse(&mut self, violation: &Violation, last: &[u8]) {
        tracing::debug!(peer = ?self.address(), "closing a connection: {violation}");
        self.chassis.shared().count(violation.kind());
        let told = self.stream.set_nonblocking(false);
        let told = told.and_then(|()| self.write_all([last, &[]]));
        if told.and_then(|()| self.close_tls()).is_ok() {
            self.wait_for_end();
        }
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

    /// Writes the bytes of both.
    fn write_all(&mut self, both: [&[u8]; 2]) -> io::Result<()> {
        // The peer's system may take nothing.
        self.write.set(true);
        let mut slices = both.map(IoSlice::new);
        let mut left = &mut slices[..];
        IoSlice::advance_slices(&mut left, 0);
        while !left.is_empty() {
            let written = self.persist(|stream| stream.write_vectored(left))?;
            IoSlice::advance_slices(&mut left, written);
            self.write.take(written);
        }
        // TLS may have buffered a part.
        if self.tls.is_some() {
            self.persist(|stream| stream.flush().map(|()| 0))?;
        }
        self.write.set(false);
        Ok(())
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
