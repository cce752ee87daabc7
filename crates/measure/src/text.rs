//! Histograms as text: HdrHistogram's V2 format, deflated, as base64.
//!
//! A file may come from anywhere. The text must have the bounds of this program's histograms, and
//! the size of its content is limited before it is inflated.

use std::io::Read;

use base64::{Engine, prelude::BASE64_STANDARD};
use flate2::read::ZlibDecoder;
use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};

use crate::{
    counts::Counts,
    histogram::{DIGITS, LONGEST},
};

/// Maximum number of samples in a histogram that is read: f64 represents every integer up to it exactly, and
/// sums over many files fit u64.
pub const MOST: u64 = 1 << 53;

/// First bytes of a deflated histogram in the V2 format.
const DEFLATED: u32 = 0x1c84_9314;

/// First bytes of its content.
const PLAIN: u32 = 0x1c84_9313;

/// Bytes before the counts.
const HEADER: usize = 40;

/// Maximum length of one encoded count, in bytes.
const COUNT: usize = 9;

/// Slots of the same width that three significant digits take, as a power of two.
const SUB_BITS: u32 = 11;

/// Slots of a histogram.
const SLOTS: u64 = ((LONGEST.ilog2() + 3 - SUB_BITS) as u64) << (SUB_BITS - 1);

impl From<Counts> for String {
    /// Returns a histogram's text form, from which any HdrHistogram library restores it exactly.
    fn from(counts: Counts) -> Self {
        let mut bytes = Vec::new();
        // Writing to memory cannot fail; without content, the text is rejected when it is read.
        let _ = V2DeflateSerializer::new().serialize(&counts.to_histogram(), &mut bytes);
        BASE64_STANDARD.encode(bytes)
    }
}

impl TryFrom<String> for Counts {
    type Error = String;

    /// Reads a histogram of times.
    ///
    /// # Errors
    /// A description of what is wrong with the text.
    fn try_from(text: String) -> Result<Self, String> {
        decode(&text).map_err(|what| format!("invalid histogram: {what}"))
    }
}

fn decode(text: &str) -> Result<Counts, String> {
    let bytes = BASE64_STANDARD
        .decode(text)
        .map_err(|error| format!("not base64: {error}"))?;
    let plain = inflate(&bytes, HEADER + COUNT * SLOTS as usize)?;
    let (found, mut payload) = plain
        .split_at_checked(HEADER)
        .ok_or("the header is cut off")?;
    if found != header(payload.len()) {
        return Err("the header is not that of 1 ns to 60 s with 3 digits".to_owned());
    }
    let mut counts = Vec::new();
    let (mut slot, mut total) = (0_u64, 0_u64);
    while !payload.is_empty() {
        let number = take_number(&mut payload).ok_or("the counts are cut off")?;
        // Zigzag: even numbers are counts, odd ones are runs of empty slots.
        if number.is_multiple_of(2) {
            if number > 0 {
                counts.push((highest(slot), number / 2));
            }
            total = total.saturating_add(number / 2);
            slot += 1;
        } else {
            slot = slot.saturating_add(number / 2 + 1);
        }
        if slot > SLOTS || total > MOST {
            return Err("the counts exceed the limits of a histogram".to_owned());
        }
    }
    Ok(counts.into())
}

/// Inflates `bytes` to at most `most` bytes.
fn inflate(bytes: &[u8], most: usize) -> Result<Vec<u8>, String> {
    let deflated = bytes
        .strip_prefix(&DEFLATED.to_be_bytes())
        .and_then(<[u8]>::split_first_chunk::<4>)
        .and_then(|(length, rest)| {
            (u32::from_be_bytes(*length) as usize == rest.len()).then_some(rest)
        })
        .ok_or("not an HdrHistogram in the deflated V2 format")?;
    let mut plain = Vec::new();
    let read = ZlibDecoder::new(deflated)
        .take(most as u64 + 1)
        .read_to_end(&mut plain);
    read.map_err(|error| format!("it cannot be inflated: {error}"))?;
    if plain.len() > most {
        Err("it inflates to more than any histogram needs".to_owned())
    } else {
        Ok(plain)
    }
}

/// Returns the header before `length` bytes of counts.
fn header(length: usize) -> Vec<u8> {
    [
        &PLAIN.to_be_bytes()[..],
        &(length as u32).to_be_bytes(),
        &0_u32.to_be_bytes(),
        &u32::from(DIGITS).to_be_bytes(),
        &1_u64.to_be_bytes(),
        &LONGEST.to_be_bytes(),
        &1_f64.to_be_bytes(),
    ]
    .concat()
}

/// Returns the highest value of a slot: slots are 1 wide up to 2^11, then twice as wide for each power
/// of two, of which each has 2^10.
const fn highest(slot: u64) -> u64 {
    let width = (slot >> (SUB_BITS - 1)).saturating_sub(1);
    ((slot - (width << (SUB_BITS - 1)) + 1) << width) - 1
}

/// Takes the next number from the front: seven bits in each byte, the lowest first, and eight in the
/// ninth (LEB128-64b9B).
fn take_number(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for place in 0..COUNT {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        let last = place + 1 == COUNT;
        let bits = if last { byte } else { byte & 0x7f };
        number |= u64::from(bits) << (7 * place);
        if last || byte < 0x80 {
            break;
        }
    }
    Some(number)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::{Compression, write::ZlibEncoder};
    use proptest::prelude::*;

    use super::*;

    /// A histogram's text with this inside.
    fn text(plain: &[u8]) -> String {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(plain).unwrap();
        let deflated = encoder.finish().unwrap();
        BASE64_STANDARD.encode(
            [
                &DEFLATED.to_be_bytes()[..],
                &(deflated.len() as u32).to_be_bytes(),
                deflated.as_slice(),
            ]
            .concat(),
        )
    }

    fn plain(length: u32, digits: u32, high: u64, counts: &[u8]) -> Vec<u8> {
        [
            &PLAIN.to_be_bytes()[..],
            &length.to_be_bytes(),
            &0_u32.to_be_bytes(),
            &digits.to_be_bytes(),
            &1_u64.to_be_bytes(),
            &high.to_be_bytes(),
            &1_f64.to_be_bytes(),
            counts,
        ]
        .concat()
    }

    #[test]
    fn hostile_histograms_are_errors() {
        assert_eq!(decode(&text(&plain(1, 3, LONGEST, &[2]))).unwrap().len(), 1);
        let cases = [
            (plain(u32::MAX, 3, LONGEST, &[2]), "1 ns to 60 s"),
            (plain(1, 5, u64::MAX, &[2]), "1 ns to 60 s"),
            (plain(9, 3, LONGEST, &[0xff; 9]), "exceed"),
            (
                plain(
                    9,
                    3,
                    LONGEST,
                    &[0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
                ),
                "exceed",
            ),
            (plain(1, 3, LONGEST, &[0x80]), "cut off"),
            (vec![0; 7], "cut off"),
            (vec![0; 4_000_000], "inflates"),
        ];
        for (plain, expected) in cases {
            let error = decode(&text(&plain)).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
        assert!(decode("").unwrap_err().contains("V2 format"));
        assert!(decode("!").unwrap_err().contains("not base64"));
    }

    fn of(values: &[u64]) -> Counts {
        values.iter().copied().collect()
    }

    #[test]
    fn an_empty_histogram_has_a_text_of_its_own() {
        assert_eq!(
            decode(&String::from(Counts::default())).unwrap(),
            Counts::default()
        );
    }

    proptest! {
        #[test]
        fn the_text_of_the_library_is_read_back(
            values in prop::collection::vec(0_u64..70_000_000_000, 0..50),
            near in prop::collection::vec(0_u64..5_000, 0..50),
        ) {
            let counts = of(&[values, near].concat());
            prop_assert_eq!(decode(&String::from(counts.clone())).unwrap(), counts);
        }

        #[test]
        fn bytes_that_change_on_the_way_are_an_error_or_a_histogram(
            values in prop::collection::vec(1_u64..60_000_000_000, 0..50),
            at in any::<prop::sample::Index>(),
            flip in 1_u8..=255,
        ) {
            let whole = of(&values);
            let mut bytes = BASE64_STANDARD.decode(String::from(whole)).unwrap();
            let at = at.index(bytes.len());
            bytes[at] ^= flip;
            if let Ok(read) = decode(&BASE64_STANDARD.encode(bytes)) {
                prop_assert!(read.len() <= MOST);
            }
        }
    }
}
