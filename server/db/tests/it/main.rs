//! Tests on real files: the dependencies of queries, the notifications of the feed, and their
//! agreement.

#![allow(
    clippy::disallowed_methods,
    reason = "tests read the clock to give up waiting"
)]

mod advice;
mod analysis;
mod chinook;
mod coherence;
mod derived;
mod feed;
mod file_rows;
mod first_rows;
mod foreign;
mod hook;
mod limits;
mod migrations;
mod model;
mod postgres;
mod precision;
mod promise;
mod sqlite_triggers;
mod support;
mod trigger_costs;
mod witness;
mod writes;
