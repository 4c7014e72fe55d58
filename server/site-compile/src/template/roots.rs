//! The names that templates find besides the queries of their page.

/// Names that an error page is given.
pub(super) const ERROR_ROOTS: &[&str] = &["status", "title", "message"];

/// The members of `request`.
pub const REQUEST_MEMBERS: &[&str] = &["method", "path", "query", "headers", "host", "claims"];
