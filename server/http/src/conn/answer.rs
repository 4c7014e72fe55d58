//! Requests become responses, at once or later, and in order.

use std::future::Future;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

use base_clock::Boottime;
use bytes::Bytes;

use super::cached_response::CachedResponse;
use super::connections::Connections;
use super::exchange::{Exchange, OpenRequest, PendingResponse};
use super::host::Host;
use super::output::{NOT_COUNTED, SentRequest};
use super::write_batch::BatchedWrite;
use super::{After, Connection, NextAction, Stage};
use crate::date::Persistence;
use crate::h1::{Event, Framing, Head, Phase, Refusal};
use crate::limits::TURN;
use crate::peer::Peer;
use crate::request::{Request, Version};
use crate::response::{Body, Reply, Response, Service};

impl Exchange {
    /// Answers the requests that have arrived, and reads the rest of an incomplete one; none if the
    /// connection is at another stage.
    pub(super) fn read_and_answer<S: Service>(
        &mut self,
        all: &mut Connections<S>,
        connection: &mut Connection,
    ) -> Option<NextAction> {
        loop {
            if self.respond_from_cache(&mut all.host, connection) {
                if self.output.waiting() > all.host.most_output {
                    connection.stage = Stage::Sending(After::Read);
                    return None;
                }
                continue;
            }
            match self.decoder.next(&all.host.limits) {
                Event::Body(head) => {
                    if let Some(next) = self.begin_body(&mut all.host, connection, head) {
                        connection.stage = next;
                        return None;
                    }
                }
                Event::Request(head, body) => {
                    self.body = None;
                    self.answered += 1;
                    all.host.counters.requests.add(1);
                    self.release(&mut all.host.budgets);
                    let next = if head.framing == Framing::Length(0) {
                        self.answer(&mut all.host, connection, head, body)
                    } else {
                        self.answer_body(all, connection, head, body)
                    };
                    if let Some(next) = next {
                        connection.stage = next;
                        return None;
                    }
                }
                Event::More if may_batch(self) => {
                    all.write_batch
                        .push(BatchedWrite::Exchange(connection.token));
                    connection.stage = Stage::Batched;
                    return Some(NextAction::Batch);
                }
                event @ (Event::More | Event::Continue) => {
                    if matches!(event, Event::Continue) {
                        self.output.push_continue();
                    }
                    if let ControlFlow::Break(step) = self.send_or_read(all, connection) {
                        return step;
                    }
                }
                Event::Refused(refusal) => {
                    self.refuse(&mut all.host, connection, refusal);
                    return None;
                }
            }
        }
    }

    /// Lets what is queued be sent, or reads more of the next request; continues if bytes arrived.
    fn send_or_read<S: Service>(
        &mut self,
        all: &mut Connections<S>,
        connection: &mut Connection,
    ) -> ControlFlow<Option<NextAction>> {
        if !self.output.is_empty() {
            connection.stage = Stage::Sending(After::Read);
            return ControlFlow::Break(None);
        }
        self.decoder.reclaim();
        if self.decoder.phase() == Phase::Idle {
            all.host.become_idle(connection, self.now);
            return ControlFlow::Break(all.yield_turn(connection));
        }
        match self.read_rest(all, connection) {
            Ok(None) if connection.stage == Stage::Reading => ControlFlow::Continue(()),
            Ok(step) => ControlFlow::Break(step),
            Err(refusal) => {
                self.refuse(&mut all.host, connection, refusal);
                ControlFlow::Break(None)
            }
        }
    }

    /// Queues the cached response to a request that came before, if it is still valid.
    fn respond_from_cache<S: Service>(
        &mut self,
        host: &mut Host<S>,
        connection: &mut Connection,
    ) -> bool {
        self.cache_miss = self.first_miss.take();
        if self.cache_miss.is_some() || host.draining.is_some() {
            return false;
        }
        let (left, client) = (&mut connection.requests_left, &connection.client);
        if !host.may_answer(left, client.0.as_ref()) {
            return false;
        }
        let Some(input) = self.decoder.undecoded() else {
            return false;
        };
        let tail = host.tails.get(self.now, Persistence::Default);
        let mut guess = host.response_cache.guess(input);
        loop {
            let Some(head) = guess.or_else(|| host.response_cache.head(input)) else {
                return false;
            };
            let hash = host.response_cache.hash(head);
            if let Some(response) = host.response_cache.get(hash, head, self.now, tail) {
                let response = response.repeat(host.service.wants_done());
                self.output.push_repeated(response, self.now);
                host.response_cache.last_len = head.len();
                self.decoder.skip(head.len());
                self.body = None;
                self.head_since = self.now;
                self.answered += 1;
                *left -= 1;
                host.counters.requests.add(1);
                return true;
            }
            let is_head = guess.take().is_none_or(|guess| {
                let head = host.response_cache.head(input);
                head.is_some_and(|head| head.len() == guess.len())
            });
            if is_head {
                self.cache_miss = Some(hash);
                return false;
            }
        }
    }

    /// As [`Self::answer`], to a request with a body. The body is counted while a response is made
    /// of it.
    fn answer_body<S: Service>(
        &mut self,
        all: &mut Connections<S>,
        connection: &mut Connection,
        head: Head,
        rest: Bytes,
    ) -> Option<Stage> {
        if self.receiver.is_some() {
            return self.finish_body(&mut all.host, head, &rest, &connection.peer);
        }
        let body = match self.complete_body(all, connection, rest) {
            Ok(body) => body,
            Err(refusal) => {
                return self.queue(&mut all.host, head, Some(response_to(refusal)));
            }
        };
        let next = self.answer(&mut all.host, connection, head, body.bytes());
        // Not every slow response is made of the body: a page is not.
        if self.pending.is_none() || body.is_unused() {
            self.release(&mut all.host.budgets);
        }
        next
    }

    /// Calls the service, and queues the response if it is ready; the next stage, unless the
    /// connection continues to read requests.
    fn answer<S: Service>(
        &mut self,
        host: &mut Host<S>,
        connection: &mut Connection,
        head: Head,
        body: Bytes,
    ) -> Option<Stage> {
        let open;
        let (reply, repeated) = {
            let mut request = self
                .decoder
                .request(&head, body, &connection.peer, self.now);
            open = OpenRequest::of(&request);
            self.open = Some(open);
            // One with a body was counted when the body began.
            if head.framing == Framing::Length(0) {
                let (left, client) = (&mut connection.requests_left, &connection.client);
                if let Err(refusal) = host.admit_request(left, client.0.as_ref(), &request) {
                    return self.queue(host, head, Some(response_to(refusal)));
                }
            }
            let cache_miss = self
                .cache_miss
                .take()
                .filter(|cache_miss| is_cacheable(&head, &request) && cache_miss.has_len(head.len));
            let repeated =
                cache_miss.filter(|cache_miss| host.response_cache.appeared_before(*cache_miss));
            request.wants_validity = repeated.is_some();
            let call = AssertUnwindSafe(|| host.service.call(&request));
            (catch_unwind(call), repeated)
        };
        match reply {
            Ok(Reply::Ready(response)) => self.queue(host, head, Some(response)),
            Ok(Reply::Reusable(reply)) => {
                let (response, validity) = *reply;
                let tail = host.tails.get(self.now, Persistence::Default);
                if let Some(hash) = repeated.filter(|_| !response.close)
                    && let Some(cached) =
                        CachedResponse::new(&self.decoder, &head, &response, tail, validity)
                {
                    let (status, label) = (response.status, response.label);
                    let counted = open.counted(&mut host.requests, status, label);
                    let cached = cached.counted_in(counted.series);
                    host.response_cache.insert(hash, cached);
                }
                self.queue(host, head, Some(response))
            }
            Ok(Reply::Later(response)) => Some(begin_answering(self, head, response)),
            Err(_) => self.queue(host, head, None),
        }
    }

    /// Polls the response that is being made.
    pub(super) fn await_answer<S: Service>(
        &mut self,
        host: &mut Host<S>,
        connection: &mut Connection,
    ) -> Option<NextAction> {
        let Some(mut pending) = self.pending.take() else {
            return Some(NextAction::Close);
        };
        let token = connection.token;
        let waker = pending
            .waker
            .get_or_insert_with(|| host.mailbox.waker(token.stream(0)));
        let mut context = Context::from_waker(waker);
        // A panic must not end the connection before the client has a 500.
        let polled = catch_unwind(AssertUnwindSafe(|| {
            pending.response.as_mut().poll(&mut context)
        }));
        let response = match polled {
            Ok(Poll::Pending) => {
                self.pending = Some(pending);
                connection.deadline = Boottime::NEVER;
                return Some(NextAction::Wait);
            }
            Ok(Poll::Ready(response)) => Some(response),
            Err(_) => None,
        };
        drop(pending.response);
        self.release(&mut host.budgets);
        self.now = Boottime::now();
        connection.stage = self
            .queue(host, pending.head, response)
            .unwrap_or(Stage::Reading);
        None
    }

    /// Queues a response, or 500 if the service panicked; the next stage, unless the connection
    /// continues to read requests.
    pub(super) fn queue<S: Service>(
        &mut self,
        host: &mut Host<S>,
        head: Head,
        response: Option<Response>,
    ) -> Option<Stage> {
        let response = response.unwrap_or_else(|| {
            host.counters.panics.add(1);
            Response::text(500, "internal server error\n").closing()
        });
        let closes = response.close || !head.keep_alive || host.draining.is_some();
        let persistence = match head.version {
            _ if closes => Persistence::Close,
            // Only the end of the connection shows the end of such a body.
            Version::Http10 if matches!(response.body, Body::Streamed(_)) => {
                return self.queue(host, head, Some(response.closing()));
            }
            Version::Http10 => Persistence::KeepAlive,
            Version::Http11 | Version::Http2 => Persistence::Default,
        };
        let counted = match self.open.take() {
            Some(open) => open.counted(&mut host.requests, response.status, response.label),
            // Each request that is answered was open.
            None => NOT_COUNTED,
        };
        let tail = host.tails.get(self.now, persistence);
        self.output.push(Some(head), response, tail, counted);
        // The time of the next head of a pipeline starts when its turn starts.
        self.head_since = self.now;
        if closes {
            // A client that asked for the close is not sending; any other client may be.
            let expected = !head.keep_alive && self.decoder.phase() == Phase::Idle;
            let after = if expected {
                After::Close
            } else {
                After::Linger
            };
            return Some(self.output.sending(after));
        }
        (self.output.waiting() > host.most_output || self.output.ends_with_more())
            .then(|| self.output.sending(After::Read))
    }

    /// Answers bytes that are not a request; then the connection ends.
    pub(super) fn refuse<S: Service>(
        &mut self,
        host: &mut Host<S>,
        connection: &mut Connection,
        refusal: Refusal,
    ) {
        let status = refusal.status();
        host.counters.refused(status);
        let tail = host.tails.get(Boottime::now(), Persistence::Close);
        let mut response = response_to(refusal).closing();
        if self.decoder.is_head() {
            // RFC 9110 section 9.3.2.
            response.body = Body::Empty;
        }
        let is_secure = connection.is_secure();
        let open = self.open.take();
        let open = open.unwrap_or_else(|| OpenRequest::unread(is_secure, self.now));
        let counted = open.counted(&mut host.requests, status, 0);
        self.output.push(None, response, tail, counted);
        self.release(&mut host.budgets);
        self.receiver = None;
        self.refused = Some(status);
        connection.stage = Stage::Sending(After::Linger);
    }

    /// Answers a request that did not arrive in time.
    pub(super) fn refuse_slow<S: Service>(
        &mut self,
        host: &mut Host<S>,
        connection: &mut Connection,
    ) {
        if self.decoder.phase() == Phase::Body {
            host.counters.body_timeouts.add(1);
        } else {
            host.counters.head_timeouts.add(1);
        }
        self.refuse(host, connection, Refusal::TooSlow);
    }

    /// Counts a request that gets no response, because the connection ends at `stage`.
    pub(super) fn count_unanswered<S: Service>(&mut self, host: &mut Host<S>, stage: Stage) {
        if let Some(open) = self.open.take() {
            let counted = open.counted(&mut host.requests, 0, 0);
            host.requests.note(counted, 0);
        } else if stage == Stage::Reading && self.decoder.phase() == Phase::Head {
            host.counters.heads_abandoned.add(1);
        }
    }

    /// Counts the responses in the exchange, and notifies the service of them; they were sent to
    /// `peer` or never will be.
    pub(super) fn notify_done<S: Service>(&mut self, host: &mut Host<S>, peer: &Peer) {
        let Exchange {
            decoder,
            output,
            now,
            refused,
            ..
        } = self;
        output.count_in(&mut host.requests);
        if host.service.wants_done() {
            output.each_request(|told, counted, status, body_bytes| {
                let label = host.requests.label(counted.series);
                // The time of the last read or wait may be later.
                let received = match counted.series.is_none() {
                    true => *now,
                    false => counted.received,
                };
                let request = match told {
                    SentRequest::Decoded(head) => {
                        decoder.request(head, Bytes::new(), peer, received)
                    }
                    SentRequest::Cached(cached) => cached.request(peer, received),
                };
                host.notify(|service| service.done(&request, status, body_bytes, label));
            });
        }
        output.clear();
        if let Some(status) = refused.take() {
            host.notify(|service| service.refused(peer.address, status));
        }
    }
}

impl<S: Service> Connections<S> {
    /// Lets a connection that has more to read, perhaps without end, continue after the other
    /// connections. Not by [`NextAction::Yield`], which would clear the deadline: the next read may
    /// find nothing.
    fn yield_turn(&mut self, connection: &mut Connection) -> Option<NextAction> {
        // During a shutdown an idle connection may be closed before its next turn.
        if !connection.ready.read || self.host.draining.is_some() {
            return None;
        }
        self.table.queue_runnable(connection);
        Some(NextAction::Wait)
    }
}

/// Makes the response that tells the client why its request is refused.
pub(super) fn response_to(refusal: Refusal) -> Response {
    let text = format!("{}\n", refusal.reason());
    Response::text(refusal.status(), &text).with_extra(refusal.fields())
}

/// A response is being made; the next stage. Responses that are ready do not wait for this one.
pub(super) fn begin_answering(
    exchange: &mut Exchange,
    head: Head,
    response: Pin<Box<dyn Future<Output = Response>>>,
) -> Stage {
    exchange.pending = Some(PendingResponse {
        head,
        response,
        waker: None,
    });
    if exchange.output.is_empty() {
        Stage::Answering
    } else {
        Stage::Sending(After::Answer)
    }
}

/// True if the response may be given to every request with the same bytes: only the head describes
/// the request, and the response says nothing about the connection.
fn is_cacheable(head: &Head, request: &Request<'_>) -> bool {
    request.method == "GET"
        && head.version == Version::Http11
        && head.keep_alive
        && !head.expects_continue
        // The same bytes may come from a peer that is not believed.
        && !request.is_forwarded()
        && head.framing == Framing::Length(0)
}

/// True if the responses may wait for those of other connections: the client waits for them alone.
fn may_batch(exchange: &Exchange) -> bool {
    exchange.decoder.phase() == Phase::Idle
        && !exchange.output.is_empty()
        && !exchange.output.ends_with_file()
        && exchange.answered <= TURN
}
