//! The log of changes that a running fill may not have seen (COHERENCE, rules 1 and 2).
//!
//! A fill reads, then learns what it depends on, then is stored; a change may be applied at any moment between. So
//! applied changes stay in this log, also those on which nothing depends yet, until every fill that runs is known to have
//! begun when the change was visible to all. A fill's final dependencies are held against the whole log.

use std::collections::{BTreeSet, VecDeque};

use crate::{Change, Feed, Tag};

struct Logged<F: Feed> {
    mark: F::Mark,
    /// Sorted, without duplicates.
    tags: Box<[Tag]>,
    /// Fills with this number or a later one began when the change was visible.
    visible_from: Option<u64>,
}

/// A fill's number, in the order in which fills begin.
pub(crate) type FillNumber = u64;

pub(crate) struct ChangeLog<F: Feed> {
    changes: VecDeque<Logged<F>>,
    tags: usize,
    running: BTreeSet<FillNumber>,
    next: FillNumber,
}

impl<F: Feed> ChangeLog<F> {
    pub(crate) fn new() -> Self {
        Self { changes: VecDeque::new(), tags: 0, running: BTreeSet::new(), next: 0 }
    }

    /// A fill is about to ask for its snapshot.
    pub(crate) fn begin(&mut self) -> FillNumber {
        let number = self.next;
        self.next += 1;
        self.running.insert(number);
        number
    }

    /// The fill `number` is over.
    pub(crate) fn end(&mut self, number: FillNumber) {
        self.running.remove(&number);
        self.trim();
    }

    pub(crate) fn push(&mut self, change: Change<F>) {
        let mut tags = change.tags;
        tags.sort_unstable();
        tags.dedup();
        self.tags += tags.len();
        self.changes.push_back(Logged { mark: change.mark, tags: tags.into_boxed_slice(), visible_from: None });
    }

    /// Every snapshot taken from now on sees what `snapshot` sees.
    pub(crate) fn visible(&mut self, snapshot: &F::Snapshot) {
        for change in self.changes.iter_mut().filter(|change| change.visible_from.is_none()) {
            if F::sees(snapshot, change.mark) {
                change.visible_from = Some(self.next);
            }
        }
        self.trim();
    }

    fn trim(&mut self) {
        let oldest = self.running.first().copied().unwrap_or(self.next);
        while self.changes.front().and_then(|change| change.visible_from).is_some_and(|from| from <= oldest) {
            let change = self.changes.pop_front().expect("there is a front");
            self.tags -= change.tags.len();
        }
    }

    /// Whether some change touched one of `tags` without being certainly visible in `snapshot`.
    pub(crate) fn contradicts(&self, snapshot: &F::Snapshot, tags: &[Tag]) -> bool {
        self.changes
            .iter()
            .filter(|change| !F::sees(snapshot, change.mark))
            .any(|change| tags.iter().any(|tag| change.tags.binary_search(tag).is_ok()))
    }

    /// Forgets all changes: what was stored before, or is being filled, belongs to an epoch that is over.
    pub(crate) fn clear(&mut self) {
        self.changes.clear();
        self.tags = 0;
    }

    /// Changes and tags held.
    pub(crate) fn size(&self) -> (usize, usize) {
        (self.changes.len(), self.tags)
    }
}
