//! Header blocks become fields (RFC 7541 section 6).

use super::dynamic_table::DynamicTable;
use super::{ENTRY_OVERHEAD, huffman, integer, static_table};

/// A block that cannot be decoded (RFC 9113 section 4.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CompressionError;

/// Why a block was not decoded to its end. The connection ends, because its table is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BlockError {
    /// It is malformed.
    Compression,
    /// It means far more than its length: see [`HpackDecoder::decode`].
    TooLarge,
}

impl From<CompressionError> for BlockError {
    fn from(CompressionError: CompressionError) -> Self {
        Self::Compression
    }
}

/// Takes the fields of a block in order. It decides what is kept: one byte of a block can mean a
/// field of four kilobytes.
pub(crate) trait FieldSink {
    fn field(&mut self, name: &[u8], value: &[u8]);
}

/// The decoder of one connection.
#[derive(Debug)]
pub(crate) struct HpackDecoder {
    table: DynamicTable,
}

/// Rule by which a literal is added to the dynamic table.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Indexing {
    Incremental,
    None,
}

impl HpackDecoder {
    pub(crate) const fn new() -> Self {
        Self {
            table: DynamicTable::new(),
        }
    }

    /// A number that is another one after each change of the dynamic table. Equal blocks mean the
    /// same fields if the number is the same before both.
    pub(crate) const fn generation(&self) -> u64 {
        self.table.generation()
    }

    /// Decodes a whole block. `scratch` is emptied and used for strings.
    ///
    /// Work is bounded by `max_list`, the size of the list as both sides count it (RFC 9113 section
    /// 6.5.2): two bytes of a block may copy an entry of four kilobytes into the table again.
    pub(crate) fn decode(
        &mut self,
        mut block: &[u8],
        max_list: usize,
        scratch: &mut Vec<u8>,
        sink: &mut impl FieldSink,
    ) -> Result<(), BlockError> {
        let mut left = max_list;
        // Size updates stand only at the beginning (section 4.2).
        while let Some(0b0010_0000..=0b0011_1111) = block.first() {
            let limit = integer::take(&mut block, 5)?;
            if !self.table.set_limit(limit) {
                return Err(BlockError::Compression);
            }
        }
        while let Some(&first) = block.first() {
            let size = match first {
                0b1000_0000.. => {
                    let index = integer::take(&mut block, 7)?;
                    let (name, value) = self.entry(index)?;
                    sink.field(name, value);
                    name.len() + value.len()
                }
                0b0100_0000.. => {
                    self.literal(&mut block, 6, Indexing::Incremental, scratch, sink)?
                }
                0b0010_0000.. => return Err(BlockError::Compression),
                // Without indexing, or never indexed: a server does not send the field on.
                _ => self.literal(&mut block, 4, Indexing::None, scratch, sink)?,
            };
            let counted = left.checked_sub(size + ENTRY_OVERHEAD);
            left = counted.ok_or(BlockError::TooLarge)?;
        }
        Ok(())
    }

    /// Gives back memory that no entry uses.
    pub(crate) fn shrink(&mut self) {
        self.table.shrink();
    }

    /// Bytes of memory beside the struct itself.
    #[cfg(test)]
    pub(crate) fn memory(&self) -> usize {
        self.table.memory()
    }

    /// A literal (section 6.2), whose first byte has `prefix` bits of the name's index; the length
    /// of its name and its value.
    fn literal(
        &mut self,
        block: &mut &[u8],
        prefix: u32,
        indexing: Indexing,
        scratch: &mut Vec<u8>,
        sink: &mut impl FieldSink,
    ) -> Result<usize, CompressionError> {
        scratch.clear();
        match integer::take(block, prefix)? {
            0 => take_string(block, scratch)?,
            index => scratch.extend_from_slice(self.entry(index)?.0),
        }
        let name_len = scratch.len();
        take_string(block, scratch)?;
        let (name, value) = scratch.split_at(name_len);
        sink.field(name, value);
        if indexing == Indexing::Incremental {
            self.table.insert(name, value);
        }
        Ok(scratch.len())
    }

    /// The entry with this index in both tables (section 2.3.3).
    fn entry(&self, index: usize) -> Result<(&[u8], &[u8]), CompressionError> {
        if let Some((name, value)) = static_table::entry(index) {
            return Ok((name.as_bytes(), value.as_bytes()));
        }
        let age = index.checked_sub(static_table::LEN + 1);
        age.and_then(|age| self.table.get(age))
            .ok_or(CompressionError)
    }
}

/// Takes a string (section 5.2) and appends it to `out`.
#[inline]
fn take_string(block: &mut &[u8], out: &mut Vec<u8>) -> Result<(), CompressionError> {
    let is_huffman = block.first().is_some_and(|&first| first >= 0x80);
    let len = integer::take(block, 7)?;
    let (string, rest) = block.split_at_checked(len).ok_or(CompressionError)?;
    *block = rest;
    if is_huffman {
        return huffman::decode(string, out);
    }
    out.extend_from_slice(string);
    Ok(())
}
