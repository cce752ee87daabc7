//! What one measured unit is, where it is not one request and its reply.

pub mod bulk;
