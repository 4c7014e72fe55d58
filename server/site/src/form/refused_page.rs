//! A form that was refused, and whose page is the answer itself (coherence.md, rule 24): what was
//! typed has no room in a cookie, or there is no key to sign one with.
//!
//! The page is what the visitor would get at its address: it is looked for there, what it requires
//! is asked of the same session, and it is rendered as for a visitor who is led back.

use std::sync::{Arc, OnceLock};

use millpond_http::{Body, Request, Response};
use millpond_pages::{CacheStatus, Priority};

use super::submit::Submission;
use crate::{
    answer::{
        Ask, arrival::arrival_of, cached::page_key, owned, render::RenderedForm, visitor::Visitor,
    },
    session::Session,
};
use millpond_site_compile::{
    page::Page,
    refusal::{flash::Flash, invalid::Back},
};
use millpond_site_format::{access::Gate, params::Given};

/// The most bytes of what was typed. A page that is this large is made by the worker itself, while
/// others wait.
const MAX_SHOWN: usize = 1 << 20;

/// Field lines of the form's request that say nothing about the page: its body, and conditions and
/// ranges of another answer.
const OF_THE_FORM: [&str; 11] = [
    "content-type",
    "content-length",
    "content-encoding",
    "transfer-encoding",
    "expect",
    "if-match",
    "if-none-match",
    "if-modified-since",
    "if-unmodified-since",
    "if-range",
    "range",
];

/// Notes of an answer that it is the page of the form, and no error that is explained.
pub(crate) struct FormPage;

impl Submission {
    /// 422 with the page of the form. None if the visitor does not get that page now.
    pub(crate) async fn refused_form_page(&self, back: &Back, flash: &Flash) -> Option<Response> {
        if flash.size() > MAX_SHOWN {
            return None;
        }
        let ask = self.ask_for_page(back)?;
        let page = Arc::clone(&ask.page);
        let rendered = ask.render_with(flash).await?;
        let RenderedForm::Alone(prepared) = rendered else {
            return None;
        };
        let Body::Bytes(body) = prepared.body() else {
            return None;
        };
        // A page that leads elsewhere shows no form.
        if prepared.status() != 200 {
            return None;
        }
        let response = Response::builder(422)
            .field("Content-Type", page.page_type.media_type)
            .field("Cache-Control", "private, no-store")
            .field("Cache-Status", CacheStatus::Form.value())
            .field("X-Content-Type-Options", "nosniff");
        // The form's own path adds its fields to all of its answers.
        let response = response.body(body.clone()).with_note(Arc::new(FormPage));
        Some(self.generation.with_fields(back.path(), response))
    }

    /// The page, asked for as the visitor would ask for it.
    fn ask_for_page(&self, back: &Back) -> Option<Ask> {
        let generation = &self.generation;
        let found = generation.pages.router.find(back.path())?;
        let page = generation.pages.endpoints[found.page].page.as_ref()?;
        let sent = self.request.as_request();
        let address = back.address();
        let (path, query) = match address.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (address, None),
        };
        let mut request: Request<'_> = sent.clone();
        request.method = "GET";
        request.target = address;
        request.path = path;
        request.query = query;
        let request = owned(&request).without(&OF_THE_FORM);
        let request_again = request.as_request();
        // The rules of the settings hold as if the visitor asked for the page. Where they give
        // another answer for its address, the visitor is led there.
        let rules = generation.rules.as_ref();
        if rules.is_some_and(|rules| rules.before(back.path()).is_some()) {
            return None;
        }
        generation.admit_at(&request_again, back.path()).ok()?;
        let session = match page.needs.is_none() {
            true => None,
            false => generation.sessions.of(&request_again),
        };
        if !matches!(
            page.needs.gate(session.as_ref().map(Session::claims)),
            Gate::Open
        ) {
            return None;
        }
        let chosen = page.with_visitors_language(&request_again);
        let given = Given {
            path: &found.values,
            form: &[],
            query: chosen.as_deref().or(query),
        };
        let mut key = Vec::new();
        let vary = |field: &str| generation.sessions.field(&request_again, field);
        let number = generation.number;
        page_key(&mut key, number, page, &given, session.as_ref(), vary).ok()?;
        let mut values = given.values(&page.params).ok()?;
        values.extend(page.needs.values(session.as_ref().map(Session::claims)));
        let path = back.path().to_owned();
        let sessions = &generation.sessions;
        let of = (&**page, &*values);
        let visitor = Visitor::new(request.clone(), path, of, sessions, session.as_ref());
        Some(self.ask(page, values, key, visitor))
    }

    fn ask(
        &self,
        page: &Arc<Page>,
        values: Vec<millpond_db::Value>,
        key: Vec<u8>,
        visitor: Arc<Visitor>,
    ) -> Ask {
        Ask {
            core: self.core.clone(),
            generation: self.generation.clone(),
            page: page.clone(),
            values,
            key,
            visitor,
            arrival: arrival_of(
                &self.core,
                &self.request.as_request(),
                Priority::Write,
                page,
            ),
            report: OnceLock::new(),
        }
    }
}
