//! Ranges of values: `64`, `1,8,64`, `1..4096`, `1..4096x4`, `10k..25k+1k`.

use std::str::FromStr;

/// The most values a range may have: a slip of the finger is not a sweep of years.
const MOST_VALUES: usize = 1000;

/// One value or more, each at least 1, in the order they were given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Range(Vec<u64>);

impl Range {
    /// The values.
    pub fn values(&self) -> &[u64] {
        &self.0
    }
}

impl FromStr for Range {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut values = Vec::new();
        for item in text.split(',') {
            match item.split_once("..") {
                None => values.push(number(item)?),
                Some((first, rest)) => span(number(first)?, rest, &mut values)?,
            }
            if values.len() > MOST_VALUES {
                return Err(format!("more than {MOST_VALUES} values"));
            }
        }
        Ok(Self(values))
    }
}

/// The values from `first` to what `rest` says: `LAST`, `LASTxFACTOR` or `LAST+STEP`. The last one is always among
/// them.
fn span(first: u64, rest: &str, values: &mut Vec<u64>) -> Result<(), String> {
    let (last, factor, step) = if let Some((last, factor)) = rest.split_once('x') {
        (number(last)?, number(factor)?, 0)
    } else if let Some((last, step)) = rest.split_once('+') {
        (number(last)?, 1, number(step)?)
    } else {
        (number(rest)?, 2, 0)
    };
    if last < first {
        return Err(format!("{first}..{rest} ends before it begins; write the smaller number first"));
    }
    if factor == 1 && step == 0 {
        return Err("a factor of 1 never gets there".to_owned());
    }
    let mut value = first;
    while value < last && values.len() <= MOST_VALUES {
        values.push(value);
        value = value.saturating_mul(factor).saturating_add(step);
    }
    values.push(last);
    Ok(())
}

/// A whole number from 1 on; `k`, `M` and `G` stand for thousands, millions and (American) billions.
fn number(text: &str) -> Result<u64, String> {
    let (digits, unit) = match text.char_indices().last() {
        Some((at, 'k')) => (&text[..at], 1_000),
        Some((at, 'M')) => (&text[..at], 1_000_000),
        Some((at, 'G')) => (&text[..at], 1_000_000_000),
        _ => (text, 1),
    };
    let number: u64 = digits.parse().map_err(|_| {
        format!("'{text}' is no number; a range looks like 64, 1,8,64, 1..4096, 1..4096x4 or 10k..25k+1k")
    })?;
    match number.checked_mul(unit) {
        Some(0) => Err("0 is too few; values begin at 1".to_owned()),
        Some(number) => Ok(number),
        None => Err(format!("'{text}' is too large")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(text: &str) -> Vec<u64> {
        text.parse::<Range>().unwrap().0
    }

    fn error(text: &str) -> String {
        text.parse::<Range>().unwrap_err()
    }

    #[test]
    fn the_documented_forms() {
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
    fn what_is_no_range_says_so() {
        assert!(error("0").contains("begin at 1"));
        assert!(error("10..1").contains("ends before it begins"));
        assert!(error("").contains("is no number"));
        assert!(error("1..4x1").contains("never gets there"));
        assert!(error("1..1000000+1").contains("more than"));
        assert!(error("99999999999999999999").contains("is no number"));
        assert!(error("-3").contains("is no number"));
    }
}
