//! The units of metrics: how values read, and how limits are written.

use crate::{
    format::{figures, rate, share, thousands},
    time_unit::{TimeUnit, time},
};

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
            Self::PerSecond => rate(value),
            Self::Count => thousands(value),
            Self::Nanos => figures(value / 1e3),
            Self::CpuMicros => figures(value),
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

    /// Returns the nanoseconds of a value that is a time; `None` of other units.
    fn nanos(self, value: f64) -> Option<f64> {
        match self {
            Self::Nanos => Some(value),
            Self::CpuMicros => Some(value * 1e3),
            _ => None,
        }
    }

    /// Returns a value with its unit as a sentence has it; a time, in the unit that fits it.
    pub fn tell(self, value: f64) -> String {
        let nanos = self.nanos(value);
        nanos.map_or_else(|| self.show_with_unit(value), time)
    }

    /// Returns the form in which these values read together, in a column or a row.
    pub fn reading(self, values: impl IntoIterator<Item = f64>) -> Reading {
        let nanos = values.into_iter().filter_map(|value| self.nanos(value));
        self.reading_in(TimeUnit::of(nanos))
    }

    /// Returns the form of values that are times in this unit.
    pub fn reading_in(self, times: TimeUnit) -> Reading {
        Reading { unit: self, times }
    }

    /// Reads a limit: `1ms`, `0.1%`, `100k`.
    pub fn parse(self, text: &str) -> Option<f64> {
        match self {
            Self::Nanos => read_time(text),
            Self::CpuMicros => read_time(text).map(|nanoseconds| nanoseconds / 1e3),
            Self::Share => number(text.strip_suffix('%')?).map(|percent| percent / 100.0),
            _ => number(text),
        }
    }
}

/// The form in which values of one unit read together: times all have the same one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reading {
    unit: Unit,
    times: TimeUnit,
}

impl Reading {
    /// Returns the unit of times; `None` for values that are none.
    pub fn times(self) -> Option<TimeUnit> {
        self.unit.nanos(0.0).map(|_| self.times)
    }

    /// Returns the form that suits a value beside others whose times have this one's unit.
    #[must_use]
    pub fn beside(self, value: Option<f64>) -> Self {
        let nanos = value.and_then(|value| self.unit.nanos(value));
        self.unit.reading_in(self.times.beside(nanos))
    }

    /// Returns false for a time that is hard to read in this form.
    pub fn is_readable(self, value: f64) -> bool {
        let nanos = self.unit.nanos(value);
        nanos.is_none_or(|time| self.times.is_readable(time))
    }

    /// Returns a value without its unit.
    pub fn show(self, value: f64) -> String {
        let nanos = self.unit.nanos(value);
        nanos.map_or_else(|| self.unit.show(value), |time| self.times.show(time))
    }

    /// Returns a value without its unit, or `-` without one.
    pub fn cell(self, value: Option<f64>) -> String {
        value.map_or_else(|| "-".to_owned(), |value| self.show(value))
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
fn read_time(text: &str) -> Option<f64> {
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
