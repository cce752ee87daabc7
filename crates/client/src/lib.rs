//! The `netping` command: load generation, measurement and every user command.
//!
//! One request, from the top: [`args`] parses flags into a [`plan::Plan`]; [`engine`] runs it, one
//! worker thread per core; a caller takes a connection from its slot, sends through a
//! [`transport`], and gives the times to the recorder of `netping-measure`. A [`workload`] is what
//! one measured unit is. [`run`] keeps, saves and shows the results.

pub mod args;
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
pub mod transport;
pub mod workload;
