//! What the server tells about itself: the access log.
//!
//! This crate knows files, threads and counters. It must not know how a request is parsed or answered: whoever
//! serves requests fills in a [`Line`] and hands it over, and is never made to wait for a disk.

mod access_log;

pub use access_log::{AccessLog, Counts, Line};
