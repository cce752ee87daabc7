//! Integers (RFC 7541, section 5.1).

use crate::error::Error;

/// Bytes after the first one: enough for every length and index of a block of up to 64 KiB.
const LONGEST: usize = 4;

/// Appends a number behind the pattern in the first byte's high bits, of which `bits` are left.
pub(super) fn put(pattern: u8, bits: u32, number: usize, out: &mut Vec<u8>) {
    let most = (1 << bits) - 1;
    if number < most {
        out.push(pattern | number as u8);
        return;
    }
    out.push(pattern | most as u8);
    let mut rest = number - most;
    while rest >= 0x80 {
        out.push(0x80 | (rest & 0x7F) as u8);
        rest >>= 7;
    }
    out.push(rest as u8);
}

/// Takes a number from the low `bits` of the first byte, and the bytes after it.
///
/// # Errors
/// A number that is cut off or too long is a COMPRESSION_ERROR.
pub(super) fn take(block: &mut &[u8], bits: u32) -> Result<usize, Error> {
    let most = (1 << bits) - 1;
    let mut number = usize::from(next(block)?) & most;
    if number < most {
        return Ok(number);
    }
    for place in 0..LONGEST {
        let byte = next(block)?;
        number += usize::from(byte & 0x7F) << (7 * place);
        if byte & 0x80 == 0 {
            return Ok(number);
        }
    }
    Err(Error::compression("a number in a header block is too long"))
}

fn next(block: &mut &[u8]) -> Result<u8, Error> {
    let cut_off = Error::compression("a header block ends within a number");
    let (&first, rest) = block.split_first().ok_or(cut_off)?;
    *block = rest;
    Ok(first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Reason;

    #[test]
    fn numbers_are_those_of_the_rfc() {
        // RFC 7541, appendix C.1.
        for (number, bits, bytes) in [
            (10, 5, &[0b01010][..]),
            (1337, 5, &[0b11111, 154, 10]),
            (42, 8, &[42]),
        ] {
            let mut out = Vec::new();
            put(0, bits, number, &mut out);
            assert_eq!(out, bytes);
            assert_eq!(take(&mut &bytes[..], bits), Ok(number));
        }
        for number in [0, 30, 31, 32, 158, 159, 65_536, 200_000_000] {
            let mut out = Vec::new();
            put(0xE0, 5, number, &mut out);
            assert_eq!(take(&mut &out[..], 5), Ok(number));
        }
    }

    #[test]
    fn numbers_that_are_cut_off_or_endless_are_errors() {
        for bytes in [
            &[][..],
            &[31],
            &[31, 0x80],
            &[31, 0x80, 0x80, 0x80, 0x80, 0],
        ] {
            let reason = take(&mut &bytes[..], 5).unwrap_err().reason;
            assert_eq!(reason, Reason::COMPRESSION_ERROR);
        }
    }
}
