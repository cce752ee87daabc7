//! The chassis of every netping server: listen, admit, limit, drain, observe.
//!
//! A server is a [`service::Service`]: its name, its default port and a function that takes bound
//! sockets, flags and a [`shutdown::Shutdown`]. [`service::run`] is all of its `main`. The function
//! starts a [`Chassis`], admits each accepted connection to it, and keeps the
//! [`Connection`] while it serves that peer. One reaper enforces the deadlines of
//! connections, so that a request that comes at once pays for no timer.

// `eprintln!` panics where standard error takes nothing: on a full disk, or behind a closed pipe.
#![warn(clippy::print_stderr)]

pub mod args;
pub mod blocking;
mod buffers;
mod chassis;
pub mod clock;
mod connection;
pub mod echo;
mod error;
pub mod guarded;
mod housekeeping;
mod listen;
mod log;
mod metrics;
mod profile;
pub mod reply_memory;
pub mod request_limit;
mod runtime;
pub mod service;
pub mod shutdown;
mod synthetic_load;
#[cfg(feature = "testing")]
pub mod testing;

pub use self::{
    chassis::Chassis,
    connection::{
        Active, Connection, Ending, Full, Guard, Held, IDLE_TIMEOUT, MAX_CONNECTIONS,
        REPLY_TIMEOUT, Reserved, Shared, TAKEN, Wait,
    },
    error::{Result, ServeError},
    listen::Listening,
    profile::{Drain, Profile},
    runtime::{Accepted, Accepts, TcpServer, each, run_on_runtimes},
};
