//! Queries that say who may enter: `-- require: member`, where `member` is a `:one` of the file.
//!
//! The query is one of the page's own, so it is read in the page's snapshot, its dependencies are
//! the page's, and the claims that it uses are in the page's key. Without its row no page is made,
//! and what is kept is the absence, under that key: visitors with the same claims share it.

use millpond_http::{Request, Response, path};

use crate::{
    compile::sign_in,
    core::Generation,
    object::QueryResult,
    page::{Form, Page},
    rules::local,
    session::Gate,
};

/// A query without whose row a visitor may not enter.
#[derive(Debug)]
pub(crate) struct Guard {
    /// Its place among the queries of the page, or the steps of the form.
    pub(crate) query: usize,
    /// The path where the visitor is led; `:name` in it is a part of the page's path.
    pub(crate) otherwise: Option<String>,
}

impl Page {
    /// The guard that is the query at this place.
    pub(crate) fn guard(&self, query: usize) -> Option<&Guard> {
        self.guards.iter().find(|guard| guard.query == query)
    }

    /// The place of the query that keeps the page from being: a guard without a row, else a `:one`
    /// without one. Guards count first, so that a stranger is not told which pages there are.
    pub(crate) fn missing(&self, objects: &[impl AsRef<QueryResult>]) -> Option<usize> {
        let is_missing = |at: &usize| objects[*at].as_ref().is_missing();
        let mut guards = self.guards.iter().map(|guard| guard.query);
        let guard = guards.find(is_missing);
        guard.or_else(|| (0..objects.len()).find(is_missing))
    }
}

impl Form {
    /// The guard that is the step at this place.
    pub(crate) fn guard(&self, step: usize) -> Option<&Guard> {
        self.guards.iter().find(|guard| guard.query == step)
    }
}

impl Generation {
    /// The answer to a visitor for whom the guard's query gave no row, as of a session that is not
    /// what is required.
    #[cold]
    pub(crate) fn refuse_guarded(
        &self,
        guard: &Guard,
        request: &Request<'_>,
        is_api: bool,
    ) -> Response {
        let has_session = self.sessions.of(request).is_some();
        let path = guard.otherwise.as_deref();
        let path = path.map(|path| self.led_to(path, request));
        let gate = path.as_deref().map_or(Gate::Closed, Gate::SignIn);
        self.refuse_admission(request, gate, has_session, is_api)
    }

    /// The path behind `else`, with the parts of the path that is asked for.
    fn led_to(&self, otherwise: &str, request: &Request<'_>) -> String {
        let asked = path::normalize(request.path).unwrap_or_default();
        let behind = self.path_behind(&asked);
        let place = self.place_of(behind.as_deref().unwrap_or(&asked));
        match self.pages.router.find(place) {
            Some(found) => {
                let pattern = &self.pages.endpoints[found.page].pattern;
                sign_in::filled(otherwise, pattern, &found.values)
            }
            None => local(otherwise),
        }
    }
}
