//! The page of a form that was refused, for the one visitor who is led back to it (coherence.md,
//! rule 24).
//!
//! The results are read as for a visitor who has just written: from a flight that has not begun, so
//! that one visitor with such a cookie makes no more reads than the others. They hold nothing of
//! what was typed. The page is rendered for this request alone, and does not go into the store.

use std::sync::{Arc, atomic::Ordering};

use base_clock::Boottime;
use bytes::Bytes;
use millpond_http::Response;
use millpond_pages::CacheStatus;

use crate::answer::{
    Ask,
    cached::{Cached, PageFailure},
    render::{RenderedForm, render_with_form},
};
use crate::labels::AnswerKind;
use millpond_site_compile::refusal::flash::Flash;

impl Ask {
    /// Renders the page with what was typed and what is wrong, for one answer. None if its results
    /// cannot be had.
    pub(crate) async fn render_with(self, flash: &Flash) -> Option<RenderedForm> {
        let started = Boottime::now();
        let (objects, database) = self.results_afresh().await.ok()?;
        let site = (&*self.core, &*self.generation);
        let flash = Arc::new(flash.clone());
        let rendered = render_with_form(
            site,
            &self.page,
            &self.values,
            &objects,
            &self.visitor,
            &flash,
        );
        let time = Boottime::now().since(started);
        self.page.counters.filled(time, database);
        self.page.counters.bypassed.fetch_add(1, Ordering::Relaxed);
        Some(rendered)
    }

    /// Answers with what was typed and what is wrong, and takes both out of the browser.
    pub(crate) async fn answer_refused_form(self, flash: Flash) -> Response {
        let started = Boottime::now();
        let (objects, database) = match self.results_afresh().await {
            Ok(results) => results,
            Err(failed) => return self.respond(&failed, Bytes::new()),
        };
        let before = Boottime::now();
        let rendered = render_with_form(
            (&self.core, &self.generation),
            &self.page,
            &self.values,
            &objects,
            &self.visitor,
            &Arc::new(flash),
        );
        let now = Boottime::now();
        self.page.counters.filled(now.since(started), database);
        self.page.counters.bypassed.fetch_add(1, Ordering::Relaxed);
        let failed = PageFailure::Internal;
        match rendered {
            RenderedForm::Alone(prepared) => {
                let request = self.visitor.request().as_request();
                let timing = self.timing(database, now.since(before));
                let mut lines = self.lines(CacheStatus::Form, timing).to_vec();
                for cookie in self.generation.sessions.end_flash(&request) {
                    lines.extend_from_slice(format!("Set-Cookie: {cookie}\r\n").as_bytes());
                }
                AnswerKind::Bypass.of(prepared.respond(&request, Bytes::from(lines)))
            }
            RenderedForm::Missing(at) => self.respond(&Arc::new(Cached::Missing(at)), Bytes::new()),
            RenderedForm::Failed => self.respond(&Arc::new(Cached::Failed(failed)), Bytes::new()),
        }
    }
}
