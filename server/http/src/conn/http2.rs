//! The driver of an HTTP/2 session: it reads, calls the service and writes.
//!
//! In a turn a connection reads what has arrived, answers the requests that are complete, and sends
//! the frames of all streams that are ready in one call. While the socket does not take what was
//! written, frames are read and no more are written: a client that does not read its responses has
//! no more than its hundred streams, and few acknowledgements that wait.

use std::fs::File;
use std::io;
use std::os::fd::AsFd as _;
use std::time::Duration;

use base_clock::Boottime;
use rustix::io::Errno;

use super::connections::Connections;
use super::exchange::BodyPlace;
use super::host::Host;
use super::http2_answer::PendingStream;
use super::http2_pieces::StreamSource;
use super::http2_streaming::StreamReceiver;
use super::send::begin_to_linger;
use super::socket::IoOutcome;
use super::{Connection, NextAction, Stage};
use crate::client_counts::ClientCounts;
use crate::event::{StreamToken, Token};
use crate::h2::{ErrorCode, FileReader, ReceiveContext, Session, StreamId};
use crate::limits::{OUTPUT, READ_BUFFER, TURN};
use crate::peer::Peer;
use crate::progress::TransferProgress;
use crate::request_counts::{CountedRequest, RequestCounter};
use crate::response::Service;
use crate::worker_group::Counters;

/// Frames that are written before others of the connection's frames are made: the records of one
/// call through TLS.
const WRITTEN_AT_ONCE: usize = 60 << 10;
/// How long a session is idle before it gives back memory.
const SHRINKS_AFTER: Duration = Duration::from_secs(2);
/// An HTTP/2 connection.
pub(super) struct Http2 {
    pub(super) session: Session,
    pub(super) token: Token,
    pub(super) peer: Peer,
    /// The counts of its client.
    pub(super) counts: Option<ClientCounts>,
    /// Requests that may be answered before the counts are asked.
    pub(super) requests_left: u16,
    /// Responses that are being made.
    pub(super) pending: Vec<PendingStream>,
    /// Streams of which something can go on: the response is new, or a waker was woken.
    pub(super) woken: Vec<StreamId>,
    /// Received bytes left for the next turn: those before them used up this one.
    pub(super) unread: Vec<u8>,
    /// Frames that the socket did not take.
    pub(super) unsent: Vec<u8>,
    /// Since the socket was first full.
    sending: Option<TransferProgress>,
    /// Bytes that were sent since then.
    sent: u64,
    /// Requests whose last frames are written but may not be with the socket, and the bytes of
    /// their bodies.
    written: Vec<(CountedRequest, u64)>,
    /// Streams of which the service was told that they were refused.
    pub(super) refused: Vec<StreamId>,
    /// Bodies that go to files, or that can go to none.
    pub(super) bodies: Vec<(StreamId, BodyPlace)>,
    /// Receivers of bodies as they arrive.
    pub(super) receivers: Vec<StreamReceiver>,
    /// Sources of bodies that are made while they are sent.
    pub(super) sources: Vec<StreamSource>,
    /// Bytes that the worker's budget counts for the connection beside its streams.
    pub(super) counted: usize,
    /// Since when it counts something.
    pub(super) counted_since: Boottime,
    /// In a drain the end begins after the first request, or then.
    first_until: Boottime,
    /// True if the session has given back memory since it was last busy.
    is_small: bool,
    /// The time of the last read.
    pub(super) now: Boottime,
}

/// State of frames that were written: they are sent, or wait for the socket.
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
    /// True if the connection has failed while the socket does not take what was written.
    pub(super) fn is_stuck(&self) -> bool {
        self.session.has_failed() && !self.unsent.is_empty()
    }

    /// Notes that a waker of the stream was woken: what waits for it goes on in the next turn.
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

    /// Returns whether a stream was woken since the last turn.
    pub(super) const fn is_woken(&self) -> bool {
        !self.woken.is_empty()
    }

    /// Names the connection for the worker's budgets.
    pub(super) const fn holder(&self) -> StreamToken {
        self.token.stream(0)
    }

    /// Names one of its streams, whose numbers begin with 1, for the budget and for wakers.
    pub(super) const fn stream_token(&self, stream: StreamId) -> StreamToken {
        self.token.stream(stream.number())
    }
}

impl<S: Service> Connections<S> {
    /// Begins a session with the first bytes of a client, which are the beginning of its preface.
    pub(super) fn begin_http2(&mut self, connection: &mut Connection, first: &[u8], now: Boottime) {
        let session = Session::new(&self.host.limits, connection.tls.is_some(), now).announcing();
        let mut http2 = Box::new(Http2 {
            session,
            token: connection.token,
            peer: connection.peer.clone(),
            counts: connection.counts().cloned(),
            requests_left: std::mem::take(&mut connection.requests_left),
            pending: Vec::new(),
            woken: Vec::new(),
            unread: Vec::new(),
            unsent: Vec::new(),
            sending: None,
            sent: 0,
            written: Vec::new(),
            refused: Vec::new(),
            bodies: Vec::new(),
            receivers: Vec::new(),
            sources: Vec::new(),
            counted: 0,
            counted_since: now,
            first_until: self.host.first_until().unwrap_or(now),
            is_small: false,
            now,
        });
        http2.take_frames(self, first);
        connection.http2 = Some(http2);
        connection.stage = Stage::Http2;
    }

    /// Continues a session as far as possible now.
    pub(super) fn drive_http2(&mut self, connection: &mut Connection) -> Option<NextAction> {
        let Some(mut http2) = connection.http2.take() else {
            return Some(NextAction::Close);
        };
        http2.heed_drain(&self.host);
        let action = http2.turn(self, connection);
        let action = match action {
            Some(NextAction::Wait | NextAction::Yield) => {
                match http2.charge(self, connection) {
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

    /// Handles a passed deadline; none if the connection ends.
    pub(super) fn time_out_http2(&mut self, connection: &mut Connection) -> Option<NextAction> {
        let mut http2 = connection.http2.take()?;
        let now = Boottime::now();
        while let Some(event) = http2.session.expire(&self.host.limits, now) {
            http2.handle(self, event);
        }
        let is_stuck = http2.sending.is_some() && http2.deadline(&self.host) <= now;
        let is_idle = http2.session.is_idle() && http2.unsent.is_empty();
        if is_idle && !http2.is_small {
            http2.session.shrink();
            http2.is_small = true;
        }
        if is_idle && self.host.draining.is_none() && self.host.idle_until(http2.now) <= now {
            self.host.counters.idle_timeouts.add(1);
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
            self.host.counters.write_timeouts.add(1);
            return None;
        }
        Some(action)
    }
}

impl Http2 {
    /// Begins the end in a drain. A session that began during the drain has its first request.
    fn heed_drain<S: Service>(&mut self, host: &Host<S>) {
        if host.draining.is_some() {
            let now = Boottime::now();
            if self.session.has_begun() || self.first_until <= now {
                self.session.shut_down(now);
            }
        }
    }

    /// One turn; none if another stage has begun. Frames are read whether or not the socket takes
    /// what was written (section 5.2.2): they may open windows, or give up what is being sent.
    fn turn<S: Service>(
        &mut self,
        all: &mut Connections<S>,
        connection: &mut Connection,
    ) -> Option<NextAction> {
        self.session.begin_turn();
        self.poll_woken(all);
        self.feed_receivers(&mut all.host);
        let (mut written, mut reads) = (0, 0);
        loop {
            let outcome = self.write_frames(all, connection, &mut written);
            if outcome == Written::Closed {
                return Some(NextAction::Close);
            }
            if self.session.is_over() && outcome == Written::All {
                self.pending.clear();
                self.sources.clear();
                return begin_to_linger(connection);
            }
            if outcome == Written::Blocked && self.session.has_failed() {
                break;
            }
            let is_over = outcome == Written::Enough || self.session.is_turn_over();
            if reads > 0 && (is_over || reads > TURN) {
                return Some(NextAction::Yield);
            }
            reads += 1;
            match self.read_frames(all, connection) {
                IoOutcome::Bytes(_) => {
                    self.feed_receivers(&mut all.host);
                    self.poll_woken(all);
                    if outcome == Written::Blocked {
                        // Nothing is written that would do so.
                        self.note_ended(&mut all.host);
                        self.session.note_stalls(self.now);
                    }
                }
                IoOutcome::WouldBlock if outcome == Written::Enough => {
                    return Some(NextAction::Yield);
                }
                IoOutcome::WouldBlock => break,
                IoOutcome::Closed => return Some(NextAction::Close),
            }
        }
        connection.deadline = self.deadline(&all.host);
        Some(connection.wait())
    }

    /// Reads and takes frames: first those that the last turn has left.
    fn read_frames<S: Service>(
        &mut self,
        all: &mut Connections<S>,
        connection: &mut Connection,
    ) -> IoOutcome {
        if !self.unread.is_empty() {
            let unread = std::mem::take(&mut self.unread);
            self.now = Boottime::now();
            self.take_frames(all, &unread);
            return IoOutcome::Bytes(unread.len());
        }
        let mut buffer = std::mem::take(&mut all.host.http2_input);
        // It is lost in a panic.
        buffer.resize(READ_BUFFER, 0);
        let outcome = connection.receive(&mut buffer);
        if let IoOutcome::Bytes(len) = outcome {
            all.host.counters.bytes_in.add(len as u64);
            connection.moved(len);
            self.now = Boottime::now();
            self.take_frames(all, &buffer[..len]);
        }
        all.host.http2_input = buffer;
        outcome
    }

    fn deadline<S: Service>(&self, host: &Host<S>) -> Boottime {
        let of_session = self.session.deadline(&host.limits);
        match &self.sending {
            Some(progress) => of_session.min(progress.deadline(host.limits.progress_timeout)),
            None if self.session.is_idle() => {
                let until = of_session.min(match host.draining {
                    None => host.idle_until(self.now),
                    Some(_) if self.session.is_open() => self.first_until,
                    Some(_) => Boottime::NEVER,
                });
                match self.is_small {
                    true => until,
                    false => until.min(self.now.plus(SHRINKS_AFTER)),
                }
            }
            None => of_session,
        }
    }

    /// Takes bytes of the client, and answers the requests that are complete. Those that wait for
    /// the next turn are kept.
    fn take_frames<S: Service>(&mut self, all: &mut Connections<S>, mut input: &[u8]) {
        self.is_small = false;
        loop {
            let mut context = ReceiveContext {
                now: self.now,
                limits: &all.host.limits,
                buffers: &mut all.host.http2_buffers,
            };
            match self.session.receive(&mut input, &mut context) {
                Some(event) => self.handle(all, event),
                None => break,
            }
        }
        self.unread.extend_from_slice(input);
        self.heed_drain(&all.host);
    }

    /// Sends what waits, then the frames of all streams that are ready; adds the number of bytes to
    /// `written`, those of this turn.
    fn write_frames<S: Service>(
        &mut self,
        all: &mut Connections<S>,
        connection: &mut Connection,
        written: &mut usize,
    ) -> Written {
        loop {
            if !self.unsent.is_empty() {
                match connection.transmit_bytes(&self.unsent) {
                    IoOutcome::Bytes(len) => {
                        connection.moved(len);
                        self.note_sent(&all.host.counters, len);
                        self.unsent.drain(..len);
                        continue;
                    }
                    IoOutcome::WouldBlock => {
                        self.note_full();
                        return Written::Blocked;
                    }
                    IoOutcome::Closed => return Written::Closed,
                }
            }
            self.unsent = Vec::new();
            self.sending = None;
            self.count_written(&mut all.host.requests);
            if *written > OUTPUT {
                return Written::Enough;
            }
            self.feed_pieces(all);
            let mut out = std::mem::take(&mut all.host.http2_output);
            out.clear();
            self.session
                .write(&mut out, WRITTEN_AT_ONCE, &mut Files, self.now);
            self.note_ended(&mut all.host);
            if out.is_empty() {
                all.host.http2_output = out;
                return Written::All;
            }
            *written += out.len();
            let outcome = connection.transmit_bytes(&out);
            let sent = match outcome {
                IoOutcome::Bytes(len) => len,
                IoOutcome::WouldBlock => 0,
                IoOutcome::Closed => {
                    all.host.http2_output = out;
                    return Written::Closed;
                }
            };
            connection.moved(sent);
            self.note_sent(&all.host.counters, sent);
            self.unsent.extend_from_slice(&out[sent..]);
            all.host.http2_output = out;
        }
    }

    fn note_sent(&mut self, counters: &Counters, len: usize) {
        self.sent += len as u64;
        counters.bytes_out.add(len as u64);
    }

    /// The socket is full.
    fn note_full(&mut self) {
        let now = Boottime::now();
        if self.sending.is_none() {
            self.sent = 0;
        }
        let sent = self.sent;
        let progress = self
            .sending
            .get_or_insert_with(|| TransferProgress::new(now));
        progress.moved_to(sent, now);
    }

    /// Counts the requests whose responses are with the socket.
    fn count_written(&mut self, requests: &mut RequestCounter) {
        for (counted, body_bytes) in self.written.drain(..) {
            requests.note(counted, body_bytes);
        }
    }

    /// Notifies the service of streams that have ended.
    pub(super) fn note_ended<S: Service>(&mut self, host: &mut Host<S>) {
        while let Some(stream) = self.session.next_ended() {
            let counted = stream.counted(&mut host.requests, &self.peer);
            match stream.is_complete() {
                true => self.written.push((counted, stream.body_bytes())),
                // Nothing of it will be sent.
                false => host.requests.note(counted, stream.body_bytes()),
            }
            let is_refused = self
                .refused
                .iter()
                .position(|refused| *refused == stream.id());
            if let Some(at) = is_refused {
                self.refused.swap_remove(at);
            } else if host.service.wants_done()
                && let Some(status) = stream.status()
            {
                let request = stream.request(&self.peer, counted.received);
                let (bytes, label) = (stream.body_bytes(), host.requests.label(counted.series));
                host.notify(|service| service.done(&request, status, bytes, label));
            }
            self.sources.retain(|source| source.stream != stream.id());
            self.release_stream(&mut host.budgets, stream.id(), stream.is_counted());
            host.http2_buffers.give_back(stream);
        }
    }

    /// Ends what the session holds: its connection is gone.
    pub(super) fn end<S: Service>(&mut self, host: &mut Host<S>) {
        self.pending.clear();
        self.receivers.clear();
        self.sources.clear();
        self.session.abandon();
        self.note_ended(host);
        self.count_written(&mut host.requests);
        if self.counted > 0 {
            host.budgets.release(self.holder());
        }
    }
}
