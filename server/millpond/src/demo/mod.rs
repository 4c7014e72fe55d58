//! `millpond demo`: the article site, and the experiment that the idea comes from.
//!
//! `files` has the site's folder, `measure` the experiment, `client` one request of it, `show` its tables and report.
//! The site is served by the same code as `millpond serve`, on real sockets; nothing is simulated.

mod client;
pub(crate) mod files;
pub(crate) mod measure;
pub(crate) mod show;
