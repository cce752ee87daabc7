//! Ranges of values: `64`, `1,8,64`, `1..4096`, `1..4096x4`, `10k..25k+1k`; and of bytes:
//! `16KiB..1MiB`.

use std::{num::NonZeroU64, ops::RangeInclusive, str::FromStr};

use netping_protocol::units;

/// Most values of a range: more are a slip of the finger.
const MOST_VALUES: usize = 1000;

/// One or more values from 1 on, in the order given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Range(Vec<u64>);

impl Range {
    /// Returns the range of one value.
    pub fn of(value: u64) -> Self {
        Self(vec![value])
    }

    /// Reads numbers of bytes, in units such as KiB or MB.
    pub fn of_bytes(text: &str) -> Result<Self, String> {
        values(text, bytes).map(Self)
    }

    /// Returns the values.
    pub fn values(&self) -> &[u64] {
        &self.0
    }
}

impl FromStr for Range {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        values(text, number).map(Self)
    }
}

/// Returns the values of a range; without one, only `None`.
pub fn optional(range: Option<&Range>) -> Vec<Option<u64>> {
    let values = |range: &Range| range.values().iter().copied().map(Some).collect();
    range.map_or_else(|| vec![None], values)
}

/// Returns a reader of ranges, as `read` reads them, whose values are within `bounds`.
pub fn within(
    read: fn(&str) -> Result<Range, String>,
    bounds: RangeInclusive<u64>,
) -> impl Fn(&str) -> Result<Range, String> + Clone {
    move |text| {
        let range = read(text)?;
        let (least, most) = bounds.clone().into_inner();
        match range.0.iter().find(|value| !bounds.contains(value)) {
            None => Ok(range),
            Some(value) => Err(format!("{value} is not from {least} to {most}")),
        }
    }
}

/// A reader of one value.
type Read = fn(&str) -> Result<u64, String>;

fn values(text: &str, read: Read) -> Result<Vec<u64>, String> {
    let mut values = Vec::new();
    for item in text.split(',') {
        match item.split_once("..") {
            None => values.push(read(item)?),
            Some((first, rest)) => span(read(first)?, rest, read, &mut values)?,
        }
        if values.len() > MOST_VALUES {
            return Err(format!("more than {MOST_VALUES} values"));
        }
    }
    Ok(values)
}

/// Adds the values from `first` to the last one in `rest`: `LAST`, `LASTxFACTOR` or `LAST+STEP`.
/// The last value is always among them.
fn span(first: u64, rest: &str, read: Read, values: &mut Vec<u64>) -> Result<(), String> {
    // A slip such as 1..x or 1..10+ is told by its text.
    let parts = |sign| {
        let parts: Option<(&str, &str)> = rest.split_once(sign);
        parts.filter(|(last, by)| !last.is_empty() && !by.is_empty())
    };
    let (last, factor, step) = if let Some((last, factor)) = parts('x') {
        (read(last)?, number(factor)?, 0)
    } else if let Some((last, step)) = parts('+') {
        (read(last)?, 1, read(step)?)
    } else {
        (read(rest)?, 2, 0)
    };
    if last < first {
        return Err(format!("the range is empty: {first} is larger than {last}"));
    }
    if factor == 1 && step == 0 {
        return Err("a factor of 1 never reaches the end".to_owned());
    }
    let mut value = first;
    while value < last && values.len() <= MOST_VALUES {
        values.push(value);
        value = value.saturating_mul(factor).saturating_add(step);
    }
    values.push(last);
    Ok(())
}

/// Reads a whole number from 1 on.
fn number(text: &str) -> Result<u64, String> {
    let wrong = |_| {
        format!(
            "'{text}' is not a number; a range looks like 64, 1,8,64, 1..4096, 1..4096x4 or 10k..25k+1k"
        )
    };
    units::number(text).map_err(wrong).and_then(positive)
}

/// Reads a whole number of bytes from 1 on, with or without a unit.
fn bytes(text: &str) -> Result<u64, String> {
    units::bytes(text).and_then(positive)
}

fn positive(value: u64) -> Result<u64, String> {
    match value {
        0 => Err("values must be at least 1".to_owned()),
        value => Ok(value),
    }
}

/// Reads the value of a flag that takes a whole number from 1 on.
pub fn count(text: &str) -> Result<NonZeroU64, String> {
    let count = units::number(text).ok().and_then(NonZeroU64::new);
    count.ok_or_else(|| format!("'{text}' is not a whole number from 1 on, such as 500, 10k or 2M"))
}

/// A whole number from 1 on; `None` for a word that means no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CountLimit(pub Option<NonZeroU64>);

/// Returns a reader of a whole number from 1 on, or of `word` for no limit.
pub fn count_or(word: &'static str) -> impl Fn(&str) -> Result<CountLimit, String> + Clone {
    move |text| match text.parse() {
        _ if text == word => Ok(CountLimit(None)),
        Ok(number) => Ok(CountLimit(Some(number))),
        Err(_) => Err(format!("neither a number from 1 on nor '{word}'")),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_text_is_a_valid_range_or_an_error(text in "[0-9kMGiBx+.,-]{0,20}") {
            for values in [text.parse().map(|range: Range| range.0), Range::of_bytes(&text).map(|range| range.0)] {
                let Ok(values) = values else { continue };
                prop_assert!(!values.is_empty() && values.len() <= MOST_VALUES);
                prop_assert!(values.iter().all(|&value| value > 0));
            }
        }

        #[test]
        fn a_span_rises_from_its_first_to_its_last_value(
            first in 1_u64..1 << 40,
            more in 0_u64..1 << 40,
            factor in 2_u64..100,
        ) {
            let last = first + more;
            let values = values(&format!("{first}..{last}x{factor}"));
            prop_assert_eq!((values[0], values[values.len() - 1]), (first, last));
            prop_assert!(values.windows(2).all(|pair| pair[0] < pair[1]));
        }

        #[test]
        fn a_list_keeps_its_values_and_their_order(list in prop::collection::vec(1..u64::MAX, 1..20)) {
            let text: Vec<String> = list.iter().map(ToString::to_string).collect();
            prop_assert_eq!(values(&text.join(",")), list);
        }
    }

    fn values(text: &str) -> Vec<u64> {
        text.parse::<Range>().unwrap().0
    }

    fn error(text: &str) -> String {
        text.parse::<Range>().unwrap_err()
    }

    #[test]
    fn documented_forms_are_read() {
        assert_eq!(values("64"), [64]);
        assert_eq!(values("1,8,64"), [1, 8, 64]);
        assert_eq!(values("1..16"), [1, 2, 4, 8, 16]);
        assert_eq!(values("1..100x10"), [1, 10, 100]);
        assert_eq!(values("10k..12k+1k"), [10_000, 11_000, 12_000]);
        assert_eq!(values("1..5"), [1, 2, 4, 5]);
        assert_eq!(values("7..7"), [7]);
        assert_eq!(values("1..2,9"), [1, 2, 9]);
    }

    #[test]
    fn bytes_have_units() {
        let values = |text: &str| Range::of_bytes(text).unwrap().0;
        assert_eq!(values("64KiB,256KiB,1MiB"), [1 << 16, 1 << 18, 1 << 20]);
        assert_eq!(values("16KiB..64KiB"), [1 << 14, 1 << 15, 1 << 16]);
        assert_eq!(values("1MiB..1GiBx32"), [1 << 20, 1 << 25, 1 << 30]);
        assert_eq!(values("1kB..3KB+1000"), [1000, 2000, 3000]);
        assert_eq!(
            values("7,7B,1MB,1GB,1TiB"),
            [7, 7, 1_000_000, 1_000_000_000, 1 << 40]
        );
        let error = |text: &str| Range::of_bytes(text).unwrap_err();
        assert!(error("0MiB").contains("must be at least 1"));
        for text in ["", "KiB", "1K", "1.5GiB", "-1MiB", "1 MiB", "16KiB..x2"] {
            assert!(
                error(text).contains("such as 65536, 256KiB"),
                "{text}: {}",
                error(text)
            );
        }
        assert!(error("99999999TiB").contains("too large"));
    }

    #[test]
    fn invalid_ranges_are_explained() {
        assert!(error("0").contains("values must be at least 1"));
        assert!(error("10..1").contains("10 is larger than 1"));
        assert!(error("").contains("is not a number"));
        assert!(error("1..4x1").contains("never reaches the end"));
        assert!(error("1..1000000+1").contains("more than"));
        assert!(error("99999999999999999999").contains("is not a number"));
        assert!(error("-3").contains("is not a number"));
    }
}
