//! Bulk over gRPC, by driving HTTP/2 directly: calls side by side on one connection.
//!
//! Down is `GiveMeData`, up is `TakeMyData` of `grpc_bench.DataService`.

use std::{
    cell::{Cell, RefCell},
    rc::Rc,
};

use bytes::Bytes;
use netping_http2::{Config, client::Body, fields::Fields, head::Head};
use netping_measure::{bulk::Direction, error_kind::ErrorKind};
use netping_protocol::grpc_bench::{DataReceived, DataRequest};
use netping_results::bulk::SERVERS_CHOICE;
use prost::Message;

use super::{
    incoming::{Encoding, Incoming, LONGEST_HEAD},
    stream::{
        Batch, BulkStream, Cut, Meter, Opened, Shape, Transferring, Volume, send_until_answered,
    },
};
use crate::transport::{
    Failure, Milestones, Result, ServerEndpoint, connect,
    grpc_h2::{FIELD_1, head, prefixed, prefixed_field},
    grpc_reply::{GrpcReply, PREFIX, check_end, check_head},
    http2::{self, Handle, Reader, STREAM_WINDOW, Streaming},
};

/// Largest frame accepted by default, in bytes: room for the usual messages whole. HTTP/2's default
/// of 16 KiB costs a system call each on either side.
const FRAME: u32 = 1 << 20;

/// HTTP/2's limits, in bytes.
const SMALLEST_CONNECTION_WINDOW: u32 = 65_535;
const LARGEST_WINDOW: u32 = 0x7FFF_FFFF;

/// Most bytes handed to HTTP/2 at once.
const PIECE: usize = 1 << 20;

/// Remedy for servers that send other lengths than they were asked for.
const CHOICE: &str = "; a server that chooses its own sizes needs --size server --chunk server";

/// Messages of the type `DataResponse`, each with its prefix.
#[derive(Debug)]
pub(super) struct DataResponses;

impl Encoding for DataResponses {
    fn data_length(head: &[u8]) -> Result<Option<usize>> {
        let Some((prefix, field)) = head.split_first_chunk::<PREFIX>() else {
            return Ok(None);
        };
        let [compressed, length @ ..] = *prefix;
        if compressed != 0 {
            return Err(wrong("a compressed message"));
        }
        let message = u32::from_be_bytes(length) as usize;
        let varint = match field {
            // A message without data has no field.
            _ if message == 0 => return Ok(Some(0)),
            [] => return Ok(None),
            [FIELD_1, varint @ ..] => varint,
            _ => return Err(wrong("a message that is not a DataResponse")),
        };
        if varint.last().is_none_or(|last| last & 0x80 != 0) {
            if head.len() == LONGEST_HEAD {
                return Err(wrong("a message of endless length"));
            }
            return Ok(None);
        }
        let digits = varint.iter().rev().map(|byte| usize::from(byte & 0x7F));
        let data = digits.fold(0, |sum, digit| (sum << 7) | digit);
        if 1 + varint.len() + data != message {
            return Err(wrong("a message with more in it than its data"));
        }
        Ok(Some(data))
    }

    fn unexpected(length: &str) -> Failure {
        let detail = format!("a message {length}{CHOICE}");
        Failure::request(ErrorKind::Mismatch, detail)
    }
}

fn wrong(what: &str) -> Failure {
    Failure::request(ErrorKind::Protocol, format!("the stream has {what}"))
}

/// Makes one call at a time, on a connection that others share.
struct BulkCalls {
    connection: Handle,
    head: Head,
    shape: Rc<Shape>,
    /// Full messages, for uploads.
    batch: Option<Batch>,
}

impl BulkStream for BulkCalls {
    fn transfer<'a>(&'a mut self, bytes: u64, meter: &'a Rc<Meter>) -> Transferring<'a> {
        // A batch is made once, and cheap to clone.
        match self.batch.clone() {
            None => Box::pin(self.down(bytes, meter)),
            Some(batch) => Box::pin(self.up(bytes, batch, meter)),
        }
    }
}

/// Opens the connection. A window is that of a stream; the connection's is the sum.
pub(super) async fn open(endpoint: &ServerEndpoint, shape: &Rc<Shape>, meter: &Meter) -> Opened {
    let settings = &shape.settings;
    let mut milestones = Milestones::untimed();
    let stream = connect::open(endpoint, None, &mut milestones).await?;
    meter.opened();
    let window = shape.window().unwrap_or(STREAM_WINDOW).min(LARGEST_WINDOW);
    let together = window.saturating_mul(settings.streams as u32);
    let together = together.clamp(SMALLEST_CONNECTION_WINDOW, LARGEST_WINDOW);
    let frame = settings.frame_bytes.map_or(FRAME, |bytes| bytes as u32);
    let config = Config {
        stream_window: window,
        connection_window: together,
        frame,
    };
    let connection = Handle::open(stream, config).await?;
    let (method, batch) = match settings.direction {
        Direction::Down => ("GiveMeData", None),
        Direction::Up => {
            let full = prefixed_field(shape.message(shape.chunk));
            ("TakeMyData", Some(Batch::new(full, shape.messages)))
        }
    };
    let head = head(endpoint, &format!("/grpc_bench.DataService/{method}"));
    let head = http2::prepare(&head);
    let stream = |_| -> Box<dyn BulkStream> {
        Box::new(BulkCalls {
            connection: connection.share(),
            head: head.clone(),
            shape: Rc::clone(shape),
            batch: batch.clone(),
        })
    };
    let streams = (0..settings.streams).map(stream).collect();
    Ok((streams, milestones.negotiated))
}

impl BulkCalls {
    async fn down(&mut self, bytes: u64, meter: &Rc<Meter>) -> Result<Volume> {
        let chunk = self.shape.chunk;
        let request = prefixed(&DataRequest {
            total_bytes: bytes,
            chunk_bytes: chunk as u32,
        });
        let wanted = |bytes| Some(bytes).filter(|bytes| *bytes != SERVERS_CHOICE);
        let messages = Incoming::new(wanted(chunk as u64), wanted(bytes), self.shape.right());
        let reply = Rc::new(RefCell::new(Download {
            messages,
            meter: Rc::clone(meter),
        }));
        let call = self.connection.stream(&self.head, reply.clone())?;
        call.send(Body::Shared(&request), true).await?;
        call.end().await?;
        reply.borrow().messages.finish()
    }

    async fn up(&mut self, bytes: u64, batch: Batch, meter: &Rc<Meter>) -> Result<Volume> {
        let received = Rc::new(Cell::default());
        let reply = Answer::new(Rc::clone(&received), Rc::clone(meter));
        let reply = Rc::new(RefCell::new(reply));
        let call = self.connection.stream(&self.head, reply)?;
        let cut = Cut::new(bytes, self.shape.chunk);
        let sending = send_all(&call, &self.shape, cut, &batch, meter);
        send_until_answered(sending, call.end()).await?;
        let received: DataReceived = received.get();
        if (received.total_bytes, received.chunks) == (bytes, cut.messages()) {
            return Ok(self.shape.volume(bytes));
        }
        let (got, messages, sent) = (received.total_bytes, received.chunks, cut.messages());
        let detail = format!(
            "the server got {got} bytes in {messages} messages, where {bytes} in {sent} were sent"
        );
        Err(Failure::request(ErrorKind::Mismatch, detail))
    }
}

/// The messages of a download.
struct Download {
    messages: Incoming<DataResponses>,
    meter: Rc<Meter>,
}

impl Reader for Download {
    fn head(&mut self, head: &Fields) -> Result<()> {
        accept(head)
    }

    fn data(&mut self, mut data: &[u8]) -> Result<()> {
        self.meter.received(data.len());
        self.messages.feed(&mut data)?;
        Ok(())
    }

    fn end(&mut self, last: &Fields) -> Result<()> {
        check_end(last)
    }
}

/// The answer to an upload.
struct Answer<F> {
    reply: GrpcReply<F>,
    meter: Rc<Meter>,
}

impl Answer<()> {
    /// Returns an answer that will tell what the server has `received`: nothing, if it is no valid message.
    fn new(received: Rc<Cell<DataReceived>>, meter: Rc<Meter>) -> Answer<impl Examine> {
        let examine = move |message: &[u8]| {
            received.set(DataReceived::decode(message).unwrap_or_default());
            Ok(())
        };
        let reply = GrpcReply::expected(examine);
        Answer { reply, meter }
    }
}

/// Takes a message.
trait Examine: FnMut(&[u8]) -> Result<()> {}

impl<F: FnMut(&[u8]) -> Result<()>> Examine for F {}

impl<F: Examine> Reader for Answer<F> {
    fn head(&mut self, head: &Fields) -> Result<()> {
        self.meter.received(0);
        accept(head)
    }

    fn data(&mut self, data: &[u8]) -> Result<()> {
        self.reply.data(data)
    }

    fn end(&mut self, last: &Fields) -> Result<()> {
        self.reply.end(last)
    }
}

/// Checks the head of a reply, with the status that makes it a refusal. One in mid-run may be followed by the
/// call's reset, which explains less.
fn accept(head: &Fields) -> Result<()> {
    check_head(head)?;
    match head.get("grpc-status") {
        Some(_) => check_end(head),
        None => Ok(()),
    }
}

/// Sends every message of a run, as fast as the server and the connection accept them.
async fn send_all(
    call: &Streaming,
    shape: &Shape,
    cut: Cut,
    batch: &Batch,
    meter: &Meter,
) -> Result<()> {
    let mut left = cut.full;
    while left > 0 {
        let messages = left.min(batch.messages());
        send(call, batch.first(messages), meter).await?;
        left -= messages;
    }
    if cut.rest > 0 {
        send(call, prefixed_field(shape.message(cut.rest)), meter).await?;
    }
    call.send(Body::Short(&[]), true).await
}

async fn send(call: &Streaming, mut bytes: Bytes, meter: &Meter) -> Result<()> {
    while !bytes.is_empty() {
        let piece = bytes.split_to(bytes.len().min(PIECE));
        call.send(Body::Shared(&piece), false).await?;
        meter.count(piece.len());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn incoming(chunk: u64, total: u64, pattern: Option<Bytes>) -> Incoming<DataResponses> {
        Incoming::new(Some(chunk), Some(total), pattern)
    }

    #[test]
    fn frame_boundaries_within_messages_do_not_matter() {
        let pattern = Bytes::from(vec![b'x'; 300]);
        let stream = [300, 300, 129].map(|length| prefixed_field(&pattern[..length]));
        let stream = stream.concat();
        for step in (1..20).chain([100, 304, 305, 400, 1000]) {
            let mut messages = incoming(300, 729, Some(pattern.clone()));
            for mut part in stream.chunks(step) {
                messages.feed(&mut part).unwrap();
            }
            messages.finish().unwrap();
        }
    }

    #[test]
    fn invalid_messages_are_rejected() {
        let fed = |mut bytes: &[u8]| {
            let mut messages = incoming(3, 3, None);
            messages
                .feed(&mut bytes)
                .and_then(|_| messages.finish())
                .unwrap_err()
        };
        let cases: [(&[u8], &str); 7] = [
            (b"\x01\0\0\0\x05\x0a\x03abc", "compressed"),
            (b"\0\0\0\0\x05\x12\x03abc", "not a DataResponse"),
            (b"\0\0\0\0\x07\x0a\x03abc\x10\x01", "more in it"),
            (b"\0\0\0\0\x07\x0a\xff\xff\xff\xff\xff", "endless"),
            (b"\0\0\0\0\x05\x0a\x03ab", "within a message"),
            (b"\0\0\0", "within a message"),
            (b"", "received 0 bytes instead of 3"),
        ];
        for (bytes, says) in cases {
            assert!(fed(bytes).detail.contains(says), "{says}: {}", fed(bytes));
        }
    }

    #[test]
    fn messages_of_unexpected_length_are_told_with_a_remedy() {
        let fed = |mut bytes: &[u8]| incoming(3, 7, None).feed(&mut bytes).unwrap_err();
        let failure = fed(&prefixed_field(b"abcdefg"));
        assert_eq!(failure.kind, ErrorKind::Mismatch);
        let says = "a message of 7 bytes where 3 were asked for";
        assert_eq!(failure.detail, format!("{says}{CHOICE}"));
        // A message without data, as gRPC has it.
        assert_eq!(fed(&[0; PREFIX]).kind, ErrorKind::Mismatch);
    }
}
