//! Pages that are the server's own: errors for which the site has no page, and lists of folders.
//!
//! Their style stands in them. A policy of the site's settings (`style-src 'self'`) would take it
//! away, so each has a policy of its own, which names its style by its hash and takes the place of
//! the site's.

use std::sync::{Arc, LazyLock};

use aws_lc_rs::digest::{SHA256, digest};
use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use millpond_http::{Body, Parts, Prepared, Request, Response};
use minijinja::HtmlEscape;

use millpond_site_compile::page_type::HTML;

/// The style of all of them.
pub(crate) const STYLE: &str = include_str!("own_page.css");

/// The line with the policy of these pages.
static POLICY: LazyLock<Bytes> = LazyLock::new(|| {
    let hash = STANDARD.encode(digest(&SHA256, STYLE.as_bytes()));
    let policy = format!(
        "default-src 'self'; style-src 'self' 'sha256-{hash}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    );
    format!("Content-Security-Policy: {policy}\r\n").into()
});

/// A page that shows one sentence.
fn html(title: &str, sentence: &str) -> String {
    let (title, sentence) = (HtmlEscape(title), HtmlEscape(sentence));
    format!(
        "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\"><meta name=\"color-scheme\" content=\"light dark\">\n<title>{title}</title>\n<style>{STYLE}</style>\n<main class=\"short\"><h1>{title}</h1>\n<p>{sentence}</p></main>\n"
    )
}

/// The further lines of such a page.
pub(crate) fn with_policy(extra: &[u8]) -> Bytes {
    [&POLICY[..], extra].concat().into()
}

/// The page of an error for a browser, with these fields.
pub(crate) fn refusal(status: u16, (title, sentence): (&str, &str), fields: &str) -> Response {
    let response = Response::builder(status)
        .field("Content-Type", HTML)
        .field("X-Content-Type-Options", "nosniff")
        .field("Cache-Control", "no-store");
    let response = response.body(html(title, sentence));
    response.with_extra(with_policy(fields.as_bytes()))
}

/// The page for a 404, or for a 500.
#[derive(Debug)]
pub(crate) struct StatusPage {
    page: Arc<Prepared>,
    /// True if the site has none.
    is_own: bool,
}

impl StatusPage {
    /// Prepares the site's page, or a plain one; `before` if that has the same content.
    pub(crate) fn new(
        status: u16,
        (title, sentence): (&str, &str),
        of_site: Option<Bytes>,
        before: Option<&Self>,
    ) -> Self {
        let is_own = of_site.is_none();
        let body = of_site.unwrap_or_else(|| html(title, sentence).into());
        let before = before.map(|before| &before.page);
        let same =
            before.filter(|before| matches!(before.body(), Body::Bytes(old) if *old == body));
        let page = same.cloned().unwrap_or_else(|| {
            Arc::new(Prepared::new(Parts {
                status,
                media_type: HTML,
                // A client that prefers JSON gets that.
                fields: &[("Cache-Control", "no-cache"), ("Vary", "Accept")],
                body,
                last_modified: None,
                compressible: true,
            }))
        });
        Self { page, is_own }
    }

    pub(crate) fn respond(&self, request: &Request<'_>, extra: Bytes) -> Response {
        let extra = match self.is_own {
            true => with_policy(&extra),
            false => extra,
        };
        self.page.respond(request, extra)
    }
}
