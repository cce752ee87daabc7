//! gRPC by a tonic channel, as an application built on tonic uses it.

use std::{
    error::Error,
    future, io, iter,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use http::{Response, StatusCode, header::CONTENT_TYPE};
use hyper_util::rt::TokioIo;
use netping_measure::{connect::ConnectPhase, error_kind::ErrorKind};
use netping_protocol::{
    echopb::echo_client::EchoClient, hello::hello_client::HelloClient, payload::Exchange,
};
use tokio_util::io::InspectWriter;
use tonic::{
    Code, Status,
    body::Body,
    codegen::StdError,
    transport::{self, Channel, Endpoint as TonicEndpoint},
};
use tower::util::MapResult;

use super::{
    Carried, Connection, Failure, Milestones, Result, ServerEndpoint, Transport, connect,
    grpc_h2::{echo_request, verified},
    grpc_reply::check_type,
    http2::closed,
};

/// Opens channels of one connection each, for calls of `echopb.Echo/Echo`, or of `pb.Hello/Say`
/// with messages.
#[derive(Debug, Clone)]
pub struct GrpcTonic {
    pub(super) endpoint: ServerEndpoint,
}

impl Transport for GrpcTonic {
    type Connection = TonicHandle;

    async fn connect(&self, milestones: &mut Milestones<'_>) -> Result<TonicHandle> {
        let stream = connect::open(&self.endpoint, None, milestones).await?;
        let scheme = if stream.is_secure() { "https" } else { "http" };
        // The channel gets this one connection: one that it opened itself would not be counted.
        let given_up = Arc::new(AtomicBool::new(false));
        let noted = Arc::clone(&given_up);
        let watched = InspectWriter::new(stream, move |written: &[u8]| {
            if is_giving_up(written) {
                noted.store(true, Ordering::Relaxed);
            }
        });
        let mut stream = Some(TokioIo::new(watched));
        let connector =
            tower::service_fn(move |_| future::ready(stream.take().ok_or_else(|| gone(&given_up))));
        let authority = self.endpoint.destination.url.authority();
        let connecting = async {
            let origin = format!("{scheme}://{authority}").parse()?;
            // The channel would refuse an https:// URI: it does not know that the connection is
            // secure already.
            let channel = TonicEndpoint::from_shared(format!("http://{authority}"))?.origin(origin);
            Ok::<_, Box<dyn Error + Send + Sync>>(channel.connect_with_connector(connector).await?)
        };
        let channel = connecting.await.map_err(|error| {
            cause(&*error).unwrap_or_else(|| Failure::lost(ErrorKind::Other, &error))
        })?;
        milestones.reached(ConnectPhase::Http2);
        let channel = MapResult::new(channel, of_grpc as OfGrpc);
        Ok(TonicHandle {
            hello: HelloClient::new(channel.clone()),
            echo: EchoClient::new(channel).max_decoding_message_size(usize::MAX),
        })
    }
}

/// Returns true if a client's last bytes are GOAWAY with an error (RFC 9113, section 6.8), with which it
/// ends a connection over a mistake of the server.
fn is_giving_up(written: &[u8]) -> bool {
    // The length, the type, the flags, the stream; then the last stream, and the error.
    let Some([0, 0, 8, 7, 0, 0, 0, 0, 0, _, _, _, _, error @ ..]) = written.last_chunk::<17>()
    else {
        return false;
    };
    *error != [0; 4]
}

/// Returns the failure of a request that finds its connection ended. The channel does not say why, but
/// the client tells a server that broke the protocol so.
fn gone(given_up: &AtomicBool) -> Failure {
    if given_up.load(Ordering::Relaxed) {
        let detail = "the client ended the connection: the server broke the protocol";
        return Failure::lost(ErrorKind::Protocol, detail);
    }
    Failure::lost(ErrorKind::Goaway, "the connection is gone")
}

/// A channel whose replies are gRPC's: tonic does not look at their type.
type GrpcChannel = MapResult<Channel, OfGrpc>;

type OfGrpc = fn(Result<Response<Body>, transport::Error>) -> Result<Response<Body>, StdError>;

/// Refuses a reply that is not gRPC's. Of another status than 200, tonic makes one of its own.
fn of_grpc(reply: Result<Response<Body>, transport::Error>) -> Result<Response<Body>, StdError> {
    let reply = reply?;
    if reply.status() == StatusCode::OK {
        let kind = reply.headers().get(CONTENT_TYPE);
        check_type(kind.map_or(b"", |kind| kind.as_bytes()))?;
    }
    Ok(reply)
}

/// A caller's handle on a channel.
#[derive(Debug, Clone)]
pub struct TonicHandle {
    echo: EchoClient<GrpcChannel>,
    hello: HelloClient<GrpcChannel>,
}

impl Connection for TonicHandle {
    fn share(&self) -> Option<Self> {
        Some(self.clone())
    }

    async fn call(&mut self, exchange: &Exchange, _: &mut Carried<'_>) -> Result<()> {
        if let Some(message) = exchange.message() {
            let reply = self.hello.say(message.clone()).await?;
            return verified(exchange.verify_message(reply.get_ref()));
        }
        let reply = self.echo.echo(echo_request(exchange)).await?;
        verified(exchange.verify(reply.get_ref().output.as_bytes()))
    }
}

impl From<Status> for Failure {
    /// Classifies a status: the server's own, or a broken connection that tonic reports as one.
    fn from(status: Status) -> Self {
        if let Some(failure) = cause(&status) {
            return failure;
        }
        let code = status.code() as u16;
        // tonic reports `Unavailable` and `Unknown` for broken connections too; the next request
        // then opens a new one.
        let broken = matches!(status.code(), Code::Unavailable | Code::Unknown);
        let detail = format!("gRPC status {code}: {}", status.message());
        let mut failure = Self::request(ErrorKind::Grpc(code), detail);
        failure.lost = broken && status.source().is_some();
        failure
    }
}

/// Returns the failure, I/O error or GOAWAY at the bottom of an error, if there is one.
fn cause(error: &(dyn Error + 'static)) -> Option<Failure> {
    iter::successors(Some(error), |&error| error.source()).find_map(|error| {
        let failure = error.downcast_ref::<Failure>().cloned();
        let io = || error.downcast_ref().map(http2_io_failure);
        let http2 = || error.downcast_ref().and_then(http2_failure);
        failure.or_else(io).or_else(http2)
    })
}

/// Classifies an error of the HTTP/2 beneath a channel; `None` if it leaves the connection usable.
fn http2_failure(error: &h2::Error) -> Option<Failure> {
    if let Some(io) = error.get_io() {
        return Some(http2_io_failure(io));
    }
    // One is reported too when no stream is left, and with another reason if the peer breaks the protocol.
    let is_goodbye = error.is_remote() || error.reason() == Some(h2::Reason::NO_ERROR);
    let kind = if is_goodbye {
        ErrorKind::Goaway
    } else {
        ErrorKind::Protocol
    };
    error.is_go_away().then(|| Failure::lost(kind, error))
}

/// Classifies an I/O error of the HTTP/2 beneath a channel, which calls a connection that has ended a broken pipe.
/// One that is really broken had been closed by the server before.
fn http2_io_failure(error: &io::Error) -> Failure {
    use io::ErrorKind::{BrokenPipe, UnexpectedEof};
    // The codec's words for an end within a frame, which has no kind.
    let is_cut = || error.to_string() == "bytes remaining on stream";
    if matches!(error.kind(), BrokenPipe | UnexpectedEof) || is_cut() {
        return closed();
    }
    connect::io_failure(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_that_was_reset_is_not_at_its_end() {
        let reset = io::Error::from(io::ErrorKind::ConnectionReset);
        assert_eq!(http2_io_failure(&reset).kind, ErrorKind::Reset);
        let cut = io::Error::other("bytes remaining on stream");
        assert_eq!(http2_io_failure(&cut).kind, ErrorKind::Eof);
    }

    #[test]
    fn a_client_that_gives_up_says_goaway_with_an_error() {
        let goaway = |error| [b"\0\0\x08\x07\0\0\0\0\0\0\0\0\x01\0\0\0", &[error][..]].concat();
        assert!(is_giving_up(&[b"other frames", &goaway(6)[..]].concat()));
        assert!(!is_giving_up(&goaway(0)));
        assert!(!is_giving_up(b"\x01"));
    }
}
