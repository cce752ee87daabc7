//! Numbers with their units, as a page shows them.

use netping_results::format::{micros, thousands};

/// What a number counts or measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Things, by their name.
    Count(&'static str),
    /// Requests per second.
    Rate,
    /// Nanoseconds.
    Nanos,
    /// Microseconds.
    Micros,
    /// GiB per second.
    GibPerSecond,
    /// Seconds of CPU time per GiB.
    SecondsPerGib,
    /// A quantile, in per cent.
    Quantile,
}

impl Unit {
    /// The number with its unit, to three digits or more.
    pub fn shown(self, number: f64) -> String {
        match self {
            Self::Count(things) => counted(number, things),
            Self::Rate => format!("{} req/s", thousands(number)),
            Self::Nanos => duration(number, micros),
            Self::Micros => duration(number * 1e3, micros),
            Self::GibPerSecond => format!("{} GiB/s", micros(number)),
            Self::SecondsPerGib => format!("{number:.3} s/GiB"),
            Self::Quantile => format!("p{number}"),
        }
    }

    /// The number at a tick of an axis, as short as can be.
    pub fn tick(self, number: f64) -> String {
        match self {
            Self::Count(_) | Self::Rate => short(number),
            Self::Nanos => duration(number, trimmed),
            Self::Micros => duration(number * 1e3, trimmed),
            Self::GibPerSecond | Self::SecondsPerGib => trimmed(number),
            Self::Quantile => format!("{number}%"),
        }
    }
}

/// Nanoseconds in the unit that suits them, the number as `text` writes it.
fn duration(nanoseconds: f64, text: fn(f64) -> String) -> String {
    match nanoseconds.abs() {
        0.0 => "0".to_owned(),
        ..999.5 => format!("{} ns", trimmed(nanoseconds)),
        ..999_500.0 => format!("{} µs", text(nanoseconds / 1e3)),
        ..999_500_000.0 => format!("{} ms", text(nanoseconds / 1e6)),
        _ => format!("{} s", text(nanoseconds / 1e9)),
    }
}

/// `64 callers`, `1 caller`.
pub(super) fn counted(number: f64, things: &str) -> String {
    let number = thousands(number);
    let thing = if number == "1" {
        things.strip_suffix('s').unwrap_or(things)
    } else {
        things
    };
    format!("{number} {thing}")
}

/// `1.2M`, `250k`, `1,024`, `64`.
fn short(number: f64) -> String {
    match number.abs() {
        ..1e3 => trimmed(number),
        ..1e4 => thousands(number),
        ..1e6 => format!("{}k", trimmed(number / 1e3)),
        _ => format!("{}M", trimmed(number / 1e6)),
    }
}

/// At most three decimals, and none that are 0.
fn trimmed(number: f64) -> String {
    let text = format!("{number:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_carry_the_unit_that_suits_them() {
        let nanos = [0.0, 750.0, 7516.0, 664_063.0, 21_069_823.0, 5e9, -7516.0]
            .map(|time| Unit::Nanos.shown(time));
        assert_eq!(
            nanos,
            [
                "0",
                "750 ns",
                "7.52 µs",
                "664 µs",
                "21.1 ms",
                "5.00 s",
                "-7.52 µs"
            ]
        );
        assert_eq!(Unit::Micros.shown(11.11), "11.1 µs");
        assert_eq!(Unit::Rate.shown(1_236_012.4), "1,236,012 req/s");
        assert_eq!(
            [64.0, 1500.0, 1.2e6, 0.25].map(|tick| Unit::Rate.tick(tick)),
            ["64", "1,500", "1.2M", "0.25"]
        );
        assert_eq!(Unit::Nanos.tick(2_500_000.0), "2.5 ms");
        assert_eq!(
            [4096.0, 1.0].map(|count| Unit::Count("callers").shown(count)),
            ["4,096 callers", "1 caller"]
        );
    }
}
