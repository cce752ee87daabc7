//! Passes bytes between two sockets.
//!
//! This differs from `tokio::io::copy_bidirectional` in two ways. That function polls its
//! directions in a fixed order, and tokio bounds the work of a task in one turn: a first direction
//! that never waits uses the whole budget, and the second stands still. And while a direction waits
//! to write, or has ended, nothing reads from its sender, so a reset of that side goes unnoticed
//! until the other side moves.

use std::{io, pin::pin};

use netping_serving::Connection;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, Interest},
    net::{
        TcpStream,
        tcp::{ReadHalf, WriteHalf},
    },
};

/// Passes bytes both ways until both sides have ended their sending. Each direction holds at most
/// `capacity` bytes: a slow reader blocks its writer.
///
/// # Errors
/// Fails as soon as either side does. Bytes on their way are then lost: reset both connections.
pub(crate) async fn both_ways(
    client: &mut TcpStream,
    server: &mut TcpStream,
    capacity: usize,
    connection: &Connection,
) -> io::Result<()> {
    let (from_client, to_client) = client.split();
    let (from_server, to_server) = server.split();
    let mut up = pin!(pass(from_client, to_server, capacity, connection));
    let mut down = pin!(pass(from_server, to_client, capacity, connection));
    // `select!` polls in random order, so the budget is not always used up for the same direction.
    tokio::select! {
        ended = &mut up => rest(ended?, down).await,
        ended = &mut down => rest(ended?, up).await,
    }
}

/// Passes bytes from one side to the other, and then the end of the stream. Returns the side that
/// has ended.
async fn pass<'a>(
    mut from: ReadHalf<'a>,
    mut to: WriteHalf<'_>,
    capacity: usize,
    connection: &Connection,
) -> io::Result<ReadHalf<'a>> {
    // Not initialized: a connection costs no more memory than it has once filled.
    let mut buffer: Vec<u8> = Vec::with_capacity(capacity);
    while from.read_buf(&mut buffer).await? > 0 {
        // Bytes of both directions count, so either keeps the connection from being idle.
        connection.count_bytes(buffer.len());
        tokio::select! {
            biased;
            written = to.write_all(&buffer) => written?,
            error = broken(&from) => return Err(error),
        }
        buffer.clear();
    }
    to.shutdown().await?;
    Ok(from)
}

/// Goes on with the `other` direction, and watches for a reset of the `done` side, which nothing
/// reads any more.
async fn rest<T>(done: ReadHalf<'_>, other: impl Future<Output = io::Result<T>>) -> io::Result<()> {
    tokio::select! {
        biased;
        ended = other => ended.map(drop),
        error = broken(&done) => Err(error),
    }
}

/// Waits until a side fails, which the kernel reports even if nothing reads.
async fn broken(side: &ReadHalf<'_>) -> io::Error {
    match side.ready(Interest::ERROR).await {
        Ok(_) => io::ErrorKind::ConnectionReset.into(),
        Err(error) => error,
    }
}
