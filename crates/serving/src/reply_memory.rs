//! The pace at which a connection's replies are made: no faster than its peer takes them, and in turns with others.

use std::sync::{Arc, OnceLock};

use tokio::{
    sync::{Mutex, OwnedSemaphorePermit, Semaphore},
    task::yield_now,
};

/// Memory that the replies of a connection may hold, in bytes, if that is at most half of what it may hold.
const MOST: u64 = 64 << 20;

/// Length up to which a reply is not counted, in bytes.
pub const SMALL: usize = 4 << 10;

/// Bytes of replies that a connection makes in one turn, unless a single one is longer.
const TURN: usize = 128 << 10;

/// The kind under which what was refused for lack of memory is counted.
pub const MAX_MEMORY: &str = "max_memory";

/// The replies of one connection.
#[derive(Debug, Default)]
pub(crate) struct ReplyMemory {
    /// KiB that replies may still hold; made for the first reply that is counted.
    free: OnceLock<Arc<Semaphore>>,
    /// Bytes of the replies that were made in this turn.
    made: Mutex<usize>,
}

impl ReplyMemory {
    /// Waits until the replies hold so little that there is room for one of `bytes`; `None` for a small one, which needs
    /// none. One for which there is never room waits until it is alone. The connection may hold `most_held` bytes.
    pub async fn room(&self, bytes: usize, most_held: u64) -> Option<OwnedSemaphorePermit> {
        if bytes <= SMALL {
            return None;
        }
        let most = (MOST.min(most_held / 2) >> 10) as u32;
        let kib = u32::try_from(bytes.div_ceil(1 << 10)).map_or(most, |kib| kib.min(most));
        let all = || Arc::new(Semaphore::new(most as usize));
        let free = Arc::clone(self.free.get_or_init(all));
        // The semaphore is never closed.
        free.acquire_many_owned(kib).await.ok()
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
