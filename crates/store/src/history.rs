//! What has ended entries lately, for those who ask why. Nothing here decides anything.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::{Feed, Tag, clock::Boottime};

/// Changes that are remembered.
const CHANGES: usize = 1024;
/// Of a change that touched more than this, what it touched is not remembered.
const TAGS: usize = 64;

/// A change that was applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cause<M> {
    /// Its name.
    pub mark: M,
    /// When it was applied.
    pub applied: Boottime,
    /// Whether it certainly touched what was asked about. If not, it touched too much for that to be remembered.
    pub is_certain: bool,
}

struct Applied<F: Feed> {
    mark: F::Mark,
    at: Boottime,
    /// Sorted; none if they were many.
    tags: Option<Arc<[Tag]>>,
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

    /// Takes in a change that is applied now; its tags are sorted.
    pub(crate) fn push(&mut self, mark: F::Mark, tags: &Arc<[Tag]>, now: Boottime) {
        if self.changes.len() == CHANGES {
            self.changes.pop_front();
        }
        self.changes.push_back(Applied {
            mark,
            at: now,
            tags: (tags.len() <= TAGS).then(|| Arc::clone(tags)),
        });
        self.count = self.count.wrapping_add(1);
    }

    /// The first change after `since` that touched one of `tags`, or may have; none if it is not remembered any more.
    pub(crate) fn first(&self, since: u32, tags: &[Tag]) -> Option<Cause<F::Mark>> {
        let later = self.count.wrapping_sub(since) as usize;
        let from = self.changes.len().checked_sub(later)?;
        self.changes.range(from..).find_map(|change| {
            let touched = match &change.tags {
                Some(touched) => tags.iter().any(|tag| touched.binary_search(tag).is_ok()),
                None => true,
            };
            touched.then_some(Cause {
                mark: change.mark,
                applied: change.at,
                is_certain: change.tags.is_some(),
            })
        })
    }
}
