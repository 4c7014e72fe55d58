//! The server over real sockets: the basic first, then limits, then its end.

#![allow(
    clippy::disallowed_methods,
    reason = "tests read the clock to give up waiting"
)]

mod streamed_responses;
mod streaming;
mod support;

mod clients;
mod counting;
mod exchange;
mod files;
mod http2;
mod lifecycle;
mod limits;
mod protocol;
mod response_cache;
mod secure;
mod turns;
mod unfinished;
mod unfinished_http2;
mod waking;
