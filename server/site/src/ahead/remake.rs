//! A request for a page, rebuilt from the page's key.
//!
//! This is possible if the key is the route and the declared parameters alone: no session, no field
//! by which the page varies. The rebuilt request has no fields. If a template looks at the request
//! all the same, the page is private, as with a visitor's request, and then it is not made ahead
//! again.

use std::sync::{Arc, OnceLock, atomic::Ordering};

use millpond_db::Value;
use millpond_http::OwnedRequest;

use super::values;
use crate::{
    answer::{
        Ask,
        arrival::own_arrival,
        cached::{page_key_of, page_key_parts},
        visitor::Visitor,
    },
    core::{Core, Generation},
};
use millpond_site_compile::{compile::Pages, page::Page};
use millpond_site_format::params::with_new_date;

/// True if a page is the same for every visitor, as far as is known, so that its key determines it.
pub(crate) fn is_renewable(page: &Page) -> bool {
    page.needs.is_none() && page.vary.is_empty() && !page.private.load(Ordering::Relaxed)
}

/// A reading of the folder whose keys may still come.
pub(super) struct Edition {
    number: u32,
    pages: Arc<Pages>,
}

impl Edition {
    pub(super) fn of(generation: &Generation) -> Self {
        Self {
            number: generation.number,
            pages: generation.pages.clone(),
        }
    }

    pub(super) fn number(&self) -> u32 {
        self.number
    }

    /// The page and the values that a key of this edition identifies; none if the page cannot be
    /// made from the key.
    pub(super) fn read(&self, key: &[u8]) -> Option<(&Arc<Page>, Vec<Value>)> {
        let (number, index, rest) = page_key_parts(key)?;
        let endpoint = self.pages.endpoints.get(index as usize)?;
        let page = endpoint.page.as_ref()?;
        if number != self.number || !is_renewable(page) {
            return None;
        }
        Some((page, values::from_key(rest, page.params.len())?))
    }

    pub(super) fn page(&self, route: &str) -> Option<&Arc<Page>> {
        let mut pages = self
            .pages
            .endpoints
            .iter()
            .filter_map(|it| it.page.as_ref());
        pages.find(|page| page.route == route)
    }
}

/// The request for a page, as the first visitor would send it.
pub(super) fn ask(
    core: &Arc<Core>,
    generation: &Arc<Generation>,
    page: &Arc<Page>,
    values: Vec<Value>,
) -> Ask {
    let values = with_new_date(&page.params, values);
    let key = page_key_of(generation.number, page, &values);
    let request = OwnedRequest::new("GET", &page.route);
    let visitor = Visitor::new(
        request,
        page.route.clone(),
        (page, &values),
        &generation.sessions,
        None,
    );
    Ask {
        core: core.clone(),
        generation: generation.clone(),
        page: page.clone(),
        values,
        key,
        visitor,
        arrival: own_arrival(page.counters.mean_fill()),
        report: OnceLock::new(),
    }
}
