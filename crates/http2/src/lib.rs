//! HTTP/2 without I/O, for a load generator and the least server that answers it: bytes in, events and bytes
//! out (RFC 9113, RFC 7541).
//!
//! A [`Client`](client::Client) or a [`Server`](server::Server) is one end of a connection. Requests of the same kind share a [`Head`](head::Head), whose
//! header block is a few bytes once the server knows it; replies whose header blocks repeat are not decoded again.

mod block;
mod cancelled;
pub mod client;
mod error;
pub mod fields;
mod flow;
mod frame;
pub mod head;
mod hpack;
mod output;
mod places;
pub mod server;
mod settings;

pub use self::{
    error::{Error, Reason},
    settings::Config,
};

/// Takes any bytes as consecutive header blocks of one connection, each after its length in a byte.
/// For fuzzing: returns what each block means, decoded with the caches and without.
#[doc(hidden)]
pub use self::hpack::replies::compared;
