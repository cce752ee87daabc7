//! Samples to numbers: a worker's records, the sums over all workers, and their statistics.
//!
//! A worker's [`recorder`] takes samples; [`aggregate`] adds up what all workers recorded; a
//! [`summary`] describes the sums. No files, no sockets.

#![warn(missing_docs)]

pub mod accounting;
pub mod aggregate;
pub mod anatomy;
pub mod buckets;
pub mod bulk;
pub mod connect;
pub mod cost;
pub mod counts;
pub mod course;
pub mod distribution;
pub mod error_kind;
pub mod fairness;
pub mod histogram;
pub mod interval;
pub mod messages;
pub mod path;
pub mod quantiles;
pub mod recorder;
pub mod sample;
pub mod statistics;
pub mod status;
pub mod summary;
pub mod text;
pub mod times;
pub mod window;
