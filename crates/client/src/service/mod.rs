//! The user's own service: the schema of a gRPC method, and requests from data that the user gives.
//!
//! Everything here comes before the run. What leaves this folder is a
//! [`Prepared`](crate::transport::prepared::Prepared): bytes, and the check of replies.

mod data;
mod describe;
mod expect;
mod matching;
mod method;
mod reflection;
mod schema;

pub use self::{
    data::{Data, DataError},
    describe::{describe, list, paths},
    expect::{Check, expected_body},
    matching::{Key, Matching},
    method::{Method, prepared},
    schema::Schema,
};
