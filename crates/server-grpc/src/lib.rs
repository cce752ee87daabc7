//! The gRPC server: unary echo, the 581-byte message, one large stream, gRPC's own benchmark, health and reflection on
//! tonic; the first two also on nothing but HTTP/2.

mod benchmark;
mod call;
mod connected;
mod deadline;
mod direct;
mod exhausted;
mod floor;
mod long_work;
mod pieces;
mod received_frames;
mod reply_body;
mod request_body;
mod sent_frames;
mod services;
mod watched;

use std::{
    io,
    ops::{RangeFrom, RangeInclusive},
    sync::Arc,
};

use clap::{Args, ValueEnum};
use netping_protocol::{
    FILE_DESCRIPTOR_SET,
    echopb::echo_server::EchoServer,
    grpc_bench::data_service_server::DataServiceServer,
    grpc_testing::benchmark_service_server::BenchmarkServiceServer,
    hello::hello_server::HelloServer,
    scheme::{Scheme, port},
    units::{bytes_in, number_in},
};
use netping_serving::{
    Accepts, Chassis, Drain, Listening, Profile, Result, TcpServer,
    args::{RuntimeArgs, ServerArgs, TlsArgs},
    each,
    service::Service,
};
use tokio_stream::StreamExt;
use tonic::{service::Routes, transport::Server};

use crate::{
    connected::ConnectedStream, direct::Direct, floor::Floor, services::Services, watched::Watched,
};

/// Flags of this server.
#[derive(Debug, Clone, Args)]
pub struct GrpcArgs {
    /// Software that answers calls
    #[arg(long, default_value = "tonic", value_name = "STACK")]
    stack: Stack,
    #[command(flatten)]
    runtime: RuntimeArgs,
    #[command(flatten)]
    tls: TlsArgs,
    /// Maximum number of concurrent requests on a connection (SETTINGS_MAX_CONCURRENT_STREAMS)
    #[arg(long, default_value_t = 16_384, value_name = "N", value_parser = number_in::<u32>(1..))]
    max_streams: u32,
    /// Longest message accepted and longest reply or chunk given, in bytes
    #[arg(long, default_value_t = 16 << 20, value_name = "BYTES", value_parser = bytes_in::<usize>(..))]
    max_message: usize,
    /// Most that the requests, replies and streams of a connection hold, beyond a call with the longest messages, in
    /// bytes; one that holds more is closed
    #[arg(long, default_value_t = 80 << 20, value_name = "BYTES", value_parser = bytes_in::<u64>(MAX_HELD))]
    max_held: u64,
    /// Flow-control window of each stream, in bytes
    #[arg(long, default_value_t = 4 << 20, value_name = "BYTES", value_parser = bytes_in::<u32>(WINDOWS))]
    stream_window: u32,
    /// Flow-control window of each connection, in bytes
    #[arg(long, default_value_t = 16 << 20, value_name = "BYTES", value_parser = bytes_in::<u32>(WINDOWS))]
    connection_window: u32,
    /// Largest HTTP/2 frame accepted, in bytes (SETTINGS_MAX_FRAME_SIZE); the client sets it for
    /// replies
    #[arg(long, default_value_t = 1 << 20, value_name = "BYTES", value_parser = bytes_in::<u32>(FRAMES))]
    http2_frame: u32,
    /// Default length of a bulk stream, in bytes
    #[arg(long, default_value_t = 512 << 20, value_name = "BYTES", value_parser = bytes_in::<u64>(..))]
    bulk_total: u64,
    /// Default length of the messages of a bulk stream, in bytes
    #[arg(long, default_value_t = 256 << 10, value_name = "BYTES", value_parser = bytes_in::<u32>(1..))]
    bulk_chunk: u32,
}

/// The software that answers calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Stack {
    /// tonic with its own server and router, as applications have it.
    Tonic,
    /// tonic's services on hyper's HTTP/2 server, without the router.
    Hyper,
    /// netping's own HTTP/2 and no framework: what a call costs at least. It has Echo and Say only.
    Floor,
}

impl GrpcArgs {
    /// Returns the most that a connection may hold, in bytes: of a call of many messages, a reply counts twice.
    fn most_held(&self) -> u64 {
        self.max_held.saturating_add(3 * self.max_message as u64)
    }
}

/// Limits on `--max-held`, in bytes.
const MAX_HELD: RangeFrom<u64> = 1 << 20..;

/// Windows of flow control, in bytes, from HTTP/2's initial one to its largest (RFC 9113, section 6.9).
const WINDOWS: RangeInclusive<u64> = 65_535..=0x7FFF_FFFF;

/// Limits on the size of HTTP/2 frames (RFC 9113, section 4.2).
const FRAMES: RangeInclusive<u64> = 16_384..=0xFF_FFFF;

/// This server.
pub const SERVICE: Service<GrpcArgs> = Service {
    name: "netping-server-grpc",
    about: "Serves gRPC: echo, the rpcx benchmark message, bulk data, gRPC's own benchmark, health and reflection",
    scheme: |args| args.tls.scheme(Scheme::Grpc, Scheme::GrpcTls),
    port: port::GRPC,
    sockets: |_| 1,
    serve: |listening, args| server(listening, args)?.serve(&args.own.runtime),
};

/// Streams that may be reset for the peer's errors before the connection ends. This is hyper's own
/// limit, which tonic removes unless it is set (CVE-2023-44487 and the like).
const MAX_LOCAL_ERROR_RESETS: usize = 1024;

/// Length of an HTTP/2 client's preface, in bytes.
const PREFACE: u64 = 24;

/// Returns the server, which then serves on runtimes of its own or on the current one.
///
/// # Errors
/// Fails if a certificate or key cannot be used, or the system refuses a thread.
pub fn server(mut listening: Listening, args: &ServerArgs<GrpcArgs>) -> Result<TcpServer> {
    let ServerArgs { common, own } = args;
    let acceptor = own.tls.acceptor(Scheme::GrpcTls.alpn())?;
    // GOAWAY is HTTP/2's goodbye: connections are not cut for the drain. The floor is told, and says it.
    let profile = Profile {
        preface: PREFACE,
        most_held: own.most_held(),
        drain: match own.stack {
            Stack::Floor => Drain::ByEof,
            Stack::Tonic | Stack::Hyper => Drain::ByGoodbye,
        },
        ..own.runtime.profile()
    };
    let chassis = Chassis::start(&mut listening, common, profile)?;
    let serving = Arc::clone(&chassis);
    Ok(match own.stack {
        Stack::Tonic => {
            let services = Services::new(&chassis, own);
            let watched = Watched(routes(services)?);
            let builder = builder(own);
            let worker =
                move |accepts| tonic(builder.clone(), watched.clone(), accepts, serving.clone());
            TcpServer::new(listening, chassis, acceptor, worker)
        }
        Stack::Hyper => {
            let direct = Arc::new(Direct::new(&chassis, own)?);
            let serve = move |stream| Arc::clone(&direct).serve(stream);
            let worker = move |accepts| each(accepts, serve.clone());
            TcpServer::new(listening, chassis, acceptor, worker)
        }
        Stack::Floor => {
            let floor = Arc::new(Floor::new(serving, own));
            let serve = move |stream| Arc::clone(&floor).serve(stream);
            let worker = move |accepts| each(accepts, serve.clone());
            TcpServer::new(listening, chassis, acceptor, worker)
        }
    })
}

/// Serves connections on tonic's own server.
fn tonic(
    builder: Server,
    watched: Watched<Routes>,
    accepts: Accepts,
    chassis: Arc<Chassis>,
) -> impl Future<Output = ()> + Send + 'static {
    let shutdown = chassis.shutdown.clone();
    let streams =
        accepts.map(move |stream| io::Result::Ok(ConnectedStream::new(stream, chassis.clone())));
    let serving = builder.serve_with_incoming_shutdown(watched, streams, async move {
        shutdown.triggered().await;
    });
    async move {
        if let Err(error) = serving.await {
            tracing::error!("serving ended: {error}");
        }
    }
}

fn builder(args: &GrpcArgs) -> Server {
    Server::builder()
        .max_concurrent_streams(args.max_streams)
        .http2_max_local_error_reset_streams(Some(MAX_LOCAL_ERROR_RESETS))
        .initial_stream_window_size(args.stream_window)
        .initial_connection_window_size(args.connection_window)
        .max_frame_size(args.http2_frame)
}

/// The services of the RPCs that are netping's own.
#[derive(Debug, Clone)]
struct Rpcs {
    echo: EchoServer<Services>,
    hello: HelloServer<Services>,
    data: DataServiceServer<Services>,
    benchmark: BenchmarkServiceServer<Services>,
}

impl Rpcs {
    fn new(services: Services) -> Self {
        let limit = services.args.max_message;
        let own = Arc::new(services);
        Self {
            echo: EchoServer::from_arc(own.clone()).max_decoding_message_size(limit),
            hello: HelloServer::from_arc(own.clone()).max_decoding_message_size(limit),
            data: DataServiceServer::from_arc(own.clone()).max_decoding_message_size(limit),
            benchmark: BenchmarkServiceServer::from_arc(own).max_decoding_message_size(limit),
        }
    }
}

fn routes(services: Services) -> Result<Routes> {
    let rpcs = Rpcs::new(services);
    let reflection = || {
        tonic_reflection::server::Builder::configure()
            .register_encoded_file_descriptor_set(FILE_DESCRIPTOR_SET)
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
    };
    // The empty name stands for the whole server, which is serving from the start.
    let (_, health) = tonic_health::server::health_reporter();
    let routes = Routes::new(rpcs.echo)
        .add_service(rpcs.hello)
        .add_service(rpcs.data)
        .add_service(rpcs.benchmark)
        .add_service(health)
        .add_service(reflection().build_v1().map_err(io::Error::other)?)
        .add_service(reflection().build_v1alpha().map_err(io::Error::other)?);
    Ok(routes.prepare())
}
