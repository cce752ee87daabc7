//! The server of a plan, and how it is reached.

use std::{
    fmt,
    future::Future,
    io,
    net::{SocketAddr, ToSocketAddrs, UdpSocket},
    num::{NonZeroU32, NonZeroU64},
    path::PathBuf,
    pin::Pin,
    sync::{Arc, OnceLock},
};

use netping_protocol::{secure::Connector, target::Target};
use netping_results::run::InProcess;
use tokio::task;

use crate::{
    error::StartError,
    probe::metrics::ServerSource,
    transport::prepared::{Kept, Prepared},
};

/// The number of open streams, and of their messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StreamLimits {
    /// Streams on a connection, which its callers share; `None`: each caller has its own.
    pub per_connection: Option<NonZeroU32>,
    /// Messages on a stream before it is opened anew; `None`: it is kept.
    pub messages: Option<NonZeroU64>,
}

/// A server, and how it is reached.
#[derive(Debug, Clone)]
pub struct Destination {
    /// The URL that the user named.
    pub url: Target,
    /// A name for the target, such as a ladder's rung.
    pub label: Option<String>,
    /// The Unix domain socket that is connected to instead of the URL's host; an abstract one begins
    /// with a zero byte.
    pub unix_socket: Option<PathBuf>,
    /// The server's thread, if it is in this process.
    pub in_process: Option<OwnServer>,
    /// The server's processes, if it is on this host: none where they cannot be found.
    pub processes: Option<Vec<u32>>,
    /// The source of the server's counters.
    pub server: ServerSource,
    /// True where it is reached through a proxy, which may send more requests than it got, or fewer.
    pub behind_proxy: bool,
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
    /// The open streams, and their messages, where each request is a message.
    pub streams: StreamLimits,
    /// The requests, where they are not netping's own.
    pub prepared: Arc<Prepared>,
    /// The replies to the first requests, if they are to be shown.
    pub kept: Option<Kept>,
}

/// The thread of a server that is in the client's process.
#[derive(Debug, Clone)]
pub enum OwnServer {
    /// That of the client's only worker, which starts the server before it connects.
    OnWorker(Companion),
    /// One of its own, which runs already.
    OnThread,
}

impl OwnServer {
    /// Returns its name in result files.
    pub fn threads(&self) -> InProcess {
        match self {
            Self::OnWorker(_) => InProcess::OneThread,
            Self::OnThread => InProcess::TwoThreads,
        }
    }
}

/// A task that runs beside the callers on a worker's runtime, until the worker ends.
#[derive(Clone)]
pub struct Companion(Arc<Start>);

type Task = Pin<Box<dyn Future<Output = ()>>>;

type Start = dyn Fn() -> io::Result<Task> + Send + Sync;

impl Companion {
    /// Returns the companion that `start` makes anew for each step.
    pub fn new(start: impl Fn() -> io::Result<Task> + Send + Sync + 'static) -> Self {
        Self(Arc::new(start))
    }

    /// Starts it on the current runtime, which is a worker's.
    pub(crate) fn start(&self) -> io::Result<()> {
        task::spawn_local((self.0)()?);
        Ok(())
    }
}

impl fmt::Debug for Companion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Companion").finish_non_exhaustive()
    }
}

/// The length of a web server's good replies, in bytes: that of the first one. Clones compare with
/// the same length.
pub type ReplyLength = Arc<OnceLock<u64>>;

/// The server that a transport connects to, with its addresses.
#[derive(Debug, Clone)]
pub struct ServerEndpoint {
    /// The server, and how it is reached.
    pub destination: Destination,
    /// Its addresses, in the order in which to try them.
    pub addresses: Vec<SocketAddr>,
    /// The length of a web server's replies.
    pub reply_length: ReplyLength,
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
            unix_socket: None,
            in_process: None,
            processes: None,
            server,
            behind_proxy: false,
            connector,
            trust,
            first_call: true,
            resolve_each: false,
            reply_length: None,
            streams: StreamLimits::default(),
            prepared: Arc::default(),
            kept: None,
        }
    }

    /// Returns its label, or its URL where it has none.
    pub fn name(&self) -> String {
        self.label.clone().unwrap_or_else(|| self.url.to_string())
    }

    /// Returns true if the counters of both targets' servers are the same: of one server, whose addresses may differ.
    pub fn is_same_server(&self, other: &Self) -> bool {
        let is_known = self.server != ServerSource::Nowhere;
        self.url == other.url || (is_known && self.server == other.server)
    }

    /// Returns true if the server shares the thread of the client's worker.
    pub fn is_on_worker(&self) -> bool {
        matches!(self.in_process, Some(OwnServer::OnWorker(_)))
    }

    /// Returns true if the server is on this host.
    pub fn is_own_host(&self) -> bool {
        // Only an own address can be bound; port 0 disturbs no service.
        let bound = |address: &SocketAddr| UdpSocket::bind((address.ip(), 0)).is_ok();
        self.unix_socket.is_some() || resolve(&self.url).is_ok_and(|all| all.iter().any(bound))
    }

    /// Returns the endpoint for transports, with its addresses.
    ///
    /// # Errors
    /// [`StartError::Resolve`].
    pub fn endpoint(&self) -> Result<ServerEndpoint, StartError> {
        let addresses = match &self.unix_socket {
            Some(_) => Vec::new(),
            None => resolve(&self.url)?,
        };
        Ok(ServerEndpoint {
            destination: self.clone(),
            addresses,
            reply_length: self.reply_length.clone().unwrap_or_default(),
        })
    }
}

/// Returns the addresses of a target's host, in the order in which to try them.
///
/// # Errors
/// [`StartError::Resolve`].
pub fn resolve(target: &Target) -> Result<Vec<SocketAddr>, StartError> {
    let found = target.authority().to_socket_addrs();
    let found = found.map_err(|source| StartError::Resolve {
        target: target.clone(),
        source,
    })?;
    Ok(found.collect())
}

#[cfg(test)]
mod tests {
    use netping_protocol::secure::Connector;

    use super::*;

    #[test]
    fn a_server_is_known_by_its_address_or_its_counters() {
        let target = |url: &str, server: ServerSource| {
            let clear = (Connector::Plain, Trust::default());
            Destination::new(url.parse().expect("a URL"), server, clear)
        };
        let pid = || ServerSource::Processes(vec![1]);
        let one = target("tcp://h:1", pid());
        assert!(one.is_same_server(&target("tcp://h:1", ServerSource::Nowhere)));
        assert!(one.is_same_server(&target("grpc://h:2", pid())));
        assert!(!one.is_same_server(&target("tcp://h:2", ServerSource::Processes(vec![2]))));
        let [other, third] =
            ["tcp://h:2", "tcp://h:3"].map(|url| target(url, ServerSource::Nowhere));
        assert!(!other.is_same_server(&third));
    }
}
