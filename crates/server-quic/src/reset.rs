//! Stateless resets that a restarted server can send (RFC 9000, section 10.3).
//!
//! A server that was started anew knows nothing of the connections of the one before. It answers their
//! packets with tokens that both make with the same key, and the clients connect again at once instead
//! of waiting until their connections time out.

use std::{sync::Arc, time::Duration};

use aws_lc_rs::{
    hmac::{HMAC_SHA256, Key},
    rand,
};
use netping_protocol::tls::Identity;
use quinn::{ConnectionId, ConnectionIdGenerator, EndpointConfig};

/// Length of the connections' identifiers, in bytes.
const LENGTH: usize = 8;

/// Returns the configuration of an endpoint whose resets any server with this identity can send.
pub(crate) fn endpoint(identity: &Identity) -> EndpointConfig {
    let secret = identity.derive(b"netping: QUIC stateless reset");
    let mut config = EndpointConfig::new(Arc::new(Key::new(HMAC_SHA256, &secret)));
    config.cid_generator(|| Box::new(RandomIds));
    config
}

/// Random identifiers. quinn's own ones carry a check that only the process that made them passes, and
/// packets that fail it are not answered.
struct RandomIds;

impl ConnectionIdGenerator for RandomIds {
    fn generate_cid(&mut self) -> ConnectionId {
        let mut bytes = [0; LENGTH];
        // The system's generator does not fail once it has been seeded.
        let _ = rand::fill(&mut bytes);
        ConnectionId::new(&bytes)
    }

    fn cid_len(&self) -> usize {
        LENGTH
    }

    fn cid_lifetime(&self) -> Option<Duration> {
        None
    }
}
