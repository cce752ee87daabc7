//! The Huffman code of strings (RFC 7541, section 5.2 and appendix B).
//!
//! The code is canonical: codes of a length are consecutive, in the order of their symbols, and those of
//! the next length follow them. So the lengths determine it, and a code is found by comparing with the
//! first one of each length.

use crate::error::Error;

/// Length in bits of each byte's code, and of the code for the end, which is no byte.
#[rustfmt::skip]
const LENGTHS: [u8; 257] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28,
    28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28,
    6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6,
    5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10,
    13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
    7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
    15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5,
    6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28,
    20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23,
    24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,
    22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23,
    21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25,
    19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27,
    20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
    26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
    30,
];

const SHORTEST: usize = 5;
const LONGEST: usize = 30;

/// The code, by lengths.
struct Code {
    /// The first code of each length that is not of this length any more, at the high end of 32 bits.
    ends: [u32; LONGEST + 1],
    /// For each length, the number that gives a code its place in `symbols` when it is added.
    offsets: [u32; LONGEST + 1],
    /// The symbols, in the order of their codes.
    symbols: [u16; 257],
}

static CODE: Code = code();

const fn code() -> Code {
    let mut made = Code {
        ends: [0; LONGEST + 1],
        offsets: [0; LONGEST + 1],
        symbols: [0; 257],
    };
    let (mut length, mut next, mut place) = (SHORTEST, 0_u32, 0);
    while length <= LONGEST {
        made.offsets[length] = (place as u32).wrapping_sub(next);
        let mut symbol = 0;
        while symbol < LENGTHS.len() {
            if LENGTHS[symbol] as usize == length {
                made.symbols[place] = symbol as u16;
                place += 1;
                next += 1;
            }
            symbol += 1;
        }
        // The last code of all is the highest number, and its end overflows.
        made.ends[length] = if length == LONGEST {
            u32::MAX
        } else {
            next << (32 - length)
        };
        next <<= 1;
        length += 1;
    }
    made
}

/// Appends the text of a string to `out`.
///
/// # Errors
/// Padding that is longer than 7 bits or not of ones, and the code for the end, are COMPRESSION_ERRORs.
pub(super) fn decode(string: &[u8], out: &mut Vec<u8>) -> Result<(), Error> {
    const WRONG: Error = Error::compression("a Huffman-coded string is not valid");
    // The next bits, at the high end; what follows them is ones, as in padding.
    let (mut bits, mut held) = (u64::MAX, 0);
    let mut rest = string.iter();
    loop {
        while held <= 56
            && let Some(&byte) = rest.next()
        {
            let place = 56 - held;
            bits &= !(0xFF << place) | (u64::from(byte) << place);
            held += 8;
        }
        let window = (bits >> 32) as u32;
        let longer = |length: &usize| window >= CODE.ends[*length];
        let length = (SHORTEST..LONGEST).find(|length| !longer(length));
        let length = length.unwrap_or(LONGEST);
        if length > held {
            // What is left is the beginning of a code that goes on with ones: of the one for the end, if it is padding.
            let is_padding = held < 8 && window == u32::MAX;
            return is_padding.then_some(()).ok_or(WRONG);
        }
        let place = (window >> (32 - length)).wrapping_add(CODE.offsets[length]);
        let symbol = CODE.symbols.get(place as usize).ok_or(WRONG)?;
        out.push(u8::try_from(*symbol).map_err(|_| WRONG)?);
        bits = !(!bits << length);
        held -= length;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(string: &[u8]) -> Result<Vec<u8>, Error> {
        let mut out = Vec::new();
        decode(string, &mut out).map(|()| out)
    }

    /// Encodes by the same lengths.
    fn encoded(text: &[u8]) -> Vec<u8> {
        let mut bits = String::new();
        for &byte in text {
            let length = usize::from(LENGTHS[usize::from(byte)]);
            let place = CODE
                .symbols
                .iter()
                .position(|symbol| *symbol == u16::from(byte));
            let code = (place.unwrap() as u32).wrapping_sub(CODE.offsets[length]);
            bits.extend(
                (0..length)
                    .rev()
                    .map(|place| if code >> place & 1 == 1 { '1' } else { '0' }),
            );
        }
        while !bits.len().is_multiple_of(8) {
            bits.push('1');
        }
        let bytes = bits.as_bytes().chunks(8);
        bytes
            .map(|byte| u8::from_str_radix(str::from_utf8(byte).unwrap(), 2).unwrap())
            .collect()
    }

    #[test]
    fn strings_are_those_of_the_rfc() {
        // RFC 7541, appendix C.4.
        let string = [
            0xf1, 0xe3, 0xc2, 0xe5, 0xf2, 0x3a, 0x6b, 0xa0, 0xab, 0x90, 0xf4, 0xff,
        ];
        assert_eq!(decoded(&string).unwrap(), b"www.example.com");
        assert_eq!(
            decoded(&[0xa8, 0xeb, 0x10, 0x64, 0x9c, 0xbf]).unwrap(),
            b"no-cache"
        );
        assert_eq!(decoded(b"").unwrap(), b"");
    }

    #[test]
    fn every_byte_is_decoded_beside_every_other() {
        let all: Vec<u8> = (0..=255).collect();
        for shift in 0..=255_u8 {
            let text: Vec<u8> = all
                .iter()
                .flat_map(|byte| [*byte, byte.wrapping_mul(31) ^ shift])
                .collect();
            let coded = encoded(&text);
            assert_eq!(decoded(&coded).unwrap(), text);
        }
    }

    #[test]
    fn wrong_padding_and_the_end_are_errors() {
        // A zero bit, a whole byte too much, the code for the end, and half of a code.
        for string in [
            &[0x1e][..],
            &[0x1f, 0xff],
            &[0xff; 4],
            &[0xff, 0xff],
            &[0xff],
        ] {
            assert!(decoded(string).is_err(), "{string:?}");
        }
        assert_eq!(decoded(&[0x1f]).unwrap(), b"a");
    }
}
