//! The log of changes that a running fill may not have seen (coherence.md, rules 1 and 2).
//!
//! A fill reads, then learns its dependencies, then is stored. A change may be applied at any
//! moment in between. So applied changes stay in this log, also those on which nothing depends yet,
//! until every running fill is known to have begun when the change was visible to all. The final
//! dependencies of a fill are compared with the whole log.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use crate::{Feed, Tag};

struct Logged<F: Feed> {
    mark: F::Mark,
    touched: LoggedTags,
    /// Fills with this number or a later one began when the change was visible.
    visible_from: Option<u64>,
}

impl<F: Feed> Logged<F> {
    /// True if the fill `number` and all later ones see the change.
    fn is_seen_from(&self, number: FillNumber) -> bool {
        self.visible_from.is_some_and(|from| from <= number)
    }

    /// Subtracts the change from the sums.
    fn subtract_from(&self, tags: &mut usize, sealed: &mut usize) {
        *tags -= self.touched.len();
        *sealed -= usize::from(matches!(self.touched, LoggedTags::Anything));
    }
}

enum LoggedTags {
    /// Sorted, without duplicates.
    Tags(Arc<[Tag]>),
    /// The tags are no longer known: the change may have touched anything.
    Anything,
}

impl LoggedTags {
    fn len(&self) -> usize {
        match self {
            Self::Tags(tags) => tags.len(),
            Self::Anything => 0,
        }
    }

    /// True if one of `tags`, which are sorted, is among them.
    fn touches_any(&self, tags: &[Tag]) -> bool {
        match self {
            Self::Anything => true,
            // A page may have thousands of tags, and so may a transaction; the longer side is
            // searched for each tag of the shorter.
            Self::Tags(own) if own.len() < tags.len() => {
                own.iter().any(|tag| tags.binary_search(tag).is_ok())
            }
            Self::Tags(own) => tags.iter().any(|tag| own.binary_search(tag).is_ok()),
        }
    }
}

/// A fill's number, in the order in which fills begin.
pub(crate) type FillNumber = u64;

pub(crate) struct ChangeLog<F: Feed> {
    changes: VecDeque<Logged<F>>,
    /// How many of `changes` are [`LoggedTags::Anything`].
    sealed: usize,
    tags: usize,
    running: BTreeSet<FillNumber>,
    next: FillNumber,
}

impl<F: Feed> ChangeLog<F> {
    pub(crate) fn new() -> Self {
        Self {
            changes: VecDeque::new(),
            sealed: 0,
            tags: 0,
            running: BTreeSet::new(),
            next: 0,
        }
    }

    /// Numbers a fill that is about to ask for its snapshot.
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

    /// Adds a change, whose tags are sorted and without duplicates.
    pub(crate) fn push(&mut self, mark: F::Mark, tags: Arc<[Tag]>) {
        let touched = LoggedTags::Tags(tags);
        self.tags += touched.len();
        self.changes.push_back(Logged {
            mark,
            touched,
            visible_from: None,
        });
    }

    /// Every snapshot taken from now on sees what `snapshot` sees.
    pub(crate) fn visible(&mut self, snapshot: &F::Snapshot) {
        for change in self
            .changes
            .iter_mut()
            .filter(|change| change.visible_from.is_none())
        {
            if F::sees(snapshot, change.mark) {
                change.visible_from = Some(self.next);
            }
        }
        // One transaction may stay invisible for minutes (it waits for a standby); later
        // transactions need not stay with it.
        let oldest = self.oldest();
        let (tags, sealed) = (&mut self.tags, &mut self.sealed);
        self.changes.retain(|change| {
            let kept = !change.is_seen_from(oldest);
            if !kept {
                change.subtract_from(tags, sealed);
            }
            kept
        });
    }

    /// The oldest running fill, or the next one.
    fn oldest(&self) -> FillNumber {
        self.running.first().copied().unwrap_or(self.next)
    }

    /// Removes changes from the front. Called at the end of each fill, so it stops at the first
    /// change that has to stay.
    fn trim(&mut self) {
        let oldest = self.oldest();
        while self
            .changes
            .front()
            .is_some_and(|change| change.is_seen_from(oldest))
        {
            let change = self.changes.pop_front().expect("there is a front");
            change.subtract_from(&mut self.tags, &mut self.sealed);
        }
    }

    /// True if a change touched one of `tags`, which are sorted, and is not certainly visible in
    /// `snapshot`.
    pub(crate) fn contradicts(&self, snapshot: &F::Snapshot, tags: &[Tag]) -> bool {
        self.changes
            .iter()
            .filter(|change| !F::sees(snapshot, change.mark))
            .any(|change| change.touched.touches_any(tags))
    }

    /// Ends an epoch. All stored entries and running fills are over, so the tags of the changes are
    /// not needed any more.
    ///
    /// Changes that are not known to be visible stay, without their tags: a feed may run ahead of
    /// visibility, so a fill of the new epoch may miss such a change, and the feed will not bring
    /// the change again.
    pub(crate) fn seal(&mut self) {
        self.changes.retain_mut(|change| {
            change.touched = LoggedTags::Anything;
            change.visible_from.is_none()
        });
        self.sealed = self.changes.len();
        self.tags = 0;
    }

    /// Changes and tags in the log.
    pub(crate) fn size(&self) -> (usize, usize) {
        (self.changes.len(), self.tags)
    }

    /// True if the log holds more changes of this epoch, or more tags.
    pub(crate) fn exceeds(&self, changes: usize, tags: usize) -> bool {
        self.changes.len() - self.sealed > changes || self.tags > tags
    }
}
