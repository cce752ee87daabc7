//! The kinds of time of a request, and the times of a step by kind.

use enum_map::{Enum, EnumMap};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{counts::Counts, distribution::Distribution};

/// A kind of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Enum)]
pub enum Time {
    /// `end - start` of successes.
    Service,
    /// `end - intended` of successes, and at least the age of requests that timed out, were in
    /// flight at the end, or were never sent.
    Response,
    /// `start - intended` of successes.
    Lag,
    /// The part of an open loop's lag in which no caller was free.
    NoCallerFree,
    /// The part of an open loop's lag in which a caller was free, but the client was late.
    ClientLate,
    /// `end - start` of failures.
    Failed,
}

impl Time {
    /// Returns its name in result files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Service => "service_time",
            Self::Response => "response_time",
            Self::Lag => "lag",
            Self::NoCallerFree => "no_caller_free",
            Self::ClientLate => "client_late",
            Self::Failed => "failed_time",
        }
    }
}

/// Values by the names of their kinds of time.
#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct ByName<T: Default> {
    /// `end - start` of successes.
    service_time: T,
    /// `end - intended` of successes, and at least the age of requests that timed out, were in
    /// flight at the end, or were never sent.
    response_time: T,
    /// `start - intended` of successes.
    lag: T,
    /// The part of an open loop's lag in which no caller was free; absent in files of older
    /// versions.
    #[serde(default)]
    no_caller_free: T,
    /// The part of an open loop's lag in which a caller was free, but the client was late; absent in
    /// files of older versions.
    #[serde(default)]
    client_late: T,
    /// `end - start` of failures.
    failed_time: T,
}

/// Writes values by the names of their kinds of time.
pub(crate) fn serialize<T: Serialize, S: Serializer>(
    values: &EnumMap<Time, T>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(values.iter().map(|(time, value)| (time.name(), value)))
}

/// Reads values by the names of their kinds of time; other names are ignored.
pub(crate) fn deserialize<'de, T: Deserialize<'de> + Default, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<EnumMap<Time, T>, D::Error> {
    let named = ByName::deserialize(deserializer)?;
    Ok(EnumMap::from_array([
        named.service_time,
        named.response_time,
        named.lag,
        named.no_caller_free,
        named.client_late,
        named.failed_time,
    ]))
}

/// The histograms of a step's times, in nanoseconds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Histograms {
    /// The times of each kind; those in `censored` are among the response times.
    #[serde(flatten, with = "self")]
    #[cfg_attr(feature = "schema", schemars(with = "ByName<Counts>"))]
    pub times: EnumMap<Time, Counts>,
    /// Response times that are at least this: of requests that timed out, were in flight at the
    /// end, or were never sent.
    #[serde(default)]
    pub censored: Counts,
}

impl Histograms {
    /// Adds the times of `other`.
    pub fn add(&mut self, other: &Self) {
        for (time, sum) in &mut self.times {
            sum.add(&other.times[time]);
        }
        self.censored.add(&other.censored);
    }

    /// Describes the times of each kind.
    pub fn describe(&self) -> EnumMap<Time, Distribution> {
        EnumMap::from_fn(|time| match time {
            Time::Response => Distribution::censored(&self.times[time], &self.censored),
            _ => Distribution::of(&self.times[time]),
        })
    }
}
