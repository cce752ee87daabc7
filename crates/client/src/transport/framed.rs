//! Lines and frames on a byte stream, one request after the other; over TCP, in the clear or secured,
//! with one connection per caller.

use netping_measure::error_kind::ErrorKind;
use netping_protocol::{
    frame::{self, Reply},
    line,
    payload::{self, Exchange},
};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::{
    Carried, Connection, Failure, Milestones, Result, ServerEndpoint, Transport, connect,
    socket::Stream,
};

/// Room beyond the expected reply, in bytes: it shows a reply that is too long, and a read that
/// does not fill the buffer spares the runtime a second one to learn that nothing is left.
const MARGIN: usize = 512;

/// Longest wrong reply that is read for its text, in bytes.
const LONGEST_WRONG: usize = 64 << 10;

/// The delimitation of requests and replies on a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    /// Line ends.
    Lines,
    /// Length prefixes.
    Frames,
}

/// A byte stream with the buffer for its replies.
#[derive(Debug)]
pub struct Framed<S> {
    pub(super) stream: S,
    framing: Framing,
    input: Vec<u8>,
    /// The encoded message.
    output: Vec<u8>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Framed<S> {
    pub(super) fn new(stream: S, framing: Framing) -> Self {
        Self {
            stream,
            framing,
            input: Vec::new(),
            output: Vec::new(),
        }
    }

    /// Sends the exchange's current request, waits for the whole reply and verifies every byte of
    /// it. Notes the times that the server tells.
    pub(super) async fn request(
        &mut self,
        exchange: &Exchange,
        carried: &mut Carried<'_>,
    ) -> Result<()> {
        let request = match (self.framing, exchange.message()) {
            (Framing::Frames, Some(message)) => {
                self.output.clear();
                payload::put_frame(message, &mut self.output);
                &self.output
            }
            (Framing::Frames, None) => exchange.frame(),
            (Framing::Lines, _) => exchange.line(),
        };
        self.stream.write_all(request).await?;
        // TLS may have buffered some of it.
        self.stream.flush().await?;

        let expected = exchange.reply_length();
        let room = expected + frame::REPLY_HEADER + MARGIN;
        if self.input.len() < room {
            self.input.resize(room, 0);
        }
        let mut filled = 0;
        let [from, upto, end] = loop {
            if filled == self.input.len() {
                return Err(self.wrong(filled, "is longer than expected"));
            }
            let read = self.stream.read(&mut self.input[filled..]).await?;
            if read == 0 {
                let place = if filled == 0 { "" } else { " within a reply" };
                let detail = format!("the server closed the connection{place}");
                return Err(Failure::lost(ErrorKind::Eof, detail));
            }
            filled += read;
            if let Some(reply) = self.whole_reply(filled, expected)? {
                break reply;
            }
        };
        if end != filled {
            return Err(self.wrong(filled, "is followed by unexpected bytes"));
        }
        let reply = &self.input[from..upto];
        if !exchange.verify(reply) {
            return Err(self.wrong(filled, "is not what was sent"));
        }
        if exchange.reply() == Reply::Times {
            carried.server_times = reply.try_into().ok().map(frame::decode_times);
        }
        Ok(())
    }

    /// Returns the reply's beginning and end, and the end of all that belongs to it; `None` until
    /// it is whole.
    fn whole_reply(&mut self, filled: usize, expected: usize) -> Result<Option<[usize; 3]>> {
        let input = &self.input[..filled];
        match self.framing {
            Framing::Lines => {
                // One that is shorter than the right reply may be whole already, and wrong.
                let from = if filled <= expected { 0 } else { expected };
                Ok(line::find(input, from).map(|length| [0, length, length + 1]))
            }
            Framing::Frames => {
                let Some(length) = frame::reply_length(input) else {
                    return Ok(None);
                };
                let end = frame::REPLY_HEADER + length as usize;
                if length as usize != expected && end > LONGEST_WRONG {
                    let detail =
                        format!("a reply of {length} bytes where {expected} were asked for");
                    return Err(Failure::lost(ErrorKind::Protocol, detail));
                }
                if end > self.input.len() {
                    self.input.resize(end + MARGIN, 0);
                }
                Ok((filled >= end).then_some([frame::REPLY_HEADER, end, end]))
            }
        }
    }

    /// Returns the failure of a wrong reply: whatever follows on the connection cannot be trusted.
    fn wrong(&self, filled: usize, what: &str) -> Failure {
        let shown = self.input[..filled.min(80)].escape_ascii();
        let detail = format!("the reply {what}: \"{shown}\"");
        Failure::lost(ErrorKind::Mismatch, detail)
    }
}

/// Opens TCP connections.
#[derive(Debug, Clone)]
pub struct Tcp {
    pub(super) endpoint: ServerEndpoint,
    pub(super) framing: Framing,
}

impl Transport for Tcp {
    type Connection = Framed<Stream>;

    async fn connect(&self, milestones: &mut Milestones<'_>) -> Result<Self::Connection> {
        let mut stream = connect::open(&self.endpoint, None, milestones).await?;
        if self.framing == Framing::Frames {
            stream.write_all(&frame::MAGIC).await?;
        }
        Ok(Framed::new(stream, self.framing))
    }
}

impl Connection for Framed<Stream> {
    async fn call(&mut self, exchange: &Exchange, carried: &mut Carried<'_>) -> Result<()> {
        self.request(exchange, carried).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the result of the first request of a caller that is answered with these bytes.
    async fn answered(framing: Framing, reply: &[u8]) -> Result<(), ErrorKind> {
        let (near, mut far) = tokio::io::duplex(1 << 16);
        far.write_all(reply).await.unwrap();
        far.shutdown().await.unwrap();
        let exchange = Exchange::new(0, 4, Reply::Echo);
        let mut carried = Carried::start(&|| 0);
        let result = Framed::new(near, framing)
            .request(&exchange, &mut carried)
            .await;
        result.map_err(|failure| failure.kind)
    }

    #[tokio::test(flavor = "current_thread")]
    async fn only_the_bytes_that_were_sent_are_the_right_reply() {
        for (framing, right) in [
            (Framing::Lines, &b"0000\n"[..]),
            (Framing::Frames, b"\0\0\0\x040000"),
        ] {
            assert_eq!(answered(framing, right).await, Ok(()));
            let mut wrong = right.to_vec();
            wrong[right.len() - 2] = b'1';
            let followed = [right, b"x"].concat();
            for wrong in [wrong, followed] {
                let kind = answered(framing, &wrong).await;
                assert_eq!(kind, Err(ErrorKind::Mismatch), "{framing:?}");
            }
            let cut = answered(framing, &right[..3]).await;
            assert_eq!(cut, Err(ErrorKind::Eof), "{framing:?}");
        }
    }
}
