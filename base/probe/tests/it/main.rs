//! Probes of real processes and of private PostgreSQL servers.

#![allow(
    clippy::disallowed_methods,
    reason = "tests read the clock to give up waiting"
)]

mod postgres;
mod probe;
