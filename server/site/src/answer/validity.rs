//! How long a response from memory answers later requests with the very same head.
//!
//! A file's response is valid until the folder is read again. A page's response is valid while the
//! store would give the value of which it was made, too (`millpond_pages::repeat`). A response that
//! was made for a session ends with the session.

use std::sync::{Arc, atomic::Ordering};

use base_clock::Boottime;
use millpond_db::DatabaseFeed;
use millpond_http::{Prepared, Request, Validity, ValidityCheck};
use millpond_pages::repeat::{accepts_codings, validity};
use millpond_store::Hit;

use super::cached::Cached;
use crate::{core::Core, session::CookieExpiry};
use millpond_site_compile::page::Page;

/// A page that was found in the store by one worker, and what else decides on its response.
pub(crate) struct PageCheck {
    pub(crate) hit: Hit<Cached, DatabaseFeed>,
    pub(crate) edition: EditionCheck,
    pub(crate) page: Arc<Page>,
    pub(crate) worker: usize,
    /// The end of the session that the response was made for. The cookie is part of the request's
    /// bytes, so no other client sends it; but the same bytes may arrive when the session is over.
    pub(crate) session_end: Option<CookieExpiry>,
}

impl ValidityCheck for PageCheck {
    fn is_valid(&self, received: Boottime) -> bool {
        let is_valid = self.edition.is_valid(received)
            && !self.session_end.is_some_and(|end| end.is_over(received))
            && self.hit.is_valid(received);
        if is_valid {
            self.page.counters.hit(self.worker);
        }
        is_valid
    }

    fn is_over(&self) -> bool {
        let is_over = |end: CookieExpiry| end.is_over(Boottime::now());
        self.hit.is_over() || self.session_end.is_some_and(is_over) || self.edition.is_over()
    }
}

/// The edition of the folder that a response was made of.
pub(crate) struct EditionCheck {
    pub(crate) core: Arc<Core>,
    pub(crate) edition: u64,
}

impl ValidityCheck for EditionCheck {
    fn is_valid(&self, _: Boottime) -> bool {
        self.core.edition.load(Ordering::Acquire) == self.edition
    }

    fn is_over(&self) -> bool {
        self.core.edition.load(Ordering::Acquire) != self.edition
    }
}

/// Returns the validity of the response that `prepared` gives to `request`, of a file or a listing,
/// whose responses need no look at the disk; none while a better coding is being made. The caller
/// makes the response after this has read the codings.
pub(crate) fn of_file(
    core: &Arc<Core>,
    edition: u64,
    prepared: &Arc<Prepared>,
    request: &Request<'_>,
) -> Option<Validity> {
    if !accepts_codings(request) && prepared.wanted(request).is_none() {
        return Some(Validity::Counter(core.edition.clone(), edition));
    }
    let core = core.clone();
    validity(prepared, request, EditionCheck { core, edition })
}
