//! The answers at addresses at which no page is shown, and why. None of them is hot.

use std::sync::Arc;

use bytes::Bytes;
use millpond_http::{Reply, Response, path};
use millpond_pages::CacheStatus;

use super::{SiteService, context::RequestContext, methods::not_allowed};
use crate::{
    answer::{cached::Cached, owned, visitor::Visitor},
    core::error_answer::ErrorAnswer,
    dev::refusals,
    labels::AnswerKind,
    session::Session,
};
use millpond_site_compile::page::Page;
use millpond_site_format::{
    params::{BadParam, Given},
    route::Match,
};

impl SiteService {
    /// The answer where the parameters make no key: the page in the visitor's language, if that is
    /// what the request lacks.
    #[cold]
    pub(super) fn without_key(
        &self,
        at: RequestContext<'_>,
        key: &mut Vec<u8>,
        found: &Match<'_>,
        page: &Page,
        bad: &BadParam,
    ) -> Reply {
        match page.with_missing_language(at.request, bad) {
            Some(query) => {
                let mut request = at.request.clone();
                request.query = Some(&query);
                let at = RequestContext {
                    request: &request,
                    ..at
                };
                self.page(at, key, found)
            }
            None => self.not_taken(at, page, found, bad).into(),
        }
    }

    /// The answer to parameters that the page does not take. Nothing of it is kept.
    #[cold]
    pub(super) fn not_taken(
        &self,
        at: RequestContext<'_>,
        page: &Page,
        found: &Match<'_>,
        bad: &BadParam,
    ) -> Response {
        let (generation, request) = (at.generation, at.request);
        let is_api = page.is_api_for(request);
        let refused = if bad.is_in_path {
            generation.missing(request, is_api, Bytes::new())
        } else {
            let error = ErrorAnswer::new(400, &bad.sentence);
            generation.refuse(request, &error.errors(&[bad.error()]).of_api(is_api))
        };
        self.core.explained(refused, || {
            let given = Given {
                path: &found.values,
                form: &[],
                query: request.query,
            };
            refusals::of_parameter(&self.core, page, &given, request, bad)
        })
    }

    /// The answer of a page of which is known that it does not exist.
    #[cold]
    pub(super) fn missing_again(
        &self,
        at: RequestContext<'_>,
        page: &Page,
        session: Option<&Session>,
        value: &Arc<Cached>,
        query: usize,
    ) -> Reply {
        let (generation, request) = (at.generation, at.request);
        let missing = generation.respond(page, value, request, CacheStatus::Hit.line());
        let missing = AnswerKind::Hit.of(missing);
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
        let report = || refusals::of_missing(&self.core, page, &values, &visitor, query);
        self.core.explained(missing, report).into()
    }

    /// The answer to a visitor whom a rule of the settings turns away.
    #[cold]
    pub(super) fn rule_explained(&self, at: RequestContext<'_>, refused: Response) -> Response {
        let (generation, request) = (at.generation, at.request);
        self.core.explained(refused, || {
            let required = generation.required_at(request.method, at.path);
            let session = generation.sessions.of(request);
            let required = required.into_iter().map(|rule| &rule.require);
            refusals::of_entry(&self.core, required, session.as_ref(), request, &[])
        })
    }

    /// The answer at an address at which nothing is.
    #[cold]
    pub(super) fn nothing(&self, at: RequestContext<'_>) -> Response {
        let missing = at.generation.missing(at.request, false, Bytes::new());
        let report = || refusals::of_address(at.generation, at.request);
        self.core.explained(missing, report)
    }
}

/// The answer to a method that the endpoint does not have.
#[cold]
pub(super) fn not_taken_here(at: RequestContext<'_>, found: &Match<'_>) -> Response {
    let endpoint = &at.generation.pages.endpoints[found.page];
    let is_api = endpoint.is_api_for(at.request);
    not_allowed(at.generation, at.request, is_api, &endpoint.allow)
}
