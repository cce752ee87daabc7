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
    Active, Chassis, Connection, clock, reply_memory::Reserved, request_limit::REQUEST_TIMEOUT,
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

use crate::deadline;

type BodyFrame = http_body::Frame<Bytes>;

type PolledFrame = Poll<Option<Result<BodyFrame, Status>>>;

/// The beginning of the paths of gRPC's own benchmark.
pub(crate) const BENCHMARK: &str = "/grpc.testing.BenchmarkService/";

/// All RPCs of one server.
#[derive(Debug, Clone)]
pub(crate) struct Watched<S> {
    pub routes: S,
    pub chassis: Arc<Chassis>,
}

impl<B, S> Service<Request<B>> for Watched<S>
where
    S: Service<Request<RequestBody<B>>, Response = Response<Body>, Error = Infallible>,
    S::Future: Send + 'static,
{
    type Response = Response<ReplyBody>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.routes.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let connection = request.extensions().get::<Arc<Connection>>();
        let active = connection.map(Active::begin);
        let timeout = request.headers().get(deadline::TIMEOUT);
        let timeout = timeout.and_then(|value| deadline::timeout(value.as_bytes()));
        let deadline = deadline::deadline(timeout);
        let is_conversation = request.uri().path().starts_with(BENCHMARK);
        let response = self.routes.call(request.map(|body| RequestBody {
            body,
            is_conversation,
            came: 0,
            begun: None,
            overdue: None,
            chassis: Arc::clone(&self.chassis),
        }));
        Box::pin(async move {
            let mut response = match deadline {
                None => response.await?,
                // In a box of its own: few calls have a deadline, and the others need not hold a timer.
                Some(deadline) => match Box::pin(deadline::within(response, deadline)).await {
                    Some(response) => response?,
                    None => Status::deadline_exceeded(deadline::MISSED).into_http(),
                },
            };
            let hold = response.extensions_mut().remove();
            Ok(response.map(|body| ReplyBody {
                body,
                _active: active,
                hold,
                rest: Bytes::new(),
                deadline: deadline.map(|deadline| Box::pin(sleep_until(deadline.into()))),
            }))
        })
    }
}

/// The memory that is reserved for a reply, which its service puts into the response's extensions.
///
/// The connection takes a part when the window has room for some of it, and the last one ends the
/// reservation: one part of a reply may wait there for the peer.
#[derive(Debug, Clone)]
pub(crate) struct Hold(
    #[expect(dead_code, reason = "held until it is dropped")] pub Reserved,
    /// Length of the parts in which messages are handed over, in bytes.
    pub usize,
);

/// A reply. It is dropped when its last part has left for the connection.
pub(crate) struct ReplyBody {
    body: Body,
    _active: Option<Active>,
    hold: Option<Hold>,
    /// The rest of a message that was longer than a part.
    rest: Bytes,
    /// The end of the call's time, if its caller has set one.
    deadline: Option<Pin<Box<Sleep>>>,
}

impl ReplyBody {
    /// Returns the next part of a message, or the whole of one for which nothing is reserved.
    fn part(&mut self, mut data: Bytes) -> BodyFrame {
        if let Some(Hold(_, part)) = self.hold
            && data.len() > part
        {
            self.rest = data.split_off(part);
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
        let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(cx) else {
            let Some(deadline) = &mut self.deadline else {
                return Poll::Pending;
            };
            ready!(deadline.as_mut().poll(cx));
            self.deadline = None;
            self.body = Body::empty();
            let mut trailers = HeaderMap::new();
            Status::deadline_exceeded(deadline::MISSED).add_header(&mut trailers)?;
            return Poll::Ready(Some(Ok(BodyFrame::trailers(trailers))));
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
    chassis: Arc<Chassis>,
}

impl<B> RequestBody<B> {
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
            if let Some(Ok(frame)) = &frame {
                self.came += frame.data_ref().map_or(0, |data| data.len() as u64);
                if self.is_conversation {
                    (self.came, self.begun) = (0, None);
                }
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
