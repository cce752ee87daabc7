//! The flags that commands share. A [`Plan`](netping_client::plan::Plan) or a plain value is made of
//! flags before anything is measured.

pub mod anatomy;
pub mod burst;
pub mod choice;
pub mod export;
pub mod in_step;
pub mod load;
pub mod output;
pub mod paths;
pub mod range;
pub mod request;
pub mod secure;
pub mod service;
pub mod share;
pub mod shared;
pub mod target;
pub mod time;
pub mod trials;
pub mod until;
