//! Header compression (RFC 7541).

pub(crate) mod encoder;
mod huffman;
mod integer;
pub(crate) mod replies;
mod scan;
mod static_table;
