//! Violations of the protocol by a reply.

use super::{MAX_CHUNK_LINE, MAX_HEAD, MAX_HEADERS, MAX_INTERIM};

/// Bytes of a reply that an error shows.
const SHOWN: usize = 60;

/// A reply is malformed, or exceeds a limit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReplyError {
    /// It begins in another way.
    #[error("the reply does not begin with HTTP/1.1 or HTTP/1.0: \"{0}\"")]
    NotHttp1(String),
    /// There is no status of three digits, from 100 on, after the version.
    #[error("the status line of the reply is malformed: \"{0}\"")]
    StatusLine(String),
    /// A line is not a name, a colon and a value.
    #[error("a header of the reply is malformed: \"{0}\"")]
    Header(String),
    /// A line continues the header before it.
    #[error(
        "a header of the reply goes on in the next line, which is obsolete (RFC 9112, section 5.2): \"{0}\""
    )]
    Folded(String),
    /// The head does not end in time.
    #[error("the head of the reply is longer than the limit of {} KiB", MAX_HEAD >> 10)]
    HeadTooLong,
    /// The head, or the trailers, have too many lines.
    #[error("the reply has more headers than the limit of {MAX_HEADERS}")]
    TooManyHeaders,
    /// Status 101.
    #[error("the reply switches to another protocol (status 101), which was not asked for")]
    Switched,
    /// The reply does not come.
    #[error("more interim replies (status 1xx) than the limit of {MAX_INTERIM} before the reply")]
    TooManyInterim,
    /// It has other characters than digits, or none.
    #[error("the Content-Length of the reply is not a number: \"{0}\"")]
    Length(String),
    /// It has more than 64 bits.
    #[error("the Content-Length of the reply is too large: {0}")]
    LengthTooLarge(String),
    /// There are several, and not all are equal.
    #[error("the reply has two different Content-Lengths: {0} and {1}")]
    DifferentLengths(u64, u64),
    /// A coding other than `chunked`.
    #[error("the reply has the transfer coding \"{0}\"; only \"chunked\" is known")]
    Coding(String),
    /// A `Transfer-Encoding` without a coding.
    #[error("the Transfer-Encoding of the reply is empty")]
    NoCoding,
    /// `chunked` may be applied once.
    #[error("the reply has the transfer coding \"chunked\" more than once")]
    ChunkedTwice,
    /// HTTP/1.0 has no transfer codings.
    #[error("the reply is of HTTP/1.0 and has a Transfer-Encoding, which only HTTP/1.1 has")]
    CodedInHttp10,
    /// The line before a chunk has no hexadecimal number, or something else after it than extensions.
    #[error("the size of a chunk of the reply is malformed: \"{0}\"")]
    ChunkSize(String),
    /// It has more than 64 bits.
    #[error("the size of a chunk of the reply is too large: {0}")]
    ChunkTooLarge(String),
    /// Its extensions do not end in time.
    #[error(
        "the line with the size of a chunk of the reply is longer than the limit of {} KiB",
        MAX_CHUNK_LINE >> 10
    )]
    ChunkLineTooLong,
    /// Something else follows than an end of line.
    #[error("a chunk of the reply is longer than its size, or has no end of line: \"{0}\"")]
    ChunkEnd(String),
    /// They do not end in time.
    #[error("the trailers of the reply are longer than the limit of {} KiB", MAX_HEAD >> 10)]
    TrailersTooLong,
    /// Bytes that belong to no reply.
    #[error("bytes after the reply, before the next request: \"{0}\"")]
    Surplus(String),
}

impl ReplyError {
    /// Returns the error of bytes that came where no reply was due.
    pub fn surplus(bytes: &[u8]) -> Self {
        Self::Surplus(excerpt(bytes))
    }
}

/// Returns the error of a head or of trailers that cannot be parsed. `refuses` returns true for a beginning
/// that contains the error already.
pub(super) fn malformed(
    error: httparse::Error,
    input: &[u8],
    refuses: fn(&[u8]) -> bool,
) -> ReplyError {
    match error {
        httparse::Error::Version => ReplyError::NotHttp1(excerpt(input)),
        httparse::Error::Status => ReplyError::StatusLine(excerpt(input)),
        httparse::Error::TooManyHeaders => ReplyError::TooManyHeaders,
        _ => {
            let line = first_refused(input, refuses);
            let shown = excerpt(line);
            match line {
                [b' ' | b'\t', ..] => ReplyError::Folded(shown),
                _ => ReplyError::Header(shown),
            }
        }
    }
}

/// Returns the line with which the input is refused.
fn first_refused(input: &[u8], refuses: fn(&[u8]) -> bool) -> &[u8] {
    let mut start = 0;
    for line in input.split_inclusive(|&byte| byte == b'\n') {
        let end = start + line.len();
        if refuses(&input[..end]) {
            return line;
        }
        start = end;
    }
    &[]
}

/// Returns the beginning of bytes as text of one line.
pub(super) fn excerpt(bytes: &[u8]) -> String {
    bytes[..bytes.len().min(SHOWN)].escape_ascii().to_string()
}
