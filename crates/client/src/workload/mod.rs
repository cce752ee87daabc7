//! Measurements besides the requests of a plan, which the [`engine`](crate::engine) runs.

pub mod bulk;
pub mod first_call;
