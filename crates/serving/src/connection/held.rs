//! The memory that a connection holds, and the most that it may.

use std::{
    mem,
    sync::{Arc, atomic::Ordering},
};

use tokio::sync::OwnedSemaphorePermit;

use super::{Connection, Shared, Tally};
use crate::reply_memory::MAX_MEMORY;

/// The kind under which a connection that holds more than it may is counted.
pub const MAX_HELD: &str = "max_held";

/// Memory that an open request of HTTP/2 takes, in bytes: that of tonic with the usual headers, measured.
const STREAM: u64 = 10 << 10;

/// Why a call gets no more memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Full {
    /// The process holds more than it may.
    Process,
    /// The connection holds more than it may, and has been closed.
    Connection,
}

impl Tally {
    /// Returns the memory that its requests, replies and streams hold, in bytes, as far as it is counted.
    pub(super) fn memory(&self) -> u64 {
        let streams = self.active.load(Ordering::Relaxed);
        self.held.load(Ordering::Relaxed) + streams * STREAM
    }

    /// Closes the connection if it holds more than it may.
    ///
    /// # Errors
    /// Fails with [`Full::Connection`] then.
    pub(super) fn check_memory(&self) -> Result<(), Full> {
        if self.memory() <= self.shared.most_held {
            return Ok(());
        }
        self.close(MAX_HELD);
        Err(Full::Connection)
    }
}

/// A part of the memory that a connection holds. It is free again when this is dropped.
#[derive(Debug)]
pub struct Held {
    tally: Arc<Tally>,
    bytes: u64,
}

impl Held {
    /// Returns that of a call of which nothing has come.
    pub fn nothing(connection: &Connection) -> Self {
        Self {
            tally: Arc::clone(&connection.tally),
            bytes: 0,
        }
    }

    /// Returns what its connection shares with the others of the server.
    pub fn shared(&self) -> &Shared {
        &self.tally.shared
    }

    /// Returns it in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Sets it to so many bytes. Closes the connection if that then holds more than it may.
    ///
    /// # Errors
    /// Fails with [`Full::Connection`] then.
    pub fn set(&mut self, bytes: u64) -> Result<(), Full> {
        let before = mem::replace(&mut self.bytes, bytes);
        let held = &self.tally.held;
        if bytes > before {
            held.fetch_add(bytes - before, Ordering::Relaxed);
            return self.tally.check_memory();
        }
        if bytes < before {
            held.fetch_sub(before - bytes, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Returns true if the connection holds more than half of what it may: what is kept only to be used again should go.
    pub fn is_scarce(&self) -> bool {
        self.tally.memory() > self.tally.shared.most_held / 2
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // It is less, or nothing.
        let _ = self.set(0);
    }
}

/// The memory of a reply, which is free again once all clones are dropped.
pub type Reserved = Arc<ReservedReply>;

/// The reservation of a reply: its room among others, and its memory.
#[derive(Debug)]
pub struct ReservedReply {
    _held: Held,
    _room: OwnedSemaphorePermit,
}

impl Connection {
    /// Returns the bytes that its calls hold, without those of its streams.
    pub fn held(&self) -> u64 {
        self.tally.held.load(Ordering::Relaxed)
    }

    /// Waits until a reply of `bytes` may be made, by [`crate::reply_memory::ReplyMemory::room`]; `None` for a small one,
    /// which may always.
    ///
    /// # Errors
    /// Fails with [`Full`] while the process holds too much memory, or if the connection now does.
    pub async fn reserve(&self, bytes: usize) -> Result<Option<Reserved>, Full> {
        let Tally {
            replies, shared, ..
        } = &*self.tally;
        let Some(room) = replies.room(bytes, shared.most_held).await else {
            return Ok(None);
        };
        if self.connections.is_full() {
            shared.count(MAX_MEMORY);
            return Err(Full::Process);
        }
        let mut held = Held::nothing(self);
        held.set(bytes as u64)?;
        Ok(Some(Arc::new(ReservedReply {
            _held: held,
            _room: room,
        })))
    }

    /// Waits until it is this connection's turn to make so much of a reply, by
    /// [`crate::reply_memory::ReplyMemory::turn`].
    pub async fn turn(&self, bytes: usize) {
        self.tally.replies.turn(bytes).await;
    }
}

#[cfg(test)]
mod tests {
    use std::{
        pin::pin,
        sync::atomic::AtomicU64,
        task::{Context, Poll, Waker},
        time::Duration,
    };

    use tokio::task::yield_now;

    use super::*;
    use crate::{
        connection::{Active, Connections, Ending},
        request_limit::RequestLimit,
    };

    /// Returns the connections of a server that may hold so many bytes each, of which none is open yet.
    fn connections(most_held: u64) -> Arc<Connections> {
        let unlimited = RequestLimit::new(Duration::ZERO);
        Arc::new(Connections::new(Shared::new(most_held, unlimited)))
    }

    #[tokio::test]
    async fn memory_is_that_of_requests_replies_and_open_streams() {
        let connections = Arc::new(Connections::default());
        let guard = connections.admit_task(9).unwrap();
        let connection = guard.connection();
        let mut request = Held::nothing(connection);
        request.set(100).unwrap();
        let streams = [(); 2].map(|()| Active::begin(&**connection));
        let reply = connection.reserve(5 << 10).await.unwrap();
        assert_eq!(connection.tally.memory(), 100 + (2 * 10 + 5) * 1024);
        drop((request, streams, reply));
        assert_eq!(connection.tally.memory(), 0);
    }

    /// Holds something for a moment; returns true if it may.
    type Hold = fn(&Connection) -> bool;

    #[tokio::test]
    async fn a_connection_that_holds_too_much_is_closed_and_counted_once() {
        let most = 100 << 10;
        let holds: [(&str, Hold); 3] = [
            ("a request", |own| {
                Held::nothing(own).set((80 << 10) + 1).is_ok()
            }),
            ("a stream", |own| {
                let _streams = [(); 9].map(|()| Active::begin(own));
                own.closed().is_none()
            }),
            ("a reply", |own| {
                let reply = pin!(own.reserve((80 << 10) + 1));
                let polled = reply.poll(&mut Context::from_waker(Waker::noop()));
                matches!(polled, Poll::Ready(Ok(_)))
            }),
        ];
        for (what, hold) in holds {
            let connections = connections(most);
            let guard = connections.admit_task(1).unwrap();
            let connection = guard.connection();
            let _streams = [(); 2].map(|()| Active::begin(&**connection));
            assert!(Held::nothing(connection).set(80 << 10).is_ok(), "{what}");
            assert_eq!(connection.closed(), None, "{what}");
            assert!(!hold(connection) && !hold(connection), "{what}");
            assert_eq!(connection.closed(), Some(MAX_HELD), "{what}");
            assert!(guard.is_closing(), "{what}");
            assert_eq!(connection.tally.shared.counted(MAX_HELD), 1, "{what}");
        }
    }

    #[test]
    fn memory_is_scarce_above_half_of_what_a_connection_may_hold() {
        let connections = connections(100);
        let guard = connections.admit_task(1).unwrap();
        let mut held = Held::nothing(guard.connection());
        held.set(50).unwrap();
        assert!(!held.is_scarce());
        held.set(51).unwrap();
        assert!(held.is_scarce());
    }

    #[tokio::test]
    async fn replies_wait_for_memory_of_their_connection() {
        let connections = Arc::new(Connections::default());
        let guard = connections.admit_task(1).unwrap();
        let connection = guard.connection();
        let small = 4 << 10;
        assert!(connection.reserve(small).await.unwrap().is_none());
        let whole = connection.reserve(1 << 30).await;
        // One that is longer than the room for all counts as what it is.
        assert_eq!(connection.tally.memory(), 1 << 30);
        assert!(connection.reserve(small).await.unwrap().is_none());
        let mut next = Box::pin(connection.reserve(small + 1));
        let mut cx = Context::from_waker(Waker::noop());
        assert!(next.as_mut().poll(&mut cx).is_pending());
        drop(whole);
        assert!(next.await.unwrap().is_some());
        connections.set_full(true);
        assert_eq!(
            connection.reserve(small + 1).await.err(),
            Some(Full::Process)
        );
        assert_eq!(connection.tally.shared.counted(MAX_MEMORY), 1);
        assert_eq!(guard.connection().tally.signal.ending(), Ending::None);
    }

    #[tokio::test]
    async fn replies_wait_before_they_hold_all_that_a_connection_may() {
        let connections = connections(100 << 10);
        let guard = connections.admit_task(1).unwrap();
        let first = guard.connection().reserve(40 << 10).await.unwrap();
        let mut next = Box::pin(guard.connection().reserve(40 << 10));
        let mut cx = Context::from_waker(Waker::noop());
        assert!(next.as_mut().poll(&mut cx).is_pending());
        drop(first);
        assert!(next.await.unwrap().is_some());
        assert_eq!(guard.connection().closed(), None);
    }

    #[tokio::test]
    async fn others_have_their_turn_between_long_replies() {
        let connections = Arc::new(Connections::default());
        let guard = connections.admit_task(1).unwrap();
        let connection = guard.connection();
        let turns = Arc::<AtomicU64>::default();
        let replies = [65 << 10; 8].map(|bytes| {
            let (connection, turns) = (Arc::clone(connection), Arc::clone(&turns));
            tokio::spawn(async move {
                connection.turn(bytes).await;
                turns.load(Ordering::Relaxed)
            })
        });
        let other = tokio::spawn(async move {
            loop {
                turns.fetch_add(1, Ordering::Relaxed);
                yield_now().await;
            }
        });
        let mut made = Vec::new();
        for reply in replies {
            made.push(reply.await.unwrap());
        }
        other.abort();
        // One in each turn.
        assert!(made[0] + 7 <= made[7], "{made:?}");
        // Those that fit into the turn do not wait, and small ones never.
        let mut cx = Context::from_waker(Waker::noop());
        let mut waits = |kib: usize| pin!(connection.turn(kib << 10)).poll(&mut cx).is_pending();
        assert_eq!([128, 4, 63, 5].map(&mut waits), [true, false, false, true]);
    }
}
