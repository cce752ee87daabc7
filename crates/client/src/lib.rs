//! The `netping` command: load generation, measurement and every user command.
//!
//! One request, from the top: [`args`] parses flags into a [`plan::Plan`]; [`engine`] runs it, one [`worker`] on each
//! core; a worker's caller takes a connection from its [`lane`], sends through a [`transport`], and gives the times to
//! the recorder of `netping-report`. What is not one request and its reply is a [`workload`] of its own. [`session`]
//! keeps, saves and shows what came of it.

pub mod args;
pub mod arrival;
mod clock;
pub mod commands;
mod cores;
mod credentials;
mod crew;
mod dispatch;
pub mod engine;
mod environment;
mod find;
pub mod interrupt;
mod lane;
mod live;
mod pacer;
pub mod plan;
mod progress;
mod push;
pub mod server_metrics;
mod server_process;
pub mod session;
mod start_error;
mod timeline;
pub mod transport;
mod trials;
mod verdict;
mod worker;
pub mod workload;
