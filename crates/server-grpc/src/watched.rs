//! The service around all RPCs: it limits the time in which a request comes, keeps the caller's deadline, and knows
//! which requests of a connection are not answered, and what their replies hold.

use std::{
    convert::Infallible,
    sync::Arc,
    task::{Context, Poll},
};

use netping_serving::{Active, Connection};
use tokio::time::sleep_until;
use tonic::{
    Status,
    body::Body,
    codegen::{
        Service,
        http::{HeaderName, Request, Response},
    },
};

use crate::{
    call::{Call, LEFT},
    deadline,
    limits::Limits,
    reply_body::ReplyBody,
    request_body::RequestBody,
};

/// The beginning of the paths of gRPC's own benchmark.
pub(crate) const BENCHMARK: &str = "/grpc.testing.BenchmarkService/";

/// The beginning of those of its methods whose requests have many messages.
const STREAMING: &str = "/grpc.testing.BenchmarkService/Streaming";

/// The path of an echo of messages.
const CHAT: &str = "/echopb.Echo/Chat";

/// The header of the caller's deadline. A text would be checked anew for each request.
static TIMEOUT: HeaderName = HeaderName::from_static(deadline::TIMEOUT);

/// A call until its reply begins.
pub(crate) type Answered = Call<Result<Response<ReplyBody>, Infallible>>;

/// All RPCs of one server.
#[derive(Clone)]
pub(crate) struct Watched<S> {
    pub routes: S,
    pub limits: Arc<Limits>,
}

impl<B, S> Service<Request<B>> for Watched<S>
where
    S: Service<Request<RequestBody<B>>, Response = Response<Body>, Error = Infallible>,
    S::Future: Send + 'static,
{
    type Response = Response<ReplyBody>;
    type Error = Infallible;
    type Future = Answered;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.routes.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        answer(&mut self.routes, &self.limits, request)
    }
}

/// Has the services answer a request.
pub(crate) fn answer<B, S>(services: &mut S, limits: &Arc<Limits>, request: Request<B>) -> Answered
where
    S: Service<Request<RequestBody<B>>, Response = Response<Body>, Error = Infallible>,
    S::Future: Send + 'static,
{
    let connection = request.extensions().get::<Arc<Connection>>().cloned();
    let active = connection.as_ref().map(Active::begin);
    let timeout = request.headers().get(&TIMEOUT);
    let timeout = timeout.and_then(|value| deadline::timeout(value.as_bytes()));
    let deadline = deadline::deadline(timeout);
    let path = request.uri().path();
    let is_conversation = path == CHAT || path.starts_with(STREAMING);
    let limits = Arc::clone(limits);
    let response = services.call(request.map(|body| {
        let limits = Arc::clone(&limits);
        RequestBody::new(body, is_conversation, connection.as_deref(), limits)
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
        let announcement = response.extensions_mut().remove();
        let deadline = deadline.map(|deadline| Box::pin(sleep_until(deadline.into())));
        Ok(response.map(|body| ReplyBody::new(body, active, announcement, deadline, limits)))
    };
    Call::new(Box::pin(answer), connection, &LEFT)
}
