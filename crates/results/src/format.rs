//! Numbers as people read them.

/// A count or rate with thousands apart: `1,236,012`.
pub fn thousands(number: f64) -> String {
    let digits = format!("{:.0}", number.abs());
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if number < 0.0 && digits != "0" {
        format!("-{text}")
    } else {
        text
    }
}

/// A rate: to three digits or more, and `0` for none.
pub fn rate(number: f64) -> String {
    if number == 0.0 {
        thousands(number)
    } else {
        figures(number)
    }
}

/// A number of things, in the plural where it is not one: `1 caller`, `16 callers`.
pub fn plural(number: u64, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

/// A number of units, to three digits or more from 1 on: `0.059`, `7.52`, `18.3`, `1,234`.
pub fn figures(number: f64) -> String {
    match number.abs() {
        0.0 => "0.00".to_owned(),
        ..0.0995 => format!("{number:.3}"),
        ..9.995 => format!("{number:.2}"),
        ..99.95 => format!("{number:.1}"),
        _ => thousands(number),
    }
}

/// A share, from 0 to 1, in per cent. One that is more than nothing does not look like it.
pub fn share(share: f64) -> String {
    if share > 0.0 && share < 1e-5 {
        "<0.001%".to_owned()
    } else {
        format!("{:.3}%", share * 100.0)
    }
}

/// A share, from 0 to 1, in per cent to a tenth: `61.0%`.
pub fn percent(share: f64) -> String {
    format!("{:.1}%", share * 100.0)
}

/// The half-width of an interval, or a detectable change, in per cent to a tenth; beyond a tenfold, that it is that
/// wide: `3.1%`, `>1000%`.
pub fn width(share: f64) -> String {
    if share < 10.0 {
        percent(share)
    } else {
        ">1000%".to_owned()
    }
}

/// CPUs by their numbers, in ascending order: `CPU 2`, `CPUs 0-3,8`.
pub fn cpus(cpus: &[usize]) -> String {
    let runs = cpus.chunk_by(|a, b| a + 1 == *b);
    let run = |run: &[usize]| match run {
        [first, .., last] => format!("{first}-{last}"),
        [one] => one.to_string(),
        [] => String::new(),
    };
    let list = runs.map(run).collect::<Vec<_>>().join(",");
    format!("CPU{} {list}", if cpus.len() == 1 { "" } else { "s" })
}

/// A difference in microseconds, with its sign: `+7.52`.
pub fn signed(microseconds: f64) -> String {
    format!(
        "{}{}",
        if microseconds < 0.0 { "" } else { "+" },
        figures(microseconds)
    )
}

/// Nanoseconds as microseconds, `-` where there is no number to show.
pub fn nanos_as_micros(nanoseconds: Option<u64>) -> String {
    optional(nanoseconds.map(|time| time as f64 / 1e3))
}

/// A number of units, `-` where there is none to show.
pub fn optional(number: Option<f64>) -> String {
    number.map_or_else(|| "-".to_owned(), figures)
}

/// The time of day in UTC of a moment, given in nanoseconds since 1970: `14:05:10`.
pub fn time_of_day(nanoseconds: u64) -> String {
    let seconds = nanoseconds / 1_000_000_000 % (24 * 60 * 60);
    let (minutes, seconds) = (seconds / 60, seconds % 60);
    format!("{:02}:{:02}:{seconds:02}", minutes / 60, minutes % 60)
}

/// A number of bytes in the largest unit of which it is a whole multiple, as flags take it:
/// `256KiB`, `1GiB`, `65535B`.
pub fn bytes(bytes: u64) -> String {
    let units: [(u64, &str); 4] = [
        (1 << 40, "TiB"),
        (1 << 30, "GiB"),
        (1 << 20, "MiB"),
        (1 << 10, "KiB"),
    ];
    let unit = units
        .into_iter()
        .find(|(unit, _)| bytes >= *unit && bytes.is_multiple_of(*unit));
    let (unit, name) = unit.unwrap_or((1, "B"));
    format!("{}{name}", bytes / unit)
}

/// Stands for a character that is not shown.
const REPLACED: &str = "\u{fffd}";

/// Returns true for a character with which text of somebody else's could hide what is around it, or pass for
/// more than one line: control characters, line separators, and those that are invisible or change the
/// direction of what follows.
pub fn is_unsafe(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{ad}'
                | '\u{61c}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
        )
}

/// Text of somebody else's, on one line of a terminal: what [`is_unsafe`] is replaced.
pub fn on_one_line(text: &str) -> String {
    text.replace(is_unsafe, REPLACED)
}

/// Text of somebody else's on a terminal, of one line or more: what [`is_unsafe`] is replaced, but for
/// newlines.
pub fn on_lines(text: &str) -> String {
    text.replace(
        |character| is_unsafe(character) && character != '\n',
        REPLACED,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_width_beyond_a_tenfold_has_no_digits() {
        let shown = [0.031, 9.999, 10.0, 3767.4].map(width);
        assert_eq!(shown, ["3.1%", "999.9%", ">1000%", ">1000%"]);
    }

    #[test]
    fn a_small_share_is_not_none() {
        let shown = [0.0, 4e-6, 1e-5, 0.25, 1.0].map(share);
        assert_eq!(
            shown,
            ["0.000%", "<0.001%", "0.001%", "25.000%", "100.000%"]
        );
    }

    #[test]
    fn lists_of_cpus_are_written_as_the_kernel_does() {
        assert_eq!(cpus(&[0, 1, 2, 8]), "CPUs 0-2,8");
        assert_eq!(cpus(&[3]), "CPU 3");
    }

    #[test]
    fn numbers_are_readable() {
        assert_eq!(thousands(0.4), "0");
        assert_eq!(thousands(999.0), "999");
        assert_eq!(thousands(1_236_012.0), "1,236,012");
        assert_eq!(thousands(-1234.0), "-1,234");
        assert_eq!(figures(7.516), "7.52");
        assert_eq!(figures(9.996), "10.0");
        assert_eq!(figures(99.96), "100");
        assert_eq!(
            (signed(7.516), signed(-7.516)),
            ("+7.52".to_owned(), "-7.52".to_owned())
        );
        assert_eq!(nanos_as_micros(None), "-");
        // 2001-09-09T01:46:40Z.
        assert_eq!(time_of_day(1_000_000_000_999_999_999), "01:46:40");
        assert_eq!(time_of_day(86_399 * 1_000_000_000), "23:59:59");
        assert_eq!([0, 1, 1000, 1024].map(bytes), ["0B", "1B", "1000B", "1KiB"]);
        assert_eq!(
            [65_535, 1 << 18, 3 << 20, 1 << 30].map(bytes),
            ["65535B", "256KiB", "3MiB", "1GiB"]
        );
    }

    #[test]
    fn control_characters_do_not_reach_a_terminal() {
        let text = "a\u{1b}[2J\u{9b}1m\tb\r\nc\u{7f}\u{e4}";
        assert_eq!(
            on_one_line(text),
            "a\u{fffd}[2J\u{fffd}1m\u{fffd}b\u{fffd}\u{fffd}c\u{fffd}\u{e4}"
        );
        assert_eq!(
            on_lines(text),
            "a\u{fffd}[2J\u{fffd}1m\u{fffd}b\u{fffd}\nc\u{fffd}\u{e4}"
        );
        // A line separator, and text that would run from right to left.
        assert_eq!(on_lines("a\u{2028}b\u{202e}c"), "a\u{fffd}b\u{fffd}c");
    }
}
