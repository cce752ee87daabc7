//! Replies of HTTP/1.1 (RFC 9112), as a client reads them: no socket, and no buffer of its own.
//!
//! ```
//! use netping_protocol::http1::ReplyReader;
//!
//! let mut reader = ReplyReader::new("GET");
//! let mut body = Vec::new();
//! let reply = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\npong";
//! let progress = reader.read(reply, |part| body.extend_from_slice(part))?;
//! assert!(progress.is_whole && progress.used == reply.len());
//! assert_eq!((reader.status(), &body[..], reader.is_last()), (200, &b"pong"[..], false));
//! # Ok::<(), netping_protocol::http1::ReplyError>(())
//! ```

mod error;
mod head;
#[cfg(test)]
mod tests;

use std::mem;

pub use self::error::ReplyError;
use self::head::{Framing, Head};

/// Longest head, or trailers, of a reply, in bytes.
pub const MAX_HEAD: usize = 64 << 10;

/// Most headers, or trailers, of a reply.
pub const MAX_HEADERS: usize = 100;

/// Most interim replies (status 1xx) before a reply.
pub const MAX_INTERIM: u32 = 20;

/// Longest head that is remembered, in bytes.
const LONGEST_REMEMBERED: usize = 2 << 10;

/// Longest line with the size of a chunk and its extensions, in bytes.
pub const MAX_CHUNK_LINE: usize = 4 << 10;

/// Reads the replies on one connection, one after the other.
#[derive(Debug)]
pub struct ReplyReader {
    asked: Asked,
    state: State,
    status: u16,
    is_last: bool,
    /// Interim replies before the current one.
    interim: u32,
    /// The last head, and its meaning. Most servers send the same one until the `Date` changes, and to compare
    /// it costs less than to parse it.
    known: (Vec<u8>, Head),
}

/// The requests, as far as the form of their replies depends on them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asked {
    Head,
    Connect,
    Other,
}

/// The next element of a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Head,
    /// So many bytes, which are the rest of the body.
    Body(u64),
    /// The rest of the body, up to the connection's end.
    ToEnd,
    /// The line with the size of a chunk.
    ChunkSize,
    /// So many bytes, which are the rest of a chunk.
    Chunk(u64),
    /// The end of line after a chunk.
    ChunkEnd,
    Trailers,
    /// Nothing: the reply is whole.
    Whole,
}

/// The result of reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Bytes of the input that were read. Those after them have to be given again, with more, unless the
    /// reply is whole: then they do not belong to it.
    pub used: usize,
    /// The reply is whole.
    pub is_whole: bool,
}

impl ReplyReader {
    /// Returns a reader of the replies to requests with this method.
    pub fn new(method: &str) -> Self {
        Self {
            asked: match method {
                "HEAD" => Asked::Head,
                "CONNECT" => Asked::Connect,
                _ => Asked::Other,
            },
            state: State::Whole,
            status: 0,
            is_last: false,
            interim: 0,
            known: (Vec::new(), Head::default()),
        }
    }

    /// Returns the status of the last reply whose head has been read: from 200 to 999.
    pub fn status(&self) -> u16 {
        self.status
    }

    /// Returns true if the connection ends with that reply.
    pub fn is_last(&self) -> bool {
        self.is_last
    }

    /// Reads as much of the current reply as there is, or of the next one once that is whole. Gives the
    /// parts of the body to `body` as they come.
    ///
    /// # Errors
    /// Fails if the reply is malformed; nothing that follows on the connection can be read then.
    pub fn read(
        &mut self,
        input: &[u8],
        mut body: impl FnMut(&[u8]),
    ) -> Result<Progress, ReplyError> {
        if self.state == State::Whole {
            self.state = State::Head;
            self.interim = 0;
        }
        let mut used = 0;
        while self.state != State::Whole {
            let Some(more) = self.step(&input[used..], &mut body)? else {
                break;
            };
            used += more;
        }
        Ok(Progress {
            used,
            is_whole: self.state == State::Whole,
        })
    }

    /// Ends the input, since the peer has closed the connection. Returns true if the current reply is whole
    /// with that.
    pub fn end(&mut self) -> bool {
        mem::replace(&mut self.state, State::Whole) == State::ToEnd
    }

    /// Reads one element of the reply, or a part of the body. Returns its length; `None` if more must come.
    fn step(
        &mut self,
        input: &[u8],
        body: &mut impl FnMut(&[u8]),
    ) -> Result<Option<usize>, ReplyError> {
        let (next, used) = match self.state {
            State::Head => return self.head(input),
            State::Whole => return Ok(None),
            State::Body(_) | State::Chunk(_) | State::ToEnd if input.is_empty() => return Ok(None),
            State::Body(left) => {
                let (part, left) = part(input, left);
                body(part);
                let next = if left == 0 {
                    State::Whole
                } else {
                    State::Body(left)
                };
                (next, part.len())
            }
            State::ToEnd => {
                body(input);
                (State::ToEnd, input.len())
            }
            State::ChunkSize => match chunk_size(input)? {
                None => return Ok(None),
                Some((0, used)) => (State::Trailers, used),
                Some((size, used)) => (State::Chunk(size), used),
            },
            State::Chunk(left) => {
                let (part, left) = part(input, left);
                body(part);
                let next = if left == 0 {
                    State::ChunkEnd
                } else {
                    State::Chunk(left)
                };
                (next, part.len())
            }
            State::ChunkEnd => match input {
                [b'\r', b'\n', ..] => (State::ChunkSize, 2),
                [] | [b'\r'] => return Ok(None),
                other => return Err(ReplyError::ChunkEnd(error::excerpt(other))),
            },
            State::Trailers => match head::trailers(input)? {
                None => return Ok(None),
                Some(used) => (State::Whole, used),
            },
        };
        self.state = next;
        Ok(Some(used))
    }

    fn head(&mut self, input: &[u8]) -> Result<Option<usize>, ReplyError> {
        let (known, meaning) = &mut self.known;
        let is_known = !known.is_empty() && input.starts_with(known);
        if !is_known {
            let Some(head) = head::parse(input)? else {
                return Ok(None);
            };
            *meaning = head;
            known.clear();
            if head.length <= LONGEST_REMEMBERED {
                known.extend_from_slice(&input[..head.length]);
            }
        }
        let head = *meaning;
        let length = head.length;
        if head.status < 200 {
            self.interim += 1;
            return match head.status {
                101 => Err(ReplyError::Switched),
                _ if self.interim > MAX_INTERIM => Err(ReplyError::TooManyInterim),
                _ => Ok(Some(length)),
            };
        }
        self.status = head.status;
        let (state, is_last) = self.begun(head);
        self.state = state;
        self.is_last = is_last;
        Ok(Some(length))
    }

    /// Returns what comes after the head of a reply, and whether that reply is the last (RFC 9112, section 6.3).
    fn begun(&self, head: Head) -> (State, bool) {
        let opens_tunnel = self.asked == Asked::Connect && head.status < 300;
        if opens_tunnel {
            return (State::Whole, true);
        }
        if self.asked == Asked::Head || matches!(head.status, 204 | 304) {
            return (State::Whole, head.is_last);
        }
        match head.framing {
            Framing::Length(0) => (State::Whole, head.is_last),
            Framing::Length(length) => (State::Body(length), head.is_last),
            Framing::Chunked => (State::ChunkSize, head.is_last),
            Framing::ToEnd => (State::ToEnd, true),
        }
    }
}

/// Returns the bytes of a part that have come, and how many are left.
fn part(input: &[u8], left: u64) -> (&[u8], u64) {
    let length = usize::try_from(left).map_or(input.len(), |left| left.min(input.len()));
    (&input[..length], left - length as u64)
}

/// Reads the line before a chunk (RFC 9112, section 7.1): its size, and the length of the line.
fn chunk_size(input: &[u8]) -> Result<Option<(u64, usize)>, ReplyError> {
    let malformed = |line: &[u8]| ReplyError::ChunkSize(error::excerpt(line));
    // Without a digit there is no size, whatever comes: no need to wait for the line's end.
    if input.first().is_some_and(|byte| !byte.is_ascii_hexdigit()) {
        return Err(malformed(input));
    }
    let Some(end) = memchr::memchr(b'\n', &input[..input.len().min(MAX_CHUNK_LINE)]) else {
        return match input.len() {
            length if length < MAX_CHUNK_LINE => Ok(None),
            _ => Err(ReplyError::ChunkLineTooLong),
        };
    };
    let line = &input[..end];
    let line = line.strip_suffix(b"\r").ok_or_else(|| malformed(line))?;
    let is_digit = |byte: &u8| byte.is_ascii_hexdigit();
    let digits = line.iter().take_while(|byte| is_digit(byte)).count();
    let (size, extensions) = line.split_at(digits);
    // Spaces before an extension are bad, and allowed (RFC 9112, section 7.1.1).
    let extensions = extensions.trim_ascii_start();
    let is_malformed = extensions.first().is_some_and(|&byte| byte != b';');
    if is_malformed || extensions.contains(&b'\r') {
        return Err(malformed(line));
    }
    let size = size.iter().try_fold(0, |size: u64, &digit| {
        let value = char::from(digit).to_digit(16)?;
        size.checked_mul(16)?.checked_add(u64::from(value))
    });
    let size = size.ok_or_else(|| ReplyError::ChunkTooLarge(error::excerpt(line)))?;
    Ok(Some((size, end + 1)))
}
