//! What has ended entries lately, for those who ask why. Nothing here decides anything.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::{Feed, Tag};
use base_clock::Boottime;

/// Changes that are remembered.
const CHANGES: usize = 1024;
/// Things that are remembered of what a change touched.
const TAGS: usize = 64;

/// A change that was applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause<M> {
    /// Its name.
    pub mark: M,
    /// When it was applied.
    pub applied: Boottime,
    /// Whether it certainly touched what was asked about. If not, it touched too much for that to be remembered.
    pub is_certain: bool,
    /// What it touched, sorted; of a change that touched much only what is [broad](Tag::is_broad), and of that no more than 64.
    pub touched: Arc<[Tag]>,
}

/// What is remembered of what a change touched.
pub(crate) struct TouchedSummary {
    tags: Arc<[Tag]>,
    is_all: bool,
}

impl TouchedSummary {
    /// Of a change with these tags, which are sorted. Looks through them all, so not under the lock.
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
    /// As the cause of what became of something that depends on `tags`, unless it certainly is not.
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
    /// How many were applied in all.
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

    /// Changes applied so far, modulo 2^32: what is stored now was stored after so many.
    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    /// Takes in a change that is applied now.
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

    /// The first change after `since` that touched one of `tags`, or may have; none if it is not remembered any more.
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
