//! Divides the bytes of a run into shares of streams, and these into messages.

/// A stream's share, cut into messages of equal length; the last one has the rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cut {
    /// Messages of the full length.
    pub full: u64,
    /// Bytes of each of them.
    pub chunk: usize,
    /// Bytes of the last message; 0 if all are full.
    pub rest: usize,
}

impl Cut {
    /// Cuts `bytes` into messages of `chunk` bytes, which is at least 1.
    pub fn new(bytes: u64, chunk: usize) -> Self {
        let length = chunk.max(1) as u64;
        Self {
            full: bytes / length,
            chunk,
            rest: (bytes % length) as usize,
        }
    }

    /// Returns the number of messages.
    pub fn messages(self) -> u64 {
        self.full + u64::from(self.rest > 0)
    }

    /// Returns the length of message number `number`, from 0 on; `None` if there is none.
    pub fn length(self, number: u64) -> Option<usize> {
        match number {
            _ if number < self.full => Some(self.chunk),
            _ if number == self.full && self.rest > 0 => Some(self.rest),
            _ => None,
        }
    }
}

/// Divides `bytes` among `streams`; the first has the remainder too.
pub(super) fn shares(bytes: u64, streams: usize) -> impl Iterator<Item = u64> {
    let count = streams.max(1) as u64;
    (0..streams).map(move |number| bytes / count + if number == 0 { bytes % count } else { 0 })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn no_byte_is_lost_or_doubled(bytes in 0_u64..100_000, chunk in 1_usize..5000, streams in 1_usize..20) {
            prop_assert_eq!(shares(bytes, streams).count(), streams);
            prop_assert_eq!(shares(bytes, streams).sum::<u64>(), bytes);
            let cut = Cut::new(bytes, chunk);
            let lengths: Vec<usize> = (0..cut.messages()).map(|number| cut.length(number).unwrap()).collect();
            prop_assert_eq!(lengths.iter().sum::<usize>() as u64, bytes);
            prop_assert!(lengths.iter().all(|length| (1..=chunk).contains(length)));
            prop_assert_eq!(cut.length(cut.messages()), None);
        }
    }

    #[test]
    fn the_first_stream_has_the_remainder() {
        assert_eq!(shares(11, 4).collect::<Vec<_>>(), [5, 2, 2, 2]);
    }
}
