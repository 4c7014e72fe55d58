//! Whether a request that no hit answers is let in.

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
        why: &MissOrBypass,
    ) -> Result<Arrival, Response> {
        let mut arrival = arrival_of(at.request, Priority::Document, page);
        let visitors = self.core.admission.visitors();
        let is_new = matches!(why, MissOrBypass::Miss(MissReason::Absent)) && page.has_many_keys();
        let is_api = page.is_api_for(at.request);
        let priority = match priority_of(at.request, is_api) {
            Priority::Document | Priority::Resource
                if is_new && !arrival.is_exempt && !visitors.knows(arrival.client) =>
            {
                Priority::Stranger
            }
            priority => priority,
        };
        arrival.priority = priority;
        if !is_new {
            visitors.note(arrival.client);
        }
        match self.core.admission.arrive(&mut arrival) {
            Err(refused) if !self.core.store.has_flight(key) => {
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
