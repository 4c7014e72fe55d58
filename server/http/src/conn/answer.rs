//! Requests become responses, at once or later, and in order.

use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::{Context, Poll};

use base_clock::Boottime;
use bytes::Bytes;

use super::cached_response::{CachedResponse, ResponseParts};
use super::exchange::{Exchange, Pending};
use super::outbox::Post;
use super::output::Told;
use super::response_cache::RequestHash;
use super::{After, Connection, Stage, Step};
use crate::date::Persistence;
use crate::h1::{Event, Framing, Head, Phase, Refusal};
use crate::limits::{BODIES, OUTPUT, TURN};
use crate::request::{Request, Version};
use crate::response::{Body, Reply, Response, Service};
use crate::status::is_bodiless;
use crate::validity::Validity;
use crate::worker::Worker;

impl<S: Service> Worker<S> {
    /// Answers what has arrived and what comes to complete it, until nothing of a further request is there; none if the
    /// connection has come to another stage.
    pub(super) fn read_and_answer(
        &mut self,
        connection: &mut Connection,
        exchange: &mut Exchange,
    ) -> Option<Step> {
        loop {
            if self.repeat(exchange) {
                if exchange.output.waiting() > OUTPUT {
                    connection.stage = Stage::Sending(After::Read);
                    return None;
                }
                continue;
            }
            match exchange.decoder.next(&self.limits) {
                Event::Request(head, body) => {
                    exchange.body = None;
                    exchange.answered += 1;
                    self.counters.requests.add(1);
                    let next = if body.is_empty() {
                        self.answer(exchange, head, body, connection.peer)
                    } else {
                        self.answer_body(exchange, head, body, connection.peer)
                    };
                    if let Some(next) = next {
                        connection.stage = next;
                        return None;
                    }
                }
                Event::More if may_post(exchange) => {
                    self.outbox.push(Post::Exchange(connection.token));
                    connection.stage = Stage::Posted;
                    return Some(Step::Post);
                }
                event @ (Event::More | Event::Continue) => {
                    if matches!(event, Event::Continue) {
                        exchange.output.push_continue();
                    }
                    if !exchange.output.is_empty() {
                        connection.stage = Stage::Sending(After::Read);
                        return None;
                    }
                    exchange.decoder.reclaim();
                    if !self.charge(exchange, exchange.decoder.body_len()) {
                        self.refuse(connection, exchange, Refusal::TooManyBodies);
                        return None;
                    }
                    if exchange.decoder.phase() == Phase::Idle {
                        self.rest(connection, exchange.now);
                        return self.leave_turn(connection);
                    }
                    if let Some(step) = self.read_on(connection, exchange) {
                        return Some(step);
                    }
                }
                Event::Refused(refusal) => {
                    self.refuse(connection, exchange, refusal);
                    return None;
                }
            }
        }
    }

    /// A connection that has more to read, and may have for ever, goes on when others have had their turn. Not by
    /// [`Step::Yield`], which would take its deadline: the next read may find nothing.
    fn leave_turn(&mut self, connection: &mut Connection) -> Option<Step> {
        // Whoever is idle while the server ends may be closed before it is looked at again.
        if !connection.ready.read || self.draining.is_some() {
            return None;
        }
        self.queue_up(connection);
        Some(Step::Wait)
    }

    /// Queues the answer to a request that has come before, if it still stands.
    fn repeat(&mut self, exchange: &mut Exchange) -> bool {
        exchange.unknown = exchange.looked_for.take();
        if exchange.unknown.is_some() || self.draining.is_some() {
            return false;
        }
        let Some(input) = exchange.decoder.untouched() else {
            return false;
        };
        let Some(head) = self.response_cache.head(input) else {
            return false;
        };
        let len = head.len();
        let tail = self.tails.get(exchange.now, Persistence::Default);
        let hash = self.response_cache.hash(head);
        match self.response_cache.get(hash, head, exchange.now, tail) {
            Some(response) => {
                let response = response.repeat(self.service.wants_done());
                exchange.output.push_repeated(response);
                exchange.decoder.skip(len);
                exchange.body = None;
                exchange.head_since = exchange.now;
                exchange.answered += 1;
                self.counters.requests.add(1);
                true
            }
            None => {
                exchange.unknown = Some(hash);
                false
            }
        }
    }

    /// [`Self::answer`] to a request with a body, which is counted for as long as an answer is made of it.
    fn answer_body(
        &mut self,
        exchange: &mut Exchange,
        head: Head,
        body: Bytes,
        peer: SocketAddr,
    ) -> Option<Stage> {
        // It may have come in one piece, or have grown with the last.
        if !self.charge(exchange, body.len()) {
            self.charge(exchange, 0);
            let refusal = Refusal::TooManyBodies;
            let text = format!("{}\n", refusal.reason());
            let response = Response::text(refusal.status(), &text)
                .with_extra(Bytes::from_static(b"Retry-After: 1\r\n"));
            return self.queue(exchange, head, Some(response));
        }
        let witness = body.clone();
        let next = self.answer(exchange, head, body, peer);
        // Not every answer that takes long is made of the body: a page is not.
        let is_held = exchange.pending.is_some() && !witness.is_unique();
        self.charge(exchange, if is_held { witness.len() } else { 0 });
        next
    }

    /// Asks the service, and queues its response if it has one; the stage that follows unless requests are read on.
    fn answer(
        &mut self,
        exchange: &mut Exchange,
        head: Head,
        body: Bytes,
        peer: SocketAddr,
    ) -> Option<Stage> {
        let (reply, repeated) = {
            let mut request = exchange.decoder.request(&head, body, peer, exchange.now);
            let unknown = exchange
                .unknown
                .take()
                .filter(|unknown| may_be_kept(&head, &request) && unknown.has_len(head.len));
            let repeated = unknown.filter(|unknown| self.response_cache.appeared_before(*unknown));
            request.wants_validity = repeated.is_some();
            let call = AssertUnwindSafe(|| self.service.call(&request));
            (catch_unwind(call), repeated)
        };
        match reply {
            Ok(Reply::Ready(response)) => self.queue(exchange, head, Some(response)),
            Ok(Reply::Reusable(response, validity)) => {
                if let Some(unknown) = repeated {
                    self.keep(exchange, &head, &response, unknown, validity);
                }
                self.queue(exchange, head, Some(response))
            }
            Ok(Reply::Later(response)) => {
                exchange.pending = Some(Pending {
                    head,
                    response,
                    waker: None,
                });
                // What is ready does not wait for what is not.
                Some(if exchange.output.is_empty() {
                    Stage::Answering
                } else {
                    Stage::Sending(After::Answer)
                })
            }
            Err(_) => self.queue(exchange, head, None),
        }
    }

    /// Keeps a response for requests with the same head.
    fn keep(
        &mut self,
        exchange: &Exchange,
        head: &Head,
        response: &Response,
        hash: RequestHash,
        validity: Validity,
    ) {
        let body = match &response.body {
            _ if is_bodiless(response.status) => Bytes::new(),
            Body::Empty => Bytes::new(),
            Body::Bytes(bytes) => bytes.clone(),
            Body::File { .. } => return,
        };
        if response.close {
            return;
        }
        let parts = ResponseParts {
            status: response.status,
            head: [&response.head, &response.extra],
            tail: self.tails.get(exchange.now, Persistence::Default),
            body,
        };
        if let Some(cached) = CachedResponse::new(&exchange.decoder, head, parts, validity) {
            self.response_cache.insert(hash, cached);
        }
    }

    /// Goes on with the response that is being made.
    pub(super) fn await_answer(
        &mut self,
        connection: &mut Connection,
        exchange: &mut Exchange,
    ) -> Option<Step> {
        // It may take long, and what is ready does not wait for it.
        self.send_posts();
        let Some(mut pending) = exchange.pending.take() else {
            return Some(Step::End);
        };
        let token = connection.token;
        let waker = pending
            .waker
            .get_or_insert_with(|| self.mailbox.waker(token));
        let mut context = Context::from_waker(waker);
        // A panic must not end the connection before the client has a 500.
        let polled = catch_unwind(AssertUnwindSafe(|| {
            pending.response.as_mut().poll(&mut context)
        }));
        let response = match polled {
            Ok(Poll::Pending) => {
                exchange.pending = Some(pending);
                connection.deadline = Boottime::NEVER;
                return Some(Step::Wait);
            }
            Ok(Poll::Ready(response)) => Some(response),
            Err(_) => None,
        };
        drop(pending.response);
        self.charge(exchange, 0);
        exchange.now = Boottime::now();
        connection.stage = self
            .queue(exchange, pending.head, response)
            .unwrap_or(Stage::Reading);
        None
    }

    /// Queues a response, or 500 if the service panicked; the stage that follows unless requests are read on.
    fn queue(
        &mut self,
        exchange: &mut Exchange,
        head: Head,
        response: Option<Response>,
    ) -> Option<Stage> {
        let response = response.unwrap_or_else(|| {
            self.counters.panics.add(1);
            Response::text(500, "internal server error\n").closing()
        });
        let closes = response.close || !head.keep_alive || self.draining.is_some();
        let persistence = match head.version {
            _ if closes => Persistence::Close,
            Version::Http10 => Persistence::KeepAlive,
            Version::Http11 => Persistence::Default,
        };
        let tail = self.tails.get(exchange.now, persistence);
        exchange.output.push(Some(head), response, tail);
        // The next head of a pipeline begins to count when its turn comes.
        exchange.head_since = exchange.now;
        if closes {
            // A client that asked for the end is not sending; any other may be.
            let expected = !head.keep_alive && exchange.decoder.phase() == Phase::Idle;
            return Some(Stage::Sending(if expected {
                After::Close
            } else {
                After::Linger
            }));
        }
        (exchange.output.waiting() > OUTPUT || exchange.output.ends_with_file())
            .then_some(Stage::Sending(After::Read))
    }

    /// Answers what is not a request, after which the connection ends.
    fn refuse(&mut self, connection: &mut Connection, exchange: &mut Exchange, refusal: Refusal) {
        let status = refusal.status();
        self.counters.refused(status);
        let mut text = String::with_capacity(80);
        text.push_str(refusal.reason());
        text.push('\n');
        let tail = self.tails.get(Boottime::now(), Persistence::Close);
        let mut response = Response::text(status, &text).closing();
        if exchange.decoder.is_head() {
            // RFC 9110 section 9.3.2.
            response.body = Body::Empty;
        }
        exchange.output.push(None, response, tail);
        self.bodies -= std::mem::take(&mut exchange.charged);
        exchange.refused = Some(status);
        connection.stage = Stage::Sending(After::Linger);
    }

    /// Counts the body of the present request, of which `len` bytes are there; false if all of them together are too many.
    fn charge(&mut self, exchange: &mut Exchange, len: usize) -> bool {
        self.bodies = self.bodies + len - exchange.charged;
        exchange.charged = len;
        len == 0 || self.bodies <= BODIES
    }

    /// Answers a request that did not come in time.
    pub(super) fn refuse_slow(&mut self, connection: &mut Connection) {
        let Some(mut exchange) = connection.exchange.take() else {
            return;
        };
        if exchange.decoder.phase() == Phase::Body {
            self.counters.body_timeouts.add(1);
        } else {
            self.counters.head_timeouts.add(1);
        }
        self.refuse(connection, &mut exchange, Refusal::TooSlow);
        connection.exchange = Some(exchange);
    }

    /// Tells the service of the responses in `exchange` to `peer`, which are sent or never will be.
    pub(super) fn tell_done(&mut self, exchange: &mut Exchange, peer: SocketAddr) {
        let Exchange {
            decoder,
            output,
            now,
            refused,
            ..
        } = exchange;
        if self.service.wants_done() {
            output.each_request(|told, status, body_bytes| {
                let request = match told {
                    Told::Decoded(head) => decoder.request(head, Bytes::new(), peer, *now),
                    Told::Cached(cached) => cached.request(peer, *now),
                };
                self.tell(|service| service.done(&request, status, body_bytes));
            });
        }
        output.clear();
        if let Some(status) = refused.take() {
            self.tell(|service| service.refused(peer, status));
        }
    }
}

/// Whether the answer may be given to every request with the same bytes: nothing but the head says what is asked for, and nothing
/// about the connection is to be said.
fn may_be_kept(head: &Head, request: &Request<'_>) -> bool {
    request.method == "GET"
        && head.version == Version::Http11
        && head.keep_alive
        && !head.expects_continue
        && head.framing == Framing::Length(0)
}

/// Whether what is ready may wait for the responses of other connections: the client waits for it and for nothing else.
fn may_post(exchange: &Exchange) -> bool {
    exchange.decoder.phase() == Phase::Idle
        && !exchange.output.is_empty()
        && !exchange.output.ends_with_file()
        && exchange.answered <= TURN
}
