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
    codec::{Codec, LINGER, Limits, Violation},
    scheme::{Scheme, port},
    secure,
};
use netping_serving::{
    Chassis, CommonArgs, Connection, Listening, Profile, Service, Shutdown, StartError, StreamArgs,
    TlsArgs, accept_blocking,
};
use rustls::ServerConnection;

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
    /// Stack of a connection's thread, in bytes [default: 65536, with TLS 262144]
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u64).range(16384..))]
    pub stack_size: Option<u64>,
    /// How connections are secured.
    #[command(flatten)]
    pub tls: TlsArgs,
}

/// The stack of a connection's thread, in bytes; and where it does TLS's arithmetic too.
const STACK: u64 = 64 << 10;
const TLS_STACK: u64 = 256 << 10;

impl AsRef<CommonArgs> for Args {
    fn as_ref(&self) -> &CommonArgs {
        &self.common
    }
}

/// This server.
pub const SERVICE: Service<Args> = Service {
    scheme,
    port: port::THREADS,
    sockets: |_| 1,
    serve,
};

fn scheme(args: &Args) -> Scheme {
    if args.tls.is_on() {
        Scheme::TcpTls
    } else {
        Scheme::Tcp
    }
}

/// How much is read at once, and how much of the replies to pipelined requests is gathered, in bytes.
const CHUNK: usize = 8 << 10;

/// How much is read at once where the rest of a long frame is expected, in bytes. The buffer comes with the first one.
const LARGE: usize = 256 << 10;

/// How much, in bytes, makes a frame long.
const LONG: usize = 4 * CHUNK;

/// How much is read, unseen, from a peer that has broken the protocol.
const GOODBYE_BYTES: u64 = 32 << 20;

/// Serves until `shutdown`, then drains.
///
/// # Errors
/// When the system refuses a thread or a socket, or a key's file is of no use.
pub fn serve(mut listening: Listening, args: &Args, shutdown: &Shutdown) -> Result<(), StartError> {
    let tls = args.tls.config(&[])?.map(Arc::new);
    let profile = Profile {
        first_bytes: 1,
        drain_by_eof: true,
        files_per_connection: 1,
    };
    let chassis = Chassis::start(&mut listening, &args.common, profile)?;
    let limits = args.stream.limits();
    let (busy, stack) = (
        args.busy_poll,
        args.stack_size
            .unwrap_or(if tls.is_some() { TLS_STACK } else { STACK }),
    );
    accept_blocking(
        &listening.service,
        &chassis,
        shutdown,
        |stream, connection| {
            let (chassis_, tls) = (chassis.clone(), tls.clone());
            let serve = move || match tls.map(ServerConnection::new).transpose() {
                Ok(tls) => Peer {
                    stream,
                    tls,
                    connection,
                    busy,
                    chassis: chassis_,
                }
                .serve(limits),
                Err(error) => tracing::error!("no TLS: {error}"),
            };
            // `thread::spawn` would panic where the system has no thread left.
            if let Err(error) = thread::Builder::new()
                .stack_size(stack as usize)
                .spawn(serve)
            {
                chassis.spawn_failed(&error);
            }
        },
    )
}

/// One connection and its thread's view of it.
struct Peer {
    stream: Arc<TcpStream>,
    /// The state of TLS, where it is spoken.
    tls: Option<ServerConnection>,
    connection: Connection,
    busy: bool,
    chassis: Chassis,
}

impl Peer {
    /// Serves the connection to its end, and counts what was wrong with it.
    fn serve(&mut self, limits: Limits) {
        let mut codec = Codec::new(limits);
        let mut input = BytesMut::new();
        if let Err(error) = self.shake_hands() {
            tracing::debug!(peer = ?self.address(), "handshake: {error}");
            if !self.connection.is_overdue() {
                self.chassis.count_error("tls");
            }
            // The alert that says why has been sent.
            return self.wait_for_end();
        }
        match self.echo(&mut codec, &mut input) {
            Ok(()) => {
                if codec.is_mid_request(&input) {
                    self.chassis.count_error("eof_in_request");
                }
                // A peer in TLS is to know that nothing was cut off; one that is gone does not care.
                let _ = self.close_tls();
            }
            Err(error) => {
                tracing::debug!(peer = ?self.address(), "connection: {error}");
                self.chassis
                    .count_error(if secure::is_security_error(&error) {
                        "tls"
                    } else {
                        "io"
                    });
            }
        }
    }

    fn shake_hands(&mut self) -> io::Result<()> {
        let Some(tls) = &mut self.tls else {
            return Ok(());
        };
        // Until then the thread waits in the kernel; busy polling is for requests.
        let mut socket = &*self.stream;
        while tls.is_handshaking() {
            tls.complete_io(&mut socket)?;
        }
        Ok(())
    }

    fn echo(&mut self, codec: &mut Codec, input: &mut BytesMut) -> io::Result<()> {
        self.stream.set_nonblocking(self.busy)?;
        let effort = self.chassis.effort();
        let mut output = BytesMut::new();
        let mut chunk = [0; CHUNK];
        let mut large = Vec::new();
        loop {
            // The codec has made room for what it knows to come.
            let buffer = if input.capacity() - input.len() < LONG {
                &mut chunk[..]
            } else {
                large.resize(LARGE, 0);
                &mut large[..]
            };
            let read = self.read(buffer)?;
            if read == 0 {
                return Ok(());
            }
            input.extend_from_slice(&buffer[..read]);
            loop {
                let request = match codec.next(input) {
                    Ok(Some(request)) => request,
                    Ok(None) => break,
                    Err(violation) => return self.refuse(codec, input, output, &violation),
                };
                effort.spend_blocking();
                if let Err(violation) = codec.reply(&request, &mut output) {
                    return self.refuse(codec, input, output, &violation);
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
        codec: &Codec,
        input: &mut BytesMut,
        mut output: BytesMut,
        violation: &Violation,
    ) -> io::Result<()> {
        tracing::debug!(peer = ?self.address(), "closing a connection: {violation}");
        self.chassis.count_error(violation.kind());
        codec.refuse(violation, &mut output);
        input.clear();
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

    /// Says that no more comes, and waits a moment for the peer to say the same: closing with unread bytes would reset
    /// the connection, and the peer would lose what it was told last.
    fn wait_for_end(&self) {
        let wait = || {
            self.stream.set_nonblocking(false)?;
            self.stream.shutdown(std::net::Shutdown::Write)?;
            self.stream.set_read_timeout(Some(LINGER))?;
            io::copy(&mut (&*self.stream).take(GOODBYE_BYTES), &mut io::sink())
        };
        // A time-out or a reset ends it as well as the end of the stream does.
        let _ = wait();
    }

    /// Reads what has come, at least one byte; 0 at the end.
    fn read(&mut self, chunk: &mut [u8]) -> io::Result<usize> {
        let read = match self.persist(|stream| stream.read(chunk)) {
            // A peer in TLS that has just closed: what is missing, if anything, shows in the request.
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
        // TLS may have kept some of it.
        if self.tls.is_some() {
            self.persist(|stream| stream.flush().map(|()| 0)).map(drop)
        } else {
            Ok(())
        }
    }

    /// Repeats a call while it is interrupted or, with busy polling, would block.
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
                // Others may need this core.
                Err(error) if self.busy && error.kind() == io::ErrorKind::WouldBlock => {
                    thread::yield_now()
                }
                result => return result,
            }
        }
    }

    fn address(&self) -> Option<SocketAddr> {
        self.stream.peer_addr().ok()
    }
}

/// What bytes come from and go to.
trait ReadWrite: Read + Write {}

impl<S: Read + Write> ReadWrite for S {}
