//! A stream of bytes as pieces: heads of a fixed length, each of which tells how many bytes follow it.

/// The place in the stream.
#[derive(Debug)]
pub(crate) struct Pieces<const HEAD: usize> {
    /// The head of which so many bytes have come.
    head: [u8; HEAD],
    came: usize,
    /// Bytes that still belong to the last head.
    left: usize,
}

impl<const HEAD: usize> Default for Pieces<HEAD> {
    fn default() -> Self {
        Self {
            head: [0; HEAD],
            came: 0,
            left: 0,
        }
    }
}

impl<const HEAD: usize> Pieces<HEAD> {
    /// Splits off the front of `bytes` the rest of the current payload, and the head after it if that is whole: its payload
    /// must then be announced with [`Pieces::expect`]. Without a whole head, all bytes are taken.
    pub(crate) fn next<'a>(&mut self, bytes: &mut &'a [u8]) -> (&'a [u8], Option<[u8; HEAD]>) {
        let (payload, rest) = bytes.split_at(bytes.len().min(self.left));
        self.left -= payload.len();
        if self.came == 0
            && let Some((head, rest)) = rest.split_first_chunk()
        {
            // Most are whole.
            *bytes = rest;
            return (payload, Some(*head));
        }
        *bytes = rest;
        let head = if rest.is_empty() {
            None
        } else {
            self.part_of_head(bytes)
        };
        (payload, head)
    }

    /// Takes the next part of a head; returns it once it is whole.
    #[cold]
    fn part_of_head(&mut self, bytes: &mut &[u8]) -> Option<[u8; HEAD]> {
        let (part, rest) = bytes.split_at(bytes.len().min(HEAD - self.came));
        *bytes = rest;
        self.head[self.came..][..part.len()].copy_from_slice(part);
        self.came += part.len();
        (self.came == HEAD).then(|| {
            self.came = 0;
            self.head
        })
    }

    /// Announces that so many bytes follow the head.
    pub(crate) fn expect(&mut self, bytes: usize) {
        self.left = bytes;
    }

    /// Returns true if a part of a head has come.
    pub(crate) fn has_part_of_head(&self) -> bool {
        self.came > 0
    }

    /// Returns true if a part of a payload is still to come.
    pub(crate) fn awaits_payload(&self) -> bool {
        self.left > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_the_same_however_they_come() {
        // Heads of two bytes, of which the second is the length.
        let bytes = b"a\x03xyzb\0c\x01w";
        for step in 1..=bytes.len() {
            let mut pieces = Pieces::<2>::default();
            let (mut heads, mut payload) = (Vec::new(), Vec::new());
            for mut part in bytes.chunks(step) {
                loop {
                    let (some, head) = pieces.next(&mut part);
                    payload.extend(some);
                    let Some(head) = head else { break };
                    heads.push(head[0]);
                    pieces.expect(head[1].into());
                }
            }
            assert_eq!((&heads[..], &payload[..]), (&b"abc"[..], &b"xyzw"[..]));
            assert!(!pieces.has_part_of_head() && !pieces.awaits_payload());
            assert_eq!(pieces.next(&mut &b"d"[..]), (&b""[..], None));
            assert!(pieces.has_part_of_head());
        }
    }
}
