//! A connection: a state machine over one socket that reads, calls the service and writes, in order
//! (RFC 9112 section 9).
//!
//! A connection alternates between two states. An *idle* connection is an entry in a table and
//! nothing more. In an *exchange* a connection has borrowed buffers from the worker: all requests
//! that have arrived are decoded and answered, the responses are written at once, and only then are
//! more bytes read. So back-pressure needs no rule of its own: the server does not read from a
//! client that does not read its responses.
//!
//! - `read`: incoming bytes and their deadlines; `read_batch`: the first requests of a turn.
//! - `answer`: requests become responses, at once or later; `response_cache`: a request that came
//!   before gets its `cached_response`.
//! - `streaming`: bodies that the service takes as they arrive; `streamed_response`: bodies that it
//!   makes while they are sent.
//! - `unfinished`: what requests hold that have not arrived whole.
//! - `send`: outgoing bytes; `write_batch`: the responses of all connections in a turn.
//! - `http2`: the same for HTTP/2, with `http2_streaming`, `http2_pieces` and `http2_unfinished`; the protocol is in `crate::h2`.
//! - `socket`: system calls on the socket; `secure_socket`: the same through TLS; `secure_idle`:
//!   beginnings of records while nothing else has begun.

mod answer;
mod cached_response;
mod exchange;
mod http2;
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
mod unfinished;
mod write_batch;

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use base_clock::Boottime;
use rustls::ServerConfig;

use crate::event::{Ready, Token};
use crate::h2::StreamId;
use crate::response::Service;
use crate::worker::{ConnectionPermit, Worker};
use exchange::Exchange;
pub(crate) use exchange::Pool;
use http2::Http2;
pub(crate) use read_batch::ReadBatch;
pub(crate) use response_cache::ResponseCache;
use secure_socket::SecureSocket;
pub(crate) use write_batch::WriteBatch;

/// One connection of a worker. The fields that every request needs are one line of memory, because
/// few idle connections are in a cache.
#[repr(C, align(64))]
pub(crate) struct Connection {
    pub(crate) socket: OwnedFd,
    pub(crate) ready: Ready,
    /// Whether the connection is in the queue of runnable connections.
    pub(crate) is_queued: bool,
    /// Whether the kernel holds back bytes that fill no segment.
    is_corked: bool,
    pub(crate) token: Token,
    pub(crate) stage: Stage,
    /// When the present stage times out.
    pub(crate) deadline: Boottime,
    /// When the timer compares the deadline with the clock.
    pub(crate) timer_at: Boottime,
    exchange: Option<Box<Exchange>>,
    /// None: the bytes of the protocol are those of the socket.
    tls: Option<Box<SecureSocket>>,
    pub(crate) peer: SocketAddr,
    /// The session at [`Stage::Http2`].
    http2: Option<Box<Http2>>,
    /// Counts the connection; released when dropped.
    _permit: ConnectionPermit,
}

const _: () = assert!(std::mem::offset_of!(Connection, peer) <= 64);

/// What a connection waits for or does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
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

/// What follows when all responses are sent.
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

/// What a worker does with a connection that cannot continue by itself.
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
        peer: SocketAddr,
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
            deadline: Boottime::NEVER,
            timer_at: Boottime::NEVER,
            exchange: None,
            tls: tls.map(SecureSocket::new),
            http2: None,
            _permit: permit,
        }
    }
}

impl Connection {
    /// A waker of a stream was woken.
    pub(crate) fn wake(&mut self, stream: u32) {
        if let (Some(http2), Some(stream)) = (&mut self.http2, StreamId::of_client(stream)) {
            http2.wake(stream);
        }
    }

    /// Whether the connection waits for the server, and a waker was woken. A future may wake its
    /// connection after the response is complete.
    pub(crate) fn may_continue(&self) -> bool {
        match self.stage {
            Stage::Answering | Stage::Storing | Stage::Streaming => true,
            Stage::Http2 => self.http2.as_ref().is_some_and(|http2| http2.is_woken()),
            _ => false,
        }
    }
}

impl<S: Service> Worker<S> {
    /// Advances a connection as far as possible now.
    pub(crate) fn drive(&mut self, connection: &mut Connection) -> NextAction {
        let mut exchange = connection.exchange.take();
        loop {
            let step = match (connection.stage, &mut exchange) {
                (Stage::Handshake | Stage::Idle, none) => self.first_bytes(connection, none),
                (Stage::Lingering(left), _) => self.linger(connection, left),
                (Stage::Reading, Some(exchange)) => self.read_and_answer(connection, exchange),
                (Stage::Answering, Some(exchange)) => self.await_answer(connection, exchange),
                (Stage::Storing, Some(exchange)) => self.await_room(connection, exchange),
                (Stage::Sending(after), Some(exchange)) => self.send(connection, exchange, after),
                (Stage::Streaming, Some(exchange)) => self.stream_response(connection, exchange),
                (Stage::Batched, _) => Some(NextAction::Wait),
                (Stage::Http2, _) => self.drive_http2(connection),
                // No other stage is without an exchange.
                (_, None) => Some(NextAction::Close),
            };
            let has_exchange = !matches!(
                connection.stage,
                Stage::Handshake | Stage::Idle | Stage::Lingering(_)
            );
            if has_exchange {
                if let Some(step) = step {
                    connection.exchange = exchange;
                    return step;
                }
                continue;
            }
            if let Some(exchange) = exchange.take() {
                self.give_back(exchange);
            }
            if let Some(step) = step {
                return step;
            }
        }
    }

    /// Handles a passed deadline; none if the connection ends.
    pub(crate) fn time_out(&mut self, connection: &mut Connection) -> Option<NextAction> {
        match connection.stage {
            Stage::Handshake | Stage::Idle => {
                if self.draining.is_none() {
                    self.counters.idle_timeouts.add(1);
                }
                None
            }
            Stage::Reading => {
                self.refuse_slow(connection);
                Some(self.drive(connection))
            }
            Stage::Sending(_) => self.send_or_give_up(connection),
            Stage::Http2 => self.time_out_http2(connection),
            Stage::Lingering(_) => None,
            // These wait for the server, not for the client.
            Stage::Answering | Stage::Storing | Stage::Streaming | Stage::Batched => {
                Some(NextAction::Wait)
            }
        }
    }

    /// Notifies the service of unsent responses, and releases the token. Dropping the connection
    /// closes it.
    pub(crate) fn end(&mut self, connection: &mut Connection) {
        self.end_http2(connection);
        connection.end_records();
        self.release_records(connection);
        if connection.has_failed() {
            self.counters.tls_failures.add(1);
        }
        if connection.has_panicked() {
            self.counters.panics.add(1);
        }
        if let Some(mut exchange) = connection.exchange.take() {
            exchange.output.abandon_streamed();
            self.notify_done(&mut exchange, connection.peer);
            self.give_back(exchange);
        }
        self.timers.forget(connection.token.index());
        self.connections.release(connection.token);
    }

    /// Takes back an exchange that is over, with all bytes that it has received.
    pub(super) fn give_back(&mut self, mut exchange: Box<Exchange>) {
        self.release(&mut exchange);
        self.pool.put(exchange);
    }
}
