//! Bulk over gRPC, by driving HTTP/2 directly: calls side by side on one connection.
//!
//! Down is `GiveMeData`, up is `TakeMyData` of `grpc_bench.DataService`.

use std::{future::poll_fn, rc::Rc};

use bytes::Bytes;
use futures_util::future::LocalBoxFuture;
use h2::{
    RecvStream, SendStream,
    client::{Builder, ResponseFuture, SendRequest},
};
use http::{HeaderMap, Request, StatusCode};
use netping_measure::{bulk::Direction, error_kind::ErrorKind};
use netping_protocol::grpc_bench::{DataReceived, DataRequest};
use prost::Message;

use super::{
    cut::{Carried, Cut, Lengths},
    messages::{self, Messages},
    meter::Meter,
    stream::{Batch, BulkStream, Opened, Shape, Spec, Transfer},
};
use crate::transport::{
    Failure, Milestones, connect,
    grpc_h2::{PREFIX, check_end, check_status, head, prefixed, read},
    http_reply::status_failure,
    http2::{self, STREAM_WINDOW},
};

/// Largest frame accepted by default, in bytes: room for the usual messages whole. HTTP/2's default
/// of 16 KiB costs a system call each on either side.
const FRAME: u32 = 1 << 20;

/// HTTP/2's limits, in bytes.
const SMALLEST_CONNECTION_WINDOW: u32 = 65_535;
const LARGEST_WINDOW: u32 = 0x7FFF_FFFF;

/// Bytes handed to HTTP/2 at once, and bytes that it buffers of a stream.
const PIECE: usize = 1 << 20;
const SEND_BUFFER: usize = 1 << 20;

/// Longest answer to an upload, in bytes.
const LONGEST_ANSWER: usize = 1 << 10;

/// Makes one call at a time, on a connection that others share.
struct Calls {
    send: SendRequest<Bytes>,
    head: Request<()>,
    shape: Rc<Shape>,
    /// Full messages, for uploads.
    batch: Option<Batch>,
}

impl BulkStream for Calls {
    fn transfer<'a>(&'a mut self, bytes: u64, meter: &'a Meter) -> Transfer<'a> {
        // A batch is made once, and cheap to clone.
        match self.batch.clone() {
            None => Box::pin(self.down(bytes, meter)),
            Some(batch) => Box::pin(self.up(bytes, batch, meter)),
        }
    }
}

/// Opens the connection. A window is that of a stream; the connection's is the sum.
pub(super) fn open(spec: Spec) -> LocalBoxFuture<'static, Result<Opened, Failure>> {
    Box::pin(async move {
        // The time of opening is not measured here.
        let mut milestones = Milestones::start(&|| 0);
        let stream = connect::open(&spec.endpoint, None, &mut milestones).await?;
        spec.meter.opened();
        let negotiated = stream.negotiated();
        let window = spec.window().unwrap_or(STREAM_WINDOW).min(LARGEST_WINDOW);
        let together = window.saturating_mul(spec.settings.streams as u32);
        let frame = spec.settings.frame_bytes;
        let mut builder = Builder::new();
        builder
            .initial_window_size(window)
            .initial_connection_window_size(
                together.clamp(SMALLEST_CONNECTION_WINDOW, LARGEST_WINDOW),
            )
            .max_frame_size(frame.map_or(FRAME, |bytes| bytes as u32))
            .max_send_buffer_size(SEND_BUFFER);
        let send = http2::open(&builder, stream).await?;
        let shape = &spec.shape;
        let full = || messages::message(shape.message(shape.chunk));
        let (method, batch) = match shape.direction {
            Direction::Down => ("/grpc_bench.DataService/GiveMeData", None),
            Direction::Up => (
                "/grpc_bench.DataService/TakeMyData",
                Some(Batch::new(full(), shape.messages)),
            ),
        };
        let stream = |_| -> Box<dyn BulkStream> {
            Box::new(Calls {
                send: send.clone(),
                head: head(&spec.endpoint, method),
                shape: Rc::clone(shape),
                batch: batch.clone(),
            })
        };
        Ok(Opened {
            streams: (0..spec.settings.streams).map(stream).collect(),
            negotiated,
        })
    })
}

impl Calls {
    async fn call(&mut self) -> Result<(ResponseFuture, SendStream<Bytes>), Failure> {
        poll_fn(|cx| self.send.poll_ready(cx)).await?;
        Ok(self.send.send_request(self.head.clone(), false)?)
    }

    async fn down(&mut self, bytes: u64, meter: &Meter) -> Result<Carried, Failure> {
        let (response, mut request) = self.call().await?;
        let wanted = DataRequest {
            total_bytes: bytes,
            chunk_bytes: self.shape.chunk as u32,
        };
        request.send_data(prefixed(&wanted), true)?;
        let (headers, mut body) = answer(response).await?;
        let mut messages = Messages::new(
            Lengths::new(self.shape.chunk, bytes),
            self.shape.check(bytes),
        );
        while let Some(data) = body.data().await {
            let data = data?;
            meter.answered();
            meter.count(data.len());
            messages.feed(&data)?;
            // It fails only on a closed stream, which the next read reports.
            let _ = body.flow_control().release_capacity(data.len());
        }
        check_end(&headers, &mut body).await?;
        messages.finish()
    }

    async fn up(&mut self, bytes: u64, batch: Batch, meter: &Meter) -> Result<Carried, Failure> {
        let (response, mut request) = self.call().await?;
        let cut = self.shape.cut(bytes);
        let sending = send_all(&mut request, &self.shape, cut, &batch, meter);
        let answering = async {
            let (headers, mut body) = answer(response).await?;
            meter.answered();
            let message = read(&mut body, LONGEST_ANSWER).await?;
            check_end(&headers, &mut body).await?;
            Ok::<_, Failure>(message)
        };
        tokio::pin!(sending, answering);
        let message = tokio::select! {
            // A refusal comes early.
            message = &mut answering => message,
            sent = &mut sending => match sent {
                Ok(()) => answering.await,
                // The server's answer explains more.
                Err(failure) => Err(answering.await.err().unwrap_or(failure)),
            },
        }?;
        let received = DataReceived::decode(message.get(PREFIX..).unwrap_or_default());
        let received = received.map_err(|error| {
            let detail = format!("the answer is not a valid message: {error}");
            Failure::request(ErrorKind::Protocol, detail)
        })?;
        if (received.total_bytes, received.chunks) == (bytes, cut.messages()) {
            let longest = cut.length(0).unwrap_or_default() as u64;
            return Ok(Carried { bytes, longest });
        }
        let detail = format!(
            "the server got {} bytes in {} messages, where {bytes} in {} were sent",
            received.total_bytes,
            received.chunks,
            cut.messages()
        );
        Err(Failure::request(ErrorKind::Mismatch, detail))
    }
}

/// Returns the headers of an answer, and its body to be read.
async fn answer(response: ResponseFuture) -> Result<(HeaderMap, RecvStream), Failure> {
    let (head, body) = response.await?.into_parts();
    if head.status != StatusCode::OK {
        return Err(status_failure(head.status));
    }
    // A refusal in mid-run may be followed by the call's reset, which explains less.
    if head.headers.contains_key("grpc-status") {
        check_status(&head.headers)?;
    }
    Ok((head.headers, body))
}

/// Sends every message of a run, as fast as the server and the connection accept them.
async fn send_all(
    request: &mut SendStream<Bytes>,
    shape: &Shape,
    cut: Cut,
    batch: &Batch,
    meter: &Meter,
) -> Result<(), Failure> {
    let mut left = cut.full;
    while left > 0 {
        let messages = left.min(batch.messages());
        send(request, batch.first(messages), meter).await?;
        left -= messages;
    }
    if cut.rest > 0 {
        let last = messages::message(shape.message(cut.rest));
        send(request, last.into(), meter).await?;
    }
    Ok(request.send_data(Bytes::new(), true)?)
}

async fn send(
    request: &mut SendStream<Bytes>,
    mut bytes: Bytes,
    meter: &Meter,
) -> Result<(), Failure> {
    while !bytes.is_empty() {
        // Capacity for one byte is enough: HTTP/2 holds the rest of the piece until there is more,
        // and no further piece is sent before.
        request.reserve_capacity(1);
        while request.capacity() == 0 {
            let Some(capacity) = poll_fn(|cx| request.poll_capacity(cx)).await else {
                let detail = "the server ended the call in mid-run";
                return Err(Failure::request(ErrorKind::Reset, detail));
            };
            capacity?;
        }
        let piece = bytes.split_to(bytes.len().min(PIECE));
        meter.count(piece.len());
        request.send_data(piece, false)?;
    }
    Ok(())
}
