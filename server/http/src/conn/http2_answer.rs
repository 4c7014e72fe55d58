//! Requests of HTTP/2 become responses, at once or later.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use base_clock::Boottime;

use super::answer::response_to;
use super::connections::Connections;
use super::host::Host;
use super::http2::Http2;
use crate::date::Tails;
use crate::h1::Refusal;
use crate::h2::{KnownResponse, SessionEvent, StreamId};
use crate::request_counts::{RequestKind, SeriesKey};
use crate::response::{Reply, Response, Service};

/// A response that is being made.
pub(super) struct PendingStream {
    pub(super) stream: StreamId,
    response: Pin<Box<dyn Future<Output = Response>>>,
    /// Created at the first poll. It names the stream, so that no other one is polled.
    waker: Option<Waker>,
}

impl Http2 {
    /// Remembers a response that is being made.
    pub(super) fn begin_answering(
        &mut self,
        stream: StreamId,
        response: Pin<Box<dyn Future<Output = Response>>>,
    ) {
        self.woken.push(stream);
        self.pending.push(PendingStream {
            stream,
            response,
            waker: None,
        });
    }

    /// Does what an event of the session asks for.
    pub(super) fn handle<S: Service>(&mut self, all: &mut Connections<S>, event: SessionEvent) {
        match event {
            SessionEvent::Body(stream) => self.begin_body(all, stream),
            SessionEvent::Request(stream) => {
                all.host.counters.requests.add(1);
                self.answer_stream(all, stream);
            }
            SessionEvent::Repeated(stream, response) => {
                all.host.counters.requests.add(1);
                match self.may_answer(&all.host) {
                    true => {
                        self.requests_left -= 1;
                        self.repeat(&mut all.host.tails, stream, response);
                    }
                    false => {
                        all.host.counters.over_client_requests.add(1);
                        let response = response_to(Refusal::TooManyRequests);
                        self.respond(&mut all.host, stream, &response);
                    }
                }
            }
            SessionEvent::Refused(stream, refusal) => {
                self.refuse_stream(&mut all.host, stream, refusal);
            }
            SessionEvent::Reset(stream) => {
                // Its future may hold what others wait for.
                self.pending.retain(|pending| pending.stream != stream);
                self.session.handler_is_gone(stream);
            }
        }
    }

    fn may_answer<S: Service>(&mut self, host: &Host<S>) -> bool {
        host.may_answer(&mut self.requests_left, self.counts.as_ref())
    }

    fn refuse_stream<S: Service>(
        &mut self,
        host: &mut Host<S>,
        stream: StreamId,
        refusal: Refusal,
    ) {
        let (peer, status) = (self.peer.address, refusal.status());
        host.counters.refused(status);
        host.notify(|service| service.refused(peer, status));
        self.refused.push(stream);
        self.receivers.retain(|receiver| !receiver.is_of(stream));
        self.respond(host, stream, &response_to(refusal));
    }

    /// Calls the service, unless an equal request has a response that is still valid.
    fn answer_stream<S: Service>(&mut self, all: &mut Connections<S>, stream: StreamId) {
        let mut hash = None;
        if self.may_answer(&all.host)
            && let Some(text) = self.session.repeatable_text(stream)
        {
            let of_text = all.host.response_cache.hash(text);
            if let Some(response) = all.host.response_cache.get_http2(of_text, text, self.now) {
                self.session.learn(stream, &response);
                self.requests_left -= 1;
                return self.repeat(&mut all.host.tails, stream, response);
            }
            hash = Some(of_text);
        }
        let wants_validity = hash.is_some_and(|hash| all.host.response_cache.appeared_before(hash));
        if let Some(receiver) = self.take_receiver(stream) {
            return self.finish_body(&mut all.host, stream, receiver);
        }
        if let Err(refusal) = self.complete_body(all, stream) {
            return self.refuse_stream(&mut all.host, stream, refusal);
        }
        let had_body = self.session.had_body(stream);
        let kind;
        let (reply, wants_validity) = {
            let Some(mut request) = self.session.request(stream, &self.peer, self.now) else {
                return;
            };
            kind = RequestKind::of(&request);
            // One with a body was counted when the body began.
            if !had_body {
                let (left, counts) = (&mut self.requests_left, self.counts.as_ref());
                if let Err(refusal) = all.host.admit_request(left, counts, &request) {
                    return self.respond(&mut all.host, stream, &response_to(refusal));
                }
            }
            // The same text may come from a peer that is not believed.
            request.wants_validity = wants_validity && !request.is_forwarded();
            let call = AssertUnwindSafe(|| all.host.service.call(&request));
            (catch_unwind(call), request.wants_validity)
        };
        match reply {
            Ok(Reply::Ready(response)) => self.respond(&mut all.host, stream, &response),
            Ok(Reply::Reusable(reply)) => {
                let (response, validity) = *reply;
                if let Some(hash) = hash.filter(|_| wants_validity && !response.close)
                    && let Some(known) =
                        KnownResponse::new(&self.session, stream, &response, validity)
                {
                    let series = all.host.requests.series(SeriesKey {
                        label: response.label,
                        status: response.status,
                        kind,
                    });
                    let known = Rc::new(known.counted_in(series));
                    all.host.response_cache.insert_http2(hash, &known);
                    self.session.learn(stream, &known);
                }
                self.respond(&mut all.host, stream, &response);
            }
            Ok(Reply::Later(response)) => self.begin_answering(stream, response),
            Err(_) => self.respond_to_panic(&mut all.host, stream),
        }
    }

    pub(super) fn respond_to_panic<S: Service>(&mut self, host: &mut Host<S>, stream: StreamId) {
        host.counters.panics.add(1);
        let response = Response::text(500, "internal server error\n").closing();
        self.respond(host, stream, &response);
    }

    pub(super) fn respond<S: Service>(
        &mut self,
        host: &mut Host<S>,
        stream: StreamId,
        response: &Response,
    ) {
        if response.close {
            self.session.shut_down(self.now);
        }
        let date = host.tails.get_http2(self.now);
        self.session.respond_with(stream, response, date);
        self.begin_pieces(stream, response);
    }

    fn repeat(&mut self, tails: &mut Tails, stream: StreamId, response: Rc<KnownResponse>) {
        let date = tails.get_http2(self.now);
        self.session.repeat(stream, response, date);
    }

    /// Polls the responses that are new, and those of streams that were woken.
    pub(super) fn poll_woken<S: Service>(&mut self, all: &mut Connections<S>) {
        if self.woken.is_empty() {
            return;
        }
        // So that the time in which a receiver had no room is known.
        self.now = Boottime::now();
        // The futures may take long, and responses that are ready do not wait for them.
        all.send_before_more();
        for stream in std::mem::take(&mut self.woken) {
            let Some(at) = self.pending.iter().position(|it| it.stream == stream) else {
                continue;
            };
            let mut pending = self.pending.swap_remove(at);
            let token = self.stream_token(stream);
            let waker = pending
                .waker
                .get_or_insert_with(|| all.host.mailbox.waker(token));
            let mut context = Context::from_waker(waker);
            let polled = catch_unwind(AssertUnwindSafe(|| {
                pending.response.as_mut().poll(&mut context)
            }));
            match polled {
                Ok(Poll::Pending) => self.pending.push(pending),
                Ok(Poll::Ready(response)) => {
                    self.now = Boottime::now();
                    self.respond(&mut all.host, stream, &response);
                }
                Err(_) => self.respond_to_panic(&mut all.host, stream),
            }
        }
    }
}
