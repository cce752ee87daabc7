//! tonic's services straight on hyper's HTTP/2 server: what tonic's own server and its router cost shows in the
//! difference.

use std::{convert::Infallible, pin::pin, sync::Arc};

use hyper::{body::Incoming, server::conn::http2::Builder};
use hyper_util::rt::{TokioExecutor, TokioIo};
use netping_serving::{Accepted, Chassis, Connection, Result};
use tonic::{
    codegen::Service,
    codegen::http::{Request, Response},
    service::Routes,
};

use crate::{
    GrpcArgs, MAX_LOCAL_ERROR_RESETS, Rpcs,
    call::Call,
    connected::ConnectedStream,
    reply_body::ReplyBody,
    routes,
    services::Services,
    watched::{BENCHMARK, answer},
};

/// The server of one process.
pub(crate) struct Direct {
    builder: Builder<TokioExecutor>,
    services: Services,
    /// The router for RPCs that are not netping's own.
    others: Routes,
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
        let services = Services::new(chassis, args);
        Ok(Self {
            builder,
            others: routes(services.clone())?,
            services,
            chassis: Arc::clone(chassis),
        })
    }

    /// Serves a connection to its end.
    pub(crate) async fn serve(self: Arc<Self>, accepted: Accepted) {
        let connection = Arc::clone(accepted.connection());
        let stream = ConnectedStream::new(accepted, Arc::clone(&self.chassis));
        let calls = Calls {
            direct: Arc::clone(&self),
            rpcs: Rpcs::new(self.services.of(&connection)),
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

/// The calls of one connection: its services are chosen by a comparison.
struct Calls {
    direct: Arc<Direct>,
    rpcs: Rpcs,
    connection: Arc<Connection>,
}

impl hyper::service::Service<Request<Incoming>> for Calls {
    type Response = Response<ReplyBody>;
    type Error = Infallible;
    type Future = Call;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let connection = Some(Arc::clone(&self.connection));
        answer(connection, request, |request| {
            let Rpcs {
                echo,
                hello,
                data,
                benchmark,
            } = &self.rpcs;
            let path = request.uri().path();
            if path.starts_with("/echopb.Echo/") {
                return echo.clone().call(request);
            }
            if path.starts_with("/pb.Hello/") {
                return hello.clone().call(request);
            }
            if path.starts_with("/grpc_bench.DataService/") {
                return data.clone().call(request);
            }
            if path.starts_with(BENCHMARK) {
                return benchmark.clone().call(request);
            }
            Box::pin(self.direct.others.clone().call(request))
        })
    }
}
