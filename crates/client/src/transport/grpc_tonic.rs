//! gRPC by a tonic channel: what an application built on tonic would see.

use std::error::Error;

use netping_protocol::{
    echopb::{EchoRequest, echo_client::EchoClient},
    frame::Reply,
    payload::Exchange,
};
use netping_report::ErrorKind;
use tonic::{
    Code, Status,
    transport::{Channel, Endpoint as TonicEndpoint},
};

use super::{Connection, Endpoint, Failure, Transport, connect};

/// Opens channels, each of one connection.
#[derive(Debug, Clone)]
pub struct GrpcTonic {
    endpoint: Endpoint,
}

impl GrpcTonic {
    /// Calls `echopb.Echo/Echo`.
    pub fn new(endpoint: Endpoint) -> Self {
        Self { endpoint }
    }
}

impl Transport for GrpcTonic {
    type Connection = TonicHandle;

    async fn connect(&self) -> Result<TonicHandle, Failure> {
        let mut last = Failure::lost(ErrorKind::Other, "the name has no address");
        for address in &self.endpoint.addresses {
            let connecting = async { TonicEndpoint::from_shared(format!("http://{address}"))?.connect().await };
            match connecting.await {
                Ok(channel) => {
                    return Ok(TonicHandle(EchoClient::new(channel).max_decoding_message_size(usize::MAX)));
                }
                Err(error) => last = io_cause(&error).unwrap_or_else(|| Failure::lost(ErrorKind::Other, &error)),
            }
        }
        Err(last)
    }
}

/// One caller's handle on a channel.
#[derive(Debug, Clone)]
pub struct TonicHandle(EchoClient<Channel>);

impl Connection for TonicHandle {
    fn share(&self) -> Option<Self> {
        Some(self.clone())
    }

    async fn call(&mut self, exchange: &Exchange) -> Result<(), Failure> {
        let response_bytes = if let Reply::Bytes(length) = exchange.reply() { length } else { 0 };
        let input = String::from_utf8_lossy(exchange.payload()).into_owned();
        let reply = self.0.echo(EchoRequest { input, response_bytes }).await.map_err(|status| failure(&status))?;
        if exchange.verify(reply.into_inner().output.as_bytes()) {
            return Ok(());
        }
        Err(Failure::request(ErrorKind::Mismatch, "the reply is not what was asked for"))
    }
}

/// The failure that a status means: the server's own, or a broken connection that tonic reports as one.
fn failure(status: &Status) -> Failure {
    if let Some(failure) = io_cause(status) {
        return failure;
    }
    let kind = ErrorKind::Grpc(status.code() as u16);
    // tonic says `Unavailable` and `Unknown` of broken connections too; the next request then opens one anew.
    let lost = matches!(status.code(), Code::Unavailable | Code::Unknown) && status.source().is_some();
    Failure { kind, detail: format!("gRPC status {}: {}", status.code() as u16, status.message()), lost }
}

/// The I/O error or GOAWAY at the bottom of an error, if there is one.
fn io_cause(error: &(dyn Error + 'static)) -> Option<Failure> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(io) = error.downcast_ref::<std::io::Error>() {
            return Some(connect::io_failure(io));
        }
        if let Some(h2) = error.downcast_ref::<h2::Error>() {
            if let Some(io) = h2.get_io() {
                return Some(connect::io_failure(io));
            }
            if h2.is_go_away() {
                return Some(Failure::lost(ErrorKind::Goaway, h2));
            }
        }
        cause = error.source();
    }
    None
}
