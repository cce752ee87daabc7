//! Lines and frames over TCP, in the clear or secured: one connection per caller.

use netping_protocol::{frame, payload::Exchange, secure::Stream, tls::Negotiated};
use tokio::io::AsyncWriteExt;

use super::{
    Connection, Endpoint, Failure, Milestones, Transport, connect,
    framed::{Framed, Framing},
};

/// Opens TCP connections.
#[derive(Debug, Clone)]
pub struct Tcp {
    endpoint: Endpoint,
    framing: Framing,
}

impl Tcp {
    /// Returns a transport of lines.
    pub fn lines(endpoint: Endpoint) -> Self {
        Self {
            endpoint,
            framing: Framing::Lines,
        }
    }

    /// Returns a transport of frames.
    pub fn frames(endpoint: Endpoint) -> Self {
        Self {
            endpoint,
            framing: Framing::Frames,
        }
    }
}

impl Transport for Tcp {
    type Connection = Framed<Stream>;

    async fn connect(&self, milestones: &mut Milestones<'_>) -> Result<Framed<Stream>, Failure> {
        let mut stream = connect::open(&self.endpoint, milestones).await?;
        if self.framing == Framing::Frames {
            stream
                .write_all(&frame::MAGIC)
                .await
                .map_err(|error| connect::io_failure(&error))?;
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

    async fn call(&mut self, exchange: &Exchange) -> Result<(), Failure> {
        self.request(exchange).await
    }
}
