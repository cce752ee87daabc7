//! The server of a plan, and how it is reached.

use netping_protocol::{secure::Connector, target::Target};

use crate::{
    error::StartError,
    probe::metrics::ServerSource,
    resolve::resolve,
    transport::{Endpoint, ReplyLength},
};

/// A server, and how it is reached.
#[derive(Debug, Clone)]
pub struct Destination {
    /// The URL that the user named.
    pub url: Target,
    /// A name for the target, such as a ladder's rung.
    pub label: Option<String>,
    /// The source of the server's counters.
    pub server: ServerSource,
    /// The security of connections.
    pub connector: Connector,
    /// The authentication that comes with it.
    pub trust: Trust,
    /// It must answer one request before it gets any load.
    pub first_call: bool,
    /// The name is resolved anew for each connection.
    pub resolve_each: bool,
    /// The length of a web server's replies, where several plans must get the same; `None`: each
    /// step has its own.
    pub reply_length: Option<ReplyLength>,
}

/// The authentication of a secured connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Trust {
    /// The client verifies the server.
    pub server_verified: bool,
    /// The client has a certificate to show on request.
    pub client_certificate: bool,
}

impl Destination {
    /// Returns a target without a label whose name is resolved once.
    pub fn new(url: Target, server: ServerSource, (connector, trust): (Connector, Trust)) -> Self {
        Self {
            url,
            label: None,
            server,
            connector,
            trust,
            first_call: true,
            resolve_each: false,
            reply_length: None,
        }
    }

    /// Returns the endpoint for transports, with its addresses.
    ///
    /// # Errors
    /// [`StartError::Resolve`].
    pub fn endpoint(&self) -> Result<Endpoint, StartError> {
        Ok(Endpoint {
            addresses: resolve(&self.url)?,
            target: self.url.clone(),
            resolve_each: self.resolve_each,
            connector: self.connector.clone(),
            reply_length: self.reply_length.clone().unwrap_or_default(),
        })
    }
}
