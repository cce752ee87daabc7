//! tonic's services straight on hyper's HTTP/2 server: what tonic's own server and its router cost shows in the
//! difference.

use std::{convert::Infallible, pin::pin, sync::Arc};

use hyper::{body::Incoming, server::conn::http2::Builder};
use hyper_util::rt::{TokioExecutor, TokioIo};
use netping_serving::{Accepted, Chassis, Connection, Result};
use tonic::{
    body::Body,
    codegen::http::{Request, Response},
    codegen::{BoxFuture, Service},
    service::Routes,
};

use crate::{
    GrpcArgs, MAX_LOCAL_ERROR_RESETS, Rpcs,
    call::Call,
    connected::ConnectedStream,
    limits::Limits,
    reply_body::ReplyBody,
    request_body::RequestBody,
    routes,
    watched::{BENCHMARK, answer},
};

/// The server of one process.
pub(crate) struct Direct {
    builder: Builder<TokioExecutor>,
    services: Choice,
    limits: Arc<Limits>,
    chassis: Arc<Chassis>,
}

impl Direct {
    /// Returns the server, with the same limits as on tonic's own.
    pub(crate) fn new(chassis: &Arc<Chassis>, args: &GrpcArgs) -> Result<Self> {
        let mut builder = Builder::new(TokioExecutor::new());
        builder
            .max_concurrent_streams(args.max_streams)
            .max_local_error_reset_streams(MAX_LOCAL_ERROR_RESETS)
            .initial_stream_window_size(args.stream_window)
            .initial_connection_window_size(args.connection_window)
            .max_frame_size(args.http2_frame);
        Ok(Self {
            builder,
            services: Choice {
                rpcs: Rpcs::new(chassis, args),
                others: routes(chassis, args)?,
            },
            limits: args.limits(chassis),
            chassis: Arc::clone(chassis),
        })
    }

    /// Serves a connection to its end.
    pub(crate) async fn serve(self: Arc<Self>, accepted: Accepted) {
        let connection = Arc::clone(accepted.connection());
        let stream = ConnectedStream::new(accepted, Arc::clone(&self.chassis));
        let calls = Calls {
            direct: Arc::clone(&self),
            connection,
        };
        let mut serving = pin!(self.builder.serve_connection(TokioIo::new(stream), calls));
        let served = tokio::select! {
            served = serving.as_mut() => served,
            () = self.chassis.shutdown.triggered() => {
                serving.as_mut().graceful_shutdown();
                serving.await
            }
        };
        if let Err(error) = served {
            tracing::debug!("connection: {error}");
        }
    }
}

/// The calls of one connection.
struct Calls {
    direct: Arc<Direct>,
    connection: Arc<Connection>,
}

impl hyper::service::Service<Request<Incoming>> for Calls {
    type Response = Response<ReplyBody>;
    type Error = Infallible;
    type Future = Call;

    fn call(&self, mut request: Request<Incoming>) -> Self::Future {
        request
            .extensions_mut()
            .insert(Arc::clone(&self.connection));
        let Direct {
            services, limits, ..
        } = &*self.direct;
        answer(limits, request, |request| services.call(request))
    }
}

/// The services of netping's own RPCs, chosen by a comparison, and the router for the others.
#[derive(Debug)]
struct Choice {
    rpcs: Rpcs,
    others: Routes,
}

impl Choice {
    fn call(
        &self,
        request: Request<RequestBody<Incoming>>,
    ) -> BoxFuture<Response<Body>, Infallible> {
        let Choice { rpcs, others } = self;
        let path = request.uri().path();
        if path.starts_with("/echopb.Echo/") {
            return rpcs.echo.clone().call(request);
        }
        if path.starts_with("/pb.Hello/") {
            return rpcs.hello.clone().call(request);
        }
        if path.starts_with("/grpc_bench.DataService/") {
            return rpcs.data.clone().call(request);
        }
        if path.starts_with(BENCHMARK) {
            return rpcs.benchmark.clone().call(request);
        }
        Box::pin(others.clone().call(request))
    }
}
