//! Errors of the schemas of gRPC services.

use std::{io, path::PathBuf};

use prost::DecodeError;
use prost_reflect::DescriptorError;

use super::StartError;
use crate::transport::Failure;

/// The reason why there is no schema.
#[derive(Debug, thiserror::Error)]
pub enum SchemaError {
    /// The server could not be asked.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The server has no reflection.
    #[error(
        "{0}: the server does not tell its schema (it has no gRPC reflection); give the schema with --proto FILE or \
         --protoset FILE"
    )]
    NoReflection(String),
    /// The server failed to tell its schema.
    #[error("{target}: gRPC reflection failed: {}; the schema can be given with --proto FILE or --protoset FILE", failure.detail)]
    Reflection {
        /// The server.
        target: String,
        /// The failure.
        failure: Failure,
    },
    /// The server does not know the name, or knows it only in part.
    #[error("{target}: the server has no '{name}'; it has {known}")]
    Unknown {
        /// The server.
        target: String,
        /// The name that was asked for.
        name: String,
        /// The services that there are.
        known: String,
    },
    /// The URL names a service only.
    #[error("{target} names a service and no method; it has {}", known.join(", "))]
    NoMethod {
        /// The server.
        target: String,
        /// The methods of the service.
        known: Vec<String>,
    },
    /// A file could not be read.
    #[error("cannot read {}: {reason}", path.display())]
    File {
        /// Path of the file.
        path: PathBuf,
        /// The system's error.
        reason: io::Error,
    },
    /// Source files could not be compiled.
    #[error("the schema has an error: {0}")]
    Source(String),
    /// A file holds something else than descriptors.
    #[error("{0} is no FileDescriptorSet, as protoc --descriptor_set_out writes it: {1}")]
    NoDescriptors(String, DecodeError),
    /// Descriptors do not form a schema.
    #[error("{origin} is not a whole schema: {reason}")]
    Descriptors {
        /// Where they come from.
        origin: String,
        /// The library's error.
        reason: DescriptorError,
    },
}
