//! For how long an answer from memory is the answer to the same request.
//!
//! A file's is so until the folder is read again; a page's until the store would not give the value that it was made of, which
//! is asked each time as a look-up asks it: so a repeated answer is never older than one that is looked up. What was made for a session
//! ends with it.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use base_clock::Boottime;
use millpond_db::DatabaseFeed;
use millpond_http::{Prepared, Request, Standing};
use millpond_store::Held;

use crate::{cached::Cached, core::Core, page::Page, session::Until};

/// What an answer stands on.
pub(crate) struct Ground {
    core: Arc<Core>,
    /// Which reading of the folder it was, read before anything of that.
    edition: u64,
    prepared: Arc<Prepared>,
    /// The codings that there were, if the request takes any: another may be the better answer.
    codings: Option<u8>,
    source: Source,
    /// The end of the session that the answer was made for. The cookie is part of the request's bytes, so nobody else asks for it;
    /// but it comes again, byte for byte, when the session is over.
    until: Option<Until>,
}

/// Where an answer came from.
pub(crate) enum Source {
    /// The folder.
    File,
    /// The store, for a worker.
    Page {
        page: Arc<Page>,
        held: Held<Cached, DatabaseFeed>,
        worker: usize,
    },
}

impl Ground {
    /// What the answer that `prepared` gives to `request` stands on; none while a better coding is being made for it. The
    /// codings are read before the answer is made of them.
    pub(crate) fn of(
        core: &Arc<Core>,
        edition: u64,
        prepared: &Arc<Prepared>,
        request: &Request<'_>,
        until: Option<Until>,
        source: Source,
    ) -> Option<Self> {
        let takes_codings = request.fields.get("accept-encoding").is_some();
        let codings = takes_codings.then(|| prepared.codings());
        prepared.wanted(request).is_none().then(|| Self {
            core: core.clone(),
            edition,
            prepared: prepared.clone(),
            codings,
            source,
            until,
        })
    }
}

impl Standing for Ground {
    fn is_over(&self) -> bool {
        let is_given_up = match &self.source {
            Source::File => false,
            Source::Page { held, .. } => held.is_over(),
        };
        let is_ended = self
            .until
            .is_some_and(|until| until.is_over(Boottime::now()));
        is_given_up || is_ended || self.core.edition.load(Ordering::Acquire) != self.edition
    }

    fn edition(&self) -> Option<(&Arc<AtomicU64>, u64)> {
        let is_file = matches!(self.source, Source::File) && self.codings.is_none();
        is_file.then_some((&self.core.edition, self.edition))
    }

    fn stands(&self, received: Boottime) -> bool {
        if self.core.edition.load(Ordering::Acquire) != self.edition
            || self
                .codings
                .is_some_and(|codings| self.prepared.codings() != codings)
            || self.until.is_some_and(|until| until.is_over(received))
        {
            return false;
        }
        match &self.source {
            Source::File => true,
            Source::Page { page, held, worker } => {
                let stands = held.stands(received);
                if stands {
                    page.counters.hit(*worker);
                }
                stands
            }
        }
    }
}
