//! The queue of values to make again before a request asks for them (coherence.md, rule 8): hot
//! entries that a change or a new epoch has ended.
//!
//! The store finds the keys and keeps their order. The caller decides when a value is made, and
//! makes it. An entry that is listed as a dependent is found when the change marks it. An entry
//! that compares generations, or that belongs to an old epoch, ends without being touched. The
//! store notes that such a change happened, and a [sweep](crate::Store::sweep) looks for ended
//! entries among the [hot](crate::watched) ones, a few at a time.
//!
//! The queue is short and keeps the hottest keys. A change that ends a hundred thousand entries
//! costs one comparison under the lock for each entry that it marks. The queue holds keys, not
//! entries, so it keeps no memory of evicted entries. A key that has waited too long is dropped: a
//! key that is still hot would have been requested by then.
//!
//! A value is made ahead by an ordinary flight and passes the fence like any other.

use std::collections::BTreeMap;
use std::time::Duration;

use hashbrown::HashMap;

use crate::{Feed, entry::StoredEntry, heat::HOT, sync::Arc};
use base_clock::Boottime;

/// How long a key waits after a change.
const MAX_WAIT: Duration = Duration::from_secs(10);
/// How long a key waits after a sweep, which may have found all hot entries at once.
const MAX_WAIT_AFTER_SWEEP: Duration = Duration::from_secs(60);
/// Keys whose [`MadeAhead`] is remembered. Past it all are forgotten: only explanations use them.
const TALLIES: usize = 4096;

/// How often the value of one key was made ahead, as far as the store remembers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MadeAhead {
    /// Values that were made ahead.
    pub times: u32,
    /// Values among them that ended before a request asked for them.
    pub unused: u32,
}

/// The coldest key first; of equally hot keys, the one that has waited longest.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct QueueRank {
    /// The bits of a float that is not negative; bits and float have the same order.
    heat: u32,
    serial: u64,
}

struct QueuedKey {
    key: Box<[u8]>,
    hash: u64,
    /// How hot the entry was.
    degree: u8,
    until: Boottime,
}

/// Why an entry is examined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Detection {
    Marked,
    Swept,
}

pub(crate) struct Ahead {
    /// The most keys that may wait; 0 turns the queue off.
    limit: usize,
    queue: BTreeMap<QueueRank, QueuedKey>,
    ranks: HashMap<u64, QueueRank, foldhash::fast::RandomState>,
    serial: u64,
    tallies: HashMap<u64, MadeAhead, foldhash::fast::RandomState>,
    /// True if something ended that only a sweep finds.
    needs_sweep: bool,
    /// True if the attendant was notified of work and has not found the queue empty since.
    is_notified: bool,
    /// Keys that did not fit.
    pub(crate) dropped: u64,
    /// Values that were stored, and those among them that no request used.
    pub(crate) made: u64,
    pub(crate) unused: u64,
}

impl Ahead {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            limit,
            queue: BTreeMap::new(),
            ranks: HashMap::default(),
            serial: 0,
            tallies: HashMap::default(),
            needs_sweep: false,
            is_notified: false,
            dropped: 0,
            made: 0,
            unused: 0,
        }
    }

    /// Examines an entry that has ended.
    pub(crate) fn examine_ended<V, F: Feed>(
        &mut self,
        entry: &Arc<StoredEntry<V, F>>,
        detection: Detection,
        now: Boottime,
    ) {
        if self.limit == 0 {
            return;
        }
        let Some(end) = entry.heat.end() else { return };
        if !end.asked {
            self.count_unused(entry.hash);
        }
        if end.degree < HOT {
            return;
        }
        let max_wait = match detection {
            Detection::Marked => MAX_WAIT,
            Detection::Swept => MAX_WAIT_AFTER_SWEEP,
        };
        self.enqueue(heat_of(entry), entry, now.plus(max_wait));
    }

    /// Another value has replaced the entry's.
    pub(crate) fn replaced<V, F: Feed>(&mut self, entry: &Arc<StoredEntry<V, F>>) {
        if self.limit == 0 {
            return;
        }
        if entry.heat.end().is_some_and(|end| !end.asked) {
            self.count_unused(entry.hash);
        }
        if let Some(rank) = self.ranks.remove(&entry.hash) {
            self.queue.remove(&rank);
        }
    }

    fn enqueue<V, F: Feed>(&mut self, heat: f32, entry: &StoredEntry<V, F>, until: Boottime) {
        let rank = QueueRank {
            heat: heat.max(0.0).to_bits(),
            serial: self.serial,
        };
        self.serial += 1;
        if let Some(before) = self.ranks.remove(&entry.hash) {
            self.queue.remove(&before);
        }
        if self.queue.len() >= self.limit {
            self.dropped += 1;
            match self.queue.first_entry() {
                Some(coldest) if *coldest.key() < rank => {
                    let coldest = coldest.remove();
                    self.ranks.remove(&coldest.hash);
                }
                _ => return,
            }
        }
        self.ranks.insert(entry.hash, rank);
        let queued = QueuedKey {
            key: entry.key.clone(),
            hash: entry.hash,
            degree: entry.heat.degree(),
            until,
        };
        self.queue.insert(rank, queued);
    }

    /// Notes that something ended that only a sweep finds.
    pub(crate) fn request_sweep(&mut self) {
        self.needs_sweep = self.limit > 0;
    }

    /// True if a sweep is due. The caller must make the sweep.
    pub(crate) fn take_sweep(&mut self) -> bool {
        std::mem::take(&mut self.needs_sweep)
    }

    /// True if there is work. If not, the next work notifies the attendant.
    pub(crate) fn has_work(&mut self) -> bool {
        let has_work = self.needs_sweep || !self.queue.is_empty();
        self.is_notified &= has_work;
        has_work
    }

    /// True if the attendant must be notified of new work.
    pub(crate) fn take_notification(&mut self) -> bool {
        let has_news = (self.needs_sweep || !self.queue.is_empty()) && !self.is_notified;
        self.is_notified |= has_news;
        has_news
    }

    /// The hottest key that has not waited too long, and how hot its entry was.
    pub(crate) fn next(&mut self, now: Boottime) -> Option<(Box<[u8]>, u8)> {
        while let Some((_, hottest)) = self.queue.pop_last() {
            self.ranks.remove(&hottest.hash);
            if now <= hottest.until {
                return Some((hottest.key, hottest.degree));
            }
            self.dropped += 1;
        }
        None
    }

    /// Counts a value that was made ahead and stored.
    pub(crate) fn count_made(&mut self, hash: u64) {
        self.made += 1;
        if let Some(tally) = self.tally(hash) {
            tally.times += 1;
        }
    }

    fn count_unused(&mut self, hash: u64) {
        self.unused += 1;
        if let Some(tally) = self.tallies.get_mut(&hash) {
            tally.unused += 1;
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

/// Returns the heat, which decides the order: the number of recent requests, times the cost of a
/// fill.
pub(crate) fn heat_of<V, F: Feed>(entry: &StoredEntry<V, F>) -> f32 {
    f32::from(entry.heat.degree()) * entry.cost
}
