//! The counts of a step: requests by their outcome, and connections.

use std::{collections::BTreeMap, ops::AddAssign};

use serde::{Deserialize, Serialize};

use crate::error_kind::ErrorKind;

/// The counts of a step. Every request that counts is in one of the first four.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Accounting {
    /// Verified replies.
    pub ok: u64,
    /// Failures by kind.
    pub errors: BTreeMap<ErrorKind, u64>,
    /// Requests without a reply when the drain was over.
    pub in_flight: u64,
    /// Requests that were due but never handed to the transport.
    pub not_sent: u64,
    /// Successes due outside the window.
    pub outside_ok: u64,
    /// Failures due outside the window.
    pub outside_errors: u64,
    /// Of the verified replies, those that came after the window's end, in the drain.
    pub late: u64,
    /// Verified replies within the window to requests that had been due before it, in the warm-up.
    /// They are of `outside_ok`, and enter nothing but the rate.
    #[serde(default)]
    pub early: u64,
    /// Connections that were opened anew after they had been lost.
    pub reconnects: u64,
    /// Connections that were opened because the server had ended the one before, without a request
    /// on it being lost.
    #[serde(default)]
    pub ended_by_server: u64,
    /// Time of the window in which callers did not try again after a lost connection, in nanoseconds.
    #[serde(default)]
    pub paused_ns: u64,
}

impl Accounting {
    /// Returns the number of failures.
    pub fn failed(&self) -> u64 {
        self.errors.values().sum()
    }

    /// Returns the number of requests that count: the sum of their outcomes.
    pub fn scheduled(&self) -> u64 {
        self.ok + self.failed() + self.in_flight + self.not_sent
    }

    /// Returns the share of requests without a verified reply, from 0 to 1; 0 without requests.
    pub fn error_rate(&self) -> f64 {
        let scheduled = self.scheduled();
        if scheduled == 0 {
            0.0
        } else {
            (scheduled - self.ok) as f64 / scheduled as f64
        }
    }

    /// Returns the verified replies that arrived within the window, which both sides' CPU time
    /// served: those that count, less those that came after it, plus those of requests due before
    /// it.
    pub fn arrived(&self) -> u64 {
        self.ok.saturating_sub(self.late) + self.early
    }

    /// Returns the requests that the client handled within the window: replies and failures.
    pub fn handled(&self) -> u64 {
        self.arrived() + self.failed()
    }
}

impl AddAssign<&Self> for Accounting {
    fn add_assign(&mut self, other: &Self) {
        // All by name, so that the compiler finds a count that is missing here.
        let Self {
            ok,
            errors,
            in_flight,
            not_sent,
            outside_ok,
            outside_errors,
            late,
            early,
            reconnects,
            ended_by_server,
            paused_ns,
        } = other;
        for (kind, count) in errors {
            *self.errors.entry(*kind).or_default() += count;
        }
        self.ok += ok;
        self.in_flight += in_flight;
        self.not_sent += not_sent;
        self.outside_ok += outside_ok;
        self.outside_errors += outside_errors;
        self.late += late;
        self.early += early;
        self.reconnects += reconnects;
        self.ended_by_server += ended_by_server;
        self.paused_ns += paused_ns;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_count_is_added() {
        let counts = |times: u64| Accounting {
            ok: times,
            errors: BTreeMap::from([(ErrorKind::Eof, 2 * times), (ErrorKind::Tls, 3 * times)]),
            in_flight: 4 * times,
            not_sent: 5 * times,
            outside_ok: 6 * times,
            outside_errors: 7 * times,
            late: 8 * times,
            early: 9 * times,
            reconnects: 10 * times,
            ended_by_server: 11 * times,
            paused_ns: 12 * times,
        };
        let mut sum = Accounting::default();
        sum += &counts(1);
        sum += &counts(2);
        assert_eq!(sum, counts(3));
    }
}
