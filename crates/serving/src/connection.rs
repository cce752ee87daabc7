//! The open connections of a server: their counters and deadlines, and the signal that ends each.

use std::{
    future::poll_fn,
    net::{Shutdown as Direction, TcpStream},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering},
    },
    task::{Context, Poll},
    time::{Duration, Instant},
};

use atomic_waker::AtomicWaker;
use slab::Slab;
use tokio::sync::Notify;

use crate::clock;

/// Counters of one connection. Only its own tasks write them, so a request touches no cache line
/// that another connection writes; totals are summed when they are read.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Tally {
    requests: AtomicU64,
    bytes_in: AtomicU64,
    /// Set when the reaper has closed the connection.
    overdue: AtomicBool,
}

/// The way in which a connection has been asked to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Ending {
    /// Not asked to end.
    None = 0,
    /// Finish, and read no further request.
    Drain = 1,
    /// End at once.
    Close = 2,
}

/// The means to tell a connection to end.
#[derive(Debug)]
enum Handle {
    /// A connection in a runtime checks the flag whenever it would wait.
    Task(Arc<Signal>),
    /// A connection's thread blocks in the kernel: shutting the socket down wakes it.
    Socket(Arc<TcpStream>),
}

#[derive(Debug)]
struct Signal {
    ending: AtomicU8,
    waker: AtomicWaker,
}

impl Signal {
    fn ending(&self) -> Ending {
        match self.ending.load(Ordering::Acquire) {
            0 => Ending::None,
            1 => Ending::Drain,
            _ => Ending::Close,
        }
    }
}

impl Handle {
    fn end(&self, ending: Ending) {
        match self {
            Self::Task(signal) => {
                signal.ending.fetch_max(ending as u8, Ordering::AcqRel);
                signal.waker.wake();
            }
            Self::Socket(stream) => {
                let direction = match ending {
                    Ending::Close => Direction::Both,
                    Ending::Drain | Ending::None => Direction::Read,
                };
                // It fails only on a connection that is gone already.
                let _ = stream.shutdown(direction);
            }
        }
    }
}

#[derive(Debug)]
struct Entry {
    tally: Arc<Tally>,
    handle: Handle,
    /// Time of admission, then of the last change that the reaper saw.
    changed: Instant,
    /// Requests and bytes at that time.
    seen: (u64, u64),
}

/// All open connections, and the sums of the closed ones.
#[derive(Debug, Default)]
pub struct Connections {
    open: Mutex<Open>,
    emptied: Notify,
}

#[derive(Debug, Default)]
struct Open {
    entries: Slab<Entry>,
    /// Requests of closed connections.
    retired: u64,
    admitted: u64,
}

/// Deadlines that the reaper enforces.
#[derive(Debug, Clone, Copy)]
pub struct Deadlines {
    /// Time limit for the first bytes; zero: none.
    pub first_byte: Duration,
    /// Number of those first bytes.
    pub first_bytes: u64,
    /// Longest time without traffic; zero: unlimited.
    pub idle: Duration,
}

/// The deadline that a connection has missed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overdue {
    FirstByte,
    Idle,
}

impl Connections {
    fn lock(&self) -> MutexGuard<'_, Open> {
        // Every change under the lock is a single step, so a panic leaves nothing half done.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn insert(self: &Arc<Self>, handle: Handle, limit: usize) -> Option<Connection> {
        let tally = Arc::new(Tally::default());
        let mut open = self.lock();
        if open.entries.len() >= limit {
            return None;
        }
        open.admitted += 1;
        let key = open.entries.insert(Entry {
            tally: Arc::clone(&tally),
            handle,
            changed: clock::now(),
            seen: (0, 0),
        });
        Some(Connection {
            tally,
            key,
            connections: Arc::clone(self),
        })
    }

    /// Admits a connection that a task will serve, unless `limit` connections are open.
    pub fn admit_task(self: &Arc<Self>, limit: usize) -> Option<Guard> {
        let signal = Arc::new(Signal {
            ending: AtomicU8::new(Ending::None as u8),
            waker: AtomicWaker::new(),
        });
        let connection = self.insert(Handle::Task(Arc::clone(&signal)), limit)?;
        Some(Guard {
            connection: Arc::new(connection),
            signal,
        })
    }

    /// Admits a connection that a thread will serve, unless `limit` connections are open.
    pub fn admit_socket(
        self: &Arc<Self>,
        socket: &Arc<TcpStream>,
        limit: usize,
    ) -> Option<Connection> {
        self.insert(Handle::Socket(Arc::clone(socket)), limit)
    }

    /// Returns the numbers of open connections, of all admitted connections, and of requests.
    pub fn totals(&self) -> (usize, u64, u64) {
        let open = self.lock();
        let mut requests = open.retired;
        for (_, entry) in &open.entries {
            requests += entry.tally.requests.load(Ordering::Relaxed);
        }
        (open.entries.len(), open.admitted, requests)
    }

    /// Asks every open connection to end.
    pub fn end_all(&self, ending: Ending) {
        for (_, entry) in &self.lock().entries {
            entry.handle.end(ending);
        }
    }

    /// Closes the overdue connections and returns the deadline that each has missed.
    pub fn reap(&self, deadlines: Deadlines) -> Vec<Overdue> {
        let now = clock::now();
        let mut overdue = Vec::new();
        for (_, entry) in &mut self.lock().entries {
            let seen = (
                entry.tally.requests.load(Ordering::Relaxed),
                entry.tally.bytes_in.load(Ordering::Relaxed),
            );
            let begun = seen.0 > 0 || seen.1 >= deadlines.first_bytes;
            // Single first bytes do not count as a change, or they would postpone the deadline.
            if seen != entry.seen && begun {
                entry.seen = seen;
                entry.changed = now;
            }
            let quiet = now.saturating_duration_since(entry.changed);
            let reason = match begun {
                false if !deadlines.first_byte.is_zero() && quiet >= deadlines.first_byte => {
                    Overdue::FirstByte
                }
                _ if !deadlines.idle.is_zero() && quiet >= deadlines.idle => Overdue::Idle,
                _ => continue,
            };
            entry.tally.overdue.store(true, Ordering::Release);
            entry.handle.end(Ending::Close);
            // Report it once: its task needs a moment to end.
            entry.changed = now;
            overdue.push(reason);
        }
        overdue
    }

    /// Waits until no connection is open.
    pub async fn empty(&self) {
        loop {
            let emptied = self.emptied.notified();
            if self.lock().entries.is_empty() {
                return;
            }
            emptied.await;
        }
    }
}

/// An admitted connection while it is served. Dropping it frees its place.
#[derive(Debug)]
pub struct Connection {
    tally: Arc<Tally>,
    key: usize,
    connections: Arc<Connections>,
}

impl Connection {
    /// Adds to the number of answered requests.
    pub fn count_requests(&self, requests: u64) {
        self.tally.requests.fetch_add(requests, Ordering::Relaxed);
    }

    /// Returns true if the reaper has closed the connection, and counted that.
    pub fn is_overdue(&self) -> bool {
        self.tally.overdue.load(Ordering::Acquire)
    }

    /// Adds to the number of received bytes.
    pub fn count_bytes(&self, bytes: usize) {
        let bytes = bytes as u64;
        self.tally.bytes_in.fetch_add(bytes, Ordering::Relaxed);
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let mut open = self.connections.lock();
        open.entries.remove(self.key);
        open.retired += self.tally.requests.load(Ordering::Relaxed);
        if open.entries.is_empty() {
            self.connections.emptied.notify_waiters();
        }
    }
}

/// A [`Connection`] that a task serves, and the signal that ends it.
#[derive(Debug)]
pub struct Guard {
    connection: Arc<Connection>,
    signal: Arc<Signal>,
}

impl Guard {
    /// Returns the connection, which all its tasks share.
    pub fn connection(&self) -> &Arc<Connection> {
        &self.connection
    }

    /// Waits until the connection must end at once. Only one task at a time can wait.
    pub async fn closed(&self) {
        self.reached(Ending::Close).await;
    }

    /// Waits until the connection must read no further request. Only one task at a time can wait.
    pub async fn draining(&self) {
        self.reached(Ending::Drain).await;
    }

    async fn reached(&self, ending: Ending) {
        poll_fn(|cx| {
            if self.ending(cx) >= ending {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
    }

    /// Returns how the connection has been asked to end. Wakes the task when that changes; only one
    /// task at a time can wait.
    pub(crate) fn ending(&self, cx: &Context<'_>) -> Ending {
        self.signal.waker.register(cx.waker());
        self.signal.ending()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEADLINES: Deadlines = Deadlines {
        first_byte: Duration::from_nanos(1),
        first_bytes: 4,
        idle: Duration::ZERO,
    };

    #[tokio::test]
    async fn single_first_bytes_do_not_postpone_the_deadline() {
        let connections = Arc::new(Connections::default());
        let guard = connections.admit_task(1).unwrap();
        guard.connection.count_bytes(3);
        assert_eq!(connections.reap(DEADLINES), [Overdue::FirstByte]);
        guard.connection.count_bytes(1);
        assert_eq!(connections.reap(DEADLINES), []);
    }

    #[test]
    fn a_closed_connection_frees_its_place_and_its_requests_stay_counted() {
        let connections = Arc::new(Connections::default());
        let first = connections.admit_task(1).unwrap();
        first.connection.count_requests(3);
        assert!(connections.admit_task(1).is_none());
        drop(first);
        let second = connections.admit_task(1).unwrap();
        second.connection.count_requests(2);
        assert_eq!(connections.totals(), (1, 2, 5));
    }
}
