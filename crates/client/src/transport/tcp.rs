//! Lines and frames over TCP, in the clear or secured: one connection per caller.

use netping_protocol::{frame, payload::Exchange, secure::Stream, tls::Negotiated};
use tokio::io::AsyncWriteExt;

use super::{
    connect,
    connection::{Carried, Connection, Milestones, Transport},
    endpoint::Endpoint,
    failure::Failure,
    framed::{Framed, Framing},
};

/// Opens TCP connections.
#[derive(Debug, Clone)]
pub struct Tcp {
    pub(super) endpoint: Endpoint,
    pub(super) framing: Framing,
}

impl Transport for Tcp {
    type Connection = Framed<Stream>;

    async fn connect(&self, milestones: &mut Milestones<'_>) -> Result<Framed<Stream>, Failure> {
        let mut stream = connect::open(&self.endpoint, None, milestones).await?;
        if self.framing == Framing::Frames {
            stream.write_all(&frame::MAGIC).await?;
        }
        Ok(Framed::new(stream, self.framing))
    }
}

impl Connection for Framed<Stream> {
    fn share(&self) -> Option<Self> {
        None
    }

    fn negotiated(&self) -> Option<Negotiated> {
        self.stream().negotiated()
    }

    async fn call(&mut self, exchange: &Exchange, _: &mut Carried<'_>) -> Result<(), Failure> {
        self.request(exchange).await
    }
}
