//! The chassis of every netping server: listen, admit, limit, drain, observe.
//!
//! A server is a [`Service`]: its flags, its default port and a function that takes bound sockets and a
//! [`Shutdown`]. [`run`] is the whole of its `main`. Inside, the server gets a [`Chassis`], admits each accepted
//! connection to it, and keeps the [`Connection`] for as long as it serves that peer. One warden looks after all
//! deadlines, so that no request pays for a timer.

mod blocking;
mod chassis;
mod clock;
mod connection;
mod echo;
mod effort;
mod guarded;
mod listen;
mod metrics;
mod options;
mod runtime;
mod service;
mod shutdown;

pub use blocking::accept_blocking;
pub use chassis::{Chassis, Profile};
pub use connection::{Connection, Guard};
pub use echo::echo;
pub use effort::Effort;
pub use guarded::Guarded;
pub use listen::{Bind, Listening, StartError};
pub use options::{
    CommonArgs, EffortArgs, RuntimeArgs, RuntimeKind, SecureArgs, StreamArgs, TlsArgs, WorkOn,
};
pub use runtime::{Accepted, Accepts, run_on_runtimes, serve as serve_on_runtimes};
pub use service::{Service, run};
pub use shutdown::Shutdown;
