//! The head of a reply, and its trailers.

use std::mem::MaybeUninit;

use httparse::{EMPTY_HEADER, Header, ParserConfig, Response, Status};

use super::{
    MAX_HEAD, MAX_HEADERS,
    error::{ReplyError, excerpt, malformed},
};

/// The meaning of a reply's head.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Head {
    /// Its length, in bytes.
    pub length: usize,
    pub status: u16,
    pub framing: Framing,
    /// The headers end the connection after the reply.
    pub is_last: bool,
}

/// The delimitation of a body, if there is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Framing {
    /// So many bytes.
    Length(u64),
    /// Chunks.
    Chunked,
    /// The end of the connection.
    #[default]
    ToEnd,
}

/// Reads a head; `None` until it is whole.
pub(super) fn parse(input: &[u8]) -> Result<Option<Head>, ReplyError> {
    let mut room = [const { MaybeUninit::uninit() }; MAX_HEADERS];
    let mut response = Response::new(&mut []);
    let parser = ParserConfig::default();
    let parsed = parser.parse_response_with_uninit_headers(&mut response, input, &mut room);
    let length = match parsed {
        Ok(Status::Complete(length)) if length <= MAX_HEAD => length,
        Ok(Status::Partial) if input.len() <= MAX_HEAD => return Ok(None),
        Ok(_) => return Err(ReplyError::HeadTooLong),
        Err(error) => return Err(malformed(error, input, refuses_head)),
    };
    // Both are there in a whole head.
    let (status, version) = (
        response.code.unwrap_or_default(),
        response.version.unwrap_or_default(),
    );
    if status < 100 {
        return Err(ReplyError::StatusLine(excerpt(input)));
    }
    let is_interim = status < 200;
    if is_interim {
        // It has no body, whatever its headers say (RFC 9112, section 6.3).
        return Ok(Some(Head {
            length,
            status,
            framing: Framing::Length(0),
            is_last: false,
        }));
    }
    let (framing, is_last) = meaning(response.headers, version)?;
    Ok(Some(Head {
        length,
        status,
        framing,
        is_last,
    }))
}

/// Reads trailers, whose contents nobody asked for; returns their length, `None` until they are whole.
pub(super) fn trailers(input: &[u8]) -> Result<Option<usize>, ReplyError> {
    if input.starts_with(b"\r\n") {
        return Ok(Some(2));
    }
    match httparse::parse_headers(input, &mut [EMPTY_HEADER; MAX_HEADERS]) {
        Ok(Status::Complete((length, _))) if length <= MAX_HEAD => Ok(Some(length)),
        Ok(Status::Partial) if input.len() <= MAX_HEAD => Ok(None),
        Ok(_) => Err(ReplyError::TrailersTooLong),
        Err(error) => Err(malformed(error, input, refuses_trailers)),
    }
}

/// Returns the delimitation of the body, if there is one, and whether the headers end the connection.
fn meaning(headers: &[Header<'_>], version: u8) -> Result<(Framing, bool), ReplyError> {
    let mut length = None;
    let mut codings: Option<u32> = None;
    let (mut closes, mut keeps_alive) = (false, false);
    for header in headers {
        if header.name.eq_ignore_ascii_case("content-length") {
            let new = content_length(header.value)?;
            match length {
                Some(old) if old != new => return Err(ReplyError::DifferentLengths(old, new)),
                _ => length = Some(new),
            }
        } else if header.name.eq_ignore_ascii_case("transfer-encoding") {
            let known = codings.unwrap_or_default();
            codings = Some(known + times_chunked(header.value)?);
        } else if header.name.eq_ignore_ascii_case("connection") {
            for token in list(header.value) {
                closes |= token.eq_ignore_ascii_case(b"close");
                keeps_alive |= token.eq_ignore_ascii_case(b"keep-alive");
            }
        }
    }
    let is_old = version == 0;
    let is_last = closes || (is_old && !keeps_alive);
    match (codings, length) {
        (None, Some(length)) => Ok((Framing::Length(length), is_last)),
        (None, None) => Ok((Framing::ToEnd, is_last)),
        (Some(_), _) if is_old => Err(ReplyError::CodedInHttp10),
        // Somebody on the way may have understood the length, so the connection is not to be trusted.
        (Some(1), length) => Ok((Framing::Chunked, is_last || length.is_some())),
        (Some(0), _) => Err(ReplyError::NoCoding),
        (Some(_), _) => Err(ReplyError::ChunkedTwice),
    }
}

/// Reads a `Content-Length`, in bytes.
fn content_length(value: &[u8]) -> Result<u64, ReplyError> {
    if value.is_empty() || !value.iter().all(u8::is_ascii_digit) {
        return Err(ReplyError::Length(excerpt(value)));
    }
    let length = value.iter().try_fold(0, |length: u64, digit| {
        length.checked_mul(10)?.checked_add(u64::from(digit - b'0'))
    });
    length.ok_or_else(|| ReplyError::LengthTooLarge(excerpt(value)))
}

/// Returns how often a `Transfer-Encoding` names the only coding that every client has to know.
fn times_chunked(value: &[u8]) -> Result<u32, ReplyError> {
    let mut times = 0;
    for coding in list(value) {
        if !coding.eq_ignore_ascii_case(b"chunked") {
            return Err(ReplyError::Coding(excerpt(coding)));
        }
        times += 1;
    }
    Ok(times)
}

/// Returns the elements of a list (RFC 9110, section 5.6.1).
fn list(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    let elements = value.split(|&byte| byte == b',').map(<[u8]>::trim_ascii);
    elements.filter(|element| !element.is_empty())
}

/// Returns true if the bytes cannot be the beginning of a head.
fn refuses_head(input: &[u8]) -> bool {
    let mut room = [EMPTY_HEADER; MAX_HEADERS];
    Response::new(&mut room).parse(input).is_err()
}

/// Returns true if the bytes cannot be the beginning of trailers.
fn refuses_trailers(input: &[u8]) -> bool {
    httparse::parse_headers(input, &mut [EMPTY_HEADER; MAX_HEADERS]).is_err()
}
