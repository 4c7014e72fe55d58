//! Clients of HTTP/2 (RFC 9113) that share no code with the server.
//!
//! - [`Frames`] sends any frame, also such as no client should send;
//! - [`Http2Connection`] sends requests in one write and waits for all of their responses.

mod connection;
mod frames;

pub use connection::{Http2Connection, Http2Response};
pub use frames::{
    CONTINUATION, DATA, END_HEADERS, END_STREAM, Frame, Frames, GO_AWAY, HEADERS, PING, RESET,
    ReadWrite, SETTINGS, WINDOW, field, frame, head, head_of, is_patience, length, status_of,
};
