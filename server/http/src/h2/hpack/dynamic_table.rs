//! The decoder's dynamic table (RFC 7541 sections 2.3.2 and 4).

use std::collections::VecDeque;

use super::{ENTRY_OVERHEAD, TABLE_SIZE};

/// The fields that the client refers to by number. At most [`TABLE_SIZE`] bytes by HPACK's count,
/// and as much of memory, twice that while it is being filled.
#[derive(Debug)]
pub(super) struct DynamicTable {
    /// Names and values, the oldest first; those before the oldest entry's are not used any more.
    text: Vec<u8>,
    /// How many bytes of text were removed since the beginning; it wraps.
    removed: u32,
    entries: VecDeque<TableEntry>,
    size: usize,
    limit: usize,
    generation: u64,
}

#[derive(Clone, Copy, Debug)]
struct TableEntry {
    /// Index of its name in all text since the beginning; it wraps.
    start: u32,
    name: u16,
    value: u16,
}

impl TableEntry {
    const fn len(self) -> usize {
        self.name as usize + self.value as usize
    }
}

impl DynamicTable {
    pub(super) const fn new() -> Self {
        Self {
            text: Vec::new(),
            removed: 0,
            entries: VecDeque::new(),
            size: 0,
            limit: TABLE_SIZE,
            generation: 0,
        }
    }

    /// A number that is another one after each change of the table.
    pub(super) const fn generation(&self) -> u64 {
        self.generation
    }

    /// The name and the value of the entry that was added `age` entries before the newest.
    pub(super) fn get(&self, age: usize) -> Option<(&[u8], &[u8])> {
        let at = self.entries.len().checked_sub(age + 1)?;
        let entry = *self.entries.get(at)?;
        let start = self.place(entry.start);
        let text = self.text.get(start..start + entry.len())?;
        text.split_at_checked(entry.name.into())
    }

    /// Adds an entry and evicts the oldest as far as needed. One that is larger than the table
    /// empties it (section 4.4).
    pub(super) fn insert(&mut self, name: &[u8], value: &[u8]) {
        self.generation += 1;
        let size = name.len() + value.len() + ENTRY_OVERHEAD;
        self.evict_to(self.limit.saturating_sub(size));
        let lens = (u16::try_from(name.len()), u16::try_from(value.len()));
        let (Ok(name_len), Ok(value_len)) = lens else {
            return;
        };
        if size > self.limit {
            return;
        }
        let unused = self.unused();
        if unused > TABLE_SIZE {
            self.remove(unused);
        }
        // The text is never longer than twice the table.
        #[allow(clippy::cast_possible_truncation)]
        let start = self.removed.wrapping_add(self.text.len() as u32);
        self.text.extend_from_slice(name);
        self.text.extend_from_slice(value);
        self.entries.push_back(TableEntry {
            start,
            name: name_len,
            value: value_len,
        });
        self.size += size;
    }

    /// Follows a size update of the client (section 4.3). False if it is above our setting.
    pub(super) fn set_limit(&mut self, limit: usize) -> bool {
        if limit > TABLE_SIZE {
            return false;
        }
        self.generation += 1;
        self.limit = limit;
        self.evict_to(limit);
        true
    }

    /// Gives back memory that no entry uses.
    pub(super) fn shrink(&mut self) {
        self.remove(self.unused());
        self.text.shrink_to_fit();
        self.entries.shrink_to_fit();
    }

    /// Bytes of memory beside the struct itself.
    #[cfg(test)]
    pub(super) fn memory(&self) -> usize {
        self.text.capacity() + self.entries.capacity() * size_of::<TableEntry>()
    }

    fn evict_to(&mut self, size: usize) {
        while self.size > size
            && let Some(entry) = self.entries.pop_front()
        {
            self.size -= entry.len() + ENTRY_OVERHEAD;
        }
        if self.entries.is_empty() {
            self.remove(self.text.len());
        }
    }

    const fn place(&self, start: u32) -> usize {
        start.wrapping_sub(self.removed) as usize
    }

    /// Bytes of text before the oldest entry's.
    fn unused(&self) -> usize {
        let oldest = self.entries.front();
        oldest.map_or(self.text.len(), |oldest| self.place(oldest.start))
    }

    // See `insert` for the length.
    #[allow(clippy::cast_possible_truncation)]
    fn remove(&mut self, len: usize) {
        self.text.drain(..len);
        self.removed = self.removed.wrapping_add(len as u32);
    }
}
