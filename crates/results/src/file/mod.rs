//! Result files: read, checked and written.

pub mod check;
pub mod form;
pub mod load;
pub mod save;
pub(crate) mod time_of_day;
mod version_2;
