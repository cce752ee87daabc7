//! netping's wire protocols, shared by servers and client.
//!
//! - [`mod@line`] and [`frame`]: the two encodings of a request and its reply on a byte stream;
//! - [`codec`]: the server's side of such a stream, without a socket;
//! - [`http1`]: replies of HTTP/1.1, without a socket;
//! - [`payload`]: the payload of a request and the reply it must get;
//! - [`pool`]: requests that are encoded before a run;
//! - [`message`]: the payload that is a message;
//! - [`secure`]: byte streams in clear text, in TLS ([`tls`]) or in Noise ([`psk`]), and their
//!   handshakes;
//! - [`pki`], [`secret_file`]: certificates for a quick try, and files with keys;
//! - [`scheme`], [`target`]: the table of URL schemes, and the URLs of servers;
//! - [`units`]: numbers and sizes as flags take them;
//! - [`echopb`], [`hello`], [`grpc_bench`], [`grpc_testing`]: the gRPC schemas of `proto/`.
//!
//! Nothing here measures, prints or opens a connection.

#![warn(missing_docs)]

pub mod codec;
pub mod frame;
pub mod http1;
pub mod line;
pub mod message;
pub mod payload;
pub mod pki;
pub mod pool;
pub mod psk;
pub mod scheme;
pub mod secret_file;
pub mod secure;
pub mod target;
pub mod tls;
pub mod units;

#[expect(
    missing_docs,
    clippy::pedantic,
    reason = "generated from proto/, which has the docs"
)]
mod generated {
    /// `echopb.Echo`: the unary echo.
    pub mod echopb {
        include!("generated/echopb.rs");
    }

    /// `pb.Hello`: the 581-byte benchmark message.
    pub mod hello {
        include!("generated/pb.rs");
    }

    /// `grpc_bench.DataService`: one large server stream.
    pub mod grpc_bench {
        include!("generated/grpc_bench.rs");
    }

    /// `grpc.testing.BenchmarkService`: gRPC's own benchmark.
    pub mod grpc_testing {
        include!("generated/grpc.testing.rs");
    }
}

pub use generated::{echopb, grpc_bench, grpc_testing, hello};

/// The encoded `FileDescriptorSet` of all schemas, for gRPC reflection.
pub const FILE_DESCRIPTOR_SET: &[u8] = include_bytes!("generated/descriptors.bin");
