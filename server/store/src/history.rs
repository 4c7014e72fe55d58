//! The changes that ended entries lately, for explanations. No decision of the store uses them.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::{Feed, Tag};
use base_clock::Boottime;

/// Changes that are remembered.
const CHANGES: usize = 1024;
/// Tags that are remembered of one change.
const TAGS: usize = 64;

/// A change that was applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause<M> {
    /// Its name.
    pub mark: M,
    /// When it was applied.
    pub applied: Boottime,
    /// True if the change certainly touched the entry in question. Otherwise the change had too
    /// many tags to remember.
    pub is_certain: bool,
    /// Tags that the change touched, sorted. If the change had too many tags: only
    /// [broad](Tag::is_broad) ones, and at most 64.
    pub touched: Arc<[Tag]>,
}

/// Summary of a change's tags.
pub(crate) struct TouchedSummary {
    tags: Arc<[Tag]>,
    is_all: bool,
}

impl TouchedSummary {
    /// Summarises a change's tags, which are sorted. Looks at all of them, so it is not called
    /// under the lock.
    pub(crate) fn of(tags: &Arc<[Tag]>) -> Self {
        let is_all = tags.len() <= TAGS;
        let broad = || tags.iter().copied().filter(|tag| tag.is_broad());
        Self {
            tags: if is_all {
                Arc::clone(tags)
            } else {
                broad().take(TAGS).collect()
            },
            is_all,
        }
    }
}

struct Applied<F: Feed> {
    mark: F::Mark,
    at: Boottime,
    touched: TouchedSummary,
}

impl<F: Feed> Applied<F> {
    /// This change as the cause of what happened to an entry with `tags`; none if it certainly is
    /// not the cause.
    fn cause(&self, tags: &[Tag]) -> Option<Cause<F::Mark>> {
        let touched = &self.touched.tags;
        let is_certain = tags.iter().any(|tag| touched.binary_search(tag).is_ok());
        (is_certain || !self.touched.is_all).then(|| Cause {
            mark: self.mark,
            applied: self.at,
            is_certain,
            touched: Arc::clone(touched),
        })
    }
}

/// The last changes, in order.
pub(crate) struct History<F: Feed> {
    changes: VecDeque<Applied<F>>,
    /// How many changes were applied in all.
    count: u32,
    /// When the present epoch began.
    pub(crate) epoch_began: Boottime,
    /// When the newest heartbeat was sent.
    pub(crate) heard: Option<Boottime>,
}

impl<F: Feed> History<F> {
    pub(crate) fn new(now: Boottime) -> Self {
        Self {
            changes: VecDeque::new(),
            count: 0,
            epoch_began: now,
            heard: None,
        }
    }

    /// Changes applied so far, modulo 2^32. An entry notes this number when it is stored.
    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    /// Adds a change that is applied now.
    pub(crate) fn push(&mut self, mark: F::Mark, touched: TouchedSummary, now: Boottime) {
        if self.changes.len() == CHANGES {
            self.changes.pop_front();
        }
        self.changes.push_back(Applied {
            mark,
            at: now,
            touched,
        });
        self.count = self.count.wrapping_add(1);
    }

    /// The first change after `since` that touched one of `tags`, or may have; none if it is no
    /// longer remembered.
    pub(crate) fn first(&self, since: u32, tags: &[Tag]) -> Option<Cause<F::Mark>> {
        let later = self.count.wrapping_sub(since) as usize;
        let from = self.changes.len().checked_sub(later)?;
        let mut changes = self.changes.range(from..);
        changes.find_map(|change| change.cause(tags))
    }

    /// The last change that certainly touched one of `tags`, if it is remembered.
    pub(crate) fn last(&self, tags: &[Tag]) -> Option<Cause<F::Mark>> {
        let causes = self.changes.iter().rev();
        causes
            .filter_map(|change| change.cause(tags))
            .find(|cause| cause.is_certain)
    }
}
