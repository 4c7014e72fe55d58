//! Millpond as a library: web services on the connections and on the store of the Millpond server.
//!
//! ```
//! use millpond::{Request, Routes, ServerSettings, quick};
//! use std::io::{Read, Write};
//! use std::net::TcpStream;
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let mut routes = Routes::new();
//!     routes.get("/hello/{name}?{times}", quick(hello));
//!     let server = ServerSettings::new().listen("127.0.0.1:0").serve(routes)?;
//!
//!     // Another program, or a test:
//!     let mut client = TcpStream::connect(server.address())?;
//!     client.write_all(b"GET /hello/Ada?times=2 HTTP/1.0\r\n\r\n")?;
//!     let mut answer = String::new();
//!     client.read_to_string(&mut answer)?;
//!     assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"));
//!     assert!(answer.ends_with("Hello Ada! Hello Ada! "));
//!
//!     // A service of its own would end with `server.run_until_signal()`.
//!     Ok(server.shutdown()?)
//! }
//!
//! fn hello(_: &Request, name: String, times: Option<u8>) -> String {
//!     format!("Hello {name}! ").repeat(times.unwrap_or(1).into())
//! }
//! ```
//!
//! # Where a handler runs
//! There is no async runtime. Each *worker* is a thread with its own connections, and a handler
//! says where it runs:
//!
//! - [`quick`]: on the worker, between requests. It must not block.
//! - [`blocking`]: on a thread of a bounded pool. If the pool and its queue are full: 503 at once.
//! - [`reading`]: the same, and it reads the body while that arrives.
//! - [`stored`]: what it makes is kept in a [`Store`] and given to all, until something changes of
//!   which the program has said that it depends on it, or a row of a [`SqlDatabase`] that it shows.
//!
//! A long answer is a [`Stream`]: an iterator that is asked for as much as the client takes, so
//! that a slow client holds little memory and no thread. A function can write one too; that one
//! holds a thread for as long as its client takes it.
//!
//! # What the library does by itself
//! HTTP/1.1, HTTP/2, pipelining, TLS; HEAD, OPTIONS and 405; conditions, ranges and compression of
//! stored pages; every limit and every timeout of the Millpond server ([`Limits`]); an access log;
//! the end of requests in flight at a shutdown. A handler that panics answers 500, and its worker
//! goes on.
//!
//! This crate knows routes and pages of programs, and hands their SQL to `millpond-db`. It must not
//! know templates, or the folders of sites.

#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/library.md")]
struct Guide;

mod error;
mod escaped;
mod failure;
mod handler;
mod json_values;
mod limits;
mod lines;
mod page;
mod pairs;
mod param;
mod pattern;
mod pool;
mod reading;
mod request;
mod response;
mod routes;
mod server;
mod service;
mod slot;
mod sql;
mod store;
mod stored;
mod stream;
mod tls;
mod values;

pub use bytes::Bytes;
pub use error::{RouteError, StartError};
pub use escaped::Escaped;
pub use failure::Failure;
pub use handler::{
    HandleRequest, Handler, MakePage, ReadRequest, blocking, quick, reading, stored,
};
pub use lines::BodyLines;
pub use millpond_db::{FeedKind, Value as SqlValue};
pub use millpond_http::{ClientLimits, Limits, Network, Proxies, ServerConfig, Stats};
pub use page::Page;
pub use param::{Param, Params, ReadParams};
pub use reading::BodyReader;
pub use request::Request;
pub use response::{IntoResponse, Response};
pub use routes::Routes;
pub use server::{ServeError, ServerSettings, ShutdownHandle, WebServer};
pub use sql::{
    BoundQuery, FromSql, IntoSql, QueryError, SqlDatabase, SqlQuery, SqlRow, SqlRows, SqlSettings,
};
pub use store::{Changes, LookAtSource, Store, StoreSettings, StoreStats};
pub use stream::{Piece, Shown, Stream, StreamWriter};
pub use values::NamedValues;
