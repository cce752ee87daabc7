//! The memory that a connection's replies hold before its peer takes them.

use std::sync::{Arc, OnceLock};

use tokio::{
    sync::{Mutex, OwnedSemaphorePermit, Semaphore},
    task::yield_now,
};

/// Memory that the replies of a connection may hold, in KiB.
const MOST: u32 = 64 << 10;

/// Length up to which a reply is not counted, in bytes.
pub const SMALL: usize = 4 << 10;

/// Bytes of replies that a connection makes in one turn, unless a single one is longer.
const TURN: usize = 128 << 10;

/// A part of a connection's memory, which is free again once all clones are dropped.
pub type Reserved = Arc<OwnedSemaphorePermit>;

/// The process holds more memory than it may.
#[derive(Debug, Clone, Copy)]
pub struct Full;

/// The kind under which what was refused for lack of memory is counted.
pub const MAX_MEMORY: &str = "max_memory";

/// The memory of one connection.
#[derive(Debug, Default)]
pub(crate) struct ReplyMemory {
    /// KiB that replies may still hold; made for the first reply that is counted.
    free: OnceLock<Arc<Semaphore>>,
    /// Bytes of the replies that were made in this turn.
    made: Mutex<usize>,
}

impl ReplyMemory {
    /// Returns the memory that replies hold, in bytes.
    pub fn held(&self) -> u64 {
        let free = self.free.get().map(|free| free.available_permits());
        free.map_or(0, |free| {
            (u64::from(MOST).saturating_sub(free as u64)) << 10
        })
    }

    /// Waits until the replies hold so little that one of `bytes` may be made; `None` for a small one, which may always.
    /// One of more than 64 MiB waits until it is alone.
    pub async fn reserve(&self, bytes: usize) -> Option<Reserved> {
        if bytes <= SMALL {
            return None;
        }
        let kib = u32::try_from(bytes.div_ceil(1 << 10)).map_or(MOST, |kib| kib.min(MOST));
        let all = || Arc::new(Semaphore::new(MOST as usize));
        let free = Arc::clone(self.free.get_or_init(all));
        // The semaphore is never closed.
        free.acquire_many_owned(kib).await.ok().map(Arc::new)
    }

    /// Waits until it is the connection's turn to make so much of a reply; not for a small one. Without this, a peer that
    /// asks for many at once would have them all made before others are served.
    pub async fn turn(&self, bytes: usize) {
        if bytes <= SMALL {
            return;
        }
        let mut made = self.made.lock().await;
        if *made + bytes > TURN {
            yield_now().await;
            *made = 0;
        }
        *made += bytes;
    }
}
