//! Probes of real processes and of private PostgreSQL servers.

mod postgres;
mod probe;
