//! Received header blocks: most are equal to earlier ones, which are not decoded again.

use std::{collections::VecDeque, rc::Rc, sync::Arc};

use loona_hpack::Decoder;

use super::scan::{Uses, scan};
use crate::{
    error::Error,
    fields::{Fields, List},
    settings::TABLE,
};

/// Longest list of fields, in bytes as RFC 9113, section 6.5.2 counts them.
const LONGEST_LIST: usize = 64 << 10;
/// Overhead of a field in that count, and of an entry in the dynamic table (RFC 7541, section 4.1).
const OVERHEAD: usize = 32;

/// Blocks that are known again: for the kinds of replies that a server gives at one time.
const KNOWN: usize = 8;
/// Longest block that is kept to be known again, in bytes.
const LONGEST_KNOWN: usize = 4 << 10;

/// Entries that the dynamic table has room for. Of blocks that add to it, only the last so many matter.
const ENTRIES: usize = TABLE as usize / OVERHEAD;

/// The meaning of a reply's header block: a list of fields, or the reason why it is malformed.
pub(crate) type Meaning = Result<Rc<Fields>, &'static str>;

/// Decodes the header blocks of a client's connection.
pub(crate) type Replies = Blocks<Meaning>;

/// Decodes the header blocks of one connection into what they mean to its receiver.
pub(crate) struct Blocks<M> {
    decoder: Decoder<'static>,
    interpret: fn(List) -> M,
    known: Vec<Known<M>>,
    /// The place in `known` that is used next.
    next: usize,
    /// The meaning of the last block that is not known again.
    other: Option<M>,
    /// Changes whenever the dynamic table does.
    version: u64,
    /// The places of known blocks that have added to the dynamic table since the decoder last did: it is told
    /// when the table is needed. Some servers add the same fields in every block, and never refer to them.
    owed: VecDeque<usize>,
    /// The block being decoded, without the Huffman code.
    plain: Vec<u8>,
}

/// A block that has been decoded.
struct Known<M> {
    block: Arc<[u8]>,
    meaning: M,
    uses: Uses,
    /// The version of the dynamic table under which it was.
    version: u64,
}

impl Replies {
    pub(crate) fn new() -> Self {
        Self::meaning(|list| Fields::new(list).map(Rc::new))
    }
}

impl<M> Blocks<M> {
    /// Returns a decoder whose lists of fields mean what `interpret` returns.
    pub(crate) fn meaning(interpret: fn(List) -> M) -> Self {
        let mut decoder = Decoder::new();
        decoder.set_max_allowed_table_size(TABLE as usize);
        Self {
            decoder,
            interpret,
            known: Vec::new(),
            next: 0,
            other: None,
            version: 0,
            owed: VecDeque::new(),
            plain: Vec::new(),
        }
    }

    /// Returns the meaning of the next block.
    ///
    /// # Errors
    /// A block that cannot be decoded is a COMPRESSION_ERROR, one of too many fields ENHANCE_YOUR_CALM.
    pub(crate) fn decode(&mut self, block: &[u8]) -> Result<&M, Error> {
        // A block means the same again if it does not refer to the table, or the table is the same.
        let is_same = |known: &Known<M>| {
            *known.block == *block && (!known.uses.refers || known.version == self.version)
        };
        let Some(place) = self.known.iter().position(is_same) else {
            return self.decode_anew(block);
        };
        if self.known[place].uses.adds {
            self.version += 1;
            if self.owed.len() == ENTRIES {
                self.owed.pop_front();
            }
            self.owed.push_back(place);
        }
        Ok(&self.known[place].meaning)
    }

    #[cold]
    fn decode_anew(&mut self, block: &[u8]) -> Result<&M, Error> {
        // Before any place is used anew.
        while let Some(place) = self.owed.pop_front() {
            let owed = Arc::clone(&self.known[place].block);
            self.list(&owed)?;
        }
        let (uses, list) = self.list(block)?;
        let meaning = (self.interpret)(list);
        if uses.adds || uses.resizes {
            self.version += 1;
        }
        let depends_and_changes = uses.resizes || (uses.refers && uses.adds);
        if depends_and_changes || block.len() > LONGEST_KNOWN {
            return Ok(self.other.insert(meaning));
        }
        let place = self.keep(Known {
            block: block.into(),
            meaning,
            uses,
            version: self.version,
        });
        Ok(&self.known[place].meaning)
    }

    fn list(&mut self, block: &[u8]) -> Result<(Uses, List), Error> {
        let uses = scan(block, LONGEST_LIST, &mut self.plain)?;
        let (mut list, mut length) = (Vec::new(), 0);
        let decoded = self.decoder.decode_with_cb(&self.plain, |name, value| {
            length += name.len() + value.len() + OVERHEAD;
            if length <= LONGEST_LIST {
                list.push((name.into_owned(), value.into_owned()));
            }
        });
        decoded.map_err(|_| Error::compression("a header block cannot be decoded"))?;
        if length > LONGEST_LIST {
            return Err(Error::abuse("a header block has too many fields"));
        }
        Ok((uses, list))
    }

    /// Keeps a block to be known again, in the place of the same one under an earlier table or of the oldest;
    /// returns the place.
    fn keep(&mut self, new: Known<M>) -> usize {
        let mut known = self.known.iter();
        let place = if let Some(same) = known.position(|known| known.block == new.block) {
            same
        } else if self.known.len() < KNOWN {
            self.known.push(new);
            return self.known.len() - 1;
        } else {
            let oldest = self.next;
            self.next = (oldest + 1) % KNOWN;
            oldest
        };
        self.known[place] = new;
        place
    }
}

/// Decodes blocks with the caches and with the decoder alone; the fields of each, or its error.
#[doc(hidden)]
pub fn compared(blocks: &[u8]) -> Vec<[Option<List>; 2]> {
    let (mut cached, mut results) = (Replies::new(), Vec::new());
    let mut plain = Replies::new();
    let mut rest = blocks;
    while let Some((&length, after)) = rest.split_first() {
        let (block, after) = after.split_at(usize::from(length).min(after.len()));
        rest = after;
        let one = cached.decode(block);
        // A decoder that knows no block.
        plain.known.clear();
        let other = plain.decode(block);
        let is_over = one.is_err() || other.is_err();
        results.push([one, other].map(|meaning| {
            let owned = |(name, value): (&[u8], &[u8])| (name.to_vec(), value.to_vec());
            meaning.ok().map(|meaning| match meaning {
                Ok(fields) => fields.iter().map(owned).collect(),
                Err(malformed) => vec![((*malformed).into(), Vec::new())],
            })
        }));
        if is_over {
            break;
        }
    }
    results
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::error::Reason;

    fn value(replies: &mut Replies, block: &[u8]) -> String {
        let fields = replies.decode(block).unwrap().clone().unwrap();
        let (_, value) = fields.iter().last().unwrap();
        String::from_utf8(value.to_vec()).unwrap()
    }

    #[test]
    fn a_block_that_refers_to_the_table_changes_its_meaning_with_it() {
        let mut replies = Replies::new();
        let newest = [0x80 + 62];
        assert_eq!(value(&mut replies, b"\x40\x01a\x01x"), "x");
        assert_eq!(value(&mut replies, &newest), "x");
        assert_eq!(value(&mut replies, &newest), "x");
        assert_eq!(value(&mut replies, b"\x40\x01a\x01y"), "y");
        assert_eq!(value(&mut replies, &newest), "y");
        // A known block that adds, which the decoder has not seen for the second time yet.
        assert_eq!(value(&mut replies, b"\x40\x01a\x01x"), "x");
        assert_eq!(value(&mut replies, &newest), "x");
        assert_eq!(value(&mut replies, &[0x80 + 63]), "y");
        assert_eq!(value(&mut replies, &[0x80 + 64]), "x");
        let reason = replies.decode(&[0x80 + 65]).unwrap_err().reason;
        assert_eq!(reason, Reason::COMPRESSION_ERROR);
    }

    #[test]
    fn what_is_owed_to_the_table_is_bounded() {
        let mut replies = Replies::new();
        assert_eq!(value(&mut replies, b"\x40\x01b\x01y"), "y");
        for _ in 0..1000 {
            assert_eq!(value(&mut replies, b"\x40\x01a\x01x"), "x");
        }
        assert_eq!(replies.owed.len(), ENTRIES);
        // The table has room for 120 entries of 34 bytes.
        assert_eq!(value(&mut replies, &[0x80 + 127, 54]), "x");
        assert!(replies.decode(&[0x80 + 127, 55]).is_err());
    }

    #[test]
    fn malformed_blocks_are_errors_by_name() {
        let cases: [(&[u8], Reason); 9] = [
            (&[0x88, 0x20, 0x88], Reason::COMPRESSION_ERROR),
            (&[0x80], Reason::COMPRESSION_ERROR),
            (&[0x80 + 62], Reason::COMPRESSION_ERROR),
            (&[0x40, 0x03, b'a'], Reason::COMPRESSION_ERROR),
            (&[0x3F], Reason::COMPRESSION_ERROR),
            (&[0x3F, 0xE2, 0x1F, 0x88], Reason::COMPRESSION_ERROR),
            (&[0x88, 0x20], Reason::COMPRESSION_ERROR),
            (&[0x00, 0x81, 0x1e, 0x00], Reason::COMPRESSION_ERROR),
            (
                &[0x88, 0xFF, 0x80, 0x80, 0x80, 0x80],
                Reason::COMPRESSION_ERROR,
            ),
        ];
        for (block, reason) in cases {
            assert_eq!(
                Replies::new().decode(block).unwrap_err().reason,
                reason,
                "{block:?}"
            );
        }
        // An entry of 4,000 bytes, and references to it: a small block that is long when decoded.
        let mut replies = Replies::new();
        let mut bomb = b"\x40\x01a\x7f\xa1\x1e".to_vec();
        bomb.resize(bomb.len() + 4000, b'x');
        bomb.resize(bomb.len() + 17, 0x80 + 62);
        let error = replies.decode(&bomb).unwrap_err();
        assert_eq!(error.reason, Reason::ENHANCE_YOUR_CALM);
    }

    /// Blocks of few fields, so that many are equal and refer to each other.
    fn block() -> impl Strategy<Value = Vec<u8>> {
        let field = prop_oneof![
            4 => (62_u8..70).prop_map(|index| vec![0x80 | index]),
            3 => (0_u8..3).prop_map(|value| vec![0x40, 1, b'a', 1, b'x' + value]),
            1 => (62_u8..66).prop_map(|index| vec![0x40 | (index & 0x3F), 1, b'z']),
            1 => Just(vec![0x40, 1, b'b', 0x82, 0x1c, 0x67]),
            1 => Just(vec![0x00, 1, b'c', 1, b'z']),
            1 => Just(vec![0x88]),
        ];
        let size =
            prop_oneof![8 => Just(vec![]), 1 => (0_u8..31).prop_map(|size| vec![0x20 | size])];
        (size, prop::collection::vec(field, 0..4))
            .prop_map(|(size, fields)| [size, fields.concat()].concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        #[test]
        fn the_caches_change_no_meaning(
            kinds in prop::collection::vec(block(), 1..5),
            order in prop::collection::vec(any::<prop::sample::Index>(), 0..40),
        ) {
            let mut blocks = Vec::new();
            for index in order {
                let block = index.get(&kinds);
                blocks.push(block.len() as u8);
                blocks.extend(block);
            }
            for [cached, plain] in compared(&blocks) {
                prop_assert_eq!(cached, plain);
            }
        }
    }
}
