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

/// The lengths of a stream's messages as they come, where the server may choose some of them.
#[derive(Debug)]
pub(super) struct Lengths {
    /// Bytes of each message but the last; `None`: the server's choice.
    chunk: Option<u64>,
    /// Bytes of all messages; `None`: the server's choice.
    total: Option<u64>,
    /// Bytes of the messages begun so far.
    begun: u64,
    /// Bytes of the longest of them.
    longest: u64,
    /// The last one was shorter than a chunk, so no other may follow.
    ended: bool,
}

impl Lengths {
    /// Returns the lengths of no messages yet; a `chunk` or `total` of 0 is the server's choice.
    pub fn new(chunk: usize, total: u64) -> Self {
        Self {
            chunk: Some(chunk as u64).filter(|chunk| *chunk > 0),
            total: Some(total).filter(|total| *total > 0),
            begun: 0,
            longest: 0,
            ended: false,
        }
    }

    /// Begins a message of `length` bytes; if that is wrong, says how.
    pub fn begin(&mut self, length: u64) -> Result<(), String> {
        let left = self.total.map(|total| total - self.begun);
        if left == Some(0) || self.ended {
            return Err(format!("an unrequested message of {length} bytes"));
        }
        let longest = match (self.chunk, left) {
            (Some(chunk), Some(left)) => Some(chunk.min(left)),
            (chunk, left) => chunk.or(left),
        };
        let is_exact = self.chunk.is_some() && left.is_some();
        if let Some(longest) = longest
            && (length > longest || (is_exact && length < longest))
        {
            return Err(format!(
                "a message of {length} bytes where {longest} were asked for"
            ));
        }
        self.ended = left.is_none() && self.chunk.is_some_and(|chunk| length < chunk);
        self.begun += length;
        self.longest = self.longest.max(length);
        Ok(())
    }

    /// Returns the bytes of all messages begun, and those of the longest.
    pub fn carried(&self) -> Carried {
        Carried {
            bytes: self.begun,
            longest: self.longest,
        }
    }
}

/// The bytes that a stream carried in a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Carried {
    /// Bytes of payload.
    pub bytes: u64,
    /// Bytes of the longest message.
    pub longest: u64,
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

    /// Begins messages of these lengths; the error of the first wrong one.
    fn begun(chunk: usize, total: u64, lengths: &[u64]) -> Result<Carried, String> {
        let mut all = Lengths::new(chunk, total);
        lengths.iter().try_for_each(|length| all.begin(*length))?;
        Ok(all.carried())
    }

    #[test]
    fn a_server_may_choose_what_was_not_asked_for() {
        let carried = |bytes, longest| Ok(Carried { bytes, longest });
        assert_eq!(begun(3, 7, &[3, 3, 1]), carried(7, 3));
        assert_eq!(begun(0, 7, &[5, 2]), carried(7, 5));
        assert_eq!(begun(3, 0, &[3, 3, 3, 2]), carried(11, 3));
        assert_eq!(begun(0, 0, &[9, 1, 4]), carried(14, 9));
        let unrequested = Err("an unrequested message of 1 bytes".to_owned());
        assert_eq!(begun(3, 0, &[3, 2, 1]), unrequested);
        assert_eq!(begun(0, 7, &[7, 1]), unrequested);
        let longer = Err("a message of 4 bytes where 3 were asked for".to_owned());
        assert_eq!(begun(3, 0, &[4]), longer);
        assert_eq!(begun(0, 7, &[4, 4]), longer);
    }

    #[test]
    fn the_first_stream_has_the_remainder() {
        assert_eq!(shares(11, 4).collect::<Vec<_>>(), [5, 2, 2, 2]);
    }
}
