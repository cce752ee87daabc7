//! Parses the replies of frames.

use netping_measure::error_kind::ErrorKind;
use netping_protocol::frame::REPLY_HEADER;

use super::{check::Check, cut::Cut};
use crate::transport::Failure;

/// The reason why replies are wrong.
pub(super) enum Wrong {
    Failure(Failure),
    /// One has an unexpected length.
    Length {
        length: usize,
        expected: usize,
        /// Its bytes so far.
        begun: Vec<u8>,
    },
}

/// The replies of a run, parsed as their bytes come.
pub(super) struct Replies {
    /// Their expected lengths.
    cut: Cut,
    pub check: Check,
    /// The number of replies begun.
    begun: u64,
    /// The current reply's header as far as it has come.
    header: [u8; REPLY_HEADER],
    filled: usize,
    /// Bytes of the current reply that are still to come.
    left: usize,
}

impl Replies {
    pub fn new(cut: Cut, check: Check) -> Self {
        Self {
            cut,
            check,
            begun: 0,
            header: [0; REPLY_HEADER],
            filled: 0,
            left: 0,
        }
    }

    /// Returns true if every reply is whole.
    pub fn are_complete(&self) -> bool {
        self.begun == self.cut.messages() && self.left == 0
    }

    /// Parses the next bytes; returns the number of replies that they complete.
    pub fn feed(&mut self, mut input: &[u8]) -> Result<u64, Wrong> {
        let mut whole = 0;
        while !input.is_empty() {
            if self.left > 0 {
                let (own, rest) = input.split_at(self.left.min(input.len()));
                self.check.take(own).map_err(Wrong::Failure)?;
                self.left -= own.len();
                input = rest;
                whole += u64::from(self.left == 0);
                continue;
            }
            let (own, rest) = input.split_at((REPLY_HEADER - self.filled).min(input.len()));
            self.header[self.filled..self.filled + own.len()].copy_from_slice(own);
            self.filled += own.len();
            input = rest;
            if self.filled == REPLY_HEADER {
                self.filled = 0;
                self.begin(u32::from_be_bytes(self.header) as usize, input)?;
                whole += u64::from(self.left == 0);
            }
        }
        Ok(whole)
    }

    /// Begins a reply of `length` bytes; `input` follows its header.
    fn begin(&mut self, length: usize, input: &[u8]) -> Result<(), Wrong> {
        let Some(expected) = self.cut.length(self.begun) else {
            let detail = "an unrequested reply";
            return Err(Wrong::Failure(Failure::lost(ErrorKind::Protocol, detail)));
        };
        if length != expected {
            return Err(Wrong::Length {
                length,
                expected,
                begun: input.to_vec(),
            });
        }
        self.begun += 1;
        self.left = length;
        self.check.begin();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The replies to requests for 5, 5 and 2 bytes.
    fn replies() -> Replies {
        Replies::new(
            Cut::new(12, 5),
            Check::new(12, Some(bytes::Bytes::from_static(b"abcde"))),
        )
    }

    const RIGHT: &[u8] = b"\0\0\0\x05abcde\0\0\0\x05abcde\0\0\0\x02ab";

    #[test]
    fn read_boundaries_within_replies_do_not_matter() {
        for step in 1..=RIGHT.len() {
            let mut replies = replies();
            let mut whole = 0;
            for part in RIGHT.chunks(step) {
                assert!(!replies.are_complete());
                whole += replies.feed(part).unwrap_or_else(|_| panic!("step {step}"));
            }
            assert!(
                whole == 3 && replies.are_complete() && replies.check.finish().is_ok(),
                "step {step}"
            );
        }
    }

    #[test]
    fn wrong_bytes_and_wrong_lengths_are_distinguished() {
        let feed = |bytes: &[u8]| replies().feed(bytes);
        let kind = |bytes: &[u8]| match feed(bytes) {
            Err(Wrong::Failure(failure)) => Some(failure.kind),
            _ => None,
        };
        assert_eq!(kind(b"\0\0\0\x05abXde"), Some(ErrorKind::Mismatch));
        assert_eq!(
            kind(&[RIGHT, b"\0\0\0\0"].concat()),
            Some(ErrorKind::Protocol)
        );
        let Err(Wrong::Length {
            length,
            expected,
            begun,
        }) = feed(b"\0\0\0\x09error")
        else {
            panic!("a reply of 9 bytes is none of 5");
        };
        assert_eq!((length, expected, &begun[..]), (9, 5, &b"error"[..]));
    }
}
