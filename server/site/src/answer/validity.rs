//! How long a response from memory answers later requests with the very same head.
//!
//! A file's response is valid until the folder is read again. A page's response is valid while the
//! store would give the value of which it was made, too (`millpond_pages::repeat`). A response that
//! was made for a session ends with the session.

use std::sync::{Arc, atomic::Ordering};

use base_clock::Boottime;
use millpond_db::DatabaseFeed;
use millpond_http::{Prepared, Request, Validity};
use millpond_pages::repeat::{Guard, codings, of_codings};

use super::cached::Cached;
use crate::{core::Core, session::CookieExpiry};
use millpond_site_compile::page::Page;

/// What besides the store decides on the response of a page.
pub(crate) struct PageGuard {
    pub(crate) core: Arc<Core>,
    /// The edition of the folder that the response was made of.
    pub(crate) edition: u64,
    pub(crate) page: Arc<Page>,
    pub(crate) worker: usize,
    /// The end of the session that the response was made for. The cookie is part of the request's
    /// bytes, so no other client sends it; but the same bytes may arrive when the session is over.
    pub(crate) session_end: Option<CookieExpiry>,
}

impl Guard for PageGuard {
    fn is_valid(&self, received: Boottime) -> bool {
        is_current(&self.core, self.edition)
            && !self.session_end.is_some_and(|end| end.is_over(received))
    }

    fn is_over(&self) -> bool {
        let is_over = |end: CookieExpiry| end.is_over(Boottime::now());
        self.session_end.is_some_and(is_over) || !is_current(&self.core, self.edition)
    }

    fn repeats(&self) {
        self.page.counters.hit(self.worker);
    }
}

/// The edition of the folder that the response of a file was made of.
struct FileGuard(Arc<Core>, u64);

impl Guard for FileGuard {
    fn is_valid(&self, _: Boottime) -> bool {
        is_current(&self.0, self.1)
    }

    fn is_over(&self) -> bool {
        !is_current(&self.0, self.1)
    }
}

fn is_current(core: &Core, edition: u64) -> bool {
    core.edition.load(Ordering::Acquire) == edition
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
    let codings = codings(prepared, request);
    prepared.wanted(request).is_none().then(|| match codings {
        None => Validity::Counter(core.edition.clone(), edition),
        Some(codings) => {
            let guard = FileGuard(core.clone(), edition);
            of_codings::<Cached, DatabaseFeed, _>(prepared, codings, guard)
        }
    })
}
