//! A connection: a state machine over one socket that reads, asks the service and writes, in order (RFC 9112 section 9).
//!
//! It alternates between two states. *Idle* it is an entry in a table and nothing more. In an *exchange* it has borrowed buffers from the
//! worker: all requests that have arrived are decoded and answered, their responses written at once, and only then are
//! more bytes read. So back-pressure needs no rule of its own: a client that does not read its responses is not read from.
//!
//! - `read`: what comes in, and how long it may take; `intake`: the requests of a turn, one after the other.
//! - `answer`: requests become responses, at once or later; `response_cache`: a request that came
//!   before gets its `cached_response`.
//! - `send`: what goes out; `outbox`: together with what other connections have.

mod answer;
mod cached_response;
mod exchange;
mod intake;
mod outbox;
mod output;
mod progress;
mod read;
mod response_cache;
mod send;
mod socket;

use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use base_clock::Boottime;

use crate::event::{Ready, Token};
use crate::response::Service;
use crate::worker::{Seat, Worker};
use exchange::Exchange;
pub(crate) use exchange::Pool;
pub(crate) use intake::Intake;
pub(crate) use outbox::Outbox;
pub(crate) use response_cache::ResponseCache;

/// One connection of a worker. What every request needs of it is one line of memory: of those that wait, few are in a cache.
#[repr(C, align(64))]
pub(crate) struct Connection {
    pub(crate) socket: OwnedFd,
    pub(crate) ready: Ready,
    /// Whether it waits for its turn to go on.
    pub(crate) is_queued: bool,
    /// Whether the kernel holds back what fills no segment.
    is_corked: bool,
    pub(crate) token: Token,
    pub(crate) stage: Stage,
    /// When patience with the present stage ends.
    pub(crate) deadline: Boottime,
    /// Before this nobody looks at the deadline.
    pub(crate) looked_at: Boottime,
    exchange: Option<Box<Exchange>>,
    pub(crate) peer: SocketAddr,
    /// Its entry in the books, which dropping closes.
    _seat: Seat,
}

const _: () = assert!(std::mem::offset_of!(Connection, peer) <= 64);

/// What a connection waits for, or does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// The first byte of a request, or, within a turn, that the first bytes are taken from the [intake](Intake).
    Idle,
    /// An exchange, in which requests are decoded and more bytes read.
    Reading,
    /// A response that is being made.
    Answering,
    /// Its responses are in the outbox.
    Posted,
    /// Its responses are being sent, and then something else follows.
    Sending(After),
    /// Nothing but the client's end; so many bytes more are read and thrown away.
    Lingering(usize),
}

/// What follows when all responses are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum After {
    Read,
    Answer,
    /// The client may still be sending.
    Linger,
    Close,
}

/// What a worker has to do with a connection that cannot go on by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Wake it when there is news of its socket, or its deadline has come.
    Wait,
    /// Its responses are in the outbox, and go with the others of this turn.
    Post,
    /// Others have their turn first.
    Yield,
    /// Close it.
    End,
}

impl Connection {
    /// A connection that has just been accepted.
    pub(crate) fn new(socket: OwnedFd, peer: SocketAddr, token: Token, seat: Seat) -> Self {
        Self {
            socket,
            peer,
            token,
            ready: Ready::NEW,
            stage: Stage::Idle,
            is_queued: false,
            is_corked: false,
            deadline: Boottime::NEVER,
            looked_at: Boottime::NEVER,
            exchange: None,
            _seat: seat,
        }
    }

    /// Bytes of its request's body that the worker counts.
    pub(crate) fn counted(&self) -> usize {
        self.exchange
            .as_ref()
            .map_or(0, |exchange| exchange.charged)
    }
}

impl<S: Service> Worker<S> {
    /// Does with a connection all that can be done now.
    pub(crate) fn go_on(&mut self, connection: &mut Connection) -> Step {
        let mut exchange = connection.exchange.take();
        loop {
            let step = match (connection.stage, &mut exchange) {
                (Stage::Idle, none) => self.first_bytes(connection, none),
                (Stage::Lingering(left), _) => self.linger(connection, left),
                (Stage::Reading, Some(exchange)) => self.read_and_answer(connection, exchange),
                (Stage::Answering, Some(exchange)) => self.await_answer(connection, exchange),
                (Stage::Sending(after), Some(exchange)) => self.send(connection, exchange, after),
                (Stage::Posted, _) => Some(Step::Wait),
                // No other stage is without an exchange.
                (_, None) => Some(Step::End),
            };
            if !matches!(connection.stage, Stage::Idle | Stage::Lingering(_)) {
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

    /// The deadline of a connection has passed; none if that ends it.
    pub(crate) fn time_out(&mut self, connection: &mut Connection) -> Option<Step> {
        match connection.stage {
            Stage::Idle => {
                if self.draining.is_none() {
                    self.counters.idle_timeouts.add(1);
                }
                None
            }
            Stage::Reading => {
                self.refuse_slow(connection);
                Some(self.go_on(connection))
            }
            Stage::Sending(_) => self.send_or_give_up(connection),
            Stage::Lingering(_) => None,
            // These wait for the server, not for the client.
            Stage::Answering | Stage::Posted => Some(Step::Wait),
        }
    }

    /// Tells of what was not sent, and gives up its token: dropping it closes it.
    pub(crate) fn end(&mut self, connection: &mut Connection) {
        if let Some(mut exchange) = connection.exchange.take() {
            self.tell_done(&mut exchange, connection.peer);
            self.give_back(exchange);
        }
        self.timers.forget(connection.token.index());
        self.connections.release(connection.token);
    }

    /// Takes an exchange that is over, with whatever it has received.
    pub(super) fn give_back(&mut self, mut exchange: Box<Exchange>) {
        self.bodies -= std::mem::take(&mut exchange.charged);
        self.pool.put(exchange);
    }
}
