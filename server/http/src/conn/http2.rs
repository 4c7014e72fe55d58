//! The driver of an HTTP/2 session: it reads, calls the service and writes.
//!
//! In a turn a connection reads what has arrived, answers the requests that are complete, and sends
//! the frames of all streams that are ready in one call. While the socket does not take what was
//! written, frames are read and no more are written: a client that does not read its responses has
//! no more than its hundred streams, and few acknowledgements that wait.

use std::fs::File;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use base_clock::Boottime;
use rustix::io::Errno;

use super::answer::response_to;
use super::exchange::BodyPlace;
use super::http2_pieces::StreamSource;
use super::http2_streaming::StreamReceiver;
use super::send::begin_to_linger;
use super::socket::IoOutcome;
use super::{Connection, NextAction, Stage};
use crate::event::{StreamToken, Token};
use crate::h1::Refusal;
use crate::h2::{
    ErrorCode, FileReader, KnownResponse, ReceiveContext, Session, SessionEvent, StreamId,
};
use crate::limits::{OUTPUT, READ_BUFFER, TURN};
use crate::progress::TransferProgress;
use crate::response::{Reply, Response, Service};
use crate::worker::Worker;

/// Frames that are written before others of the connection's frames are made: the records of one
/// call through TLS.
const WRITTEN_AT_ONCE: usize = 60 << 10;
/// How long a session is idle before it gives back memory.
const SHRINKS_AFTER: Duration = Duration::from_secs(2);
/// An HTTP/2 connection.
pub(super) struct Http2 {
    pub(super) session: Session,
    pub(super) token: Token,
    pub(super) peer: SocketAddr,
    /// Responses that are being made.
    pending: Vec<PendingStream>,
    /// Streams of which something can go on: the response is new, or a waker was woken.
    woken: Vec<StreamId>,
    /// Received bytes left for the next turn: those before them used up this one.
    pub(super) unread: Vec<u8>,
    /// Frames that the socket did not take.
    pub(super) unsent: Vec<u8>,
    /// Since the socket was first full.
    sending: Option<TransferProgress>,
    /// Bytes that were sent since then.
    sent: u64,
    /// Streams of which the service was told that they were refused.
    refused: Vec<StreamId>,
    /// Bodies that go to files, or that can go to none.
    pub(super) bodies: Vec<(StreamId, BodyPlace)>,
    /// Who takes bodies as they arrive.
    pub(super) receivers: Vec<StreamReceiver>,
    /// What makes bodies while they are sent.
    pub(super) sources: Vec<StreamSource>,
    /// What the worker's budget counts for the connection beside its streams.
    pub(super) counted: usize,
    /// Since when it counts something.
    pub(super) counted_since: Boottime,
    /// Whether the session has given back memory since it was last busy.
    is_small: bool,
    /// The time of the last read.
    pub(super) now: Boottime,
}

struct PendingStream {
    stream: StreamId,
    response: Pin<Box<dyn Future<Output = Response>>>,
    /// Created at the first poll. It names the stream, so that no other one is polled.
    waker: Option<Waker>,
}

/// Whether frames wait for the socket.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Written {
    All,
    /// Others should have their turn.
    Enough,
    Blocked,
    Closed,
}

/// Reads files that are bodies of responses.
struct Files;

impl FileReader for Files {
    fn read(
        &mut self,
        file: &File,
        offset: u64,
        len: usize,
        out: &mut Vec<u8>,
    ) -> io::Result<usize> {
        let start = out.len();
        out.resize(start + len, 0);
        let read = loop {
            match rustix::io::pread(file.as_fd(), &mut out[start..], offset) {
                Err(Errno::INTR) => {}
                read => break read,
            }
        };
        out.truncate(start + *read.as_ref().unwrap_or(&0));
        Ok(read?)
    }
}

impl Http2 {
    /// Whether the connection has failed while the socket does not take what was written.
    pub(super) fn is_stuck(&self) -> bool {
        self.session.has_failed() && !self.unsent.is_empty()
    }

    /// A response is being made.
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

    /// A waker of the stream was woken: what waits for it goes on in the next turn.
    pub(super) fn wake(&mut self, stream: StreamId) {
        if let Some(source) = self.sources.iter_mut().find(|it| it.stream == stream) {
            source.wake();
        }
        if let Some(receiver) = self.receivers.iter_mut().find(|it| it.is_of(stream)) {
            receiver.wake();
        }
        if !self.woken.contains(&stream) {
            self.woken.push(stream);
        }
    }

    /// Whether a stream was woken since the last turn.
    pub(super) const fn is_woken(&self) -> bool {
        !self.woken.is_empty()
    }

    /// The name under which the worker's budget counts the connection.
    pub(super) const fn holder(&self) -> StreamToken {
        self.token.stream(0)
    }

    /// Names one of its streams, whose numbers begin with 1, for the budget and for wakers.
    pub(super) const fn stream_token(&self, stream: StreamId) -> StreamToken {
        self.token.stream(stream.number())
    }
}

impl<S: Service> Worker<S> {
    /// Begins a session with the first bytes of a client, which are the beginning of its preface.
    pub(super) fn begin_http2(&mut self, connection: &mut Connection, first: &[u8], now: Boottime) {
        let session = Session::new(&self.limits, connection.tls.is_some(), now).announcing();
        let mut http2 = Box::new(Http2 {
            session,
            token: connection.token,
            peer: connection.peer,
            pending: Vec::new(),
            woken: Vec::new(),
            unread: Vec::new(),
            unsent: Vec::new(),
            sending: None,
            sent: 0,
            refused: Vec::new(),
            bodies: Vec::new(),
            receivers: Vec::new(),
            sources: Vec::new(),
            counted: 0,
            counted_since: now,
            is_small: false,
            now,
        });
        self.take_frames(&mut http2, first);
        connection.http2 = Some(http2);
        connection.stage = Stage::Http2;
    }

    /// Continues a session as far as possible now.
    pub(super) fn drive_http2(&mut self, connection: &mut Connection) -> Option<NextAction> {
        let Some(mut http2) = connection.http2.take() else {
            return Some(NextAction::Close);
        };
        if self.draining.is_some() {
            http2.session.shut_down(Boottime::now());
        }
        let action = self.turn(connection, &mut http2);
        let action = match action {
            Some(NextAction::Wait | NextAction::Yield) => {
                match self.charge_http2(connection, &mut http2) {
                    // The client would not read why it ends.
                    true if http2.is_stuck() => Some(NextAction::Close),
                    // What ends leaves in a turn of its own.
                    true => Some(NextAction::Yield),
                    false => action,
                }
            }
            action => action,
        };
        connection.http2 = Some(http2);
        action
    }

    /// One turn; none if another stage has begun. Frames are read whether or not the socket takes
    /// what was written (section 5.2.2): they may open windows, or give up what is being sent.
    fn turn(&mut self, connection: &mut Connection, http2: &mut Http2) -> Option<NextAction> {
        http2.session.begin_turn();
        self.poll_woken(http2);
        self.feed_receivers(http2);
        let (mut written, mut reads) = (0, 0);
        loop {
            let outcome = self.write_frames(connection, http2, &mut written);
            if outcome == Written::Closed {
                return Some(NextAction::Close);
            }
            if http2.session.is_over() && outcome == Written::All {
                http2.pending.clear();
                http2.sources.clear();
                return begin_to_linger(connection);
            }
            if outcome == Written::Blocked && http2.session.has_failed() {
                break;
            }
            let is_over = outcome == Written::Enough || http2.session.is_turn_over();
            if reads > 0 && (is_over || reads > TURN) {
                return Some(NextAction::Yield);
            }
            reads += 1;
            match self.read_frames(connection, http2) {
                IoOutcome::Bytes(_) => {
                    self.feed_receivers(http2);
                    self.poll_woken(http2);
                    if outcome == Written::Blocked {
                        // Nothing is written that would do so.
                        self.note_ended(http2);
                        http2.session.note_stalls(http2.now);
                    }
                }
                IoOutcome::WouldBlock if outcome == Written::Enough => {
                    return Some(NextAction::Yield);
                }
                IoOutcome::WouldBlock => break,
                IoOutcome::Closed => return Some(NextAction::Close),
            }
        }
        connection.deadline = self.http2_deadline(http2);
        Some(connection.wait())
    }

    /// Reads and takes frames: first those that the last turn has left.
    fn read_frames(&mut self, connection: &mut Connection, http2: &mut Http2) -> IoOutcome {
        if !http2.unread.is_empty() {
            let unread = std::mem::take(&mut http2.unread);
            http2.now = Boottime::now();
            self.take_frames(http2, &unread);
            return IoOutcome::Bytes(unread.len());
        }
        let mut buffer = std::mem::take(&mut self.http2_input);
        // It is lost in a panic.
        buffer.resize(READ_BUFFER, 0);
        let outcome = connection.receive(&mut buffer);
        if let IoOutcome::Bytes(len) = outcome {
            self.counters.bytes_in.add(len as u64);
            http2.now = Boottime::now();
            self.take_frames(http2, &buffer[..len]);
        }
        self.http2_input = buffer;
        outcome
    }

    /// Handles a passed deadline; none if the connection ends.
    pub(super) fn time_out_http2(&mut self, connection: &mut Connection) -> Option<NextAction> {
        let mut http2 = connection.http2.take()?;
        let now = Boottime::now();
        while let Some(event) = http2.session.expire(&self.limits, now) {
            self.handle(&mut http2, event);
        }
        let is_stuck = http2.sending.is_some() && self.http2_deadline(&http2) <= now;
        let is_idle = http2.session.is_idle() && http2.unsent.is_empty();
        if is_idle && !http2.is_small {
            http2.session.shrink();
            http2.is_small = true;
        }
        if is_idle && self.draining.is_none() && self.idle_until(http2.now) <= now {
            self.counters.idle_timeouts.add(1);
            // The client hears that no request of it was lost.
            http2.session.close(ErrorCode::NoError);
        }
        connection.http2 = Some(http2);
        if is_stuck {
            // The kernel reports free space late (see `send_or_give_up`), so the socket is tried.
            connection.ready.write = true;
        }
        let action = self.drive(connection);
        let is_still_stuck = is_stuck
            && action == NextAction::Wait
            && connection.stage == Stage::Http2
            && connection.deadline <= Boottime::now();
        if is_still_stuck {
            self.counters.write_timeouts.add(1);
            return None;
        }
        Some(action)
    }

    fn http2_deadline(&self, http2: &Http2) -> Boottime {
        let of_session = http2.session.deadline(&self.limits);
        match &http2.sending {
            Some(progress) => of_session.min(progress.deadline(self.limits.progress_timeout)),
            None if http2.session.is_idle() => {
                let until = of_session.min(self.idle_until(http2.now));
                match http2.is_small {
                    true => until,
                    false => until.min(http2.now.plus(SHRINKS_AFTER)),
                }
            }
            None => of_session,
        }
    }

    /// Takes bytes of the client, and answers the requests that are complete. Those that wait for
    /// the next turn are kept.
    fn take_frames(&mut self, http2: &mut Http2, mut input: &[u8]) {
        http2.is_small = false;
        loop {
            let mut context = ReceiveContext {
                now: http2.now,
                limits: &self.limits,
                buffers: &mut self.http2_buffers,
            };
            match http2.session.receive(&mut input, &mut context) {
                Some(event) => self.handle(http2, event),
                None => break,
            }
        }
        http2.unread.extend_from_slice(input);
    }

    pub(super) fn handle(&mut self, http2: &mut Http2, event: SessionEvent) {
        match event {
            SessionEvent::Body(stream) => self.begin_http2_body(http2, stream),
            SessionEvent::Request(stream) => {
                self.counters.requests.add(1);
                self.answer_stream(http2, stream);
            }
            SessionEvent::Repeated(stream, response) => {
                self.counters.requests.add(1);
                self.repeat(http2, stream, response);
            }
            SessionEvent::Refused(stream, refusal) => {
                self.refuse_stream(http2, stream, refusal);
            }
            SessionEvent::Reset(stream) => {
                // Its future may hold what others wait for.
                http2.pending.retain(|pending| pending.stream != stream);
                http2.session.handler_is_gone(stream);
            }
        }
    }

    fn refuse_stream(&mut self, http2: &mut Http2, stream: StreamId, refusal: Refusal) {
        let (peer, status) = (http2.peer, refusal.status());
        self.counters.refused(status);
        self.notify(|service| service.refused(peer, status));
        http2.refused.push(stream);
        http2.receivers.retain(|receiver| !receiver.is_of(stream));
        self.respond(http2, stream, &response_to(refusal));
    }

    /// Calls the service, unless an equal request has a response that is still valid.
    fn answer_stream(&mut self, http2: &mut Http2, stream: StreamId) {
        let mut hash = None;
        if let Some(text) = http2.session.repeatable_text(stream) {
            let of_text = self.response_cache.hash(text);
            if let Some(response) = self.response_cache.get_http2(of_text, text, http2.now) {
                http2.session.learn(stream, &response);
                return self.repeat(http2, stream, response);
            }
            hash = Some(of_text);
        }
        let wants_validity = hash.is_some_and(|hash| self.response_cache.appeared_before(hash));
        if let Some(receiver) = http2.take_receiver(stream) {
            return self.finish_http2_body(http2, stream, receiver);
        }
        if let Err(refusal) = self.complete_http2_body(http2, stream) {
            return self.refuse_stream(http2, stream, refusal);
        }
        let reply = {
            let Some(mut request) = http2.session.request(stream, http2.peer, http2.now) else {
                return;
            };
            request.wants_validity = wants_validity;
            catch_unwind(AssertUnwindSafe(|| self.service.call(&request)))
        };
        match reply {
            Ok(Reply::Ready(response)) => self.respond(http2, stream, &response),
            Ok(Reply::Reusable(reply)) => {
                let (response, validity) = *reply;
                if let Some(hash) = hash.filter(|_| wants_validity && !response.close)
                    && let Some(known) =
                        KnownResponse::new(&http2.session, stream, &response, validity)
                {
                    let known = Rc::new(known);
                    self.response_cache.insert_http2(hash, &known);
                    http2.session.learn(stream, &known);
                }
                self.respond(http2, stream, &response);
            }
            Ok(Reply::Later(response)) => http2.begin_answering(stream, response),
            Err(_) => self.respond_to_panic(http2, stream),
        }
    }

    pub(super) fn respond_to_panic(&mut self, http2: &mut Http2, stream: StreamId) {
        self.counters.panics.add(1);
        let response = Response::text(500, "internal server error\n").closing();
        self.respond(http2, stream, &response);
    }

    pub(super) fn respond(&mut self, http2: &mut Http2, stream: StreamId, response: &Response) {
        if response.close {
            http2.session.shut_down(http2.now);
        }
        let date = self.tails.get_http2(http2.now);
        http2.session.respond_with(stream, response, date);
        http2.begin_pieces(stream, response);
    }

    fn repeat(&mut self, http2: &mut Http2, stream: StreamId, response: Rc<KnownResponse>) {
        let date = self.tails.get_http2(http2.now);
        http2.session.repeat(stream, response, date);
    }

    /// Polls the responses that are new, and those of streams that were woken.
    fn poll_woken(&mut self, http2: &mut Http2) {
        if http2.woken.is_empty() {
            return;
        }
        // The futures may take long, and responses that are ready do not wait for them.
        self.send_batch();
        for stream in std::mem::take(&mut http2.woken) {
            let Some(at) = http2.pending.iter().position(|it| it.stream == stream) else {
                continue;
            };
            let mut pending = http2.pending.swap_remove(at);
            let token = http2.stream_token(stream);
            let waker = pending
                .waker
                .get_or_insert_with(|| self.mailbox.waker(token));
            let mut context = Context::from_waker(waker);
            let polled = catch_unwind(AssertUnwindSafe(|| {
                pending.response.as_mut().poll(&mut context)
            }));
            match polled {
                Ok(Poll::Pending) => http2.pending.push(pending),
                Ok(Poll::Ready(response)) => {
                    http2.now = Boottime::now();
                    self.respond(http2, stream, &response);
                }
                Err(_) => self.respond_to_panic(http2, stream),
            }
        }
    }

    /// Sends what waits, then the frames of all streams that are ready; adds the number of bytes to
    /// `written`, those of this turn.
    fn write_frames(
        &mut self,
        connection: &mut Connection,
        http2: &mut Http2,
        written: &mut usize,
    ) -> Written {
        loop {
            if !http2.unsent.is_empty() {
                match connection.transmit_bytes(&http2.unsent) {
                    IoOutcome::Bytes(len) => {
                        self.note_sent(http2, len);
                        http2.unsent.drain(..len);
                        continue;
                    }
                    IoOutcome::WouldBlock => {
                        self.note_full(http2);
                        return Written::Blocked;
                    }
                    IoOutcome::Closed => return Written::Closed,
                }
            }
            http2.unsent = Vec::new();
            http2.sending = None;
            if *written > OUTPUT {
                return Written::Enough;
            }
            self.feed_pieces(http2);
            let mut out = std::mem::take(&mut self.http2_output);
            out.clear();
            http2
                .session
                .write(&mut out, WRITTEN_AT_ONCE, &mut Files, http2.now);
            self.note_ended(http2);
            if out.is_empty() {
                self.http2_output = out;
                return Written::All;
            }
            *written += out.len();
            let outcome = connection.transmit_bytes(&out);
            let sent = match outcome {
                IoOutcome::Bytes(len) => len,
                IoOutcome::WouldBlock => 0,
                IoOutcome::Closed => {
                    self.http2_output = out;
                    return Written::Closed;
                }
            };
            self.note_sent(http2, sent);
            http2.unsent.extend_from_slice(&out[sent..]);
            self.http2_output = out;
        }
    }

    fn note_sent(&self, http2: &mut Http2, len: usize) {
        http2.sent += len as u64;
        self.counters.bytes_out.add(len as u64);
    }

    /// The socket is full.
    fn note_full(&self, http2: &mut Http2) {
        let now = Boottime::now();
        if http2.sending.is_none() {
            http2.sent = 0;
        }
        let sent = http2.sent;
        let progress = http2
            .sending
            .get_or_insert_with(|| TransferProgress::new(now));
        progress.moved_to(sent, now);
    }

    /// Notifies the service of streams that have ended.
    pub(super) fn note_ended(&mut self, http2: &mut Http2) {
        let peer = http2.peer;
        while let Some(stream) = http2.session.next_ended() {
            let is_refused = http2
                .refused
                .iter()
                .position(|refused| *refused == stream.id());
            if let Some(at) = is_refused {
                http2.refused.swap_remove(at);
            } else if self.service.wants_done()
                && let Some(status) = stream.status()
            {
                let request = stream.request(peer, http2.now);
                self.notify(|service| service.done(&request, status, stream.body_bytes()));
            }
            http2.sources.retain(|source| source.stream != stream.id());
            self.release_stream(http2, stream.id(), stream.is_counted());
            self.http2_buffers.give_back(stream);
        }
    }

    /// The connection is gone.
    pub(super) fn end_http2(&mut self, connection: &mut Connection) {
        let Some(mut http2) = connection.http2.take() else {
            return;
        };
        http2.pending.clear();
        http2.receivers.clear();
        http2.sources.clear();
        http2.session.abandon();
        self.note_ended(&mut http2);
        if http2.counted > 0 {
            self.budgets.release(http2.holder());
        }
    }
}
