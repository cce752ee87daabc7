//! Passes bytes between two sockets.
//!
//! Not `tokio::io::copy_bidirectional`, for two reasons. It polls its directions in a fixed order, and tokio's budget,
//! which bounds what a task does in one turn, is the task's: a first direction that never has to wait uses it all, and
//! the second stands still. And while a direction waits to write, or has come to its end, nobody reads from its
//! sender, so that side's reset would go unnoticed until the other side moves. Otherwise this is the same: one task,
//! and one read and one write for what has come.

use std::{io, pin::pin};

use netping_serving::Connection;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, Interest},
    net::{
        TcpStream,
        tcp::{ReadHalf, WriteHalf},
    },
};

/// Passes bytes both ways until both sides have ended their sending. Each direction holds at most `capacity` bytes: a
/// slow reader blocks its writer.
///
/// # Errors
/// As soon as either side fails. What was under way is then lost: both connections should be reset.
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
    // `select!` polls in random order, so neither direction always finds the budget used up.
    tokio::select! {
        ended = &mut up => rest(ended?, down).await,
        ended = &mut down => rest(ended?, up).await,
    }
}

/// Passes what comes from one side to the other until the end, which it passes on too. Returns the side that is done.
async fn pass<'a>(
    mut from: ReadHalf<'a>,
    mut to: WriteHalf<'_>,
    capacity: usize,
    connection: &Connection,
) -> io::Result<ReadHalf<'a>> {
    // Never written before it is read into: a connection costs no more memory than it has once filled.
    let mut buffer: Vec<u8> = Vec::with_capacity(capacity);
    while from.read_buf(&mut buffer).await? > 0 {
        // Both directions count, so that either keeps the connection from being idle.
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

/// Goes on with the `other` direction. Nobody reads from the `done` side any more, so a reset is watched for.
async fn rest<T>(done: ReadHalf<'_>, other: impl Future<Output = io::Result<T>>) -> io::Result<()> {
    tokio::select! {
        biased;
        ended = other => ended.map(drop),
        error = broken(&done) => Err(error),
    }
}

/// Waits until a side fails: the kernel reports that even if nobody reads.
async fn broken(side: &ReadHalf<'_>) -> io::Error {
    match side.ready(Interest::ERROR).await {
        Ok(_) => io::ErrorKind::ConnectionReset.into(),
        Err(error) => error,
    }
}
