//! The open connections of a server: their counters, and the signal that ends each.

mod closing;
mod held;
mod shared;
mod waits;

use std::{
    future::poll_fn,
    net::{Shutdown as Direction, TcpStream},
    ops::Deref,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering},
    },
    task::{Context, Poll, Waker},
    time::Instant,
};

use atomic_waker::AtomicWaker;
use slab::Slab;
use tokio::sync::Notify;

pub(crate) use self::closing::Deadlines;
pub use self::{
    closing::{CONTROL_FRAMES, IDLE_TIMEOUT, MAX_CONNECTIONS},
    held::{Full, Held, Reserved},
    shared::Shared,
    waits::{REPLY_TIMEOUT, TAKEN, Wait},
};
use self::{
    closing::{MOST_CONTROL, Seen, Spare},
    waits::Waits,
};
use crate::{clock, reply_memory::ReplyMemory};

/// Counters of one connection. Only its own tasks write them, so a request touches no cache line
/// that another connection writes; totals are summed when they are read.
#[derive(Debug, Default)]
#[repr(C, align(128))]
struct Tally {
    // What every request touches comes first, in as few cache lines as it fits into.
    requests: AtomicU64,
    bytes_in: AtomicU64,
    /// Requests whose replies are not whole, on a connection that counts them, or that takes its time for one.
    active: AtomicU64,
    /// Bytes that its calls hold: what has come of requests, replies, and the buffers of calls that last.
    held: AtomicU64,
    /// Number of the request, or of the frame, of which a part has come and the rest is awaited; 0: none.
    partial: AtomicU64,
    /// Replies that the peer is to take.
    waits: Waits,
    /// The signal to end, of a connection that a task serves.
    signal: Signal,
    shared: Arc<Shared>,
    /// Its peer reads no reply any more.
    gone: AtomicBool,
    /// Set when its handshake is done, or none is due.
    ready: AtomicBool,
    /// Frames that belong to no request.
    control: AtomicU64,
    /// The reason for which the server has closed the connection, if it has.
    closed: OnceLock<&'static str>,
    replies: ReplyMemory,
}

impl Tally {
    /// Closes the connection, which a task serves, for a reason, under which that is counted. The first reason stays.
    fn close(&self, reason: &'static str) {
        if self.closed.set(reason).is_ok() {
            self.shared.count(reason);
        }
        self.signal.end(Ending::Close);
    }
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

#[derive(Debug, Default)]
struct Signal {
    ending: AtomicU8,
    waker: AtomicWaker,
}

impl Signal {
    fn end(&self, ending: Ending) {
        self.ending.fetch_max(ending as u8, Ordering::AcqRel);
        self.waker.wake();
    }

    fn ending(&self) -> Ending {
        match self.ending.load(Ordering::Acquire) {
            0 => Ending::None,
            1 => Ending::Drain,
            _ => Ending::Close,
        }
    }
}

#[derive(Debug)]
struct Entry {
    tally: Arc<Tally>,
    /// A connection's thread blocks in the kernel: shutting the socket down wakes it. One in a runtime has no need of it,
    /// and checks the signal whenever it would wait.
    socket: Option<Arc<TcpStream>>,
    seen: Seen,
}

impl Entry {
    /// Tells the connection to end.
    fn end(&self, ending: Ending) {
        self.tally.signal.end(ending);
        self.shut(ending);
    }

    /// Shuts down the socket, if a thread waits on it.
    fn shut(&self, ending: Ending) {
        let Some(socket) = &self.socket else {
            return;
        };
        let direction = match ending {
            Ending::Close => Direction::Both,
            _ => Direction::Read,
        };
        // It fails only on a connection that is gone already.
        let _ = socket.shutdown(direction);
    }

    /// Closes the connection for a reason, under which that is counted.
    fn close(&self, reason: &'static str) {
        self.tally.close(reason);
        self.shut(Ending::Close);
    }
}

/// All open connections, and the sums of the closed ones.
#[derive(Debug, Default)]
pub struct Connections {
    open: Mutex<Open>,
    emptied: Notify,
    shared: Arc<Shared>,
    /// True while the process holds too much memory for further connections and long replies.
    is_full: AtomicBool,
}

#[derive(Debug, Default)]
struct Open {
    entries: Slab<Entry>,
    /// Requests of closed connections.
    retired: u64,
    admitted: u64,
    /// Beginning of the current period of the waits.
    period_begun: Option<Instant>,
    spare: Spare,
}

impl Connections {
    /// Returns the connections of a server, of which none is open yet.
    pub(crate) fn new(shared: Shared) -> Self {
        Self {
            shared: Arc::new(shared),
            ..Self::default()
        }
    }

    /// Returns what they share.
    pub(crate) fn shared(&self) -> &Shared {
        &self.shared
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        // Every change under the lock is a single step, so a panic leaves nothing half done.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn insert(
        self: &Arc<Self>,
        socket: Option<Arc<TcpStream>>,
        limit: usize,
    ) -> Option<Connection> {
        let tally = Arc::new(Tally {
            shared: Arc::clone(&self.shared),
            ..Tally::default()
        });
        let mut open = self.lock();
        if open.entries.len() - open.spare.leaving() >= limit {
            return None;
        }
        open.admitted += 1;
        let key = open.entries.insert(Entry {
            tally: Arc::clone(&tally),
            socket,
            seen: Seen::nothing(clock::now()),
        });
        Some(Connection {
            tally,
            key,
            connections: Arc::clone(self),
        })
    }

    /// Admits a connection that a task will serve, unless `limit` connections are open.
    pub fn admit_task(self: &Arc<Self>, limit: usize) -> Option<Guard> {
        let connection = Arc::new(self.insert(None, limit)?);
        Some(Guard {
            write: Wait::new(connection),
            waiting: None,
        })
    }

    /// Admits a connection that a thread will serve, unless `limit` connections are open.
    pub fn admit_socket(
        self: &Arc<Self>,
        socket: &Arc<TcpStream>,
        limit: usize,
    ) -> Option<Connection> {
        self.insert(Some(Arc::clone(socket)), limit)
    }

    /// Notes whether the process holds too much memory for further connections and long replies.
    pub fn set_full(&self, is_full: bool) {
        self.is_full.store(is_full, Ordering::Relaxed);
    }

    /// Returns true if the process holds too much memory for further connections and long replies.
    pub fn is_full(&self) -> bool {
        self.is_full.load(Ordering::Relaxed)
    }

    /// Returns the numbers of open connections, of all admitted connections, and of requests.
    pub fn totals(&self) -> (usize, u64, u64) {
        let open = self.lock();
        let tallies = open.entries.iter().map(|(_, entry)| &entry.tally.requests);
        let served: u64 = tallies
            .map(|requests| requests.load(Ordering::Relaxed))
            .sum();
        (open.entries.len(), open.admitted, open.retired + served)
    }

    /// Asks every open connection to end.
    pub fn end_all(&self, ending: Ending) {
        for (_, entry) in &self.lock().entries {
            entry.end(ending);
        }
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

/// A request whose reply is not whole, or one that takes its time: meanwhile its connection is not idle.
#[derive(Debug)]
pub struct Active<C: Deref<Target = Connection>>(C);

impl<C: Deref<Target = Connection>> Active<C> {
    /// Begins a request. Closes the connection if that then holds more than it may.
    pub fn begin(connection: C) -> Self {
        let tally = &connection.tally;
        tally.active.fetch_add(1, Ordering::AcqRel);
        // The call ends with its connection.
        let _ = tally.check_memory();
        Self(connection)
    }

    /// Returns its connection.
    pub fn connection(&self) -> &C {
        &self.0
    }
}

impl<C: Deref<Target = Connection>> Deref for Active<C> {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        &self.0
    }
}

impl<C: Deref<Target = Connection>> Drop for Active<C> {
    fn drop(&mut self) {
        self.0.tally.active.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Connection {
    /// Notes that its handshake is done, or that none is due: it may be silent from now on.
    pub fn set_ready(&self) {
        self.tally.ready.store(true, Ordering::Relaxed);
    }

    /// Adds to the number of answered requests.
    pub fn count_requests(&self, requests: u64) {
        self.tally.requests.fetch_add(requests, Ordering::Relaxed);
    }

    /// Returns true while a request has no whole reply, on a connection that counts them, or a reply waits for the peer.
    pub fn is_active(&self) -> bool {
        !self.tally.is_at_rest()
    }

    /// Notes that a part of the next request has come, or that none has. For a connection whose
    /// requests come one after the other.
    pub fn note_partial(&self, is_partial: bool) {
        let number = self.tally.requests.load(Ordering::Relaxed) + 1;
        self.set_partial(if is_partial { number } else { 0 });
    }

    /// Notes that a part of what has this number has come, be it a request or a frame, and its rest is awaited; 0: of
    /// nothing.
    pub fn set_partial(&self, number: u64) {
        self.tally.partial.store(number, Ordering::Relaxed);
    }

    /// Notes that its peer reads no reply any more: requests that are open have no use.
    pub fn set_gone(&self) {
        self.tally.gone.store(true, Ordering::Release);
    }

    /// Returns true if its peer reads no reply any more.
    pub fn is_gone(&self) -> bool {
        self.tally.gone.load(Ordering::Acquire)
    }

    /// Returns the reason for which the server has closed the connection, and counted that, if it has.
    pub fn closed(&self) -> Option<&'static str> {
        self.tally.closed.get().copied()
    }

    /// Closes it for a reason, as a limit does.
    #[cfg(feature = "testing")]
    pub fn close(&self, reason: &'static str) {
        self.tally.close(reason);
    }

    /// Adds to the number of received frames that serve no request. Closes the connection, which a task serves, once these
    /// are too many since the reaper's last look.
    pub fn count_control(&self, frames: u64) {
        if frames == 0 {
            return;
        }
        let tally = &self.tally;
        let before = tally.control.fetch_add(frames, Ordering::Relaxed);
        if before + frames > MOST_CONTROL {
            tally.close(CONTROL_FRAMES);
        }
    }

    /// Adds to the number of received bytes: they keep the connection alive, and extend the time of a request.
    pub fn count_bytes(&self, bytes: usize) {
        self.tally
            .bytes_in
            .fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let mut open = self.connections.lock();
        open.entries.remove(self.key);
        open.spare.gone(self.key);
        open.retired += self.tally.requests.load(Ordering::Relaxed);
        if open.entries.is_empty() {
            self.connections.emptied.notify_waiters();
        }
    }
}

/// A [`Connection`] that a task serves.
#[derive(Debug)]
pub struct Guard {
    /// The wait of a write that the peer's system does not take.
    write: Wait<Arc<Connection>>,
    /// The waker that [`Guard::ending`] has registered last. [`Guard::closed`] and [`Guard::draining`] register another:
    /// once they have waited, it must not be asked again.
    waiting: Option<Waker>,
}

impl Guard {
    /// Notes whether a write had to wait.
    pub fn set_blocked(&mut self, is_blocked: bool) {
        self.write.set(is_blocked);
    }

    /// Returns the connection, which all its tasks share.
    pub fn connection(&self) -> &Arc<Connection> {
        self.write.connection()
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
            if self.register(cx) >= ending {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
    }

    /// Returns true if the connection must end at once.
    pub fn is_closing(&self) -> bool {
        self.connection().tally.signal.ending() == Ending::Close
    }

    /// Returns how the connection has been asked to end. Wakes the task when that changes; only one
    /// task at a time can wait.
    pub fn ending(&mut self, cx: &Context<'_>) -> Ending {
        let waiting = self.waiting.as_ref();
        let is_waiting = waiting.is_some_and(|own| own.will_wake(cx.waker()));
        let signal = &self.connection().tally.signal;
        // A registered waker stays until an end takes it, and there is none yet.
        if is_waiting && signal.ending() == Ending::None {
            return Ending::None;
        }
        if !is_waiting {
            self.waiting = Some(cx.waker().clone());
        }
        self.register(cx)
    }

    fn register(&self, cx: &Context<'_>) -> Ending {
        let signal = &self.connection().tally.signal;
        signal.waker.register(cx.waker());
        signal.ending()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closed_connection_frees_its_place_and_its_requests_stay_counted() {
        let connections = Arc::new(Connections::default());
        let first = connections.admit_task(1).unwrap();
        first.connection().count_requests(3);
        assert!(connections.admit_task(1).is_none());
        drop(first);
        let second = connections.admit_task(1).unwrap();
        second.connection().count_requests(2);
        assert_eq!(connections.totals(), (1, 2, 5));
    }
}
