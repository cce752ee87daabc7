//! The chassis of every netping server: listen, admit, limit, drain, observe.
//!
//! A server is a [`service::Service`]: its name, its default port and a function that takes bound
//! sockets, flags and a [`shutdown::Shutdown`]. [`service::run`] is all of its `main`. The function
//! starts a [`chassis::Chassis`], admits each accepted connection to it, and keeps the
//! [`connection::Connection`] while it serves that peer. One reaper enforces all deadlines, so no
//! request pays for a timer.

// `eprintln!` panics where standard error takes nothing: on a full disk, or behind a closed pipe.
#![warn(clippy::print_stderr)]

pub mod args;
pub mod blocking;
mod buffers;
pub mod chassis;
pub mod clock;
pub mod connection;
pub mod echo;
pub mod error;
pub mod guarded;
mod housekeeping;
pub mod listen;
mod log;
mod metrics;
pub mod profile;
pub mod request_limit;
pub mod runtime;
pub mod service;
pub mod shutdown;
mod synthetic_load;
#[cfg(feature = "testing")]
pub mod testing;
