//! Errors for programs: JSON documents (RFC 9457).
//!
//! An address of an API answers its errors as JSON. So does every other address to a client that
//! prefers JSON to HTML, or sends a token and does not ask for HTML.

use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use millpond_http::{Parts, Prepared, Request, Response, reason_phrase};
use serde_json::json;

use crate::{
    cached::PageFailure,
    core::Generation,
    error_answer::{AWAY, BUSY, ErrorAnswer, SLOW},
    reading::{FAILED, NOT_FOUND},
};

/// The media type of an error for programs.
pub(crate) const JSON: &str = "application/problem+json";

const MISSING: &str = "There is nothing at this address.";
const BROKEN: &str = "The answer could not be made. Please try again later.";

/// What is wrong with one parameter, or with the field that it fills.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FieldError {
    pub(crate) field: String,
    /// The sentence for the client.
    pub(crate) detail: String,
}

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
            PageFailure::Busy => BUSY,
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

/// Whether an error is said to this client as JSON.
pub(crate) fn wants_json(request: &Request<'_>, is_api: bool) -> bool {
    is_api || prefers_json(request) || (has_token(request) && !names_html(request))
}

fn prefers_json(request: &Request<'_>) -> bool {
    let json = ["application/json", "application/problem+json"];
    let json = json.map(|media_type| preference(request, media_type));
    json.into_iter().max() > Some(preference(request, "text/html"))
}

/// Whether a client sends a token (RFC 6750), as no browser does by itself. Whether the site takes
/// tokens makes no difference: what sends one is a program.
fn has_token(request: &Request<'_>) -> bool {
    let mut lines = request.fields.get_all("authorization");
    lines.any(|line| {
        let scheme = line.get(..7);
        scheme.is_some_and(|scheme| scheme.eq_ignore_ascii_case(b"bearer "))
    })
}

/// Whether a client names HTML among what it takes, as a browser does that goes to a page.
pub(crate) fn names_html(request: &Request<'_>) -> bool {
    let (weight, exactness) = preference(request, "text/html");
    weight > 0 && exactness == 2
}

/// How much a client wants a media type by its `Accept` (RFC 9110 section 12.5.1): the weight in
/// thousandths, then how exactly it is named. *Counterexample* by the weight alone: `Accept:
/// application/json, */*`, which many clients send who cannot read HTML.
fn preference(request: &Request<'_>, media_type: &str) -> (u16, u8) {
    let kind = media_type.split('/').next().unwrap_or_default();
    let lines = request.fields.get_all("accept");
    let lines = lines.filter_map(|line| std::str::from_utf8(line).ok());
    let ranges = lines.flat_map(|line| line.split(','));
    let matching = ranges.filter_map(|range| {
        let (range, parameters) = range.split_once(';').unwrap_or((range, ""));
        let range = range.trim();
        let exactness = match range.strip_suffix("/*") {
            Some("*") => 0,
            Some(of) if of.eq_ignore_ascii_case(kind) => 1,
            None if range.eq_ignore_ascii_case(media_type) => 2,
            _ => return None,
        };
        Some((exactness, weight(parameters)))
    });
    // The range that names the type most exactly decides.
    let found = matching.max();
    found.map_or((0, 0), |(exactness, weight)| (weight, exactness))
}

/// The weight among the parameters of a range, in thousandths.
fn weight(parameters: &str) -> u16 {
    let mut parameters = parameters.split(';').filter_map(|one| one.split_once('='));
    let q = parameters.find(|(name, _)| name.trim().eq_ignore_ascii_case("q"));
    let weight = q.map(|(_, value)| value.trim().parse::<f32>().unwrap_or(0.0));
    (weight.unwrap_or(1.0).clamp(0.0, 1.0) * 1000.0) as u16
}

#[cfg(test)]
mod tests {
    use millpond_http::OwnedRequest;

    use super::*;

    #[test]
    fn a_client_that_prefers_json_gets_json() {
        for (accept, expected) in [
            (None, false),
            (Some(""), false),
            (Some("*/*"), false),
            (Some("application/json"), true),
            (Some("application/problem+json"), true),
            (Some("APPLICATION/JSON;q=0.5"), true),
            (Some("application/json, text/plain, */*"), true),
            (Some("application/*"), true),
            (Some("text/html"), false),
            (Some("text/html,application/json"), false),
            (Some("text/html;q=0.9, application/json"), true),
            (Some("text/*, application/json"), true),
            (Some("text/html,application/xhtml+xml,*/*;q=0.8"), false),
            (Some("application/json;q=0, */*"), false),
            (Some("application/json;q=x, */*;q=0.1"), false),
            (Some("text/html;q=NaN, application/json;q=2"), true),
        ] {
            let request = OwnedRequest::new("GET", "/");
            let request = match accept {
                Some(accept) => request.field("Accept", accept),
                None => request,
            };
            let found = wants_json(&request.as_request(), false);
            assert_eq!(found, expected, "{accept:?}");
            assert!(wants_json(&request.as_request(), true));
        }
    }

    #[test]
    fn a_client_with_a_token_gets_json_unless_it_asks_for_html() {
        for (token, accept, expected) in [
            ("Bearer x", None, true),
            ("bearer x", Some("*/*"), true),
            ("Bearer x", Some("text/html,*/*;q=0.8"), false),
            ("Bearer x", Some("text/html;q=0, */*"), true),
            ("Basic x", None, false),
            ("Bearerx", None, false),
        ] {
            let request = OwnedRequest::new("GET", "/").field("Authorization", token);
            let request = match accept {
                Some(accept) => request.field("Accept", accept),
                None => request,
            };
            let found = wants_json(&request.as_request(), false);
            assert_eq!(found, expected, "{token} {accept:?}");
        }
    }

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
        let response = BUSY.problem();
        assert_eq!(response.field("retry-after"), Some("1"));
        assert_eq!(response.field("cache-control"), Some("no-store"));
    }
}
