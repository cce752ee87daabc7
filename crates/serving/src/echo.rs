//! Echo on one byte stream: lines or frames in, replies out.

use std::{
    future::{Future, poll_fn},
    io, mem,
    pin::pin,
    time::{Duration, Instant},
};

use bytes::{Buf, BytesMut};
use netping_protocol::codec::{Codec, LINGER, Violation};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    time,
};

use crate::{
    Active, Chassis, Connection, Held,
    buffers::{self, BUFFER},
    clock,
    request_limit::REQUEST_TIMEOUT,
};

/// Bytes of replies to pipelined requests that are gathered before they are written.
const CHUNK: usize = 64 << 10;

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
        input: BytesMut::new(),
        output: BytesMut::new(),
        begun: None,
        held: Held::nothing(connection),
    };
    match echo.run().await {
        Ok(()) if !echo.input.is_empty() => chassis.shared().count("eof_in_request"),
        Ok(()) => {}
        // What ended it has counted it.
        Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
        Err(error) => match error.downcast() {
            Ok(violation) => echo.refuse(&violation).await,
            Err(error) => {
                tracing::debug!("connection: {error}");
                chassis.count_failure(&error);
            }
        },
    }
}

struct Echo<'a, S> {
    stream: &'a mut S,
    codec: Codec,
    connection: &'a Connection,
    chassis: &'a Chassis,
    /// Empty, and without memory, while no part of a request is here.
    input: BytesMut,
    /// Without memory while no reply is on its way.
    output: BytesMut,
    /// When a request was first seen to be incomplete.
    begun: Option<Instant>,
    /// The memory of the input, while a part of a request is in it.
    held: Held,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Echo<'_, S> {
    async fn run(&mut self) -> io::Result<()> {
        loop {
            self.answer().await?;
            if !self.output.is_empty() {
                self.stream.write_all(&self.output).await?;
                // TLS may have buffered a part.
                self.stream.flush().await?;
            }
            // A large one is freed: the replies to pipelined requests, which it took, may never come again.
            buffers::give(&mut mem::take(&mut self.output));
            match self.read().await {
                Ok(0) => return Ok(()),
                Ok(_) => {}
                // A TLS peer closed without saying so: a request that is cut off shows it.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }

    /// Appends the replies to all whole requests in the input, and takes those off it.
    async fn answer(&mut self) -> io::Result<()> {
        let load = self.chassis.load;
        let mut left = &self.input[..];
        while let Some(request) = self.codec.next(&mut left)? {
            self.begun = None;
            let mut replying = (!load.is_immediate()).then(|| Active::begin(self.connection));
            load.apply().await;
            if self.output.capacity() == 0 {
                self.output = buffers::take();
            }
            let mut rest = self.codec.reply(request, &mut self.output);
            // Counted before the reply leaves, so that a peer that has the reply finds it counted.
            self.connection.count_requests(1);
            while let Some(part) = rest.next(&mut self.output) {
                replying.get_or_insert_with(|| Active::begin(self.connection));
                let mut both = Buf::chain(&self.output[..], part);
                self.stream.write_all_buf(&mut both).await?;
                self.output.clear();
            }
            if self.output.len() >= CHUNK {
                self.stream.write_all(&self.output).await?;
                self.output.clear();
            }
        }
        let rest = left.len();
        if rest == 0 {
            buffers::give(&mut self.input);
            // A large one stays, unless memory is scarce.
            if self.held.is_scarce() {
                self.input = BytesMut::new();
            }
            return self.hold();
        }
        let answered = self.input.len() - rest;
        if answered > 0 {
            // To the front, so that its capacity is all the memory that it has.
            self.input.copy_within(answered.., 0);
            self.input.truncate(rest);
        }
        let room = self.codec.room().max(BUFFER / 2);
        if self.input.capacity() - self.input.len() < room {
            self.input.reserve(room);
        }
        self.hold()
    }

    /// Counts the memory of the input.
    fn hold(&mut self) -> io::Result<()> {
        let held = self.held.set(self.input.capacity() as u64);
        held.map_err(|_| io::ErrorKind::ConnectionAborted.into())
    }

    /// Reads more of the input; returns the number of bytes, 0 at the end.
    async fn read(&mut self) -> io::Result<usize> {
        if self.input.is_empty() {
            return poll_fn(|cx| {
                if self.input.capacity() == 0 {
                    self.input = buffers::take();
                }
                let read = pin!(self.stream.read_buf(&mut self.input)).poll(cx);
                if read.is_pending() {
                    buffers::give(&mut self.input);
                }
                read
            })
            .await;
        }
        let begun = *self.begun.get_or_insert_with(clock::now);
        let came = self.input.len() as u64;
        let limit = self.chassis.shared().request.after(came);
        let read = self.stream.read_buf(&mut self.input);
        let Some(limit) = limit else {
            return read.await;
        };
        if let Ok(read) = time::timeout_at((begun + limit).into(), read).await {
            return read;
        }
        self.chassis.shared().count_deadline(REQUEST_TIMEOUT);
        self.input.clear();
        Ok(0)
    }

    /// Tells the peer how it broke the protocol, and closes.
    async fn refuse(&mut self, violation: &Violation) {
        tracing::debug!("closing a connection: {violation}");
        self.chassis.shared().count(violation.kind());
        self.codec.refuse(violation, &mut self.output);
        goodbye(self.stream, &self.output, LINGER).await;
    }
}

/// Pause between two reads of what is discarded: whoever sends without end takes little of the runtime's time.
const PAUSE: Duration = Duration::from_millis(1);

/// Writes the last bytes, then reads and discards the peer's: closing with unread bytes would reset the connection, and
/// the peer would lose the last bytes. Takes at most so long; without any time, writes what the socket takes at once.
pub async fn goodbye<S: AsyncRead + AsyncWrite + Unpin>(
    stream: &mut S,
    last: &[u8],
    linger: Duration,
) {
    let goodbye = async {
        stream.write_all(last).await?;
        stream.shutdown().await?;
        // On the heap: it would be a part of every connection's task.
        let mut discarded = vec![0; BUFFER];
        while stream.read(&mut discarded).await? > 0 {
            time::sleep(PAUSE).await;
        }
        io::Result::Ok(())
    };
    // The connection is done, however this ends.
    let _ = time::timeout(linger, goodbye).await;
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Waker};

    use netping_protocol::{
        codec::Limits,
        frame::{Reply, RequestHeader},
    };
    use tokio::io::{DuplexStream, duplex};

    use super::*;
    use crate::testing::accepted;

    fn frame(payload: usize, reply: Reply) -> Vec<u8> {
        let header = RequestHeader {
            payload: payload as u32,
            reply,
        };
        [&header.encode()[..], &vec![7; payload]].concat()
    }

    /// Calls `look` when all of each part has been served that can be.
    async fn after_each(parts: &[&[u8]], mut look: impl FnMut(&Echo<'_, DuplexStream>)) {
        let (accepted, chassis, _) = accepted();
        let (mut ours, mut theirs) = duplex(8 << 20);
        let connection = accepted.connection();
        let mut echo = Echo {
            stream: &mut ours,
            codec: Codec::frames(Limits::default()),
            connection,
            chassis: &chassis,
            input: BytesMut::new(),
            output: BytesMut::new(),
            begun: None,
            held: Held::nothing(connection),
        };
        for part in parts {
            theirs.write_all(part).await.unwrap();
            let served = tokio::task::unconstrained(echo.run());
            let mut context = Context::from_waker(Waker::noop());
            assert!(pin!(served).poll(&mut context).is_pending());
            look(&echo);
        }
    }

    #[tokio::test]
    async fn what_a_connection_holds_is_all_the_memory_of_its_input() {
        let small = frame(100, Reply::Bytes(1));
        let large = [frame(3 << 20, Reply::Bytes(1)), small[..1].to_vec()].concat();
        let mut held = Vec::new();
        after_each(&[&large, &small[1..], &small], |echo| {
            held.push(echo.held.bytes() >> 20);
        })
        .await;
        assert!(held.iter().all(|mib| *mib >= 3), "{held:?}");
    }

    #[tokio::test]
    async fn a_connection_keeps_no_memory_of_replies() {
        let replies = [65_529, 65_536].map(|length| frame(1, Reply::Bytes(length)));
        after_each(&[&replies.concat()], |echo| {
            assert_eq!((echo.output.capacity(), echo.input.capacity()), (0, 0));
        })
        .await;
    }
}
