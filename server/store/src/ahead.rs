//! What to make again before it is asked for (COHERENCE, rule 8): hot entries that a change or a new epoch has ended.
//!
//! The store notices and keeps the order; who makes a value, and when, is the caller's. What has a list of dependents is noticed as
//! the change marks it. What compares generations, or belongs to an epoch, ends without being touched: that such a change has
//! been is noted, and a [sweep](crate::Store::sweep) looks for what it has ended among those that are [hot](crate::watched), a few at a time.
//!
//! The queue is short and keeps the hottest: a change that ends a hundred thousand entries costs the lock one comparison for each that it
//! marks. In it are keys, not entries, so it holds no memory of what was evicted. A key that has waited too long is forgotten: had
//! it still been hot, somebody would have asked for it.
//!
//! Whatever is made ahead is made by an ordinary flight and goes through the fence like any other.

use std::collections::BTreeMap;
use std::time::Duration;

use hashbrown::HashMap;

use crate::{Feed, entry::StoredEntry, heat::HOT, sync::Arc};
use base_clock::Boottime;

/// How long a key waits after a change.
const PATIENCE: Duration = Duration::from_secs(10);
/// And after a sweep, which may have found all that was hot.
const LONG_PATIENCE: Duration = Duration::from_secs(60);
/// Keys of which it is remembered how often they were made ahead. Past it all are forgotten: it is for explanations alone.
const TALLIES: usize = 4096;

/// How often the value of one key was made ahead, as far as that is remembered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MadeAhead {
    /// So often.
    pub times: u32,
    /// Of these, so often it was over before anybody had asked.
    pub in_vain: u32,
}

/// The coldest first; of equals, whoever has waited longest.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    /// The bits of a float that is not negative, which are ordered as it is.
    heat: u32,
    serial: u64,
}

struct Waiting {
    key: Box<[u8]>,
    hash: u64,
    /// How hot it was.
    degree: u8,
    until: Boottime,
}

/// Why an entry is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Noticed {
    Marked,
    Swept,
}

pub(crate) struct Ahead {
    /// Keys that may wait; 0 is off.
    limit: usize,
    queue: BTreeMap<Place, Waiting>,
    places: HashMap<u64, Place, foldhash::fast::RandomState>,
    serial: u64,
    tallies: HashMap<u64, MadeAhead, foldhash::fast::RandomState>,
    /// Whether something has ended that only a sweep finds.
    sweep: bool,
    /// Whether whoever works on the queue was told that there is something, and has not found it empty since.
    told: bool,
    /// Keys that did not fit.
    pub(crate) dropped: u64,
    /// Values that were stored, and those of them that nobody has asked for.
    pub(crate) made: u64,
    pub(crate) in_vain: u64,
}

impl Ahead {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            limit,
            queue: BTreeMap::new(),
            places: HashMap::default(),
            serial: 0,
            tallies: HashMap::default(),
            sweep: false,
            told: false,
            dropped: 0,
            made: 0,
            in_vain: 0,
        }
    }

    /// Looks at an entry that is over.
    pub(crate) fn ended<V, F: Feed>(
        &mut self,
        entry: &Arc<StoredEntry<V, F>>,
        noticed: Noticed,
        now: Boottime,
    ) {
        if self.limit == 0 {
            return;
        }
        let Some(end) = entry.heat.end() else { return };
        if !end.asked {
            self.was_in_vain(entry.hash);
        }
        if end.degree < HOT {
            return;
        }
        let patience = match noticed {
            Noticed::Marked => PATIENCE,
            Noticed::Swept => LONG_PATIENCE,
        };
        self.want(heat_of(entry), entry, now.plus(patience));
    }

    /// Another value has taken the entry's place.
    pub(crate) fn replaced<V, F: Feed>(&mut self, entry: &Arc<StoredEntry<V, F>>) {
        if self.limit == 0 {
            return;
        }
        if entry.heat.end().is_some_and(|end| !end.asked) {
            self.was_in_vain(entry.hash);
        }
        if let Some(place) = self.places.remove(&entry.hash) {
            self.queue.remove(&place);
        }
    }

    fn want<V, F: Feed>(&mut self, heat: f32, entry: &StoredEntry<V, F>, until: Boottime) {
        let place = Place {
            heat: heat.max(0.0).to_bits(),
            serial: self.serial,
        };
        self.serial += 1;
        if let Some(before) = self.places.remove(&entry.hash) {
            self.queue.remove(&before);
        }
        if self.queue.len() >= self.limit {
            self.dropped += 1;
            match self.queue.first_entry() {
                Some(coldest) if *coldest.key() < place => {
                    let coldest = coldest.remove();
                    self.places.remove(&coldest.hash);
                }
                _ => return,
            }
        }
        self.places.insert(entry.hash, place);
        let waiting = Waiting {
            key: entry.key.clone(),
            hash: entry.hash,
            degree: entry.heat.degree(),
            until,
        };
        self.queue.insert(place, waiting);
    }

    /// Something has ended that only a sweep finds.
    pub(crate) fn sweep_wanted(&mut self) {
        self.sweep = self.limit > 0;
    }

    /// Whether there is a sweep to make, which is thereby begun.
    pub(crate) fn take_sweep(&mut self) -> bool {
        std::mem::take(&mut self.sweep)
    }

    /// Whether there is anything to do. If not, the next that comes is told.
    pub(crate) fn has_work(&mut self) -> bool {
        let has_work = self.sweep || !self.queue.is_empty();
        self.told &= has_work;
        has_work
    }

    /// Whether somebody is to be told that there is something to do.
    pub(crate) fn tell(&mut self) -> bool {
        let has_news = (self.sweep || !self.queue.is_empty()) && !self.told;
        self.told |= has_news;
        has_news
    }

    /// The hottest key that has not waited too long, and how hot it was.
    pub(crate) fn next(&mut self, now: Boottime) -> Option<(Box<[u8]>, u8)> {
        while let Some((_, hottest)) = self.queue.pop_last() {
            self.places.remove(&hottest.hash);
            if now <= hottest.until {
                return Some((hottest.key, hottest.degree));
            }
            self.dropped += 1;
        }
        None
    }

    /// A value was made ahead and stored.
    pub(crate) fn was_made(&mut self, hash: u64) {
        self.made += 1;
        if let Some(tally) = self.tally(hash) {
            tally.times += 1;
        }
    }

    fn was_in_vain(&mut self, hash: u64) {
        self.in_vain += 1;
        if let Some(tally) = self.tallies.get_mut(&hash) {
            tally.in_vain += 1;
        }
    }

    fn tally(&mut self, hash: u64) -> Option<&mut MadeAhead> {
        if self.limit == 0 {
            return None;
        }
        if self.tallies.len() >= TALLIES && !self.tallies.contains_key(&hash) {
            self.tallies.clear();
        }
        Some(self.tallies.entry(hash).or_default())
    }

    pub(crate) fn tally_of(&self, hash: u64) -> MadeAhead {
        self.tallies.get(&hash).copied().unwrap_or_default()
    }

    /// Keys that wait.
    pub(crate) fn len(&self) -> usize {
        self.queue.len()
    }
}

/// What decides the order: how often it is asked for, times what it takes to make.
pub(crate) fn heat_of<V, F: Feed>(entry: &StoredEntry<V, F>) -> f32 {
    f32::from(entry.heat.degree()) * entry.cost
}
