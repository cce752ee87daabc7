//! Echo on one byte stream: lines or frames in, replies out.

use std::io;

use bytes::BytesMut;
use netping_protocol::{
    codec::{Codec, LINGER, Violation},
    secure,
};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    time,
};

use crate::{chassis::Chassis, connection::Connection};

/// How much of the replies to pipelined requests is gathered before it is written, in bytes.
const CHUNK: usize = 64 << 10;

/// The buffers of a stream that has small requests, in bytes. Larger requests grow them.
const BUFFER: usize = 4 << 10;

/// Serves one stream to its end, and counts its requests on `connection` and what was wrong on `chassis`.
pub async fn echo<S>(stream: &mut S, mut codec: Codec, connection: &Connection, chassis: &Chassis)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut input = BytesMut::with_capacity(BUFFER);
    match answer(stream, &mut codec, &mut input, connection, chassis).await {
        Ok(()) if codec.is_mid_request(&input) => chassis.count_error("eof_in_request"),
        Ok(()) => {}
        // The warden has counted why.
        Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
        Err(error) => {
            tracing::debug!("connection: {error}");
            chassis.count_error(if secure::is_security_error(&error) {
                "tls"
            } else {
                "io"
            });
        }
    }
}

async fn answer<S>(
    stream: &mut S,
    codec: &mut Codec,
    input: &mut BytesMut,
    connection: &Connection,
    chassis: &Chassis,
) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let effort = chassis.effort();
    let mut output = BytesMut::with_capacity(BUFFER);
    loop {
        loop {
            let request = match codec.next(input) {
                Ok(Some(request)) => request,
                Ok(None) => break,
                Err(violation) => {
                    refuse(stream, codec, input, output, &violation, chassis).await;
                    return Ok(());
                }
            };
            effort.spend().await;
            if let Err(violation) = codec.reply(&request, &mut output) {
                refuse(stream, codec, input, output, &violation, chassis).await;
                return Ok(());
            }
            // Before the reply leaves, so that whoever has the reply finds it counted.
            connection.count_requests(1);
            if output.len() >= CHUNK {
                stream.write_all(&output).await?;
                output.clear();
            }
        }
        if !output.is_empty() {
            stream.write_all(&output).await?;
            // TLS may have kept some of it.
            stream.flush().await?;
            output.clear();
        }
        if input.capacity() - input.len() < BUFFER / 2 {
            input.reserve(BUFFER);
        }
        match stream.read_buf(input).await {
            Ok(0) => return Ok(()),
            Ok(_) => {}
            // A peer in TLS that has just closed: what is missing, if anything, shows in the request.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
            Err(error) => return Err(error),
        }
    }
}

/// Tells the peer what it did against the protocol, and closes.
async fn refuse<S>(
    stream: &mut S,
    codec: &Codec,
    input: &mut BytesMut,
    mut output: BytesMut,
    violation: &Violation,
    chassis: &Chassis,
) where
    S: AsyncRead + AsyncWrite + Unpin,
{
    tracing::debug!("closing a connection: {violation}");
    chassis.count_error(violation.kind());
    codec.refuse(violation, &mut output);
    goodbye(stream, &output).await;
    input.clear();
}

/// Writes the last words, and reads what still comes, unseen: closing with unread bytes would reset the connection,
/// and the peer would lose the message.
pub(crate) async fn goodbye<S: AsyncRead + AsyncWrite + Unpin>(stream: &mut S, words: &[u8]) {
    let goodbye = async {
        stream.write_all(words).await?;
        stream.shutdown().await?;
        let mut unseen = [0; BUFFER];
        while stream.read(&mut unseen).await? > 0 {}
        io::Result::Ok(())
    };
    // Whatever ends it, the connection is done.
    let _ = time::timeout(LINGER, goodbye).await;
}
