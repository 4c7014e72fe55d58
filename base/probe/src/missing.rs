//! What could not be read, and why.

use std::collections::BTreeMap;
use std::fmt::Display;

/// Reasons by the name of the missing value. The first reason stays: later ones are mostly its
/// consequences.
#[derive(Debug, Default)]
pub(super) struct Missing(BTreeMap<String, String>);

impl Missing {
    /// The value, or `None` with its reason noted under `name`.
    pub(super) fn or_note<T, E: Display>(&mut self, name: &str, result: Result<T, E>) -> Option<T> {
        result.map_err(|why| self.note(name, why)).ok()
    }

    /// Notes that `name` is not available.
    pub(super) fn note(&mut self, name: &str, why: impl Display) {
        if !self.0.contains_key(name) {
            self.0.insert(name.to_owned(), why.to_string());
        }
    }

    pub(super) fn into_reasons(self) -> BTreeMap<String, String> {
        self.0
    }
}
