//! Forms and writes: what a request must have before its body is read.

use std::sync::OnceLock;

use bytes::Bytes;
use millpond_http::{Reply, Request, Response};

use super::{
    SiteService,
    context::{Entered, RequestContext},
    no_page::not_taken_here,
};
use crate::{
    core::Generation,
    form::{self, Refused, body::BodyKind, submit::Submission},
    uploads::Received,
};
use millpond_site_format::{route::Match, write_method::WriteMethod};

impl SiteService {
    pub(super) fn write(
        &self,
        at: RequestContext<'_>,
        method: WriteMethod,
        found: &Match<'_>,
    ) -> Reply {
        match self.submission(at, method, found) {
            Ok(submission) => Reply::later(submission.submit()),
            Err(refused) => refused.into(),
        }
    }

    /// A form that was sent, or is being sent; or the answer to one that is not taken.
    pub(crate) fn submission(
        &self,
        at: RequestContext<'_>,
        method: WriteMethod,
        found: &Match<'_>,
    ) -> Result<Submission, Response> {
        let (generation, request) = (at.generation, at.request);
        let endpoint = &generation.pages.endpoints[found.page];
        let Some(form) = endpoint.form(method) else {
            return Err(not_taken_here(at, found));
        };
        let checked = guarded(generation, request)
            .and_then(|()| BodyKind::of(request, method))
            .and_then(|kind| form::preconditions(request, endpoint.page.is_some()).map(|()| kind));
        let is_api = !form.is_for_people();
        let body_kind =
            checked.map_err(|refused| refused.answer(generation, method, request, is_api))?;
        let session = self.enter(at, found, Entered::Form(form))?;
        Ok(Submission {
            session,
            core: self.core.clone(),
            generation: generation.clone(),
            form: form.clone(),
            path_values: found
                .values
                .iter()
                .map(|value| (*value).to_owned())
                .collect(),
            request: request.to_owned().body(Bytes::new()),
            body: request.body.clone(),
            body_kind,
            shown: OnceLock::new(),
            back: None,
            received: Received::default(),
        })
    }
}

/// Refuses a write that a page of another site has sent.
fn guarded(generation: &Generation, request: &Request<'_>) -> Result<(), Refused> {
    match generation.sessions.has_token_alone(request) {
        true => Ok(()),
        false => form::guard(request),
    }
}
