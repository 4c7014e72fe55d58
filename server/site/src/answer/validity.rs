//! How long a response from memory answers later requests with the very same head.
//!
//! A file's response is valid until the folder is read again. A page's response is valid while the
//! store would give the value of which the page was made. The store's guard is asked each time,
//! with the checks of a look-up, so a repeated response is never older than a response that is
//! looked up. A response that was made for a session ends with the session.

use std::sync::{Arc, atomic::Ordering};

use base_clock::Boottime;
use millpond_db::DatabaseFeed;
use millpond_http::{Prepared, Request, Validity, ValidityCheck};
use millpond_store::Hit;

use super::cached::Cached;
use crate::{core::Core, session::CookieExpiry};
use millpond_site_compile::page::Page;

/// Checks a response that not only the edition of the folder decides on.
struct ResponseCheck {
    core: Arc<Core>,
    /// The edition of the folder that the response was made of.
    edition: u64,
    prepared: Arc<Prepared>,
    /// The codings that existed, if the request accepts any: a new one may be the better response.
    codings: Option<u8>,
    /// None for a file.
    hit: Option<PageHit>,
    /// The end of the session that the response was made for. The cookie is part of the request's
    /// bytes, so no other client sends it; but the same bytes may arrive when the session is over.
    session_end: Option<CookieExpiry>,
}

/// A page that was found in the store by one worker.
pub(crate) struct PageHit {
    hit: Hit<Cached, DatabaseFeed>,
    page: Arc<Page>,
    worker: usize,
}

impl PageHit {
    pub(crate) const fn new(
        hit: Hit<Cached, DatabaseFeed>,
        page: Arc<Page>,
        worker: usize,
    ) -> Self {
        Self { hit, page, worker }
    }
}

/// The validity of the response that `prepared`, found by `hit`, gives to `request`; none while a
/// better coding is being made. The caller makes the response after this has read the codings.
pub(crate) fn of_page(
    core: &Arc<Core>,
    edition: u64,
    prepared: &Arc<Prepared>,
    request: &Request<'_>,
    session_end: Option<CookieExpiry>,
    hit: PageHit,
) -> Option<Validity> {
    let codings = codings(prepared, request);
    prepared.wanted(request).is_none().then(|| {
        Validity::Check(Box::new(ResponseCheck {
            core: core.clone(),
            edition,
            prepared: prepared.clone(),
            codings,
            hit: Some(hit),
            session_end,
        }))
    })
}

/// The same for a file or a listing, whose responses need no look at the disk.
pub(crate) fn of_file(
    core: &Arc<Core>,
    edition: u64,
    prepared: &Arc<Prepared>,
    request: &Request<'_>,
) -> Option<Validity> {
    let codings = codings(prepared, request);
    prepared.wanted(request).is_none().then(|| match codings {
        None => Validity::Counter(core.edition.clone(), edition),
        Some(_) => Validity::Check(Box::new(ResponseCheck {
            core: core.clone(),
            edition,
            prepared: prepared.clone(),
            codings,
            hit: None,
            session_end: None,
        })),
    })
}

/// The codings that exist, if the request accepts any.
fn codings(prepared: &Prepared, request: &Request<'_>) -> Option<u8> {
    let accepts = request.fields.get("accept-encoding").is_some();
    accepts.then(|| prepared.codings())
}

impl ResponseCheck {
    fn is_of_the_current_edition(&self) -> bool {
        self.core.edition.load(Ordering::Acquire) == self.edition
    }
}

impl ValidityCheck for ResponseCheck {
    fn is_valid(&self, received: Boottime) -> bool {
        if !self.is_of_the_current_edition()
            || self
                .codings
                .is_some_and(|codings| self.prepared.codings() != codings)
            || self.session_end.is_some_and(|end| end.is_over(received))
        {
            return false;
        }
        let Some(PageHit { hit, page, worker }) = &self.hit else {
            return true;
        };
        let is_valid = hit.is_valid(received);
        if is_valid {
            page.counters.hit(*worker);
        }
        is_valid
    }

    fn is_over(&self) -> bool {
        let is_given_up = self.hit.as_ref().is_some_and(|found| found.hit.is_over());
        let is_ended = self
            .session_end
            .is_some_and(|end| end.is_over(Boottime::now()));
        is_given_up || is_ended || !self.is_of_the_current_edition()
    }
}
