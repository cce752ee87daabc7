//! Histograms as result files have them, read with care: a file may come from anywhere.
//!
//! The format's own reader takes the bounds, and the memory that they need, from the text, and believes its counts. Here
//! the text must have the bounds of this program's histograms, and what it inflates to is bounded before it is read.

use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};
use std::io::Read;

use base64::{Engine, prelude::BASE64_STANDARD};
use flate2::read::ZlibDecoder;
use hdrhistogram::serialization::Deserializer;

use netping_measure::histogram::{DIGITS, Histogram, LONGEST, histogram};

/// The most samples in a histogram: f64 has every number up to it exactly, and sums over many files stay in u64.
pub const MOST: u64 = 1 << 53;

/// The first bytes of a histogram in the V2 format, deflated.
const DEFLATED: u32 = 0x1c84_9314;

/// The first bytes of one that is not.
const PLAIN: u32 = 0x1c84_9313;

/// Bytes before the counts.
const HEADER: usize = 40;

/// The most bytes of one count.
const COUNT: usize = 9;

/// A histogram in HdrHistogram's V2 format, deflated, as base64: merging such histograms is exact.
pub fn encode(histogram: &Histogram) -> String {
    let mut bytes = Vec::new();
    // Writing to memory cannot fail, and the counts fit the format.
    if V2DeflateSerializer::new()
        .serialize(histogram, &mut bytes)
        .is_err()
    {
        bytes.clear();
    }
    BASE64_STANDARD.encode(bytes)
}

/// Reads a histogram of times.
///
/// # Errors
/// A sentence that says what is wrong with the text.
pub fn decode(text: &str) -> Result<Histogram, String> {
    let bytes = BASE64_STANDARD
        .decode(text)
        .map_err(|error| format!("not base64: {error}"))?;
    let slots = histogram().distinct_values();
    let plain = inflate(&bytes, HEADER + COUNT * slots)?;
    check(&plain, slots as u64)?;
    Deserializer::new()
        .deserialize(&mut plain.as_slice())
        .map_err(|error| format!("no HdrHistogram: {error}"))
}

/// What `bytes` inflate to: `most` bytes at the most.
fn inflate(bytes: &[u8], most: usize) -> Result<Vec<u8>, String> {
    let deflated = bytes
        .strip_prefix(&DEFLATED.to_be_bytes())
        .and_then(<[u8]>::split_first_chunk::<4>)
        .and_then(|(length, rest)| {
            (u32::from_be_bytes(*length) as usize == rest.len()).then_some(rest)
        })
        .ok_or("no HdrHistogram of the V2 format, deflated")?;
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

/// Whether the bounds are those of [`histogram`], and the counts go into its `slots` and can be added up.
fn check(plain: &[u8], slots: u64) -> Result<(), String> {
    let (header, mut counts) = plain
        .split_at_checked(HEADER)
        .ok_or("its header is cut off")?;
    let expected = [
        &PLAIN.to_be_bytes()[..],
        &(counts.len() as u32).to_be_bytes(),
        &0_u32.to_be_bytes(),
        &u32::from(DIGITS).to_be_bytes(),
        &1_u64.to_be_bytes(),
        &LONGEST.to_be_bytes(),
        &1_f64.to_be_bytes(),
    ]
    .concat();
    if header != expected {
        return Err("its header is not that of 1 ns to 60 s with 3 digits".to_owned());
    }
    let (mut slot, mut total) = (0_u64, 0_u64);
    while !counts.is_empty() {
        let number = take_number(&mut counts).ok_or("its counts are cut off")?;
        // Zigzag: even numbers are counts, odd ones are runs of empty slots.
        let (gone, count) = if number.is_multiple_of(2) {
            (1, number / 2)
        } else {
            (number / 2 + 1, 0)
        };
        slot = slot.saturating_add(gone);
        total = total.saturating_add(count);
    }
    if slot > slots || total > MOST {
        return Err("its counts are beyond what a histogram holds".to_owned());
    }
    Ok(())
}

/// The next number: seven bits in each byte, the lowest first, and eight in the ninth (LEB128-64b9B).
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
    use crate::file::histogram::encode;
    use netping_measure::histogram::record;

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
            (plain(9, 3, LONGEST, &[0xff; 9]), "beyond"),
            (
                plain(
                    9,
                    3,
                    LONGEST,
                    &[0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
                ),
                "beyond",
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

    proptest! {
        #[test]
        fn bytes_that_change_on_the_way_are_an_error_or_a_histogram(
            values in prop::collection::vec(1_u64..60_000_000_000, 0..50),
            at in any::<prop::sample::Index>(),
            flip in 1_u8..=255,
        ) {
            let mut whole = histogram();
            for value in values {
                record(&mut whole, value);
            }
            let mut bytes = BASE64_STANDARD.decode(encode(&whole)).unwrap();
            let at = at.index(bytes.len());
            bytes[at] ^= flip;
            if let Ok(read) = decode(&BASE64_STANDARD.encode(bytes)) {
                prop_assert!(read.len() <= MOST);
            }
        }
    }
}
