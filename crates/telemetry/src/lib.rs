//! What the server tells about itself, and what its machine tells about it: the access log, and probes of the host.
//!
//! This crate knows files, threads and counters. It must not know how a request is parsed or answered: whoever
//! serves requests fills in a [`Line`] and hands it over, and is never made to wait for a disk. [`probe`] reads what
//! the kernel counts, of any process, and what a PostgreSQL server says of itself, and so is of use to the measuring
//! client too.

mod access_log;
mod clock;
pub mod probe;

pub use access_log::{AccessLog, Counts, Line};
