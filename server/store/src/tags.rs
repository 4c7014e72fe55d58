//! The inverted index from tags to entries, with generation counters where a list would be long.

use hashbrown::HashMap;

use crate::{
    Feed, Tag,
    entry::{Generation, GenerationCheck, StoredEntry},
    sync::{Arc, atomic::Ordering},
};

/// A narrow tag lists at most this many dependents. Further dependents compare the tag's
/// generation, as for a broad tag. So one touched tag costs at most this many marks.
pub(crate) const LISTED: usize = 64;

struct Dependents<V, F: Feed> {
    generation: Option<Arc<Generation>>,
    /// Entries that compare the generation.
    watching: usize,
    listed: Vec<Arc<StoredEntry<V, F>>>,
}

/// Counts of touching a tag.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TouchCounts {
    /// Entries that were marked one by one.
    pub(crate) marked: usize,
    /// True if other entries have ended, which is noticed when they are looked up.
    pub(crate) others: bool,
}

/// All tags on which a stored entry depends.
pub(crate) struct TagTable<V, F: Feed> {
    tags: HashMap<Tag, Dependents<V, F>, foldhash::fast::RandomState>,
    /// Tags for which the table has slots, those of removed ones included.
    slots: usize,
}

impl<V, F: Feed> TagTable<V, F> {
    pub(crate) fn new() -> Self {
        Self {
            tags: HashMap::default(),
            slots: 0,
        }
    }

    /// Makes the slots of removed tags usable again when no other is free. Left alone, the table
    /// would double as soon as more than half of its slots are used, so its memory would depend on
    /// chance. It still doubles where fewer than an eighth of the slots can be won.
    fn reuse_slots(&mut self) {
        let used = self.tags.len();
        if used == self.tags.capacity() && used < self.slots / 8 * 7 {
            let hasher = self.tags.hasher().clone();
            let mut tags = HashMap::with_capacity_and_hasher(self.slots, hasher);
            tags.extend(self.tags.drain());
            self.tags = tags;
        }
        self.slots = self.slots.max(self.tags.capacity());
    }

    /// The generations that an entry with these tags has to compare. Tags whose list has room are
    /// left to [`TagTable::list`].
    pub(crate) fn checks(&mut self, tags: &[Tag]) -> Box<[GenerationCheck]> {
        tags.iter()
            .filter_map(|&tag| {
                self.reuse_slots();
                let dependents = self.tags.entry(tag).or_insert_with(|| Dependents {
                    generation: None,
                    watching: 0,
                    listed: Vec::new(),
                });
                if !tag.is_broad() && dependents.listed.len() < LISTED {
                    return None;
                }
                dependents.watching += 1;
                let generation = dependents
                    .generation
                    .get_or_insert_with(Arc::default)
                    .clone();
                Some(GenerationCheck {
                    at: generation.now(),
                    generation,
                })
            })
            .collect()
    }

    /// Lists the entry under those of its narrow tags that have room. Called with
    /// [`TagTable::checks`] under one lock.
    pub(crate) fn list(&mut self, entry: &Arc<StoredEntry<V, F>>) {
        for tag in entry.tags.iter().filter(|tag| !tag.is_broad()) {
            if let Some(dependents) = self.tags.get_mut(tag)
                && dependents.listed.len() < LISTED
            {
                dependents.listed.push(entry.clone());
            }
        }
    }

    /// Invalidates every entry that depends on `tag`; `look` is called with each entry that is
    /// marked.
    pub(crate) fn touch(
        &mut self,
        tag: Tag,
        mut look: impl FnMut(&Arc<StoredEntry<V, F>>),
    ) -> TouchCounts {
        let Some(dependents) = self.tags.get_mut(&tag) else {
            return TouchCounts::default();
        };
        if let Some(generation) = &dependents.generation {
            generation.advance();
        }
        let touched = TouchCounts {
            marked: dependents.listed.len(),
            others: dependents.watching > 0,
        };
        for entry in dependents.listed.drain(..) {
            entry.dead.store(true, Ordering::Release);
            look(&entry);
        }
        touched
    }

    /// Removes an entry that leaves the store, and every tag without dependents.
    pub(crate) fn unlist(&mut self, entry: &Arc<StoredEntry<V, F>>) {
        // An entry's checks have the order of its tags, so one walk over both is enough.
        let mut checks = entry.checks.iter().peekable();
        for tag in &entry.tags {
            let hashbrown::hash_map::Entry::Occupied(mut slot) = self.tags.entry(*tag) else {
                continue;
            };
            let dependents = slot.get_mut();
            if let Some(at) = dependents
                .listed
                .iter()
                .position(|listed| Arc::ptr_eq(listed, entry))
            {
                dependents.listed.swap_remove(at);
            }
            if let Some(generation) = &dependents.generation
                && checks
                    .next_if(|check| Arc::ptr_eq(&check.generation, generation))
                    .is_some()
            {
                dependents.watching -= 1;
            }
            if dependents.listed.is_empty() && dependents.watching == 0 {
                slot.remove();
            }
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.tags.len()
    }
}
