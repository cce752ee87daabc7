//! Frames: their headers, padding and fixed fields (RFC 9113, sections 4 and 6).

use crate::error::Error;

/// The first bytes that a client sends (RFC 9113, section 3.4).
pub(crate) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Length of a frame's header, in bytes.
pub(crate) const HEADER: usize = 9;

/// Smallest and default limit of a frame's payload, in bytes (RFC 9113, section 4.2).
pub(crate) const DEFAULT_MAX_SIZE: usize = 1 << 14;

/// Types of frames.
pub(crate) mod kind {
    pub(crate) const DATA: u8 = 0;
    pub(crate) const HEADERS: u8 = 1;
    pub(crate) const PRIORITY: u8 = 2;
    pub(crate) const RST_STREAM: u8 = 3;
    pub(crate) const SETTINGS: u8 = 4;
    pub(crate) const PUSH_PROMISE: u8 = 5;
    pub(crate) const PING: u8 = 6;
    pub(crate) const GOAWAY: u8 = 7;
    pub(crate) const WINDOW_UPDATE: u8 = 8;
    pub(crate) const CONTINUATION: u8 = 9;
}

/// Flags of frames.
pub(crate) mod flag {
    pub(crate) const END_STREAM: u8 = 0x1;
    pub(crate) const ACK: u8 = 0x1;
    pub(crate) const END_HEADERS: u8 = 0x4;
    pub(crate) const PADDED: u8 = 0x8;
    pub(crate) const PRIORITY: u8 = 0x20;
}

/// The header of a frame, without its length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) kind: u8,
    pub(crate) flags: u8,
    /// The stream; 0 for the connection.
    pub(crate) stream: u32,
}

impl Header {
    pub(crate) const fn new(kind: u8, flags: u8, stream: u32) -> Self {
        Self {
            kind,
            flags,
            stream,
        }
    }

    pub(crate) fn has(self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// Returns the header as it is sent, before `length` bytes of payload.
    pub(crate) fn encode(self, length: usize) -> [u8; HEADER] {
        let [_, high, middle, low] = (length as u32).to_be_bytes();
        let [a, b, c, d] = self.stream.to_be_bytes();
        [high, middle, low, self.kind, self.flags, a, b, c, d]
    }
}

/// Returns the frame at the beginning of `bytes`; `None` if it is not whole.
///
/// # Errors
/// A payload of more than `limit` bytes is a FRAME_SIZE_ERROR.
pub(crate) fn first(bytes: &[u8], limit: usize) -> Result<Option<(Header, &[u8])>, Error> {
    let Some((header, length, rest)) = begin(bytes) else {
        return Ok(None);
    };
    check_length(length, limit)?;
    Ok(rest.get(..length).map(|payload| (header, payload)))
}

/// Returns the header at the beginning of `bytes`, the length of its payload, and what follows the header;
/// `None` if it is not whole.
pub(crate) fn begin(bytes: &[u8]) -> Option<(Header, usize, &[u8])> {
    let (header, rest) = bytes.split_first_chunk::<HEADER>()?;
    let [high, middle, low, kind, flags, id @ ..] = *header;
    let length = u32::from_be_bytes([0, high, middle, low]) as usize;
    Some((Header::new(kind, flags, number(id)), length, rest))
}

/// Checks the length of a payload.
///
/// # Errors
/// A payload of more than `limit` bytes is a FRAME_SIZE_ERROR.
pub(crate) fn check_length(length: usize, limit: usize) -> Result<(), Error> {
    if length > limit {
        return Err(Error::frame_size("a frame is longer than the limit"));
    }
    Ok(())
}

/// Returns a number of 31 bits; the bit before it is reserved.
pub(crate) fn number(bytes: [u8; 4]) -> u32 {
    u32::from_be_bytes(bytes) & 0x7FFF_FFFF
}

/// Removes the padding of DATA and HEADERS (RFC 9113, section 6.1).
///
/// # Errors
/// Padding that is as long as the payload is a PROTOCOL_ERROR.
pub(crate) fn unpadded(header: Header, payload: &[u8]) -> Result<&[u8], Error> {
    if !header.has(flag::PADDED) {
        return Ok(payload);
    }
    let Some((&padding, rest)) = payload.split_first() else {
        return Err(Error::frame_size("a padded frame has no padding length"));
    };
    let length = rest.len().checked_sub(padding.into());
    let length = length.ok_or(Error::protocol("padding is longer than its frame"))?;
    Ok(&rest[..length])
}

/// Returns the payload of a frame that has `N` bytes always.
///
/// # Errors
/// Any other length is a FRAME_SIZE_ERROR.
pub(crate) fn fixed<const N: usize>(
    payload: &[u8],
    otherwise: &'static str,
) -> Result<[u8; N], Error> {
    let payload = payload.try_into();
    payload.map_err(|_| Error::frame_size(otherwise))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Reason;

    #[test]
    fn a_frame_is_taken_only_when_it_is_whole() {
        let header = Header::new(kind::DATA, flag::END_STREAM, 5);
        let mut bytes = header.encode(3).to_vec();
        bytes.extend(b"abcd");
        for length in 0..12 {
            assert_eq!(first(&bytes[..length], 10), Ok(None), "{length}");
        }
        assert_eq!(first(&bytes, 3), Ok(Some((header, &b"abc"[..]))));
        assert_eq!(
            first(&bytes[..9], 2).unwrap_err().reason,
            Reason::FRAME_SIZE_ERROR
        );
        bytes[5] |= 0x80;
        assert_eq!(first(&bytes, 3).unwrap().unwrap().0, header);
    }

    #[test]
    fn padding_is_removed_and_never_exceeds_its_frame() {
        let padded = Header::new(kind::DATA, flag::PADDED, 1);
        let plain = Header::new(kind::DATA, 0, 1);
        assert_eq!(unpadded(plain, b"\x02ab"), Ok(&b"\x02ab"[..]));
        assert_eq!(unpadded(padded, b"\x02abcd"), Ok(&b"ab"[..]));
        assert_eq!(unpadded(padded, b"\x02ab"), Ok(&b""[..]));
        let reason = |payload| unpadded(padded, payload).unwrap_err().reason;
        assert_eq!(reason(b"\x03ab"), Reason::PROTOCOL_ERROR);
        assert_eq!(reason(b""), Reason::FRAME_SIZE_ERROR);
    }
}
