//! For how long an answer from memory is the answer to the same request.
//!
//! A file's is so until the folder is read again; a page's until the store would not give the value that it was made of, which
//! the store is asked each time: so a repeated answer is never older than one that is looked up.

use std::sync::{Arc, atomic::Ordering};

use millpond_http::{Prepared, Request, Standing};
use millpond_store::clock::Boottime;

use crate::{cached::Cached, core::Core, page::Page};

/// What an answer stands on.
pub(crate) struct Ground {
    core: Arc<Core>,
    /// Which reading of the folder it was, read before anything of that.
    edition: u64,
    prepared: Arc<Prepared>,
    /// The codings that there were: another may be the better answer.
    codings: u8,
    page: Option<Hit>,
}

/// A page as it was found in the store.
pub(crate) struct Hit {
    pub(crate) page: Arc<Page>,
    pub(crate) key: Box<[u8]>,
    pub(crate) value: Arc<Cached>,
    pub(crate) worker: usize,
}

impl Ground {
    /// What the answer that `prepared` gives to `request` stands on; none while a better coding is being made for it. The
    /// codings are read before the answer is made of them.
    pub(crate) fn of(
        core: &Arc<Core>,
        edition: u64,
        prepared: &Arc<Prepared>,
        request: &Request<'_>,
        page: Option<Hit>,
    ) -> Option<Self> {
        let codings = prepared.codings();
        prepared.wanted(request).is_none().then(|| Self {
            core: core.clone(),
            edition,
            prepared: prepared.clone(),
            codings,
            page,
        })
    }
}

impl Standing for Ground {
    fn stands(&self, received: Boottime) -> bool {
        if self.core.edition.load(Ordering::Acquire) != self.edition
            || self.prepared.codings() != self.codings
        {
            return false;
        }
        let Some(hit) = &self.page else {
            return true;
        };
        let value = self.core.store.get(&hit.key, received);
        let is_same = value.is_ok_and(|value| Arc::ptr_eq(&value, &hit.value));
        if is_same {
            hit.page.counters.hit(hit.worker);
        }
        is_same
    }
}
