//! Connections by number. A number is used again; a token is not, so that a late event finds no
//! connection instead of another one.

/// Names one entry for as long as it lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Token {
    index: u32,
    generation: u32,
}

impl Token {
    /// A token that no slab gives: slabs count from zero, and no process has that number of
    /// descriptors.
    pub(crate) const fn reserved(number: u32) -> Self {
        Self {
            index: u32::MAX - number,
            generation: u32::MAX,
        }
    }

    pub(crate) const fn index(self) -> u32 {
        self.index
    }

    /// Names a stream of the connection with this token.
    pub(crate) const fn stream(self, stream: u32) -> StreamToken {
        StreamToken {
            connection: self,
            stream,
        }
    }

    /// As the kernel keeps it beside a descriptor.
    pub(crate) const fn to_u64(self) -> u64 {
        ((self.generation as u64) << 32) | self.index as u64
    }

    /// The inverse of [`Token::to_u64`].
    // Each half is cut to the width that it had there.
    #[allow(clippy::cast_possible_truncation)]
    pub(crate) const fn from_u64(data: u64) -> Self {
        Self {
            index: data as u32,
            generation: (data >> 32) as u32,
        }
    }
}

/// Names a stream of a connection; 0 where the connection is one stream of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct StreamToken {
    pub(crate) connection: Token,
    pub(crate) stream: u32,
}

#[derive(Debug)]
struct SlabEntry<T> {
    generation: u32,
    /// None while it is vacant, or taken out to be worked on.
    value: Option<Box<T>>,
}

/// Values in boxes: an entry that is vacant costs 16 bytes, and to take one out moves a pointer.
#[derive(Debug)]
pub(crate) struct Slab<T> {
    entries: Vec<SlabEntry<T>>,
    vacant: Vec<u32>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self {
            entries: Vec::new(),
            vacant: Vec::new(),
        }
    }
}

impl<T> Slab<T> {
    /// A new entry, which is empty until something is [put](Slab::put) there.
    pub(crate) fn reserve(&mut self) -> Token {
        let index = self.vacant.pop().unwrap_or_else(|| {
            self.entries.push(SlabEntry {
                generation: 0,
                value: None,
            });
            u32::try_from(self.entries.len() - 1).unwrap_or(u32::MAX - 16)
        });
        Token {
            index,
            generation: self.entries[index as usize].generation,
        }
    }

    fn entry(&mut self, token: Token) -> Option<&mut SlabEntry<T>> {
        let entry = self.entries.get_mut(token.index as usize)?;
        (entry.generation == token.generation).then_some(entry)
    }

    /// Takes the value out; its token stays its own.
    pub(crate) fn take(&mut self, token: Token) -> Option<Box<T>> {
        self.entry(token)?.value.take()
    }

    /// Puts a value where its token says.
    pub(crate) fn put(&mut self, token: Token, value: Box<T>) {
        if let Some(entry) = self.entry(token) {
            debug_assert!(entry.value.is_none(), "two values for one token");
            entry.value = Some(value);
        }
    }

    pub(crate) fn get_mut(&mut self, token: Token) -> Option<&mut T> {
        self.entry(token)?.value.as_deref_mut()
    }

    /// The value with this number, of any generation.
    pub(crate) fn at(&mut self, index: u32) -> Option<&mut T> {
        self.entries.get_mut(index as usize)?.value.as_deref_mut()
    }

    /// Ends a token: its number may be given to another.
    pub(crate) fn release(&mut self, token: Token) {
        if let Some(entry) = self.entry(token) {
            entry.value = None;
            entry.generation = entry.generation.wrapping_add(1);
            self.vacant.push(token.index);
        }
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.entries
            .iter_mut()
            .filter_map(|entry| entry.value.as_deref_mut())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_used_again_and_a_token_is_not() {
        let mut slab = Slab::default();
        let first = slab.reserve();
        slab.put(first, Box::new('a'));
        assert_eq!(Token::from_u64(first.to_u64()), first);
        assert_eq!(slab.take(first).as_deref(), Some(&'a'));
        assert!(slab.get_mut(first).is_none(), "taken out");
        slab.put(first, Box::new('a'));
        slab.release(first);
        let second = slab.reserve();
        slab.put(second, Box::new('b'));
        assert_eq!(second.index(), first.index());
        assert!(slab.take(first).is_none());
        slab.release(first);
        assert_eq!(slab.get_mut(second), Some(&mut 'b'));
        assert_eq!(slab.iter_mut().count(), 1);
    }
}
