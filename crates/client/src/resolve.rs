//! Name resolution, of targets and of the URLs that are read over HTTP.

use std::net::{SocketAddr, ToSocketAddrs};

use netping_protocol::target::Target;
use ureq::{
    Agent,
    config::Config,
    http::Uri,
    unversioned::{
        resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver},
        transport::{DefaultConnector, NextTimeout, time::Duration},
    },
};

use crate::error::StartError;

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

/// Returns an HTTP client that resolves names in the thread that calls it. By default it starts a
/// thread for each name, which panics where the system refuses one, and may disturb a measurement.
pub fn http_agent(config: Config) -> Agent {
    Agent::with_parts(config, DefaultConnector::default(), Resolving::default())
}

/// Resolves names without a thread, and so without a time limit of its own.
#[derive(Debug, Default)]
struct Resolving(DefaultResolver);

impl Resolver for Resolving {
    fn resolve(
        &self,
        uri: &Uri,
        config: &Config,
        timeout: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, ureq::Error> {
        let timeout = NextTimeout {
            after: Duration::NotHappening,
            ..timeout
        };
        self.0.resolve(uri, config, timeout)
    }
}
