//! Buffers that the connections of a thread share: one that waits for requests holds none.

use std::{cell::RefCell, mem};

use bytes::BytesMut;

/// Initial size of a buffer, in bytes.
pub const BUFFER: usize = 4 << 10;

/// Size up to which a buffer is shared, in bytes.
const LARGEST: usize = 128 << 10;

/// Most buffers that a thread keeps.
const MOST: usize = 32;

thread_local! {
    static FREE: RefCell<Vec<BytesMut>> = const { RefCell::new(Vec::new()) };
}

/// Gives an empty buffer.
pub fn take() -> BytesMut {
    let free = FREE.with_borrow_mut(Vec::pop);
    free.unwrap_or_else(|| BytesMut::with_capacity(BUFFER))
}

/// Empties a buffer and takes its memory back; a large one stays with the connection that needs such.
pub fn give(buffer: &mut BytesMut) {
    buffer.clear();
    if buffer.capacity() > LARGEST {
        return;
    }
    let buffer = mem::take(buffer);
    if buffer.capacity() >= BUFFER {
        FREE.with_borrow_mut(|free| {
            if free.len() < MOST {
                free.push(buffer);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_comes_back_empty_and_whole() {
        let mut buffer = take();
        buffer.extend_from_slice(b"text");
        give(&mut buffer);
        assert_eq!(buffer.capacity(), 0);
        let again = take();
        assert!(again.is_empty() && again.capacity() >= BUFFER);
        let mut large = BytesMut::with_capacity(2 * LARGEST);
        give(&mut large);
        assert!(large.capacity() > LARGEST);
    }
}
