//! The note of a response from which the developer learns why it is what it is.

use std::sync::Arc;

use millpond_http::Request;
use serde_json::{Value as Json, json};

use super::scope;

/// Facts for the page of an error; `page.html` and `json` of `page` have their meaning.
#[derive(Debug)]
pub(crate) struct Report {
    pub(super) facts: Json,
    /// True if the request is refused and the site has no fault: then only a browser that asks for
    /// a page, and a program that gets a document of its own, are shown it.
    pub(super) is_refusal: bool,
}

impl Report {
    /// Returns the report of a fault of the site.
    pub(super) fn of_failure(facts: Json) -> Arc<Self> {
        Arc::new(Self {
            facts,
            is_refusal: false,
        })
    }

    /// Returns the report of a request that is refused.
    pub(super) fn of_refusal(facts: Json) -> Arc<Self> {
        Arc::new(Self {
            facts,
            is_refusal: true,
        })
    }
}

/// The report of an answer of which only the sentence for the visitor is known.
pub(crate) fn of_refusal(request: &Request<'_>, told: &str) -> Arc<Report> {
    let mut facts = of_sentence(request);
    facts["cause"] = sentence(told);
    Report::of_refusal(facts)
}

/// The facts of an error of which only the sentence for the visitor is known.
pub(super) fn of_sentence(request: &Request<'_>) -> Json {
    json!({
        "route": scope::short(request.path),
        "method": request.method,
        "request": scope::request(request, request.path),
    })
}

/// A text as a sentence without a full stop, short enough to be read.
pub(super) fn sentence(text: &str) -> Json {
    let text = scope::short(text.trim_end_matches('.'));
    let mut letters = text.chars();
    match letters.next() {
        Some(first) => format!("{}{}", first.to_uppercase(), letters.as_str()).into(),
        None => "Unknown".into(),
    }
}
