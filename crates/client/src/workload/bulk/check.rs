//! Verifies the bytes that arrive.

use bytes::Bytes;
use netping_measure::error_kind::ErrorKind;

use crate::transport::Failure;

/// Counts the bytes of one stream in one run, and compares them if that is wanted.
#[derive(Debug)]
pub(super) struct Check {
    /// The bytes that each message is a prefix of; `None`: bytes are only counted.
    pattern: Option<Bytes>,
    /// Bytes in all; 0: as many as the server chooses.
    expected: u64,
    received: u64,
    /// Position in the current message.
    at: usize,
}

impl Check {
    /// Returns the check of `expected` bytes in all, 0 for any number; with a pattern, each message must be a prefix
    /// of it.
    pub fn new(expected: u64, pattern: Option<Bytes>) -> Self {
        Self {
            pattern,
            expected,
            received: 0,
            at: 0,
        }
    }

    /// Begins a message.
    pub fn begin(&mut self) {
        self.at = 0;
    }

    /// Takes the next bytes of the message.
    ///
    /// # Errors
    /// A failure of kind `mismatch` for a wrong byte or one too many.
    pub fn take(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        if self.expected > 0 && self.received + bytes.len() as u64 > self.expected {
            let detail = format!("received more than the {} bytes requested", self.expected);
            return Err(Failure::lost(ErrorKind::Mismatch, detail));
        }
        if let Some(pattern) = &self.pattern {
            let right = pattern.get(self.at..).unwrap_or_default();
            if right.get(..bytes.len()) != Some(bytes) {
                return Err(self.wrong(bytes, right));
            }
        }
        self.at += bytes.len();
        self.received += bytes.len() as u64;
        Ok(())
    }

    /// Ends the run.
    ///
    /// # Errors
    /// A failure of kind `mismatch` if bytes are missing.
    pub fn finish(&self) -> Result<(), Failure> {
        if self.expected == 0 || self.received == self.expected {
            return Ok(());
        }
        let (received, expected) = (self.received, self.expected);
        let detail = format!("received {received} bytes instead of {expected}");
        Err(Failure::lost(ErrorKind::Mismatch, detail))
    }

    fn wrong(&self, bytes: &[u8], right: &[u8]) -> Failure {
        let same = bytes
            .iter()
            .zip(right)
            .take_while(|(own, other)| own == other)
            .count();
        let offset = self.received + same as u64;
        let detail = match (bytes.get(same), right.get(same)) {
            (Some(byte), Some(right)) => {
                format!("byte {offset} of the stream is {byte:#04x} instead of {right:#04x}")
            }
            _ => format!("byte {offset} of the stream belongs to a message longer than requested"),
        };
        Failure::lost(ErrorKind::Mismatch, detail)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(expected: u64) -> Check {
        Check::new(expected, Some(Bytes::from_static(b"abcdef")))
    }

    #[test]
    fn every_message_begins_with_the_pattern() {
        let mut check = check(9);
        let messages: [&[&[u8]]; 2] = [&[b"abc", b"def"], &[b"a", b"", b"bc"]];
        for message in messages {
            check.begin();
            for part in message {
                check.take(part).unwrap();
            }
        }
        check.finish().unwrap();
    }

    #[test]
    fn a_wrong_byte_is_named_by_its_place() {
        let mut check = check(100);
        check.take(b"abcdef").unwrap();
        check.begin();
        check.take(b"ab").unwrap();
        let failure = check.take(b"cxe").unwrap_err();
        assert_eq!(failure.kind, ErrorKind::Mismatch);
        assert_eq!(
            failure.detail,
            "byte 9 of the stream is 0x78 instead of 0x64"
        );
        let failure = check.take(b"cdefg").unwrap_err();
        assert!(
            failure.detail.contains("byte 12") && failure.detail.contains("longer"),
            "{failure}"
        );
    }

    #[test]
    fn lengths_are_exact_without_a_pattern_too() {
        let mut check = Check::new(3, None);
        check.take(b"??").unwrap();
        assert!(
            check
                .finish()
                .unwrap_err()
                .detail
                .contains("received 2 bytes instead of 3")
        );
        assert!(
            check
                .take(b"??")
                .unwrap_err()
                .detail
                .contains("more than the 3")
        );
        check.take(b"?").unwrap();
        check.finish().unwrap();
    }
}
