//! A connection: a state machine over one socket that reads, calls the service and writes, in order
//! (RFC 9112 section 9).
//!
//! A connection alternates between two states. An *idle* connection is an entry in a table and
//! nothing more, and one whose stream is quiet has the source of its bytes besides. In an
//! *exchange* a connection has borrowed buffers from the worker: all requests that have arrived are
//! decoded and answered, the responses are written at once, and only then are more bytes read. So
//! back-pressure needs no rule of its own: the server does not read from a client that does not
//! read its responses.
//!
//! - `read`: incoming bytes and their deadlines; `read_batch`: the first requests of a turn.
//! - `answer`: requests become responses, at once or later; `response_cache`: a request that came
//!   before gets its `cached_response`.
//! - `allowance`: the connection's part of what its client may do; the client that a proxy names.
//! - `streaming`: bodies that the service takes as they arrive; `streamed_response`: bodies that it
//!   makes while they are sent.
//! - `unfinished`: what requests hold that have not arrived whole.
//! - `send`: outgoing bytes; `write_batch`: the responses of all connections in a turn.
//! - `http2`: the same for HTTP/2, with `http2_answer`, `http2_streaming`, `http2_pieces` and
//!   `http2_unfinished`; the protocol is in `crate::h2`.
//! - `connections`: all connections of a worker; `table`: which continue when; `handshakes`: their
//!   order; `host`: what connections share.
//! - `socket`: system calls on the socket; `secure_socket`: the same through TLS; `secure_idle`:
//!   beginnings of records while nothing else has begun.

mod allowance;
mod answer;
mod cached_response;
mod connections;
mod exchange;
mod handshakes;
mod host;
mod http2;
mod http2_answer;
mod http2_pieces;
mod http2_streaming;
mod http2_unfinished;
mod output;
mod read;
mod read_batch;
mod response_cache;
mod secure_idle;
mod secure_socket;
mod send;
mod socket;
mod streamed_response;
mod streaming;
mod table;
mod unfinished;
mod write_batch;

use std::os::fd::OwnedFd;
use std::sync::Arc;

use base_clock::Boottime;
use rustls::ServerConfig;

use crate::client_counts::ClientConnection;
use crate::event::{Ready, Token};
use crate::h2::StreamId;
use crate::peer::Peer;
use crate::worker_group::ConnectionPermit;
pub(crate) use allowance::TOO_MANY_CONNECTIONS;
pub(crate) use connections::Connections;
use exchange::Exchange;
pub(crate) use host::Host;
use http2::Http2;
use secure_socket::SecureSocket;
use streamed_response::OutgoingBody;

/// One connection of a worker. The fields that every request needs are one line of memory, because
/// few idle connections are in a cache.
#[repr(C, align(64))]
pub(crate) struct Connection {
    pub(crate) socket: OwnedFd,
    pub(crate) ready: Ready,
    /// True if the connection is in the queue of runnable connections.
    pub(crate) is_queued: bool,
    /// True if the kernel holds back bytes that fill no segment.
    is_corked: bool,
    /// True if the connection pauses until its deadline.
    is_paced: bool,
    /// Requests that may be answered before the counts of the client are asked.
    requests_left: u16,
    pub(crate) token: Token,
    pub(crate) stage: Stage,
    /// Bytes that may be moved before they are paid for.
    pub(crate) bytes_left: i32,
    /// When the present stage times out.
    pub(crate) deadline: Boottime,
    /// When the timer compares the deadline with the clock.
    pub(crate) timer_at: Boottime,
    exchange: Option<Box<Exchange>>,
    /// None: the bytes of the protocol are those of the socket.
    tls: Option<Box<SecureSocket>>,
    pub(crate) peer: Peer,
    pub(crate) client: ClientConnection,
    /// The session at [`Stage::Http2`].
    http2: Option<Box<Http2>>,
    /// The stream of a connection without an exchange at [`Stage::Streaming`].
    quiet: Option<Box<OutgoingBody>>,
    /// Counts the connection; released when dropped.
    _permit: ConnectionPermit,
}

const _: () = assert!(std::mem::offset_of!(Connection, peer) <= 64);

/// Stage of a connection: the event it waits for, or its next action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// The header with which a proxy names its client.
    ProxyHeader,
    /// The rest of a handshake of TLS, for which the others do not wait.
    Handshake,
    /// The first byte of a request; within a turn also the processing of the [read
    /// batch](ReadBatch).
    Idle,
    /// An exchange, in which requests are decoded and more bytes read.
    Reading,
    /// A response that is being made.
    Answering,
    /// Room for more of a body, where the service puts it. Nothing is read meanwhile.
    Storing,
    /// The next piece of a body that is made while it is sent.
    Streaming,
    /// The responses are in the write batch.
    Batched,
    /// The responses are being sent, and then another stage follows.
    Sending(After),
    /// All that happens on a connection of HTTP/2.
    Http2,
    /// Only the end of the client's bytes; at most this number of bytes is read and dropped.
    Lingering(u32),
}

/// Stage that follows when all responses are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum After {
    Read,
    Answer,
    /// The next pieces of the body.
    Stream,
    /// The client may still be sending.
    Linger,
    Close,
}

/// Action of a worker on a connection that cannot continue by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NextAction {
    /// Wait for an event of the socket, or for the deadline.
    Wait,
    /// Leave the responses in the write batch, which is sent at the end of the turn.
    Batch,
    /// Continue after the other connections had their turn.
    Yield,
    /// Close the connection.
    Close,
}

impl Connection {
    /// A connection that has just been accepted.
    pub(crate) fn new(
        socket: OwnedFd,
        peer: Peer,
        token: Token,
        permit: ConnectionPermit,
        tls: Option<&Arc<ServerConfig>>,
    ) -> Self {
        Self {
            socket,
            peer,
            token,
            ready: Ready::NEW,
            stage: match tls {
                Some(_) => Stage::Handshake,
                None => Stage::Idle,
            },
            is_queued: false,
            is_corked: false,
            is_paced: false,
            requests_left: 0,
            bytes_left: i32::MAX,
            client: ClientConnection::default(),
            deadline: Boottime::NEVER,
            timer_at: Boottime::NEVER,
            exchange: None,
            tls: tls.map(SecureSocket::new),
            http2: None,
            quiet: None,
            _permit: permit,
        }
    }
}

impl Connection {
    /// Notes that a waker of a stream was woken.
    pub(crate) fn wake(&mut self, stream: u32) {
        if let (Some(http2), Some(stream)) = (&mut self.http2, StreamId::of_client(stream)) {
            http2.wake(stream);
        }
    }

    /// Returns whether the connection waits for the server, and a waker was woken. A future may
    /// wake its connection after the response is complete.
    pub(crate) fn may_continue(&self) -> bool {
        match self.stage {
            Stage::Answering | Stage::Storing | Stage::Streaming => true,
            Stage::Http2 => self.http2.as_ref().is_some_and(|http2| http2.is_woken()),
            _ => false,
        }
    }
}
