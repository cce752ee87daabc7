//! The gRPC server, on tonic: unary echo, the 581-byte message, one large stream, health and reflection.

mod connected;
mod services;

use std::sync::Arc;

use clap::Parser;
use netping_protocol::{
    FILE_DESCRIPTOR_SET,
    echopb::echo_server::EchoServer,
    grpc_bench::data_service_server::DataServiceServer,
    hello::hello_server::HelloServer,
    scheme::{Scheme, port},
    secure::Acceptor,
};
use netping_serving::{
    Accepts, Chassis, CommonArgs, Listening, Profile, RuntimeArgs, Service, Shutdown, StartError,
    TlsArgs, serve_on_runtimes,
};
use tokio_stream::StreamExt;
use tonic::{service::Routes, transport::Server};

use crate::{
    connected::Peer,
    services::{BulkDefaults, Services},
};

/// Serves gRPC: echo, the rpcx benchmark message, bulk data, health and reflection
#[derive(Debug, Clone, Parser)]
#[command(name = "netping-server-grpc", version)]
pub struct Args {
    /// Flags of every server.
    #[command(flatten)]
    pub common: CommonArgs,
    /// How tasks get to cores.
    #[command(flatten)]
    pub runtime: RuntimeArgs,
    /// How connections are secured.
    #[command(flatten)]
    pub tls: TlsArgs,
    /// Requests at once on one connection (SETTINGS_MAX_CONCURRENT_STREAMS)
    #[arg(long, default_value_t = 16_384, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub max_streams: u32,
    /// The longest message accepted, and the longest reply or chunk given, in bytes
    #[arg(long, default_value_t = 16 << 20, value_name = "BYTES")]
    pub max_message: usize,
    /// Flow-control window of each stream, in bytes
    #[arg(long, default_value_t = 4 << 20, value_name = "BYTES", value_parser = window)]
    pub stream_window: u32,
    /// Flow-control window of each connection, in bytes
    #[arg(long, default_value_t = 16 << 20, value_name = "BYTES", value_parser = window)]
    pub connection_window: u32,
    /// The largest HTTP/2 frame accepted, in bytes (SETTINGS_MAX_FRAME_SIZE); for replies, the client says it
    #[arg(long, default_value_t = 1 << 20, value_name = "BYTES", value_parser = frame)]
    pub http2_frame: u32,
    /// Length of a bulk stream whose request does not say, in bytes
    #[arg(long, default_value_t = 512 << 20, value_name = "BYTES")]
    pub bulk_total: u64,
    /// Length of a bulk stream's messages where its request does not say, in bytes
    #[arg(long, default_value_t = 256 << 10, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(1..))]
    pub bulk_chunk: u32,
}

/// The windows that HTTP/2 allows (RFC 9113, section 6.9.1), from its initial one on.
fn window(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(bytes @ 65_535..=0x7FFF_FFFF) => Ok(bytes),
        _ => Err("a window has 65535 to 2147483647 bytes".to_owned()),
    }
}

/// The frames that HTTP/2 allows (RFC 9113, section 4.2).
fn frame(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(bytes @ 16_384..=0xFF_FFFF) => Ok(bytes),
        _ => Err("the largest frame has 16384 to 16777215 bytes".to_owned()),
    }
}

impl AsRef<CommonArgs> for Args {
    fn as_ref(&self) -> &CommonArgs {
        &self.common
    }
}

/// This server.
pub const SERVICE: Service<Args> = Service {
    scheme,
    port: port::GRPC,
    sockets: |_| 1,
    serve,
};

fn scheme(args: &Args) -> Scheme {
    if args.tls.is_on() {
        Scheme::GrpcTls
    } else {
        Scheme::Grpc
    }
}

/// Streams that may be reset for the peer's errors before the connection ends: hyper's own limit, which tonic lifts
/// unless it is told (CVE-2023-44487 and its kin).
const MAX_LOCAL_ERROR_RESETS: usize = 1024;

/// An HTTP/2 client opens with a preface of this many bytes.
const PREFACE: u64 = 24;

/// Serves until `shutdown`, then drains.
///
/// # Errors
/// When the system refuses a thread, a runtime or a socket, or a key's file is of no use.
pub fn serve(mut listening: Listening, args: &Args, shutdown: &Shutdown) -> Result<(), StartError> {
    let tls = args.tls.config(Scheme::GrpcTls.alpn())?;
    let acceptor = tls.map_or(Acceptor::Plain, |config| Acceptor::Tls(Arc::new(config)));
    // A GOAWAY is HTTP/2's goodbye: connections are not cut for the drain.
    let profile = Profile {
        first_bytes: PREFACE,
        drain_by_eof: false,
        files_per_connection: 1,
    };
    let chassis = Chassis::start(&mut listening, &args.common, profile)?;
    let routes = routes(&chassis, args)?;
    serve_on_runtimes(
        listening.service,
        &chassis,
        &args.runtime,
        &acceptor,
        shutdown,
        |accepts: Accepts| {
            let serving = server(args).serve_with_incoming_shutdown(
                routes.clone(),
                {
                    let chassis = chassis.clone();
                    accepts.map(move |accepted| {
                        accepted.map(|stream| Peer::new(stream, chassis.clone()))
                    })
                },
                {
                    let shutdown = shutdown.clone();
                    async move { shutdown.triggered().await }
                },
            );
            async move {
                if let Err(error) = serving.await {
                    tracing::error!("serving ended: {error}");
                }
            }
        },
    )
}

fn server(args: &Args) -> Server {
    Server::builder()
        .max_concurrent_streams(args.max_streams)
        .http2_max_local_error_reset_streams(Some(MAX_LOCAL_ERROR_RESETS))
        .initial_stream_window_size(args.stream_window)
        .initial_connection_window_size(args.connection_window)
        .max_frame_size(args.http2_frame)
}

fn routes(chassis: &Chassis, args: &Args) -> Result<Routes, StartError> {
    let defaults = BulkDefaults {
        total: args.bulk_total,
        chunk: args.bulk_chunk,
    };
    let services = Services::new(chassis.clone(), args.max_message, defaults);
    let reflection = || {
        tonic_reflection::server::Builder::configure()
            .register_encoded_file_descriptor_set(FILE_DESCRIPTOR_SET)
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
    };
    let broken = |error| StartError::System(std::io::Error::other(error));
    // The empty name stands for the server as a whole, and is serving from the start.
    let (_, health) = tonic_health::server::health_reporter();
    let routes =
        Routes::new(EchoServer::new(services.clone()).max_decoding_message_size(args.max_message))
            .add_service(
                HelloServer::new(services.clone()).max_decoding_message_size(args.max_message),
            )
            .add_service(
                DataServiceServer::new(services).max_decoding_message_size(args.max_message),
            )
            .add_service(health)
            .add_service(reflection().build_v1().map_err(broken)?)
            .add_service(reflection().build_v1alpha().map_err(broken)?);
    Ok(routes.prepare())
}
