//! The server that a transport connects to.

use std::{
    net::SocketAddr,
    path::PathBuf,
    sync::{Arc, OnceLock},
};

use netping_protocol::{secure::Connector, target::Target};

use super::prepared::Prepared;

/// The length of a web server's good replies, in bytes: that of the first one. Clones compare with
/// the same length.
pub type ReplyLength = Arc<OnceLock<u64>>;

/// The server that a transport connects to.
#[derive(Debug, Clone)]
pub struct Endpoint {
    /// The URL that the user named.
    pub target: Target,
    /// Its addresses, in the order in which to try them.
    pub addresses: Vec<SocketAddr>,
    /// The Unix domain socket to connect to instead; an abstract one begins with a zero byte.
    pub unix_socket: Option<PathBuf>,
    /// The name is resolved anew for each connection.
    pub resolve_each: bool,
    /// The security of connections.
    pub connector: Connector,
    /// The requests to a service that is not netping's own.
    pub prepared: Arc<Prepared>,
    /// The length of a web server's replies.
    pub reply_length: ReplyLength,
}
