//! The service around all RPCs: it limits the time in which a request comes, keeps the caller's deadline, and knows
//! which requests of a connection are not answered, and what their replies hold.

use std::{
    convert::Infallible,
    mem,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Instant,
};

use bytes::Bytes;
use netping_serving::{
    Active, Chassis, Connection, Held, clock,
    reply_memory::{MAX_MEMORY, Reserved},
    request_limit::REQUEST_TIMEOUT,
};
use tokio::time::{Sleep, sleep_until};
use tonic::{
    Status,
    body::Body,
    codegen::{
        Body as HttpBody, Service, StdError,
        http::{HeaderMap, Request, Response},
    },
};

use crate::{
    call::{Call, Left},
    deadline,
    pieces::{Piece, Pieces},
};

type BodyFrame = http_body::Frame<Bytes>;

type PolledFrame = Poll<Option<Result<BodyFrame, Status>>>;

/// The beginning of the paths of gRPC's own benchmark.
pub(crate) const BENCHMARK: &str = "/grpc.testing.BenchmarkService/";

/// The path of an echo of messages.
const CHAT: &str = "/echopb.Echo/Chat";

/// All RPCs of one server.
#[derive(Clone)]
pub(crate) struct Watched<S> {
    pub routes: S,
    pub chassis: Arc<Chassis>,
    /// The most that the incomplete requests of a connection may hold, in bytes.
    pub most_held: u64,
    pub left: Left,
}

impl<B, S> Service<Request<B>> for Watched<S>
where
    S: Service<Request<RequestBody<B>>, Response = Response<Body>, Error = Infallible>,
    S::Future: Send + 'static,
{
    type Response = Response<ReplyBody>;
    type Error = Infallible;
    type Future = Call<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.routes.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let connection = request.extensions().get::<Arc<Connection>>().cloned();
        let mut active = connection.as_ref().map(Active::begin);
        let memory = connection.as_deref().map(Held::nothing);
        let most_held = self.most_held;
        let timeout = request.headers().get(deadline::TIMEOUT);
        let timeout = timeout.and_then(|value| deadline::timeout(value.as_bytes()));
        let deadline = deadline::deadline(timeout);
        let path = request.uri().path();
        let is_conversation = path == CHAT || path.starts_with(BENCHMARK);
        let response = self.routes.call(request.map(|body| RequestBody {
            body,
            is_conversation,
            came: 0,
            begun: None,
            overdue: None,
            messages: Messages::default(),
            memory,
            most_held,
            chassis: Arc::clone(&self.chassis),
        }));
        let answer = async move {
            let mut response = match deadline {
                None => response.await?,
                // In a box of its own: few calls have a deadline, and the others need not hold a timer.
                Some(deadline) => match Box::pin(deadline::within(response, deadline)).await {
                    Some(response) => response?,
                    None => Status::deadline_exceeded(deadline::MISSED).into_http(),
                },
            };
            let hold = response.extensions_mut().remove();
            // The body is asked for when the peer's window has room for some of it.
            if let Some(active) = &mut active {
                active.wait.set(true);
            }
            Ok(response.map(|body| ReplyBody {
                body,
                active,
                hold,
                rest: Bytes::new(),
                deadline: deadline.map(|deadline| Box::pin(sleep_until(deadline.into()))),
            }))
        };
        Call::new(Box::pin(answer), connection, &self.left)
    }
}

/// The memory that is reserved for a reply, which its service puts into the response's extensions.
///
/// The connection takes a part when the window has room for some of it, and keeps it until the socket has taken it. The
/// last part to leave ends the reservation.
#[derive(Debug, Clone)]
pub(crate) struct Hold(
    pub Reserved,
    /// Length of the parts in which messages are handed over, in bytes.
    pub usize,
);

/// A part of a reply, the memory reserved for all of it, and the request whose reply is not whole while the connection
/// has the part.
struct Part(
    Bytes,
    #[expect(dead_code, reason = "held until they are dropped")] (Reserved, Option<Active>),
);

impl AsRef<[u8]> for Part {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

/// A reply. It is dropped when its last part has left for the connection.
pub(crate) struct ReplyBody {
    body: Body,
    active: Option<Active>,
    hold: Option<Hold>,
    /// The rest of a message that was longer than a part.
    rest: Bytes,
    /// The end of the call's time, if its caller has set one.
    deadline: Option<Pin<Box<Sleep>>>,
}

impl ReplyBody {
    /// Returns the next part of a message, or the whole of one for which nothing is reserved. The rest waits for the
    /// peer.
    fn part(&mut self, mut data: Bytes) -> BodyFrame {
        if let Some(Hold(reserved, part)) = &self.hold {
            if data.len() > *part {
                self.rest = data.split_off(*part);
            }
            let waiting = self.active.as_ref().map(Active::again);
            data = Bytes::from_owner(Part(data, (reserved.clone(), waiting)));
        }
        if let Some(active) = &mut self.active {
            active.wait.set(true);
            active.wait.take(data.len());
        }
        BodyFrame::data(data)
    }
}

impl HttpBody for ReplyBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> PolledFrame {
        if !self.rest.is_empty() {
            let rest = mem::take(&mut self.rest);
            return Poll::Ready(Some(Ok(self.part(rest))));
        }
        let deadline = self.deadline.as_mut();
        if deadline.is_some_and(|own| own.as_mut().poll(cx).is_ready()) {
            self.deadline = None;
            self.body = Body::empty();
            let mut trailers = HeaderMap::new();
            Status::deadline_exceeded(deadline::MISSED).add_header(&mut trailers)?;
            return Poll::Ready(Some(Ok(BodyFrame::trailers(trailers))));
        }
        let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(cx) else {
            // It waits for the service.
            if let Some(active) = &mut self.active {
                active.wait.set(false);
            }
            return Poll::Pending;
        };
        Poll::Ready(frame.map(|frame| match frame?.into_data() {
            Ok(data) => Ok(self.part(data)),
            Err(trailers) => Ok(trailers),
        }))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }
}

/// A request, which must come in time.
pub(crate) struct RequestBody<B> {
    body: B,
    /// Its messages have replies of their own: the time begins anew with each part of it.
    is_conversation: bool,
    /// Bytes that have come.
    came: u64,
    /// When it was first seen to be incomplete.
    begun: Option<Instant>,
    overdue: Option<Pin<Box<Sleep>>>,
    messages: Messages,
    memory: Option<Held>,
    most_held: u64,
    chassis: Arc<Chassis>,
}

/// The messages of a request, as they come: a flag and a length of four bytes before each.
#[derive(Debug, Default)]
struct Messages {
    pieces: Pieces<5>,
    /// Bytes of the last message that have come.
    came: u64,
}

impl Messages {
    /// Takes the next part of a request; returns the bytes that have come of a message that is not whole.
    fn take(&mut self, mut data: &[u8]) -> u64 {
        while let Some(piece) = self.pieces.next(&mut data) {
            match piece {
                Piece::Head([_, length @ ..]) => {
                    self.pieces.expect(u32::from_be_bytes(length) as usize);
                    self.came = 0;
                }
                Piece::Payload(part) => self.came += part.len() as u64,
            }
        }
        if self.pieces.awaits_payload() {
            self.came
        } else {
            0
        }
    }
}

impl<B> RequestBody<B> {
    /// Counts a part of the request, and what it holds.
    fn take(&mut self, data: &[u8]) -> Result<(), Status> {
        self.came += data.len() as u64;
        if self.is_conversation {
            (self.came, self.begun) = (0, None);
        }
        let partial = self.messages.take(data);
        let most = self.most_held;
        let total = self.memory.as_mut().map_or(0, |own| own.set(partial));
        if partial == 0 || total <= most {
            return Ok(());
        }
        self.chassis.count_error(MAX_MEMORY);
        let much = "the connection's requests hold more than the server's --max-held";
        Err(Status::resource_exhausted(much))
    }

    /// Waits until the request has taken too long.
    fn poll_overdue(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(limit) = self.chassis.request_limit().after(self.came) else {
            return Poll::Pending;
        };
        let begun = *self.begun.get_or_insert_with(clock::now);
        let deadline = (begun + limit).into();
        let overdue = self
            .overdue
            .get_or_insert_with(|| Box::pin(sleep_until(deadline)));
        if overdue.deadline() != deadline {
            overdue.as_mut().reset(deadline);
        }
        overdue.as_mut().poll(cx)
    }
}

impl<B> HttpBody for RequestBody<B>
where
    B: HttpBody<Data = Bytes> + Unpin,
    B::Error: Into<StdError>,
{
    type Data = Bytes;
    type Error = StdError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<BodyFrame, StdError>>> {
        if let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(cx) {
            let data = frame
                .as_ref()
                .and_then(|frame| frame.as_ref().ok()?.data_ref());
            if let Some(data) = data {
                self.take(data)?;
            }
            return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
        }
        ready!(self.poll_overdue(cx));
        self.chassis.count_deadline(REQUEST_TIMEOUT);
        let late = "the request did not come within the server's --request-timeout";
        Poll::Ready(Some(Err(Status::deadline_exceeded(late).into())))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> http_body::SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_message_that_is_not_whole_holds_memory() {
        let message = |length: u32| {
            let prefix = length.to_be_bytes();
            [&[0], &prefix[..], &vec![7; length as usize]].concat()
        };
        let bytes = [message(300), message(0), message(20)].concat();
        for step in [1, 2, 4, 5, 6, 64, 1000] {
            let mut messages = Messages::default();
            let held: Vec<u64> = bytes.chunks(step).map(|part| messages.take(part)).collect();
            assert_eq!(held.last(), Some(&0), "{step}");
            let most = if step == 1 { 299 } else { 300 };
            assert!(held.iter().all(|held| *held <= most), "{step}");
        }
        let mut messages = Messages::default();
        assert_eq!(messages.take(&bytes[..105]), 100);
        assert_eq!(messages.take(&bytes[105..304]), 299);
        assert_eq!(messages.take(&bytes[304..316]), 1);
        assert_eq!(messages.take(&bytes[316..]), 0);
    }
}
