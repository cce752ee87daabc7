//! gRPC by a tonic channel, as an application built on tonic uses it.

use std::{
    error::Error,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use hyper_util::rt::TokioIo;
use netping_measure::{connect::ConnectPhase, error_kind::ErrorKind};
use netping_protocol::{
    echopb::echo_client::EchoClient, hello::hello_client::HelloClient, payload::Exchange,
    tls::Negotiated,
};
use tonic::{
    Code, Status,
    transport::{Channel, Endpoint as TonicEndpoint},
};

use super::{
    connect,
    connection::{Carried, Connection, Milestones, Transport},
    endpoint::Endpoint,
    failure::Failure,
    grpc_h2::echo_request,
    http2,
    watched::Watched,
};

/// Opens channels of one connection each, for calls of `echopb.Echo/Echo`, or of `pb.Hello/Say`
/// with messages.
#[derive(Debug, Clone)]
pub struct GrpcTonic {
    pub(super) endpoint: Endpoint,
}

impl Transport for GrpcTonic {
    type Connection = TonicHandle;

    async fn connect(&self, milestones: &mut Milestones<'_>) -> Result<TonicHandle, Failure> {
        let stream = connect::open(&self.endpoint, None, milestones).await?;
        let negotiated = stream.negotiated();
        // The channel gets this one connection: one that it opened itself would not be counted.
        let given_up = Arc::new(AtomicBool::new(false));
        let mut stream = Some(TokioIo::new(Watched::new(stream, Arc::clone(&given_up))));
        let connector = tower::service_fn(move |_| {
            std::future::ready(stream.take().ok_or_else(|| gone(&given_up)))
        });
        let authority = self.endpoint.target.authority();
        let scheme = negotiated.as_ref().map_or("http", |_| "https");
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
        Ok(TonicHandle {
            hello: HelloClient::new(channel.clone()),
            echo: EchoClient::new(channel).max_decoding_message_size(usize::MAX),
            negotiated,
        })
    }
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

/// A caller's handle on a channel.
#[derive(Debug, Clone)]
pub struct TonicHandle {
    echo: EchoClient<Channel>,
    hello: HelloClient<Channel>,
    negotiated: Option<Negotiated>,
}

impl Connection for TonicHandle {
    fn share(&self) -> Option<Self> {
        Some(self.clone())
    }

    fn negotiated(&self) -> Option<Negotiated> {
        self.negotiated.clone()
    }

    async fn call(&mut self, exchange: &Exchange, _: &mut Carried<'_>) -> Result<(), Failure> {
        if let Some(message) = exchange.message() {
            let reply = self.hello.say(message.clone()).await?;
            return verified(exchange.verify_message(reply.get_ref()));
        }
        let reply = self.echo.echo(echo_request(exchange)).await?;
        verified(exchange.verify(reply.get_ref().output.as_bytes()))
    }
}

fn verified(right: bool) -> Result<(), Failure> {
    let wrong = || Failure::request(ErrorKind::Mismatch, "the reply is not what was asked for");
    right.then_some(()).ok_or_else(wrong)
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
        Self {
            kind: ErrorKind::Grpc(code),
            detail: format!("gRPC status {code}: {}", status.message()),
            lost: broken && status.source().is_some(),
        }
    }
}

/// Returns the failure, I/O error or GOAWAY at the bottom of an error, if there is one.
fn cause(error: &(dyn Error + 'static)) -> Option<Failure> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(failure) = error.downcast_ref::<Failure>() {
            return Some(failure.clone());
        }
        if let Some(io) = error.downcast_ref::<std::io::Error>() {
            return Some(connect::io_failure(io));
        }
        if let Some(h2) = error.downcast_ref::<h2::Error>() {
            if let Some(io) = h2.get_io() {
                return Some(http2::io_failure(io));
            }
            if h2.is_go_away() {
                // The library ends connections so too on which the peer breaks the protocol.
                let kind = if http2::is_goodbye(h2) {
                    ErrorKind::Goaway
                } else {
                    ErrorKind::Protocol
                };
                return Some(Failure::lost(kind, h2));
            }
        }
        cause = error.source();
    }
    None
}
