//! Numbers with their units, as a page shows them.

use netping_results::{
    format::{micros, thousands},
    metric,
};

/// The unit of a number on a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// That of a metric.
    Of(metric::Unit),
    /// Microseconds.
    Micros,
    /// Things, by their name.
    Count(&'static str),
    /// A quantile, in per cent.
    Quantile,
}

impl Unit {
    /// Requests per second.
    pub const RATE: Self = Self::Of(metric::Unit::PerSecond);
    /// Nanoseconds.
    pub const NANOS: Self = Self::Of(metric::Unit::Nanos);

    /// Returns the number with its unit, to three digits or more.
    pub fn shown(self, number: f64) -> String {
        match self {
            Self::Count(things) => counted(number, things),
            Self::Quantile => format!("p{number}"),
            Self::Micros | Self::Of(metric::Unit::CpuMicros) => duration(number * 1e3, micros),
            Self::Of(unit) => match unit {
                metric::Unit::PerSecond => format!("{} req/s", thousands(number)),
                metric::Unit::Nanos => duration(number, micros),
                metric::Unit::GibPerSecond => format!("{} GiB/s", micros(number)),
                _ => unit.show_with_unit(number),
            },
        }
    }

    /// Returns the number at a tick of an axis, as short as possible.
    pub fn tick(self, number: f64) -> String {
        match self {
            Self::Quantile => format!("{number}%"),
            Self::Micros | Self::Of(metric::Unit::CpuMicros) => duration(number * 1e3, trimmed),
            Self::Of(metric::Unit::Nanos) => duration(number, trimmed),
            Self::Of(metric::Unit::GibPerSecond | metric::Unit::CpuPerGib) => trimmed(number),
            Self::Count(_) | Self::Of(_) => short(number),
        }
    }
}

/// Returns nanoseconds in the unit that suits them, with the number written by `text`.
fn duration(nanoseconds: f64, text: fn(f64) -> String) -> String {
    match nanoseconds.abs() {
        0.0 => "0".to_owned(),
        ..999.5 => format!("{} ns", trimmed(nanoseconds)),
        ..999_500.0 => format!("{} µs", text(nanoseconds / 1e3)),
        ..999_500_000.0 => format!("{} ms", text(nanoseconds / 1e6)),
        _ => format!("{} s", text(nanoseconds / 1e9)),
    }
}

/// Returns `64 callers` or `1 caller`.
pub(super) fn counted(number: f64, things: &str) -> String {
    let number = thousands(number);
    let thing = if number == "1" {
        things.strip_suffix('s').unwrap_or(things)
    } else {
        things
    };
    format!("{number} {thing}")
}

/// Returns `1.2M`, `250k`, `1,024` or `64`.
fn short(number: f64) -> String {
    match number.abs() {
        ..1e3 => trimmed(number),
        ..1e4 => thousands(number),
        ..1e6 => format!("{}k", trimmed(number / 1e3)),
        _ => format!("{}M", trimmed(number / 1e6)),
    }
}

/// Returns at most three decimals, without trailing zeros.
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
            .map(|time| Unit::NANOS.shown(time));
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
        assert_eq!(Unit::RATE.shown(1_236_012.4), "1,236,012 req/s");
        assert_eq!(
            [64.0, 1500.0, 1.2e6, 0.25].map(|tick| Unit::RATE.tick(tick)),
            ["64", "1,500", "1.2M", "0.25"]
        );
        assert_eq!(Unit::NANOS.tick(2_500_000.0), "2.5 ms");
        assert_eq!(
            [4096.0, 1.0].map(|count| Unit::Count("callers").shown(count)),
            ["4,096 callers", "1 caller"]
        );
    }
}
