//! The operating system as client and servers need it: CPU time, cores, limits, signals and
//! `/proc`.
//!
//! Linux only. Clocks that measure requests are not here: they belong to the code that measures.

pub mod balance;
mod cgroup;
pub mod clock_quality;
pub mod connections;
pub mod cores;
pub mod counters;
pub mod cpu;
pub mod host;
pub mod limits;
pub mod listener;
pub mod memory;
pub mod perf_events;
pub mod priority;
mod proc;
pub mod process;
pub mod signals;
