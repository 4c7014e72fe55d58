//! The names that templates find besides the queries of their page.

/// What an error page is given.
pub(crate) const ERROR_ROOTS: &[&str] = &["status", "title", "message"];

/// The members of `request`.
pub(crate) const REQUEST_MEMBERS: &[&str] =
    &["method", "path", "query", "headers", "host", "claims"];
