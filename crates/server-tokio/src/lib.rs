//! Echo over TCP with tokio: a task per connection, lines and frames on one port.

use std::io;

use bytes::BytesMut;
use clap::Parser;
use netping_protocol::{
    session::{GOODBYE, Limits, Session, Violation},
    target::port,
};
use netping_serving::{
    Accepted, Accepts, Chassis, CommonArgs, Listening, Profile, RuntimeArgs, Service, Shutdown, StartError, StreamArgs,
    serve_on_runtimes,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    time,
};
use tokio_stream::StreamExt;

/// Echoes lines and frames over TCP, with a tokio task per connection
#[derive(Debug, Clone, Parser)]
#[command(name = "netping-server-tokio", version)]
pub struct Args {
    /// Flags of every server.
    #[command(flatten)]
    pub common: CommonArgs,
    /// Limits of lines and frames.
    #[command(flatten)]
    pub stream: StreamArgs,
    /// How tasks get to cores.
    #[command(flatten)]
    pub runtime: RuntimeArgs,
}

impl AsRef<CommonArgs> for Args {
    fn as_ref(&self) -> &CommonArgs {
        &self.common
    }
}

/// This server.
pub const SERVICE: Service<Args> = Service { scheme: "tcp", port: port::TOKIO, serve };

/// How much of the replies to pipelined requests is gathered before it is written, in bytes.
const CHUNK: usize = 64 << 10;

/// The buffers of a connection that has small requests, in bytes. Larger requests grow them.
const BUFFER: usize = 4 << 10;

/// Serves until `shutdown`, then drains.
///
/// # Errors
/// When the system refuses a thread, a runtime or a socket.
pub fn serve(mut listening: Listening, args: &Args, shutdown: &Shutdown) -> Result<(), StartError> {
    let profile = Profile { first_bytes: 1, drain_by_eof: true };
    let chassis = Chassis::start(&mut listening, &args.common, profile)?;
    let limits = args.stream.limits();
    serve_on_runtimes(listening.service, &chassis, &args.runtime, shutdown, |mut accepts: Accepts| {
        let chassis = chassis.clone();
        async move {
            while let Some(Ok(stream)) = accepts.next().await {
                let chassis = chassis.clone();
                tokio::spawn(async move { connection(stream, limits, &chassis).await });
            }
        }
    })
}

/// Serves one connection to its end, and counts what was wrong with it.
async fn connection(mut stream: Accepted, limits: Limits, chassis: &Chassis) {
    let mut session = Session::new(limits);
    let mut input = BytesMut::with_capacity(BUFFER);
    match echo(&mut stream, &mut session, &mut input, chassis).await {
        Ok(()) if session.is_mid_request(&input) => chassis.count_error("eof_in_request"),
        Ok(()) => {}
        // The warden has counted why.
        Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
        Err(error) => {
            tracing::debug!("connection: {error}");
            chassis.count_error("io");
        }
    }
}

async fn echo(stream: &mut Accepted, session: &mut Session, input: &mut BytesMut, chassis: &Chassis) -> io::Result<()> {
    let effort = chassis.effort();
    let mut output = BytesMut::with_capacity(BUFFER);
    loop {
        loop {
            let request = match session.next(input) {
                Ok(Some(request)) => request,
                Ok(None) => break,
                Err(violation) => return refuse(stream, session, input, output, &violation, chassis).await,
            };
            effort.spend().await;
            if let Err(violation) = session.reply(&request, &mut output) {
                return refuse(stream, session, input, output, &violation, chassis).await;
            }
            // Before the reply leaves, so that whoever has the reply finds it counted.
            stream.connection().count_requests(1);
            if output.len() >= CHUNK {
                stream.write_all(&output).await?;
                output.clear();
            }
        }
        if !output.is_empty() {
            stream.write_all(&output).await?;
            output.clear();
        }
        if input.capacity() - input.len() < BUFFER / 2 {
            input.reserve(BUFFER);
        }
        if stream.read_buf(input).await? == 0 {
            return Ok(());
        }
    }
}

/// Tells the peer what it did against the protocol, and closes.
async fn refuse(
    stream: &mut Accepted,
    session: &Session,
    input: &mut BytesMut,
    mut output: BytesMut,
    violation: &Violation,
    chassis: &Chassis,
) -> io::Result<()> {
    tracing::debug!("closing a connection: {violation}");
    chassis.count_error(violation.kind());
    session.refuse(violation, &mut output);
    let goodbye = async {
        stream.write_all(&output).await?;
        stream.shutdown().await?;
        // Closing with unread bytes would reset the connection, and the peer would lose the message.
        loop {
            input.clear();
            if stream.read_buf(input).await? == 0 {
                return io::Result::Ok(());
            }
        }
    };
    let result = time::timeout(GOODBYE, goodbye).await.unwrap_or(Ok(()));
    input.clear();
    result
}
