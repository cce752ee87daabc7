//! The choice of the connections that a server closes: the overdue ones, those that hold most, and the idle ones.

use std::{
    cmp::Reverse,
    mem,
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

use super::{Connections, Ending, Entry, Open, REPLY_TIMEOUT, Tally};
use crate::{clock, reply_memory::MAX_MEMORY, request_limit::REQUEST_TIMEOUT};

/// Connections that hold less, in bytes, are not closed for lack of memory.
const LITTLE: u64 = 1 << 20;

/// Deadlines that the reaper enforces.
#[derive(Debug, Clone, Copy)]
pub struct Deadlines {
    /// Time limit for the handshake and the preface; zero: none.
    pub first_byte: Duration,
    /// Bytes of a preface; 0: none.
    pub preface: u64,
    /// Longest time in which nothing comes; zero: unlimited.
    pub idle: Duration,
    /// Time limit for a part of a reply to be taken; zero: none.
    pub reply: Duration,
}

/// The state of a connection when the reaper last looked.
#[derive(Debug)]
pub(super) struct Seen {
    /// Time of admission, then of the last change.
    changed: Instant,
    /// Requests and bytes at that time.
    counts: (u64, u64),
    /// The request or frame that was last seen in part: its number, when that was, and the bytes of the connection
    /// until then.
    partial: (u64, Instant, u64),
}

impl Seen {
    /// Returns that of a connection that has just been admitted.
    pub(super) fn nothing(now: Instant) -> Self {
        Self {
            changed: now,
            counts: (0, 0),
            partial: (0, now, 0),
        }
    }
}

/// The connections that may be closed to make room for others.
#[derive(Debug, Default)]
pub(super) struct Spare {
    /// Idle connections when they were last looked for, the one that was idle longest last.
    idle: Vec<(Instant, usize)>,
    looked: Option<Instant>,
    /// Connections that are closed to make room, and are not gone yet.
    leaving: Vec<usize>,
}

impl Spare {
    /// Returns the number of connections that are closed to make room, and are not gone yet.
    pub(super) fn leaving(&self) -> usize {
        self.leaving.len()
    }

    /// Notes that a connection is gone.
    pub(super) fn gone(&mut self, key: usize) {
        self.leaving.retain(|leaving| *leaving != key);
    }
}

/// Time without traffic after which a connection may be closed to make room for another.
const IDLE: Duration = Duration::from_secs(1);

/// Least time between two looks for idle connections.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);

/// Idle connections that a look finds.
const MOST_IDLE: usize = 256;

/// Frames that serve no request which a connection may send between the reaper's looks.
pub(super) const MOST_CONTROL: u64 = 100;

/// The kind under which connections with more of them are counted.
pub const CONTROL_FRAMES: &str = "control_frames";

/// The kind under which a connection without traffic is counted.
pub const IDLE_TIMEOUT: &str = "idle_timeout";

/// The kind under which connections over the limit are counted, and those that make room for them.
pub const MAX_CONNECTIONS: &str = "max_connections";

impl Tally {
    fn counts(&self) -> (u64, u64) {
        let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
        (load(&self.requests), load(&self.bytes_in))
    }

    /// Returns true if the connection has no request, of those that count them, and no reply waits for its peer.
    pub(super) fn is_at_rest(&self) -> bool {
        self.active.load(Ordering::Acquire) == 0 && self.waits.count() == 0
    }
}

impl Entry {
    /// Returns true if nothing has been under way since this time.
    fn is_idle_since(&self, changed: Instant) -> bool {
        let tally = &self.tally;
        let is_partial = tally.partial.load(Ordering::Relaxed) > 0;
        let is_unchanged = self.seen.changed == changed && self.seen.counts == tally.counts();
        is_unchanged && !is_partial && tally.is_at_rest() && tally.closed.get().is_none()
    }
}

impl Open {
    /// Finds the connections that have been idle longest.
    fn find_idle(&mut self, now: Instant) {
        let since = self.spare.looked.map(|looked| now - looked);
        if since.is_some_and(|since| since < LOOK_INTERVAL) {
            return;
        }
        self.spare.looked = Some(now);
        let all = self.entries.iter();
        let all = all.map(|(key, entry)| ((entry.seen.changed, key), entry));
        let idle = all.filter(|((changed, _), entry)| {
            now.saturating_duration_since(*changed) >= IDLE && entry.is_idle_since(*changed)
        });
        let mut idle: Vec<_> = idle.map(|(found, _)| found).collect();
        idle.sort_unstable();
        idle.truncate(MOST_IDLE);
        idle.reverse();
        self.spare.idle = idle;
    }

    /// Closes the connection that has been idle longest, of those that were found; returns true if there is one.
    fn close_idlest(&mut self) -> bool {
        while let Some((changed, key)) = self.spare.idle.pop() {
            let entry = self.entries.get(key);
            if let Some(entry) = entry.filter(|entry| entry.is_idle_since(changed)) {
                entry.close(MAX_CONNECTIONS);
                self.spare.leaving.push(key);
                return true;
            }
        }
        false
    }
}

impl Connections {
    /// Closes the connection that has been idle longest, if one has been for a second. Returns true if one more may be
    /// admitted.
    pub fn make_room(&self) -> bool {
        let mut open = self.lock();
        // What was found may be idle no longer: then a new look is due.
        open.close_idlest() || {
            open.find_idle(clock::now());
            open.close_idlest()
        }
    }

    /// Closes the overdue connections; returns the kinds under which these are counted.
    pub fn reap(&self, deadlines: Deadlines) -> Vec<&'static str> {
        let now = clock::now();
        let mut overdue = Vec::new();
        let mut open = self.lock();
        let periods = &self.shared.periods;
        let too_old = periods.advance(now, &mut open.period_begun, deadlines.reply);
        for (_, entry) in &mut open.entries {
            let Entry { tally, seen, .. } = entry;
            // One that is closed is reported already: its task needs a moment to end.
            if tally.closed.get().is_some() {
                continue;
            }
            let counts = tally.counts();
            let is_ready = tally.ready.load(Ordering::Relaxed);
            let begun = is_ready && (counts.0 > 0 || counts.1 >= deadlines.preface);
            // Single bytes of a preface do not count as a change, or they would postpone the deadline.
            if mem::replace(&mut seen.counts, counts) != counts && begun {
                seen.changed = now;
            }
            let partial = tally.partial.load(Ordering::Relaxed);
            if partial != seen.partial.0 {
                seen.partial = (partial, now, counts.1);
            }
            let (_, since, before) = seen.partial;
            let limit = self.shared.request.after(counts.1 - before);
            let is_slow = partial > 0 && limit.is_some_and(|limit| now - since >= limit);
            let quiet = now.saturating_duration_since(seen.changed);
            let exceeds = |limit: Duration| !limit.is_zero() && quiet >= limit;
            tally.control.store(0, Ordering::Relaxed);
            let is_untaken = too_old.is_some_and(|period| tally.waits.last_since(period));
            let kind = match begun {
                false if exceeds(deadlines.first_byte) => "first_byte_timeout",
                _ if is_slow => REQUEST_TIMEOUT,
                _ if is_untaken => REPLY_TIMEOUT,
                _ if exceeds(deadlines.idle) => IDLE_TIMEOUT,
                _ => continue,
            };
            entry.close(kind);
            overdue.push(kind);
        }
        overdue
    }

    /// Closes the connections that hold most, until these held `bytes` together; returns their number, and the bytes that
    /// they held. Those that hold little stay. If together they would hold more than the `resident` bytes of the process,
    /// each counts for its share of these.
    pub fn close_largest(&self, bytes: u64, resident: u64) -> (usize, u64) {
        let open = self.lock();
        let holding = open.entries.iter().map(|(_, entry)| entry);
        let holding = holding.filter(|entry| entry.tally.closed.get().is_none());
        let mut holding: Vec<_> = holding.map(|own| (own.tally.memory(), own)).collect();
        let all: u64 = holding.iter().map(|(memory, _)| memory).sum();
        holding.retain(|(memory, _)| *memory >= LITTLE);
        holding.sort_by_key(|(memory, _)| Reverse(*memory));
        let (mut closed, mut freed) = (0, 0);
        for (memory, entry) in holding {
            if freed >= bytes {
                break;
            }
            let share = u128::from(memory) * u128::from(resident.min(all)) / u128::from(all);
            freed += share as u64;
            closed += 1;
            entry.close(MAX_MEMORY);
        }
        (closed, freed)
    }

    /// Closes the connections on which nothing is under way.
    pub fn close_idle(&self) {
        for (_, entry) in &self.lock().entries {
            if entry.tally.is_at_rest() {
                entry.end(Ending::Close);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{
        connection::{Active, Guard, Held, Shared, Wait},
        request_limit::RequestLimit,
    };

    #[tokio::test]
    async fn those_that_hold_most_are_closed_until_it_is_enough() {
        let connections = Arc::new(Connections::default());
        let guards = [(); 4].map(|()| connections.admit_task(9).unwrap());
        let mut held = guards.each_ref().map(|own| Held::nothing(own.connection()));
        for (own, bytes) in held
            .iter_mut()
            .zip([3 << 20, (1 << 20) - 1, 5 << 20, 1 << 20])
        {
            own.set(bytes).unwrap();
        }
        let closed = || {
            guards
                .each_ref()
                .map(|own| own.connection().closed().is_some())
        };
        assert_eq!(connections.close_largest(1, 1 << 30), (1, 5 << 20));
        assert_eq!(closed(), [false, false, true, false]);
        // One that is closed already frees nothing more.
        assert_eq!(
            connections.close_largest((3 << 20) + 1, 1 << 30),
            (2, 4 << 20)
        );
        assert_eq!(closed(), [true, false, true, true]);
        assert_eq!(connections.close_largest(1, 1 << 30), (0, 0));
        drop(held);
        assert!(
            guards
                .iter()
                .all(|own| own.connection().tally.memory() == 0)
        );
    }

    const DEADLINES: Deadlines = Deadlines {
        first_byte: Duration::from_nanos(1),
        preface: 4,
        idle: Duration::ZERO,
        reply: Duration::ZERO,
    };

    /// Those without a limit for the first byte.
    const UNHURRIED: Deadlines = Deadlines {
        first_byte: Duration::ZERO,
        ..DEADLINES
    };

    #[tokio::test]
    async fn single_bytes_of_a_preface_do_not_postpone_the_deadline() {
        let connections = Arc::new(Connections::default());
        let guard = connections.admit_task(1).unwrap();
        guard.connection().set_ready();
        guard.connection().count_bytes(3);
        assert_eq!(connections.reap(DEADLINES), ["first_byte_timeout"]);
        guard.connection().count_bytes(1);
        assert!(connections.reap(DEADLINES).is_empty());
    }

    #[tokio::test]
    async fn a_part_of_a_preface_does_not_keep_a_place() {
        let connections = Arc::new(Connections::default());
        let guard = connections.admit_task(1).unwrap();
        guard.connection().set_ready();
        guard.connection().count_bytes(3);
        assert!(connections.reap(UNHURRIED).is_empty());
        let long_ago = clock::now().checked_sub(IDLE).unwrap();
        connections.lock().entries[guard.connection().key]
            .seen
            .changed = long_ago;
        assert!(connections.make_room());
    }

    #[test]
    fn only_a_connection_before_its_handshake_and_preface_has_a_short_deadline() {
        let deadlines = Deadlines {
            preface: 0,
            idle: Duration::from_hours(1),
            ..DEADLINES
        };
        let connections = Arc::new(Connections::default());
        let [_first, second] = [(); 2].map(|()| connections.admit_task(2).unwrap());
        second.connection().set_ready();
        assert_eq!(connections.reap(deadlines), ["first_byte_timeout"]);
        assert!(connections.reap(deadlines).is_empty());
        let idle = Duration::from_nanos(1);
        let deadlines = Deadlines { idle, ..deadlines };
        // One that is closed is not reported again.
        assert_eq!(connections.reap(deadlines), ["idle_timeout"]);
        assert!(connections.reap(deadlines).is_empty());
    }

    #[tokio::test]
    async fn a_connection_without_a_request_is_idle() {
        let connections = Arc::new(Connections::default());
        let mut guard = connections.admit_task(1).unwrap();
        let active = Active::begin(Arc::clone(guard.connection()));
        guard.set_blocked(true);
        connections.close_idle();
        drop(active);
        connections.close_idle();
        assert_eq!(guard.connection().tally.signal.ending(), Ending::None);
        guard.set_blocked(false);
        connections.close_idle();
        guard.closed().await;
    }

    #[test]
    fn frames_of_no_request_are_limited_between_looks() {
        let connections = Arc::new(Connections::default());
        let guard = connections.admit_task(1).unwrap();
        let connection = guard.connection();
        connection.count_control(0);
        connection.count_control(MOST_CONTROL);
        assert_eq!(connection.closed(), None);
        connections.reap(UNHURRIED);
        connection.count_control(MOST_CONTROL);
        assert_eq!(connection.closed(), None);
        connection.count_control(7);
        assert_eq!(connection.closed(), Some(CONTROL_FRAMES));
        assert_eq!(guard.connection().tally.signal.ending(), Ending::Close);
        connection.count_control(1);
        assert_eq!(connection.tally.shared.counted(CONTROL_FRAMES), 1);
    }

    #[tokio::test]
    async fn the_connection_that_is_idle_longest_makes_room() {
        let connections = Arc::new(Connections::default());
        let guards = [(); 5].map(|()| connections.admit_task(5).unwrap());
        let now = clock::now();
        let ages = [3000, 5000, 900, 9000, 7000].map(Duration::from_millis);
        for (guard, age) in guards.iter().zip(ages) {
            let mut open = connections.lock();
            open.entries[guard.connection().key].seen.changed = now.checked_sub(age).unwrap();
        }
        let _active = Active::begin(Arc::clone(guards[3].connection()));
        // There was traffic since the last look.
        guards[4].connection().count_bytes(1);
        let closed = || guards.each_ref().map(|own| own.connection().closed());
        let room = Some(MAX_CONNECTIONS);
        assert!(connections.make_room());
        assert_eq!(closed(), [None, room, None, None, None]);
        // One place is free, before the connection is gone and after.
        let sixth = connections.admit_task(5).unwrap();
        assert!(connections.admit_task(5).is_none());
        assert!(connections.make_room());
        assert_eq!(closed(), [room, room, None, None, None]);
        assert!(!connections.make_room());
        drop(sixth);
        let [first, second, ..] = guards;
        drop((first, second));
        assert_eq!(connections.lock().spare.leaving(), 0);
        let free = [(); 2].map(|()| connections.admit_task(5));
        assert!(free.iter().all(Option::is_some));
        assert!(connections.admit_task(5).is_none());
    }

    #[test]
    fn idle_connections_are_looked_for_again_if_those_found_are_busy() {
        let connections = Arc::new(Connections::default());
        let guards = [(); 3].map(|()| connections.admit_task(3).unwrap());
        let long_ago = clock::now().checked_sub(9 * IDLE).unwrap();
        let age = |guard: &Guard| {
            connections.lock().entries[guard.connection().key]
                .seen
                .changed = long_ago;
        };
        guards[..2].iter().for_each(age);
        assert!(connections.make_room());
        let _active = Active::begin(Arc::clone(guards[1].connection()));
        age(&guards[2]);
        // A look is due only after a while.
        assert!(!connections.make_room());
        connections.lock().spare.looked = Some(long_ago);
        assert!(connections.make_room());
        let closed = guards.each_ref().map(|own| own.connection().closed());
        assert_eq!(closed, [Some(MAX_CONNECTIONS), None, Some(MAX_CONNECTIONS)]);
    }

    #[test]
    fn a_request_that_comes_too_slowly_is_overdue() {
        let limit = RequestLimit::new(Duration::from_nanos(1));
        let shared = Shared::new(u64::MAX, limit);
        let connections = Arc::new(Connections::new(shared));
        let guard = connections.admit_task(1).unwrap();
        let connection = guard.connection();
        connection.set_ready();
        connection.count_bytes(10);
        connection.note_partial(true);
        // It begins when it is first seen.
        assert!(connections.reap(DEADLINES).is_empty());
        assert_eq!(connections.reap(DEADLINES), [REQUEST_TIMEOUT]);
        connection.count_requests(1);
        connection.note_partial(true);
        assert!(connections.reap(DEADLINES).is_empty());
        connection.note_partial(false);
        assert!(connections.reap(DEADLINES).is_empty());
    }

    #[test]
    fn a_reply_that_is_not_taken_ends_its_connection() {
        let connections = Arc::new(Connections::default());
        let [mut one, other] = [(); 2].map(|()| connections.admit_task(2).unwrap());
        let _active = Active::begin(Arc::clone(other.connection()));
        let deadlines = Deadlines {
            reply: Duration::from_nanos(4),
            ..UNHURRIED
        };
        let reaped = || (0..9).flat_map(|_| connections.reap(deadlines)).count();
        assert_eq!(reaped(), 0);
        one.set_blocked(true);
        assert!(reaped() > 0);
        let overdue = || [&one, &other].map(|own| own.connection().closed().is_some());
        assert_eq!(overdue(), [true, false]);
        let _reply = Wait::begin(&**other.connection());
        assert!(reaped() > 0);
        assert_eq!(overdue(), [true, true]);
    }
}
