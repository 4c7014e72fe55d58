//! Connections of HTTP/1.1 and HTTP/2, and prepared responses.
//!
//! This crate knows the protocols (RFC 9110, RFC 9112, RFC 9113), TLS, sockets, limits and
//! timeouts. It must not know what a page, a database or the store is: a [`Service`] turns a
//! [`Request`] into a [`Reply`], and that is the whole border.
//!
//! - `h1`: bytes → requests or refusals, without IO and without a clock.
//! - `h2`: the same for HTTP/2, with streams.
//! - `conn`: connections, which drive `h1` and `h2` over sockets, with deadlines and back-pressure.
//! - `budget`: what unfinished requests may hold of a worker's memory and disk, and which of them
//!   end when that is too much.
//! - [`Client`]: who has sent a request: `proxy_header` and `peer` read what proxies say of it,
//!   `client_counts` bounds what it does on all connections.
//! - [`run_worker`]: one listener, one thread, one event loop (`event`: epoll, timers, wakers).
//! - [`Prepared`]: a representation whose heads are rendered once and whose conditions cost no
//!   allocation.
//! - [`path`]: a request path in its one normal form.
//!
//! A hit costs one `recv` and one `send`; see `conn` for why no further system call is needed.

mod accept;
mod body_file;
mod body_source;
mod budget;
mod client;
mod client_counts;
mod compressor;
mod conn;
mod date;
mod event;
#[cfg(test)]
mod fuzz;
mod h1;
mod h2;
mod latency;
mod limits;
mod listen;
mod mapped_file;
#[cfg(feature = "parts")]
pub mod parts;
pub mod path;
mod peer;
mod prefetch;
mod prepared;
mod progress;
mod proxy_header;
mod request;
mod request_budgets;
mod request_counts;
mod response;
mod status;
mod streamed;
mod syntax;
mod transport;
mod validity;
mod worker;
mod worker_group;

pub use accept::{names_html, prefers_json, says_crawler, sends_json};
pub use body_file::nameless_file;
pub use body_source::{BodyCut, BodySource, StreamedBody};
pub use client::{Client, ClientNetwork, Network};
pub use compressor::Compressor;
pub use latency::LATENCY_EDGES;
pub use limits::{ClientLimits, Limits, Proxies};
pub use listen::{BACKLOG, ListenAddress, backlog_clamp, listen, listen_group, listen_unix, share};
pub use prepared::{
    Coding, Content, Parts, Prepared, entity_tag, is_compressible, smallest_brotli,
};
pub use request::{Fields, OwnedRequest, Request, Version};
pub use request_counts::RequestCounts;
pub use response::{Body, Builder, Reply, Response, Service};
pub use rustls::ServerConfig;
pub use status::reason_phrase;
pub use streamed::{BodyHandling, BodyReceiver};
pub use validity::{Validity, ValidityCheck};
pub use worker::{Listener, run_worker};
pub use worker_group::{Stats, WorkerGroup};
