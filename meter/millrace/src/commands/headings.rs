//! The headings of `--help` of the measuring commands.
//!
//! Flags of every day have no heading and come first. Rare flags are left out of `-h`, which fits
//! on a page.

/// Flags of the request and of good answers.
pub(crate) const REQUEST: &str = "Request";
/// When requests are sent.
pub(crate) const LOOP: &str = "Loop";
/// Requests from a file: URLs, a plan or an access log.
pub(crate) const WORKLOAD: &str = "Workload";
/// Flags of connections, and of the certificates they accept.
pub(crate) const SERVER: &str = "Server and TLS";
/// The measuring program itself.
pub(crate) const CLIENT: &str = "Client";
/// Flags of sampling during a run.
pub(crate) const BESIDE: &str = "What is measured beside it";
/// Flags of results, and of the display during the measurement.
pub(crate) const OUTPUT: &str = "Output";
