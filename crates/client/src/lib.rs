//! The load generator of netping: what a command measures with. It knows no command line and no
//! terminal, and writes no files.
//!
//! The way of one request: the [`engine`] runs a [`plan::Plan`] with one worker thread per core; a
//! caller takes a connection from its slot, sends through a [`transport`], and gives the times to
//! the recorder of `netping-measure`. The [`service`] module prepares requests that are the user's
//! own. A [`probe`] reads what a server tells of itself. Bulk streams, in [`workload`], run without
//! the engine.

#![warn(clippy::print_stderr, clippy::print_stdout)]

pub mod clock;
pub mod clock_offset;
pub mod engine;
pub mod error;
mod explain;
pub mod interrupt;
pub mod plan;
pub mod probe;
mod resolve;
pub mod service;
pub mod transport;
pub mod workload;
