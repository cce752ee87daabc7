//! The views of a run: tables, pages and exports.

pub mod bars;
pub mod export;
pub mod finding;
pub mod ladder;
pub mod page;
pub mod sparkline;
pub mod steps;
pub mod table;
pub mod text;
pub mod verdict;
pub mod words;
