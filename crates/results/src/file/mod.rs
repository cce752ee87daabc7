//! Result files: read, checked and written.

pub mod check;
pub mod histogram;
pub mod load;
pub mod save;
