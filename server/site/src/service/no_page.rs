//! The answers at addresses at which no page is shown, and why. None of them is hot.

use std::sync::Arc;

use bytes::Bytes;
use millpond_http::{Reply, Request, Response, path};

use super::{SiteService, methods::not_allowed};
use crate::{
    answer::{cached::Cached, owned, visitor::Visitor},
    core::{Generation, error_answer::ErrorAnswer},
    dev::refusals,
    session::Session,
};
use millpond_site_compile::page::Page;
use millpond_site_format::{
    params::{BadParam, Given},
    route::Match,
    rules::HIT,
};

impl SiteService {
    /// The answer where the parameters make no key: the page in the visitor's language, if that is
    /// what the request lacks.
    #[cold]
    pub(super) fn without_key(
        &self,
        generation: &Arc<Generation>,
        key: &mut Vec<u8>,
        (request, path, found): (&Request<'_>, &str, &Match<'_>),
        page: &Page,
        (given, bad): (&Given<'_>, &BadParam),
    ) -> Reply {
        match page.with_missing_language(request, bad) {
            Some(query) => {
                let mut chosen = request.clone();
                chosen.query = Some(&query);
                self.page(generation, key, &chosen, path, found)
            }
            None => self
                .not_taken(generation, page, request, (given, bad))
                .into(),
        }
    }

    /// The answer to parameters that the page does not take. Nothing of it is kept.
    #[cold]
    pub(super) fn not_taken(
        &self,
        generation: &Generation,
        page: &Page,
        request: &Request<'_>,
        (given, bad): (&Given<'_>, &BadParam),
    ) -> Response {
        let is_api = page.is_api_for(request);
        let refused = if bad.is_in_path {
            generation.missing(request, is_api, Bytes::new())
        } else {
            let error = ErrorAnswer::new(400, &bad.sentence);
            generation.refuse(request, &error.errors(&[bad.error()]).of_api(is_api))
        };
        self.core.explained(refused, || {
            refusals::of_parameter(&self.core, page, given, request, bad)
        })
    }

    /// The answer of a page of which is known that it does not exist.
    #[cold]
    pub(super) fn missing_again(
        &self,
        generation: &Generation,
        page: &Page,
        (request, session): (&Request<'_>, Option<&Session>),
        value: &Arc<Cached>,
        at: usize,
    ) -> Reply {
        let missing = generation.respond(page, value, request, Bytes::from_static(HIT));
        if self.core.dev.is_none() {
            return missing.into();
        }
        let path = path::normalize(request.path).unwrap_or_default();
        let path = generation.place_of(&path);
        let found = generation.pages.router.find(path);
        let given = Given {
            path: found.as_ref().map_or(&[][..], |found| &found.values),
            form: &[],
            query: request.query,
        };
        let mut values = given.values(&page.params).unwrap_or_default();
        values.extend(page.needs.values(session.map(Session::claims)));
        let sessions = &generation.sessions;
        let of = (page, &*values);
        let visitor = Visitor::new(owned(request), path.to_owned(), of, sessions, session);
        let report = || refusals::of_missing(&self.core, page, &values, &visitor, at);
        self.core.explained(missing, report).into()
    }

    /// The answer to a visitor whom a rule of the settings turns away.
    #[cold]
    pub(super) fn rule_explained(
        &self,
        generation: &Generation,
        request: &Request<'_>,
        path: &str,
        refused: Response,
    ) -> Response {
        self.core.explained(refused, || {
            let required = generation.required_at(request.method, path);
            let session = generation.sessions.of(request);
            let required = required.into_iter().map(|rule| &rule.require);
            refusals::of_entry(&self.core, required, session.as_ref(), request, &[])
        })
    }

    /// The answer at an address at which nothing is.
    #[cold]
    pub(super) fn nothing(&self, generation: &Generation, request: &Request<'_>) -> Response {
        let missing = generation.missing(request, false, Bytes::new());
        self.core
            .explained(missing, || refusals::of_address(generation, request))
    }
}

/// The answer to a method that the endpoint does not have.
#[cold]
pub(super) fn not_taken_here(
    generation: &Generation,
    found: &Match<'_>,
    request: &Request<'_>,
) -> Response {
    let endpoint = &generation.pages.endpoints[found.page];
    let is_api = endpoint.is_api_for(request);
    not_allowed(generation, request, is_api, &endpoint.allow)
}
