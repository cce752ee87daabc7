//! Numbers with their units, as a page shows them.

use netping_results::{
    format::{self, figures, signed, thousands},
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
    /// A connection, by its place in an order.
    Rank,
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
            Self::Change(_) | Self::Elapsed | Self::Rank | Self::Quantile | Self::CpuShare => {
                self.plain(number)
            }
        }
    }

    /// Returns the number without its unit.
    pub fn plain(self, number: f64) -> String {
        match self {
            Self::Of(unit) => unit.show(number),
            Self::Change(metric) => percent(metric, number),
            Self::Added => signed(number / 1e3),
            Self::Elapsed => duration(number, figures),
            Self::Count(_) => thousands(number),
            Self::Rank => format!("connection {}", thousands(number)),
            Self::Quantile => format!("p{number}"),
            Self::CpuShare => format::percent(number),
        }
    }

    /// Returns the numbers at the ticks of an axis, all in one unit, as short as possible.
    pub fn ticks(self, numbers: &[f64]) -> Vec<String> {
        let sizes = numbers
            .iter()
            .map(|number| number.abs())
            .filter(|size| *size > 0.0);
        let logarithms: Vec<f64> = sizes.map(f64::ln).collect();
        let middle = (logarithms.iter().sum::<f64>() / logarithms.len().max(1) as f64).exp();
        let (factor, units): (f64, &[(f64, &str)]) = match self {
            Self::Of(metric::Unit::CpuMicros) => (1e3, &TIMES),
            Self::Of(metric::Unit::Nanos) | Self::Added | Self::Elapsed => (1.0, &TIMES),
            Self::Change(_) | Self::CpuShare | Self::Of(metric::Unit::Share) => {
                (100.0, &[(1.0, "%")])
            }
            Self::Of(metric::Unit::GibPerSecond | metric::Unit::CpuPerGib) | Self::Quantile => {
                (1.0, &[(1.0, "")])
            }
            Self::Count(_) | Self::Rank | Self::Of(_) => (1.0, &COUNTS),
        };
        let fits = |unit: &&(f64, &str)| middle * factor >= unit.0 * 0.9995;
        let (size, suffix) = *units.iter().rev().find(fits).unwrap_or(&units[0]);
        let tick = |number: &f64| match self {
            Self::Quantile => format!("p{number}"),
            _ if *number == 0.0 => "0".to_owned(),
            _ => short(number * factor / size) + suffix,
        };
        numbers.iter().map(tick).collect()
    }
}

/// Units of times, in nanoseconds.
const TIMES: [(f64, &str); 4] = [(1.0, " ns"), (1e3, " µs"), (1e6, " ms"), (1e9, " s")];

/// Units of counts and rates.
const COUNTS: [(f64, &str); 3] = [(1.0, ""), (1e3, "k"), (1e6, "M")];

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

/// Returns `1,024`, `64` or `0.25`.
fn short(number: f64) -> String {
    if number.abs() < 1e3 {
        trimmed(number)
    } else {
        thousands(number)
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
            [4096.0, 1.0].map(|count| PageUnit::Count("callers").shown(count)),
            ["4,096 callers", "1 caller"]
        );
    }

    #[test]
    fn the_numbers_of_an_axis_share_a_unit() {
        let ticks = |unit: PageUnit, numbers: &[f64]| unit.ticks(numbers).join(" | ");
        assert_eq!(
            ticks(PageUnit::NANOS, &[0.0, 2.5e5, 5e5, 7.5e5, 1e6]),
            "0 | 250 µs | 500 µs | 750 µs | 1,000 µs"
        );
        assert_eq!(
            ticks(PageUnit::Added, &[-1e7, -262.677, 0.0, 1e7]),
            "-10,000 µs | -0.263 µs | 0 | 10,000 µs"
        );
        assert_eq!(
            ticks(PageUnit::Of(metric::Unit::CpuMicros), &[0.0, 2.5, 5.0]),
            "0 | 2.5 µs | 5 µs"
        );
        assert_eq!(
            ticks(PageUnit::RATE, &[0.0, 5e5, 1e6, 1.5e6]),
            "0 | 500k | 1,000k | 1,500k"
        );
        assert_eq!(
            ticks(PageUnit::Count("callers"), &[1.0, 64.0, 4096.0]),
            "1 | 64 | 4,096"
        );
        assert_eq!(ticks(PageUnit::Quantile, &[1.0, 99.9]), "p1 | p99.9");
        assert_eq!(
            ticks(PageUnit::Change(&metric::P50), &[-0.05, 0.0, 0.025]),
            "-5% | 0 | 2.5%"
        );
    }
}
