//! Programs on the library, over real sockets: the basic first, then the store, streams, bodies,
//! and the end.

#![allow(
    clippy::disallowed_methods,
    reason = "tests read the clock to give up waiting"
)]

mod support;

mod bodies;
mod cache_status;
mod failures;
mod lifecycle;
mod repair;
mod routes;
mod secure;
mod sql;
mod sql_values;
mod stored;
mod streams;
mod vary;
