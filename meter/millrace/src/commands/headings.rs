//! The headings under which `--help` of the measuring commands lists their options. What is needed every day stands above
//! them, without one; what is seldom needed is left out of `-h`, which is a page.

/// What is sent, and which answers are good.
pub(super) const REQUEST: &str = "Request";
/// When requests are sent.
pub(super) const LOOP: &str = "Loop";
/// What is asked for in more than one line.
pub(super) const WORKLOAD: &str = "Workload";
/// Where connections go, and whom they trust.
pub(super) const SERVER: &str = "Server and TLS";
/// The measuring program itself.
pub(super) const CLIENT: &str = "Client";
/// What else is sampled during a run.
pub(super) const BESIDE: &str = "What is measured beside it";
/// Where results go, and what is shown meanwhile.
pub(super) const OUTPUT: &str = "Output";
