//! Header blocks to be sent: a head is encoded when it is first sent, and again only when the dynamic
//! table has changed.

use super::{integer, static_table};
use crate::{head::Head, settings::TABLE};

/// Overhead of an entry, in bytes (RFC 7541, section 4.1).
const OVERHEAD: usize = 32;

/// Heads whose blocks are kept.
const KEPT: usize = 64;

/// Encodes the header blocks of one connection.
///
/// Entries stay in the table until the peer wants it smaller: what has no room is sent in full. The
/// heads of a load generator are few, and to replace entries would only make them replace each other.
#[derive(Debug)]
pub(crate) struct Encoder {
    /// The fields in the peer's dynamic table, the newest last.
    table: Vec<(Vec<u8>, Vec<u8>)>,
    /// Size of the table, in bytes.
    size: usize,
    /// The limit of that size.
    limit: usize,
    /// The smallest limit since the last block, and the last one, if the peer has not been told.
    changed: Option<(usize, usize)>,
    /// Changes whenever the table does.
    version: u64,
    kept: Vec<Kept>,
    /// The place in `kept` that is used next.
    next: usize,
}

/// The block of a head.
#[derive(Debug)]
struct Kept {
    head: u64,
    /// The version of the table for which it is.
    version: u64,
    block: Vec<u8>,
}

impl Encoder {
    pub(crate) fn new() -> Self {
        Self {
            table: Vec::new(),
            size: 0,
            limit: TABLE as usize,
            changed: None,
            version: 0,
            kept: Vec::new(),
            next: 0,
        }
    }

    /// Follows SETTINGS_HEADER_TABLE_SIZE: its smallest and its last value since the last call.
    pub(crate) fn resize(&mut self, (smallest, last): (u32, u32)) {
        let [smallest, last] = [smallest, last].map(|size| size.min(TABLE) as usize);
        let known = self.changed.map_or(smallest, |(known, _)| known);
        if smallest != self.limit || last != self.limit || self.changed.is_some() {
            self.changed = Some((smallest.min(known), last));
        }
    }

    /// Appends the block of a head.
    pub(crate) fn encode(&mut self, head: &Head, out: &mut Vec<u8>) {
        if let Some(changed) = self.changed.take() {
            self.tell(changed, out);
        }
        let kept = self.kept.iter().position(|kept| kept.head == head.number());
        if let Some(kept) = kept.map(|place| &self.kept[place])
            && kept.version == self.version
        {
            out.extend_from_slice(&kept.block);
            return;
        }
        let (start, before) = (out.len(), self.version);
        for (name, value) in head.fields() {
            self.field(name, value, out);
        }
        // A block that adds to the table must not be sent again: the next one refers to what this one added.
        if self.version == before {
            let new = Kept {
                head: head.number(),
                version: before,
                block: out[start..].to_vec(),
            };
            self.keep(kept, new);
        }
    }

    /// Tells the peer the table's size, and follows (RFC 7541, section 4.2).
    fn tell(&mut self, (smallest, last): (usize, usize), out: &mut Vec<u8>) {
        let sizes = [smallest, last];
        for size in &sizes[usize::from(smallest == last)..] {
            integer::put(0x20, 5, *size, out);
            self.limit = *size;
            while self.size > *size {
                let (name, value) = self.table.remove(0);
                self.size -= name.len() + value.len() + OVERHEAD;
            }
        }
        self.version += 1;
    }

    fn field(&mut self, name: &[u8], value: &[u8], out: &mut Vec<u8>) {
        let (index, is_whole) = self.find(name, value);
        if is_whole {
            return integer::put(0x80, 7, index, out);
        }
        let size = name.len() + value.len() + OVERHEAD;
        let adds = self.size + size <= self.limit;
        if adds {
            integer::put(0x40, 6, index, out);
            self.table.push((name.to_vec(), value.to_vec()));
            self.size += size;
            self.version += 1;
        } else {
            integer::put(0, 4, index, out);
        }
        if index == 0 {
            string(name, out);
        }
        string(value, out);
    }

    /// Returns the index of a field and true, or that of its name; 0 if neither is in a table.
    fn find(&self, name: &[u8], value: &[u8]) -> (usize, bool) {
        let fixed = static_table::find(name, value);
        if let Some((index, true)) = fixed {
            return (index, true);
        }
        let index = |age: usize| static_table::LENGTH + 1 + age;
        let mut own = self.table.iter().rev();
        if let Some(age) = own.position(|field| field.0 == name && field.1 == value) {
            return (index(age), true);
        }
        let mut own = self.table.iter().rev();
        let age = own.position(|field| field.0 == name);
        let name = fixed.map(|(index, _)| index).or(age.map(index));
        (name.unwrap_or(0), false)
    }

    fn keep(&mut self, place: Option<usize>, new: Kept) {
        match place {
            Some(place) => self.kept[place] = new,
            None if self.kept.len() < KEPT => self.kept.push(new),
            None => {
                self.kept[self.next] = new;
                self.next = (self.next + 1) % KEPT;
            }
        }
    }
}

fn string(text: &[u8], out: &mut Vec<u8>) {
    integer::put(0, 7, text.len(), out);
    out.extend_from_slice(text);
}

#[cfg(test)]
mod tests {
    use loona_hpack::Decoder;
    use proptest::prelude::*;

    use super::*;
    use crate::head::Target;

    fn head(path: &str, headers: &[(&str, String)]) -> Head {
        let target = Target {
            method: "POST",
            scheme: "https",
            authority: "localhost:8005",
            path,
        };
        let headers = headers.iter();
        Head::new(
            target,
            headers.map(|(name, value)| (name.as_bytes(), value.as_bytes())),
        )
    }

    fn encoded(encoder: &mut Encoder, head: &Head) -> Vec<u8> {
        let mut block = Vec::new();
        encoder.encode(head, &mut block);
        block
    }

    #[test]
    fn a_head_is_a_few_indexes_once_it_is_known() {
        let mut encoder = Encoder::new();
        let one = head("/one", &[("te", "trailers".into())]);
        assert!(encoded(&mut encoder, &one).len() > 30);
        let known = [0x83, 0x87, 0x80 + 64, 0x80 + 63, 0x80 + 62];
        assert_eq!(encoded(&mut encoder, &one), known);
        assert_eq!(encoded(&mut encoder, &one), known);
        // Another one moves the entries, and shares those that are equal.
        let other = head("/other", &[("te", "trailers".into())]);
        encoded(&mut encoder, &other);
        assert_eq!(
            encoded(&mut encoder, &one),
            known.map(|byte| byte + u8::from(byte > 0x87))
        );
    }

    #[test]
    fn sizes_of_the_table_are_told_at_the_start_of_the_next_block() {
        let mut encoder = Encoder::new();
        let one = head("/one", &[]);
        encoded(&mut encoder, &one);
        encoder.resize((0, 0));
        let block = encoded(&mut encoder, &one);
        assert_eq!(block[0], 0x20);
        assert!(block.len() > 20, "the table is empty: {block:?}");
        assert_eq!(encoded(&mut encoder, &one), block[1..]);
        // Smaller and larger again in between: the smallest is told first.
        encoder.resize((30, 30));
        encoder.resize((10, 20));
        assert_eq!(encoded(&mut encoder, &one)[..2], [0x20 + 10, 0x20 + 20]);
        encoder.resize((20, 20));
        assert_ne!(encoded(&mut encoder, &one)[0] & 0xE0, 0x20);
        // More than this end wants to use.
        encoder.resize((20, 1 << 20));
        let start = encoded(&mut encoder, &one);
        assert_eq!(start[..4], [0x20 + 20, 0x3F, 0xE1, 0x1F]);
    }

    proptest! {
        #[test]
        fn a_decoder_reads_the_same_fields(
            values in prop::collection::vec("[a-z]{0,300}", 1..6),
            steps in prop::collection::vec((any::<prop::sample::Index>(), prop::option::of(0_u32..5000)), 0..60),
        ) {
            let names = ["te", "x-a", "accept-encoding", "x-b"];
            let heads: Vec<_> = values.iter().enumerate().map(|(place, value)| {
                let headers: Vec<_> = names.iter().take(place).map(|name| (*name, value.clone())).collect();
                head(&format!("/{value}"), &headers)
            }).collect();
            let (mut encoder, mut decoder) = (Encoder::new(), Decoder::new());
            let mut told = TABLE as usize;
            for (index, size) in steps {
                if let Some(size) = size {
                    encoder.resize((size, size));
                    decoder.set_max_allowed_table_size(size as usize);
                    told = size as usize;
                }
                let head = index.get(&heads);
                let block = encoded(&mut encoder, head);
                prop_assert_eq!(&decoder.decode(&block).unwrap(), head.fields());
                prop_assert!(encoder.size <= told);
            }
        }
    }
}
