//! Whether a request that no hit answers is let in.

use std::sync::atomic::Ordering;

use millpond_http::Response;
use millpond_pages::{Arrival, Priority};
use millpond_store::MissReason;

use super::{SiteService, context::RequestContext};
use crate::answer::{
    MissOrBypass,
    arrival::{arrival_of, priority_of},
};
use millpond_site_compile::page::Page;

impl SiteService {
    /// Admits a request for a page, unless it only has to wait for what is being made.
    ///
    /// # Errors
    /// The answer to a request that is refused.
    pub(super) fn admit(
        &self,
        at: RequestContext<'_>,
        page: &Page,
        key: &[u8],
        has_session: bool,
        why: &MissOrBypass,
    ) -> Result<Arrival, Response> {
        let mut arrival = arrival_of(&self.core, at.request, Priority::Document, page);
        let visitors = self.core.admission.visitors();
        // Each visitor's own page is in no store.
        let is_new = matches!(why, MissOrBypass::Miss(MissReason::Absent))
            && page.has_many_keys()
            && !page.private.load(Ordering::Relaxed);
        let is_known = has_session || arrival.is_exempt || visitors.knows(arrival.client);
        let is_api = page.is_api_for(at.request);
        let priority = match priority_of(at.request, is_api) {
            Priority::Document | Priority::Resource if is_new && !is_known => Priority::Stranger,
            priority => priority,
        };
        arrival.priority = priority;
        if !is_new {
            visitors.note(arrival.client);
        }
        match self.core.admission.arrive(&mut arrival) {
            Err(refused) if !self.core.store.has_flight(key) => {
                self.core.admission.count_refused();
                let status = match priority {
                    // RFC 6585 section 4: there is too much of this client's kind.
                    Priority::Bot => 429,
                    _ => 503,
                };
                Err(at
                    .generation
                    .refuse_busy(at.request, is_api, status, refused))
            }
            _ => Ok(arrival),
        }
    }
}
