//! Readers of replies.

use netping_http2::fields::Fields;

use crate::transport::Result;

/// Takes a reply as it comes.
pub(crate) trait Reader {
    /// Returns true if a part of the reply is wanted as soon as it is there, and not only in large parts.
    fn streams(&self) -> bool {
        false
    }

    /// Takes the head. After a failure the rest is not wanted.
    fn head(&mut self, head: &Fields) -> Result<()>;

    /// Takes the next part of the body. After a failure the rest is not wanted.
    fn data(&mut self, data: &[u8]) -> Result<()>;

    /// Takes the end: the trailers, or the head if there are none.
    fn end(&mut self, last: &Fields) -> Result<()>;
}
