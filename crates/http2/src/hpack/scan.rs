//! A first look at a header block: its form, and what it has to do with the dynamic table.

use super::{huffman, integer, static_table};
use crate::error::Error;

/// The relation of a header block to the dynamic table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Uses {
    /// It refers to entries.
    pub(super) refers: bool,
    /// It adds entries.
    pub(super) adds: bool,
    /// It changes the size.
    pub(super) resizes: bool,
}

/// Checks the form of a block, and writes it to `plain` without the Huffman code.
///
/// # Errors
/// A malformed block, strings of more than `limit` bytes together, or a size update that is not at the beginning
/// (RFC 7541, section 4.2), are errors.
pub(super) fn scan(mut block: &[u8], limit: usize, plain: &mut Vec<u8>) -> Result<Uses, Error> {
    let mut uses = Uses::default();
    let mut is_beginning = true;
    plain.clear();
    while let Some(&first) = block.first() {
        let before = block;
        if first & 0xE0 == 0x20 {
            if !is_beginning {
                let detail = "a table size changes within a header block";
                return Err(Error::compression(detail));
            }
            uses.resizes = true;
            integer::take(&mut block, 5)?;
            plain.extend_from_slice(&before[..before.len() - block.len()]);
            continue;
        }
        is_beginning = false;
        let is_indexed = first & 0x80 != 0;
        let adds = first & 0xC0 == 0x40;
        let bits = match first {
            _ if is_indexed => 7,
            _ if adds => 6,
            _ => 4,
        };
        let index = integer::take(&mut block, bits)?;
        plain.extend_from_slice(&before[..before.len() - block.len()]);
        uses.refers |= index > static_table::LENGTH;
        uses.adds |= adds;
        if !is_indexed {
            if index == 0 {
                string(&mut block, limit, plain)?;
            }
            string(&mut block, limit, plain)?;
        }
    }
    Ok(uses)
}

/// Copies a string literal without the Huffman code.
fn string(block: &mut &[u8], limit: usize, plain: &mut Vec<u8>) -> Result<(), Error> {
    let is_coded = block.first().is_some_and(|first| first & 0x80 != 0);
    let length = integer::take(block, 7)?;
    let cut_off = Error::compression("a header block ends within a string");
    let (string, rest) = block.split_at_checked(length).ok_or(cut_off)?;
    *block = rest;
    if is_coded {
        // The length is known only afterwards; three bytes have room for every string of a block.
        let start = plain.len();
        huffman::decode(string, plain)?;
        let length = plain.len() - start;
        let mut prefix = Vec::with_capacity(4);
        integer::put(0, 7, length, &mut prefix);
        plain.splice(start..start, prefix);
    } else {
        integer::put(0, 7, length, plain);
        plain.extend_from_slice(string);
    }
    if plain.len() > limit {
        return Err(Error::abuse("the fields of a header block are too long"));
    }
    Ok(())
}
