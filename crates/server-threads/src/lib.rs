//! Echo over TCP with an OS thread per connection, in blocking calls: lines and frames on one port.

use std::{
    io::{self, Read, Write},
    net::{SocketAddr, TcpStream},
    sync::Arc,
    thread,
};

use bytes::BytesMut;
use clap::Parser;
use netping_protocol::{
    session::{GOODBYE, Limits, Session, Violation},
    target::port,
};
use netping_serving::{
    Chassis, CommonArgs, Connection, Listening, Profile, Service, Shutdown, StartError, StreamArgs, accept_blocking,
};

/// Echoes lines and frames over TCP, with an OS thread per connection
#[derive(Debug, Clone, Parser)]
#[command(name = "netping-server-threads", version)]
pub struct Args {
    /// Flags of every server.
    #[command(flatten)]
    pub common: CommonArgs,
    /// Limits of lines and frames.
    #[command(flatten)]
    pub stream: StreamArgs,
    /// Never sleep: every connection's thread polls its socket all the time; for few connections on many cores
    #[arg(long)]
    pub busy_poll: bool,
    /// Stack of a connection's thread, in bytes
    #[arg(long, default_value_t = 64 << 10, value_name = "BYTES", value_parser = clap::value_parser!(u64).range(16384..))]
    pub stack_size: u64,
}

impl AsRef<CommonArgs> for Args {
    fn as_ref(&self) -> &CommonArgs {
        &self.common
    }
}

/// This server.
pub const SERVICE: Service<Args> = Service { scheme: "tcp", port: port::THREADS, serve };

/// How much is read at once, and how much of the replies to pipelined requests is gathered, in bytes.
const CHUNK: usize = 8 << 10;

/// How much is read, unseen, from a peer that has broken the protocol.
const GOODBYE_BYTES: u64 = 32 << 20;

/// Serves until `shutdown`, then drains.
///
/// # Errors
/// When the system refuses a thread or a socket.
pub fn serve(mut listening: Listening, args: &Args, shutdown: &Shutdown) -> Result<(), StartError> {
    let profile = Profile { first_bytes: 1, drain_by_eof: true };
    let chassis = Chassis::start(&mut listening, &args.common, profile)?;
    let limits = args.stream.limits();
    let (busy, stack) = (args.busy_poll, args.stack_size as usize);
    accept_blocking(&listening.service, &chassis, shutdown, |stream, connection| {
        let chassis_ = chassis.clone();
        let serve = move || {
            let mut peer = Peer { stream, connection, busy, chassis: chassis_ };
            peer.serve(limits);
        };
        // `thread::spawn` would panic where the system has no thread left.
        if let Err(error) = thread::Builder::new().stack_size(stack).spawn(serve) {
            chassis.spawn_failed(&error);
        }
    })
}

/// One connection and its thread's view of it.
struct Peer {
    stream: Arc<TcpStream>,
    connection: Connection,
    busy: bool,
    chassis: Chassis,
}

impl Peer {
    /// Serves the connection to its end, and counts what was wrong with it.
    fn serve(&mut self, limits: Limits) {
        let mut session = Session::new(limits);
        let mut input = BytesMut::new();
        match self.echo(&mut session, &mut input) {
            Ok(()) if session.is_mid_request(&input) => self.chassis.count_error("eof_in_request"),
            Ok(()) => {}
            Err(error) => {
                tracing::debug!(peer = ?self.address(), "connection: {error}");
                self.chassis.count_error("io");
            }
        }
    }

    fn echo(&mut self, session: &mut Session, input: &mut BytesMut) -> io::Result<()> {
        self.stream.set_nonblocking(self.busy)?;
        let effort = self.chassis.effort();
        let mut output = BytesMut::new();
        let mut chunk = [0; CHUNK];
        loop {
            let read = self.read(&mut chunk)?;
            if read == 0 {
                return Ok(());
            }
            input.extend_from_slice(&chunk[..read]);
            loop {
                let request = match session.next(input) {
                    Ok(Some(request)) => request,
                    Ok(None) => break,
                    Err(violation) => return self.refuse(session, input, output, &violation),
                };
                effort.spend_blocking();
                if let Err(violation) = session.reply(&request, &mut output) {
                    return self.refuse(session, input, output, &violation);
                }
                // Before the reply leaves, so that whoever has the reply finds it counted.
                self.connection.count_requests(1);
                if output.len() >= CHUNK {
                    self.write_all(&output)?;
                    output.clear();
                }
            }
            if !output.is_empty() {
                self.write_all(&output)?;
                output.clear();
            }
        }
    }

    /// Tells the peer what it did against the protocol, and closes.
    fn refuse(
        &mut self,
        session: &Session,
        input: &mut BytesMut,
        mut output: BytesMut,
        violation: &Violation,
    ) -> io::Result<()> {
        tracing::debug!(peer = ?self.address(), "closing a connection: {violation}");
        self.chassis.count_error(violation.kind());
        session.refuse(violation, &mut output);
        input.clear();
        self.stream.set_nonblocking(false)?;
        (&*self.stream).write_all(&output)?;
        self.stream.shutdown(std::net::Shutdown::Write)?;
        // Closing with unread bytes would reset the connection, and the peer would lose the message.
        self.stream.set_read_timeout(Some(GOODBYE))?;
        // A time-out or a reset ends the reading as well as the end of the stream does.
        let _ = io::copy(&mut (&*self.stream).take(GOODBYE_BYTES), &mut io::sink());
        Ok(())
    }

    /// Reads what has come, at least one byte; 0 at the end.
    fn read(&self, chunk: &mut [u8]) -> io::Result<usize> {
        let read = self.persist(|mut stream| stream.read(chunk))?;
        self.connection.count_bytes(read);
        Ok(read)
    }

    fn write_all(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let written = self.persist(|mut stream| stream.write(bytes))?;
            bytes = &bytes[written..];
        }
        Ok(())
    }

    /// Repeats a call while it is interrupted or, with busy polling, would block.
    fn persist(&self, mut call: impl FnMut(&TcpStream) -> io::Result<usize>) -> io::Result<usize> {
        loop {
            match call(&self.stream) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // Others may need this core.
                Err(error) if self.busy && error.kind() == io::ErrorKind::WouldBlock => thread::yield_now(),
                result => return result,
            }
        }
    }

    fn address(&self) -> Option<SocketAddr> {
        self.stream.peer_addr().ok()
    }
}
