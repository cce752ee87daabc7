//! Name resolution of targets.

use std::net::{SocketAddr, ToSocketAddrs};

use netping_protocol::target::Target;

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
