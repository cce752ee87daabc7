//! Numbers with their units, as a page shows them.

use netping_results::{
    format::{self, micros, signed, thousands},
    metric::{self, Metric},
};

use crate::finding::percent;

/// The unit of a number on a page.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum PageUnit {
    /// That of a metric.
    Of(metric::Unit),
    /// A change of a metric, as a share.
    Change(&'static Metric),
    /// Nanoseconds that something adds.
    Added,
    /// Nanoseconds since a start.
    Elapsed,
    /// Things, by their name.
    Count(&'static str),
    /// A quantile, in per cent.
    Quantile,
    /// A share of the CPU time.
    CpuShare,
}

impl PageUnit {
    /// Requests per second.
    pub const RATE: Self = Self::Of(metric::Unit::PerSecond);
    /// Nanoseconds.
    pub const NANOS: Self = Self::Of(metric::Unit::Nanos);

    /// Returns the least number that there can be; an interval that goes below it is no reason for an
    /// axis that does.
    pub fn least(self) -> f64 {
        match self {
            Self::Change(_) => -1.0,
            Self::Added => f64::NEG_INFINITY,
            _ => 0.0,
        }
    }

    /// Returns the number with its unit; that of a metric reads as everywhere else.
    pub fn shown(self, number: f64) -> String {
        match self {
            Self::Count(things) => counted(number, things),
            Self::Of(metric::Unit::PerSecond) => self.plain(number) + " req/s",
            Self::Of(unit) => unit.show_with_unit(number).replace(" us", " µs"),
            Self::Added => self.plain(number) + " µs",
            Self::Change(_) | Self::Elapsed | Self::Quantile | Self::CpuShare => self.plain(number),
        }
    }

    /// Returns the number without its unit.
    pub fn plain(self, number: f64) -> String {
        match self {
            Self::Of(unit) => unit.show(number),
            Self::Change(metric) => percent(metric, number),
            Self::Added => signed(number / 1e3),
            Self::Elapsed => duration(number, micros),
            Self::Count(_) => thousands(number),
            Self::Quantile => format!("p{number}"),
            Self::CpuShare => format::percent(number),
        }
    }

    /// Returns the number at a tick of an axis, as short as possible.
    pub fn tick(self, number: f64) -> String {
        match self {
            Self::Quantile => format!("{number}%"),
            Self::Change(_) | Self::CpuShare if number == 0.0 => "0".to_owned(),
            Self::Change(_) | Self::CpuShare => format!("{}%", trimmed(number * 100.0)),
            Self::Of(metric::Unit::CpuMicros) => duration(number * 1e3, trimmed),
            Self::Of(metric::Unit::Nanos) | Self::Added | Self::Elapsed => {
                duration(number, trimmed)
            }
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
        let elapsed = [0.0, 750.0, 7516.0, 664_063.0, 21_069_823.0, 5e9]
            .map(|time| PageUnit::Elapsed.shown(time));
        assert_eq!(
            elapsed,
            ["0", "750 ns", "7.52 µs", "664 µs", "21.1 ms", "5.00 s"]
        );
        // A value of a metric is the same number as in a table.
        let nanos = [7516.0, 21_069_823.0].map(|time| PageUnit::NANOS.shown(time));
        assert_eq!(nanos, ["7.52 µs", "21,070 µs"]);
        assert_eq!(
            (
                PageUnit::Added.shown(-7516.0),
                PageUnit::Change(&metric::RATE).shown(0.188)
            ),
            ("-7.52 µs".to_owned(), "+18.8%".to_owned())
        );
        assert_eq!(PageUnit::RATE.shown(1_236_012.4), "1,236,012 req/s");
        assert_eq!(
            [64.0, 1500.0, 1.2e6, 0.25].map(|tick| PageUnit::RATE.tick(tick)),
            ["64", "1,500", "1.2M", "0.25"]
        );
        assert_eq!(PageUnit::NANOS.tick(2_500_000.0), "2.5 ms");
        assert_eq!(
            [4096.0, 1.0].map(|count| PageUnit::Count("callers").shown(count)),
            ["4,096 callers", "1 caller"]
        );
    }
}
