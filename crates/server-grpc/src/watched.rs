//! The service around all RPCs: it limits the time in which a request comes, keeps the caller's deadline, and knows
//! which requests of a connection are not answered, and what their replies hold.

use std::{
    convert::Infallible,
    sync::Arc,
    task::{Context, Poll},
};

use netping_serving::{Active, Connection};
use tonic::{
    Status,
    body::Body,
    codegen::{
        Service,
        http::{Request, Response},
    },
};

use crate::{
    call::{Answer, Call, LEFT, Waiting},
    deadline,
    reply_body::ReplyBody,
    request_body::{Head, RequestBody},
};

/// The beginning of the paths of gRPC's own benchmark.
pub(crate) const BENCHMARK: &str = "/grpc.testing.BenchmarkService/";

/// All RPCs of one server.
#[derive(Clone)]
pub(crate) struct Watched<S>(pub S);

impl<B, S> Service<Request<B>> for Watched<S>
where
    S: Service<Request<RequestBody<B>>, Response = Response<Body>, Error = Infallible>,
    S::Future: Send + 'static,
{
    type Response = Response<ReplyBody>;
    type Error = Infallible;
    type Future = Call;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let connection = request.extensions().get().cloned();
        let routes = &mut self.0;
        answer(connection, request, |request| {
            Box::pin(routes.call(request))
        })
    }
}

/// Has a service answer a request; `connection` is the one that counts it.
pub(crate) fn answer<B>(
    connection: Option<Arc<Connection>>,
    request: Request<B>,
    service: impl FnOnce(Request<RequestBody<B>>) -> Answer,
) -> Call {
    let stream = connection.map(Active::begin);
    let head = Head::of(request.uri(), request.headers());
    let deadline = deadline::deadline(head.timeout);
    let body = RequestBody::of(request, &head, stream.as_deref());
    let mut answer = service(body);
    if let Some(deadline) = deadline {
        answer = Box::pin(async move {
            let missed = || Ok(Status::deadline_exceeded(deadline::MISSED).into_http());
            deadline::within(answer, deadline)
                .await
                .unwrap_or_else(missed)
        });
    }
    let waiting = Waiting {
        answer,
        stream,
        of: head.of,
        deadline,
    };
    Call::new(waiting, &LEFT)
}
