//! Numbers, sizes and times as flags take them: `10k`, `2M`; `64KiB`, `1MB`; `500ms`.

use std::{
    ops::{Bound, RangeBounds},
    time::Duration,
};

/// The longest time, of a hundred years: sums of such times are far from the end of any clock.
pub const LONGEST: Duration = Duration::from_hours(100 * 365 * 24);

/// Units of numbers.
const NUMBERS: [(&str, u64); 3] = [("k", 1_000), ("M", 1_000_000), ("G", 1_000_000_000)];

/// Units of sizes. A unit that is the end of another one comes after it.
const SIZES: [(&str, u64); 9] = [
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
    ("kB", 1_000),
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("B", 1),
];

/// Reads a whole number; `k`, `M` and `G` stand for thousands, millions and billions.
///
/// # Errors
/// A sentence about the text.
pub fn number(text: &str) -> Result<u64, String> {
    with_unit(text, &NUMBERS, "a whole number, such as 500, 10k, 2M or 1G")
}

/// Reads a number of bytes, with a unit such as `KiB` or `MB`, or without.
///
/// # Errors
/// A sentence about the text.
pub fn bytes(text: &str) -> Result<u64, String> {
    let what = "a number of bytes, such as 65536, 256KiB or 1MB";
    with_unit(text, &SIZES, what)
}

/// Reads a time with its unit, such as `500ms`.
///
/// # Errors
/// A sentence about the text.
pub fn time(text: &str) -> Result<Duration, String> {
    match humantime::parse_duration(text) {
        Ok(time) if time <= LONGEST => Ok(time),
        Ok(_) | Err(humantime::DurationError::NumberOverflow) => {
            Err("the longest time is 36500d".to_owned())
        }
        Err(_) => Err("a time has a unit, such as 500ms, 2s or 1m".to_owned()),
    }
}

/// Returns a reader of numbers within `range`.
pub fn number_in<T: TryFrom<u64>>(
    range: impl RangeBounds<u64> + Clone + Send + Sync + 'static,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static {
    move |text| within(number(text)?, text, &range)
}

/// Returns a reader of numbers of bytes within `range`.
pub fn bytes_in<T: TryFrom<u64>>(
    range: impl RangeBounds<u64> + Clone + Send + Sync + 'static,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static {
    move |text| within(bytes(text)?, text, &range)
}

fn within<T: TryFrom<u64>>(
    number: u64,
    text: &str,
    range: &impl RangeBounds<u64>,
) -> Result<T, String> {
    if range.contains(&number) {
        return T::try_from(number).map_err(|_| format!("'{text}' is too large"));
    }
    Err(match (range.start_bound(), range.end_bound()) {
        (Bound::Included(least), _) if number < *least => {
            format!("'{text}' is too small; the minimum is {least}")
        }
        (_, Bound::Included(most)) => format!("'{text}' is too large; the maximum is {most}"),
        _ => format!("'{text}' is out of range"),
    })
}

fn with_unit(text: &str, units: &[(&str, u64)], what: &str) -> Result<u64, String> {
    let mut units = units.iter();
    let unit = units.find_map(|(name, unit)| Some((text.strip_suffix(name)?, *unit)));
    let (digits, unit) = unit.unwrap_or((text, 1));
    let number: u64 = digits
        .parse()
        .map_err(|_| format!("'{text}' is not {what}"))?;
    number
        .checked_mul(unit)
        .ok_or_else(|| format!("'{text}' is too large"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units_and_a_limit() {
        assert_eq!(time("1m 30s"), Ok(Duration::from_secs(90)));
        assert_eq!(time("36500d"), Ok(LONGEST));
        for (text, error) in [
            ("5", "such as 500ms"),
            ("36500d 1ns", "is 36500d"),
            ("99999999999999999y", "is 36500d"),
        ] {
            assert!(time(text).unwrap_err().contains(error), "{text}");
        }
    }

    #[test]
    fn numbers_have_units_and_limits() {
        assert_eq!(number("10k"), Ok(10_000));
        assert_eq!(bytes("64KiB"), Ok(65_536));
        assert_eq!(bytes("1MB"), Ok(1_000_000));
        assert_eq!(bytes("0"), Ok(0));
        assert!(bytes("1K").unwrap_err().contains("such as 65536, 256KiB"));
        assert!(number("99999999999G").unwrap_err().contains("too large"));
        let limited = bytes_in::<u32>(1..=4096);
        assert_eq!(limited("4KiB"), Ok(4096));
        assert_eq!(
            limited("1MiB"),
            Err("'1MiB' is too large; the maximum is 4096".to_owned())
        );
        assert_eq!(
            limited("0"),
            Err("'0' is too small; the minimum is 1".to_owned())
        );
        assert!(
            number_in::<u16>(..)("70k")
                .unwrap_err()
                .contains("too large")
        );
    }
}
