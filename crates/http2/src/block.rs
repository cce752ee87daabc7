//! Header blocks that take several frames (RFC 9113, section 6.10).

use crate::{
    error::Error,
    frame::{Header, flag},
};

/// Longest header block, in bytes, and the most CONTINUATION frames it may take.
pub(crate) const LONGEST: usize = 64 << 10;
const CONTINUATIONS: u32 = 64;

pub(crate) const TOO_LONG: Error = Error::abuse("a header block is too long");

/// A header block of which the end has not come.
#[derive(Debug)]
pub(crate) struct Block {
    pub(crate) stream: u32,
    pub(crate) is_end: bool,
    pub(crate) bytes: Vec<u8>,
    continuations: u32,
}

impl Block {
    /// Begins a block with what its HEADERS frame has of it.
    pub(crate) fn new(header: Header, bytes: &[u8]) -> Self {
        Self {
            stream: header.stream,
            is_end: header.has(flag::END_STREAM),
            bytes: bytes.to_vec(),
            continuations: 0,
        }
    }

    /// Adds a CONTINUATION frame to the block that is `open`.
    ///
    /// # Errors
    /// There is no such block on the frame's stream, or it becomes too long.
    pub(crate) fn continued(
        open: Option<Self>,
        header: Header,
        payload: &[u8],
    ) -> Result<Self, Error> {
        let own = |block: &Self| block.stream == header.stream;
        let Some(mut block) = open.filter(own) else {
            let detail = "CONTINUATION continues no header block of its stream";
            return Err(Error::protocol(detail));
        };
        block.bytes.extend_from_slice(payload);
        block.continuations += 1;
        if block.bytes.len() > LONGEST || block.continuations > CONTINUATIONS {
            return Err(TOO_LONG);
        }
        Ok(block)
    }
}
