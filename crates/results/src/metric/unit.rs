//! The units of metrics: how values read, and how limits are written.

use crate::format::{micros, share, thousands};

/// The unit of a metric's values, as in result files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Requests per second.
    PerSecond,
    /// Nanoseconds.
    Nanos,
    /// Microseconds of CPU time per request.
    CpuMicros,
    /// A share, from 0 to 1.
    Share,
    /// A number of requests.
    Count,
    /// GiB per second.
    GibPerSecond,
    /// Seconds of CPU time per GiB.
    CpuPerGib,
}

impl Unit {
    /// Returns a value as it stands in a table: times in microseconds.
    pub fn show(self, value: f64) -> String {
        match self {
            Self::PerSecond | Self::Count => thousands(value),
            Self::Nanos => micros(value / 1e3),
            Self::CpuMicros => micros(value),
            Self::Share => share(value),
            Self::GibPerSecond | Self::CpuPerGib => format!("{value:.3}"),
        }
    }

    /// Returns a value with its unit.
    pub fn show_with_unit(self, value: f64) -> String {
        let suffix = match self {
            Self::Nanos | Self::CpuMicros => " us",
            Self::GibPerSecond => " GiB/s",
            Self::CpuPerGib => " s/GiB",
            Self::PerSecond | Self::Count | Self::Share => "",
        };
        self.show(value) + suffix
    }

    /// Reads a limit: `1ms`, `0.1%`, `100k`.
    pub fn parse(self, text: &str) -> Option<f64> {
        match self {
            Self::Nanos => time(text),
            Self::CpuMicros => time(text).map(|nanoseconds| nanoseconds / 1e3),
            Self::Share => number(text.strip_suffix('%')?).map(|percent| percent / 100.0),
            _ => number(text),
        }
    }
}

/// Reads a number; `k` and `M` stand for thousands and millions.
fn number(text: &str) -> Option<f64> {
    let (digits, unit) = match text.as_bytes().last() {
        Some(b'k') => (&text[..text.len() - 1], 1e3),
        Some(b'M') => (&text[..text.len() - 1], 1e6),
        _ => (text, 1.0),
    };
    plain(digits).map(|number| number * unit)
}

/// Reads a time with its unit, in nanoseconds.
fn time(text: &str) -> Option<f64> {
    [("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)]
        .into_iter()
        // No thousands or millions of a unit: `5Ms` is a slip for 5ms.
        .find_map(|(unit, nanoseconds)| Some(plain(text.strip_suffix(unit)?)? * nanoseconds))
}

fn plain(digits: &str) -> Option<f64> {
    digits
        .parse::<f64>()
        .ok()
        .filter(|number| number.is_finite() && *number >= 0.0)
}
