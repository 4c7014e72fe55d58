//! Queries that say who may enter: `-- require: member`, where `member` is a `:one` of the file.
//!
//! The query is one of the page's own, so it is read in the page's snapshot, its dependencies are
//! the page's, and the claims that it uses are in the page's key. Without its row no page is made,
//! and what is kept is the absence, under that key: visitors with the same claims share it.

use crate::{
    object::QueryResult,
    page::{Form, Page},
};

/// A query without whose row a visitor may not enter.
#[derive(Debug)]
pub struct Guard {
    /// Its place among the queries of the page, or the steps of the form.
    pub query: usize,
    /// The path where the visitor is led; `:name` in it is a part of the page's path.
    pub otherwise: Option<String>,
}

impl Page {
    /// The guard that is the query at this place.
    pub fn guard(&self, query: usize) -> Option<&Guard> {
        self.guards.iter().find(|guard| guard.query == query)
    }

    /// The place of the query that keeps the page from being: a guard without a row, else a `:one`
    /// without one. Guards count first, so that a stranger is not told which pages there are.
    pub fn missing(&self, objects: &[impl AsRef<QueryResult>]) -> Option<usize> {
        let is_missing = |at: &usize| objects[*at].as_ref().is_missing();
        let mut guards = self.guards.iter().map(|guard| guard.query);
        let guard = guards.find(is_missing);
        guard.or_else(|| (0..objects.len()).find(is_missing))
    }
}

impl Form {
    /// The guard that is the step at this place.
    pub fn guard(&self, step: usize) -> Option<&Guard> {
        self.guards.iter().find(|guard| guard.query == step)
    }
}
