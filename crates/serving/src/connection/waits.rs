//! Replies that wait for the peer to take them: how long, without a clock for each.
//!
//! The time limit is divided into periods. A wait counts in the period in which it began, until it ends: what is left
//! of a period when it has become too old waits for too long.

use std::{
    ops::Deref,
    sync::atomic::{AtomicU8, AtomicU32, Ordering},
    time::{Duration, Instant},
};

use super::{Connection, Tally};

/// The kind under which a reply that the peer does not take is counted.
pub const REPLY_TIMEOUT: &str = "reply_timeout";

/// Bytes of a reply with which its wait begins anew: what a peer has to take within the time limit. It is a frame of
/// HTTP/2; single bytes that a peer allows to be sent hold nothing open.
pub const TAKEN: usize = 16 << 10;

/// Periods that a wait may last.
const LONGEST: u32 = 4;

/// Periods that are told apart: the one in which a wait begins, those that it may last, and the current one.
const PERIODS: u8 = LONGEST as u8 + 2;

/// The waits of one connection, by the period in which they began.
#[derive(Debug, Default)]
pub(crate) struct Waits {
    counts: [AtomicU32; PERIODS as usize],
}

impl Waits {
    /// Returns the number of replies, and of parts of them, that wait.
    pub(crate) fn count(&self) -> u64 {
        let counts = self.counts.iter();
        counts
            .map(|count| u64::from(count.load(Ordering::Relaxed)))
            .sum()
    }

    /// Returns true if a wait has lasted since this period.
    pub(crate) fn last_since(&self, period: u8) -> bool {
        self.counts[usize::from(period)].load(Ordering::Relaxed) > 0
    }
}

/// The current period, which all connections share.
#[derive(Debug, Default)]
pub(crate) struct Periods {
    current: AtomicU8,
}

impl Periods {
    /// Begins the next period if the last one, which began at `begun`, is over. Returns the one that is now too old.
    pub(crate) fn advance(
        &self,
        now: Instant,
        begun: &mut Option<Instant>,
        limit: Duration,
    ) -> Option<u8> {
        let since = *begun.get_or_insert(now);
        if limit.is_zero() || now - since < limit / LONGEST {
            return None;
        }
        *begun = Some(now);
        let current = (self.current.load(Ordering::Relaxed) + 1) % PERIODS;
        self.current.store(current, Ordering::Relaxed);
        // The oldest follows the current one: that is the place of the next.
        Some((current + 1) % PERIODS)
    }
}

/// A reply of a connection, and the wait for the peer to take it.
#[derive(Debug)]
pub struct Wait<C: Deref<Target = Connection>> {
    connection: C,
    /// Period in which it began.
    since: Option<u8>,
    /// Bytes that the peer has taken since.
    taken: usize,
}

impl<C: Deref<Target = Connection>> Wait<C> {
    /// Returns that of a reply that does not wait yet.
    pub fn new(connection: C) -> Self {
        Self {
            connection,
            since: None,
            taken: 0,
        }
    }

    /// Returns that of a reply, or of a part of one, that waits from now on.
    pub fn begin(connection: C) -> Self {
        let mut wait = Self::new(connection);
        wait.set(true);
        wait
    }

    /// Returns its connection.
    pub fn connection(&self) -> &C {
        &self.connection
    }

    /// Notes whether the reply waits for the peer. A wait that has begun goes on.
    pub fn set(&mut self, is_waiting: bool) {
        if is_waiting != self.since.is_some() {
            self.change(is_waiting);
        }
    }

    /// Notes that the peer has taken so many bytes, or allows them to be sent.
    pub fn take(&mut self, bytes: usize) {
        self.taken += bytes;
        if self.taken >= TAKEN && self.since.is_some() {
            self.change(false);
            self.change(true);
        }
    }

    fn change(&mut self, is_waiting: bool) {
        let Tally { waits, shared, .. } = &*self.connection.tally;
        let counts = &waits.counts;
        if let Some(since) = self.since.take() {
            counts[usize::from(since)].fetch_sub(1, Ordering::Relaxed);
        }
        if is_waiting {
            let current = shared.periods.current.load(Ordering::Relaxed);
            counts[usize::from(current)].fetch_add(1, Ordering::Relaxed);
            self.since = Some(current);
            self.taken = 0;
        }
    }
}

impl<C: Deref<Target = Connection>> Drop for Wait<C> {
    fn drop(&mut self) {
        self.set(false);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{super::Connections, *};

    const LIMIT: Duration = Duration::from_secs(4);

    /// Returns the seconds after which the first of the waits of a connection is too long, if `each` is done every
    /// second; `None` if none is.
    fn too_long(mut each: impl FnMut(usize, &mut Wait<Arc<Connection>>)) -> Option<usize> {
        let connections = Arc::new(Connections::default());
        let guard = connections.admit_task(1)?;
        let mut wait = Wait::new(Arc::clone(guard.connection()));
        let waits = &guard.connection().tally.waits;
        let (start, mut begun) = (crate::clock::now(), None);
        (0..60).find(|second| {
            let now = start + Duration::from_secs(*second as u64);
            let old = connections.shared.periods.advance(now, &mut begun, LIMIT);
            each(*second, &mut wait);
            old.is_some_and(|old| waits.last_since(old))
        })
    }

    #[test]
    fn a_wait_is_too_long_after_the_limit_and_a_period() {
        for first in 0..7 {
            let since = |second, wait: &mut Wait<_>| wait.set(second >= first);
            assert_eq!(too_long(since), Some(first + 5), "{first}");
        }
    }

    #[test]
    fn a_wait_that_ends_is_not_too_long() {
        assert_eq!(too_long(|second, wait| wait.set(second % 6 > 0)), None);
        assert_eq!(too_long(|second, wait| wait.set(second % 7 > 0)), Some(6));
    }

    #[test]
    fn whole_parts_begin_the_wait_anew_and_single_bytes_do_not() {
        let taking = |bytes| {
            move |_, wait: &mut Wait<_>| {
                wait.set(true);
                wait.take(bytes);
            }
        };
        assert_eq!(too_long(taking(TAKEN / 4)), None);
        assert_eq!(too_long(taking(1)), Some(5));
    }

    #[test]
    fn without_a_limit_no_wait_is_too_long() {
        let periods = Periods::default();
        let now = crate::clock::now();
        let mut begun = None;
        for second in 0..10 {
            let now = now + Duration::from_secs(second);
            assert_eq!(periods.advance(now, &mut begun, Duration::ZERO), None);
        }
    }
}
