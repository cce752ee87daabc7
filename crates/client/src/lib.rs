//! The `netping` command: load generation, measurement and every user command.
//!
//! The way of one request: [`args`] parses flags into a [`plan::Plan`]; the [`engine`] runs it with
//! one worker thread per core; a caller takes a connection from its slot, sends through a
//! [`transport`], and gives the times to the recorder of `netping-measure`. A [`workload`] defines
//! one unit of measurement. The [`service`] module prepares requests that are the
//! user's own. A [`run`] stores, saves and shows the results.

// `eprintln!` panics where standard error takes nothing: on a full disk, or behind a closed pipe.
#![warn(clippy::print_stderr)]
#![expect(
    clippy::missing_errors_doc,
    reason = "the docs of the error types describe the errors"
)]

pub mod args;
mod check;
mod clock;
pub mod commands;
pub mod engine;
mod environment;
pub mod error;
pub mod interrupt;
pub mod plan;
pub mod probe;
mod resolve;
pub mod run;
pub mod service;
pub mod transport;
pub mod workload;
