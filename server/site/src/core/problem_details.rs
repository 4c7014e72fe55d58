//! Errors for programs: JSON documents (RFC 9457).
//!
//! An address of an API answers its errors as JSON. So does every other address to a client that
//! prefers JSON to HTML, or sends a token and does not ask for HTML.

use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use millpond_http::{Parts, Prepared, Request, Response, prefers_json, reason_phrase};
use serde_json::json;

use super::error_answer::{AWAY, ErrorAnswer, SLOW};
use crate::{answer::cached::PageFailure, core::Generation};
use millpond_site_format::params::FieldError;

/// The media type of an error for programs.
pub(crate) const JSON: &str = "application/problem+json";

pub(crate) const NOT_FOUND: &str = "There is no such page here.";
pub(crate) const FAILED: &str =
    "The page could not be made. It is not your fault; please try again later.";

const MISSING: &str = "There is nothing at this address.";
const BROKEN: &str = "The answer could not be made. Please try again later.";

impl ErrorAnswer<'_> {
    /// The answer as JSON.
    pub(crate) fn problem(&self) -> Response {
        self.response(JSON, self.document())
    }

    /// RFC 9457 section 4.2.1: without a type of its own, a problem is titled as its status is.
    fn document(&self) -> String {
        let mut document = json!({
            "type": "about:blank",
            "title": reason_phrase(self.status),
            "status": self.status,
            "detail": self.sentence,
        });
        if !self.errors.is_empty() {
            let errors = self.errors.iter();
            let errors =
                errors.map(|error| json!({ "field": error.field, "detail": error.detail }));
            document["errors"] = errors.collect();
        }
        document.to_string()
    }
}

impl Generation {
    /// 404: there is no such page, or no row for it. `extra` are further lines of the response.
    pub(crate) fn missing(&self, request: &Request<'_>, is_api: bool, extra: Bytes) -> Response {
        static PROBLEM: LazyLock<Arc<Prepared>> = LazyLock::new(|| prepared(404, MISSING));
        if wants_json(request, is_api) {
            return PROBLEM.respond(request, extra);
        }
        match self.folder_error(request, (404, NOT_FOUND)) {
            Some(page) => page.respond(request, extra),
            None => self.not_found.respond(request, extra),
        }
    }

    /// 500: the site has a fault.
    pub(crate) fn broken(&self, request: &Request<'_>, is_api: bool, extra: Bytes) -> Response {
        static PROBLEM: LazyLock<Arc<Prepared>> = LazyLock::new(|| prepared(500, BROKEN));
        if wants_json(request, is_api) {
            return PROBLEM.respond(request, extra);
        }
        match self.folder_error(request, (500, FAILED)) {
            Some(page) => page.respond(request, extra),
            None => self.error.respond(request, extra),
        }
    }

    /// The answer where the database did not do its part.
    pub(crate) fn failed(
        &self,
        request: &Request<'_>,
        is_api: bool,
        failure: &PageFailure,
    ) -> Response {
        let error = match failure {
            PageFailure::Busy(refused) => return self.refuse_busy(request, is_api, 503, *refused),
            PageFailure::Slow => SLOW,
            PageFailure::Away => AWAY,
            PageFailure::NoSuchPage => return self.missing(request, is_api, Bytes::new()),
            PageFailure::Parameter { sentence, name } => {
                let error = name.iter().map(|name| FieldError {
                    field: name.to_string(),
                    detail: sentence.to_string(),
                });
                let errors: Vec<FieldError> = error.collect();
                let error = ErrorAnswer::new(400, sentence).errors(&errors);
                return self.refuse(request, &error.of_api(is_api));
            }
            PageFailure::Internal => return self.broken(request, is_api, Bytes::new()),
        };
        self.refuse(request, &error.of_api(is_api))
    }
}

/// An answer that is always the same, rendered once: a hit of a page that does not exist gives it.
fn prepared(status: u16, sentence: &str) -> Arc<Prepared> {
    Arc::new(Prepared::new(Parts {
        status,
        media_type: JSON,
        fields: &[("Cache-Control", "no-cache"), ("Vary", "Accept")],
        body: ErrorAnswer::new(status, sentence).document().into(),
        last_modified: None,
        compressible: false,
    }))
}

/// True if an error is said to this client as JSON.
pub(crate) fn wants_json(request: &Request<'_>, is_api: bool) -> bool {
    is_api || prefers_json(request)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_is_a_document_with_its_status_as_title() {
        let errors = [FieldError {
            field: "id".into(),
            detail: "The parameter \"id\" is missing.".into(),
        }];
        let answer = ErrorAnswer::new(400, "x \"y\"").errors(&errors);
        assert_eq!(
            answer.document(),
            r#"{"type":"about:blank","title":"Bad Request","status":400,"detail":"x \"y\"","errors":[{"field":"id","detail":"The parameter \"id\" is missing."}]}"#
        );
        let response = SLOW.problem();
        assert_eq!(response.field("retry-after"), Some("1"));
        assert_eq!(response.field("cache-control"), Some("no-store"));
    }
}
