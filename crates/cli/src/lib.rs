//! The `netping` command: every user command, on the load generator of `netping-client`.
//!
//! [`args`] parses flags into [plans](netping_client::plan::Plan); [`commands`] has them measured.
//! A [`run`] stores, saves and shows the results.

// `eprintln!` panics where standard error takes nothing: on a full disk, or behind a closed pipe.
#![warn(clippy::print_stderr)]
#![expect(
    clippy::missing_errors_doc,
    reason = "the docs of the error types describe the errors"
)]

pub mod args;

pub mod commands;
mod credentials;
mod environment;
pub mod error;
mod interrupt;
mod launcher;
mod observation;
pub mod run;
mod server_process;
mod sides;
mod tail;
