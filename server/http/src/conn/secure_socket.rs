//! A socket with TLS: receives records and gives plaintext, takes plaintext and sends records.
//!
//! A connection owns no buffer while it is idle. All connections of a worker thread use the same
//! scratch memory. A connection keeps only what cannot be finished now: the beginning of a record,
//! plaintext for which the caller had no space, and records that the socket did not take. Bytes
//! count as sent when the socket has taken their records, so a client that does not read is seen as
//! without TLS.

use std::cell::RefCell;
use std::io::IoSlice;
use std::os::fd::AsFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use base_clock::Boottime;
use rustix::io::Errno;
use rustix::net::{SendFlags, send};
use rustls::ServerConfig;

use super::output::FilePart;
use super::socket::IoOutcome;
use super::{Connection, NextAction, Stage};
use crate::transport::{Plaintext, RECORD, RECORD_OVERHEAD, Records, TlsError, TlsSession};

/// Bytes that are received at once while those that were received lately had little plaintext in
/// them.
const RECEIVED_OF_LITTLE: usize = 4 << 10;
/// Plaintext that is encrypted and sent at once: four records. Others have their turn then.
const SENT: usize = 64 << 10;
const _: () = assert!(SENT == 4 * RECORD);
/// Plaintext that is encrypted and sent at once while the reader is slow: bytes that the socket
/// does not take wait in memory.
const SENT_TO_SLOW: usize = RECORD;
/// Records of a client that makes this side send and does not read.
const UNSENT: usize = 2 * SENT;
/// The longest beginning of a message that waits for its rest. `rustls` refuses longer messages in
/// a handshake; a record is shorter.
const HELD: usize = 128 << 10;
/// Bytes without plaintext in them that a connection may send: those of its handshake, and heads,
/// paddings and keys of records. Each byte of plaintext allows [`OVERHEAD_PER_BYTE`] more.
const OVERHEAD: i64 = 256 << 10;
/// A record of one byte has 22 to 29 others.
const OVERHEAD_PER_BYTE: i64 = 64;
/// The first byte of a handshake's record (RFC 8446 section 5.1).
const HANDSHAKE: u8 = 22;
/// Response to a client that speaks plain HTTP here.
const PLAIN_HTTP: &[u8] =
    b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\
Content-Length: 58\r\n\r\nthis port speaks https only: begin the address with https\n";

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

/// The memory of a worker thread for records.
#[derive(Default)]
struct Scratch {
    received: Vec<u8>,
    plaintext: Vec<u8>,
    records: Records,
}

/// The TLS side of a connection.
pub(super) struct SecureSocket {
    state: SecureState,
    /// The beginning of a record, or of a message in several records.
    held: Vec<u8>,
    /// Plaintext that is given before anything is received.
    plaintext: Vec<u8>,
    /// Records that the socket did not take.
    unsent: Vec<u8>,
    /// True if the socket did not take all records the last time.
    is_slow: bool,
    /// Bytes of plaintext in the records that are not sent yet. The caller still has them.
    pending: usize,
    /// True if this side has sent its part of the handshake since [`Connection::take_answered`]
    /// asked.
    has_answered: bool,
    /// True if it ever has: it counts once.
    is_answered: bool,
    /// True if the handshake was completed since [`Connection::take_opened`] asked.
    is_new: bool,
    /// Since when the worker's budget counts [`Connection::memory_of_records`], if it does.
    pub(super) counted_since: Option<Boottime>,
    /// Bytes without plaintext that may still come.
    overhead_left: i64,
    turn: Turn,
}

/// Turn of a connection: it lets others have their turn, although its socket has more, if it sends
/// much and says little, such as new keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    Goes,
    /// The turn ends when it is asked for more.
    Ends,
    /// The turn has ended, which the caller has not heard yet.
    Ended,
}

enum SecureState {
    /// Nothing was received: a connection that says nothing costs no session.
    Silent(Arc<ServerConfig>),
    Session(Box<TlsSession>),
    /// The peer broke the protocol, or does not speak it.
    Failed,
    /// There is a fault in `rustls`, or in its use here.
    Panicked,
    /// This side has said that nothing follows.
    Over,
}

/// Result of the handshake of a connection, for the counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Handshake {
    Full,
    Resumed,
}

/// Protocol that both sides have agreed on (ALPN, RFC 7301).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Negotiated {
    /// Also if nothing was said.
    Http1,
    Http2,
    /// Only the handshake itself was wanted, such as by an authority that looks at the certificate
    /// (RFC 8737).
    Nothing,
}

impl SecureSocket {
    pub(super) fn new(config: &Arc<ServerConfig>) -> Box<Self> {
        Box::new(Self {
            state: SecureState::Silent(Arc::clone(config)),
            held: Vec::new(),
            plaintext: Vec::new(),
            unsent: Vec::new(),
            is_slow: false,
            pending: 0,
            has_answered: false,
            is_answered: false,
            is_new: false,
            counted_since: None,
            overhead_left: OVERHEAD,
            turn: Turn::Goes,
        })
    }

    fn session(&mut self) -> Option<&mut TlsSession> {
        match &mut self.state {
            SecureState::Session(session) => Some(session),
            _ => None,
        }
    }

    /// Begins the session with the first bytes of a client; false if they are not TLS.
    fn begin(&mut self, first: u8) -> bool {
        let SecureState::Silent(config) = &self.state else {
            return true;
        };
        self.state = match TlsSession::new(Arc::clone(config)) {
            Ok(session) if first == HANDSHAKE => SecureState::Session(Box::new(session)),
            _ => SecureState::Failed,
        };
        matches!(self.state, SecureState::Session(_))
    }

    /// Gives plaintext that waits.
    fn take_plaintext(&mut self, space: &mut [u8]) -> usize {
        let len = self.plaintext.len().min(space.len());
        space[..len].copy_from_slice(&self.plaintext[..len]);
        self.plaintext.drain(..len);
        if self.plaintext.is_empty() {
            self.plaintext = Vec::new();
        }
        len
    }

    /// Decrypts what was received, with what was held before it; gives the bytes of plaintext in
    /// `space`.
    fn read(
        &mut self,
        received: &mut [u8],
        space: &mut [u8],
        out: &mut Records,
    ) -> Result<usize, TlsError> {
        let Some(session) = self.session() else {
            return Err(TlsError::Unexpected);
        };
        let was_open = session.is_open();
        let mut plaintext = Plaintext::new(space);
        let taken = session.read(received, &mut plaintext, out)?;
        let is_new = !was_open && session.is_open();
        let (len, rest) = (plaintext.len, plaintext.rest);
        self.is_new |= is_new;
        self.plaintext = rest;
        let held = &received[taken..];
        if held.len() > HELD {
            return Err(TlsError::Unexpected);
        }
        self.held = held.to_vec();
        self.note_overhead(taken, len + self.plaintext.len())?;
        Ok(len)
    }

    /// Counts the bytes of records, and the plaintext in them.
    fn note_overhead(&mut self, records: usize, plaintext: usize) -> Result<(), TlsError> {
        let allowed = plaintext as i64 * OVERHEAD_PER_BYTE;
        let left = self.overhead_left - records as i64 + allowed;
        self.overhead_left = left.min(OVERHEAD);
        match left < 0 {
            true => Err(TlsError::Unexpected),
            false => Ok(()),
        }
    }

    /// Plaintext that is sent at once.
    const fn most_sent(&self) -> usize {
        match self.is_slow {
            true => SENT_TO_SLOW,
            false => SENT,
        }
    }

    /// Bytes that are received at once for so much space: little plaintext should have to wait.
    fn most_received(&self, space: usize) -> usize {
        match self.overhead_left < OVERHEAD {
            true => RECEIVED_OF_LITTLE,
            false => (space + RECORD_OVERHEAD).max(RECEIVED_OF_LITTLE),
        }
    }
}

impl Connection {
    /// As [`Self::receive`], through TLS. A handshake continues as far as its bytes have arrived.
    #[cold]
    #[inline(never)]
    pub(super) fn receive_secure(&mut self, space: &mut [u8]) -> IoOutcome {
        let Some(mut tls) = self.tls.take() else {
            return IoOutcome::Closed;
        };
        let outcome = guarded(&mut tls, |tls, scratch| {
            self.receive_with(tls, space, scratch)
        });
        self.tls = Some(tls);
        outcome
    }

    fn receive_with(
        &mut self,
        tls: &mut SecureSocket,
        space: &mut [u8],
        scratch: &mut Scratch,
    ) -> IoOutcome {
        if space.is_empty() {
            return IoOutcome::WouldBlock;
        }
        if !tls.plaintext.is_empty() {
            // The socket may have more, as it was not asked again: it still counts as ready.
            return IoOutcome::Bytes(tls.take_plaintext(space));
        }
        if tls.turn == Turn::Ends && self.ready.read {
            tls.turn = Turn::Ended;
            return IoOutcome::WouldBlock;
        }
        tls.turn = Turn::Goes;
        if self.flush(tls) == Err(IoOutcome::Closed) {
            return IoOutcome::Closed;
        }
        let held = tls.held.len();
        let room = tls.most_received(space.len());
        scratch.received.resize(held + room, 0);
        scratch.received[..held].copy_from_slice(&tls.held);
        let len = match self.receive_plain(&mut scratch.received[held..]) {
            IoOutcome::Bytes(len) => len,
            other => return other,
        };
        if !tls.begin(scratch.received[0]) {
            let _ = send(&self.socket, PLAIN_HTTP, SendFlags::NOSIGNAL);
            return IoOutcome::Closed;
        }
        scratch.records.clear();
        let read = tls.read(
            &mut scratch.received[..held + len],
            space,
            &mut scratch.records,
        );
        tls.has_answered |= !tls.is_answered && !scratch.records.bytes().is_empty();
        tls.is_answered |= tls.has_answered;
        if self.send_records(tls, &scratch.records) == IoOutcome::Closed {
            return IoOutcome::Closed;
        }
        match read {
            Err(_) => {
                tls.state = SecureState::Failed;
                IoOutcome::Closed
            }
            Ok(0) if tls.session().is_none_or(|session| session.has_ended()) => IoOutcome::Closed,
            Ok(0) => {
                if self.ready.read {
                    tls.turn = Turn::Ended;
                }
                IoOutcome::WouldBlock
            }
            Ok(len) => {
                if self.ready.read && tls.overhead_left < OVERHEAD {
                    tls.turn = Turn::Ends;
                }
                self.ready.read |= !tls.plaintext.is_empty();
                IoOutcome::Bytes(len)
            }
        }
    }

    /// Sends slices as records: head and body of a small response as one.
    #[cold]
    #[inline(never)]
    pub(super) fn transmit_secure(&mut self, slices: &[IoSlice<'_>]) -> IoOutcome {
        self.transmit_plaintext(|plaintext, most| {
            for slice in slices {
                let room = most - plaintext.len();
                plaintext.extend_from_slice(&slice[..slice.len().min(room)]);
            }
            true
        })
    }

    /// Sends the next part of a file. If the file ends early, the connection is cut.
    #[cold]
    #[inline(never)]
    pub(super) fn transmit_file_secure(&mut self, part: &FilePart) -> IoOutcome {
        self.transmit_plaintext(|plaintext, most| {
            let len = usize::try_from(part.len).unwrap_or(most).min(most);
            plaintext.resize(len, 0);
            let read = loop {
                match rustix::io::pread(part.file.as_fd(), &mut *plaintext, part.offset) {
                    Err(Errno::INTR) => {}
                    read => break read,
                }
            };
            plaintext.truncate(read.unwrap_or(0));
            !plaintext.is_empty()
        })
    }

    /// Encrypts and sends what `fill` puts into an empty vector, with at most the length that it is
    /// told; `fill` gives false if there is nothing. While records wait, `fill` is not called, as
    /// its bytes are among them.
    fn transmit_plaintext(&mut self, fill: impl FnOnce(&mut Vec<u8>, usize) -> bool) -> IoOutcome {
        let Some(mut tls) = self.tls.take() else {
            return IoOutcome::Closed;
        };
        let outcome = guarded(&mut tls, |tls, scratch| {
            self.transmit_with(tls, scratch, fill)
        });
        self.tls = Some(tls);
        outcome
    }

    fn transmit_with(
        &mut self,
        tls: &mut SecureSocket,
        scratch: &mut Scratch,
        fill: impl FnOnce(&mut Vec<u8>, usize) -> bool,
    ) -> IoOutcome {
        if let Err(outcome) = self.flush(tls) {
            return outcome;
        }
        if tls.pending > 0 {
            return IoOutcome::Bytes(std::mem::take(&mut tls.pending));
        }
        if !self.ready.write {
            return IoOutcome::WouldBlock;
        }
        scratch.plaintext.clear();
        scratch.records.clear();
        if !fill(&mut scratch.plaintext, tls.most_sent()) {
            return IoOutcome::Closed;
        }
        let written = match &mut tls.state {
            SecureState::Session(session) => {
                session.write(&mut tls.held, &scratch.plaintext, &mut scratch.records)
            }
            _ => return IoOutcome::Closed,
        };
        if written.is_err() {
            return IoOutcome::Closed;
        }
        match self.send_records(tls, &scratch.records) {
            IoOutcome::WouldBlock => {
                tls.pending = scratch.plaintext.len();
                IoOutcome::WouldBlock
            }
            IoOutcome::Closed => IoOutcome::Closed,
            IoOutcome::Bytes(_) => IoOutcome::Bytes(scratch.plaintext.len()),
        }
    }

    /// Sends records behind those that wait; what the socket does not take is kept. `WouldBlock` if
    /// something is.
    fn send_records(&mut self, tls: &mut SecureSocket, records: &Records) -> IoOutcome {
        let bytes = records.bytes();
        if bytes.is_empty() {
            return IoOutcome::Bytes(0);
        }
        if !tls.unsent.is_empty() {
            tls.unsent.extend_from_slice(bytes);
            return match tls.unsent.len() > UNSENT {
                true => IoOutcome::Closed,
                false => IoOutcome::WouldBlock,
            };
        }
        let sent = match self.send_plain(bytes) {
            IoOutcome::Bytes(sent) => sent,
            IoOutcome::WouldBlock => 0,
            IoOutcome::Closed => return IoOutcome::Closed,
        };
        tls.is_slow = sent < bytes.len();
        if !tls.is_slow {
            return IoOutcome::Bytes(sent);
        }
        tls.unsent = bytes[sent..].to_vec();
        IoOutcome::WouldBlock
    }

    /// Sends the records that wait; an error if some still do.
    fn flush(&mut self, tls: &mut SecureSocket) -> Result<(), IoOutcome> {
        while !tls.unsent.is_empty() {
            match self.send_plain(&tls.unsent) {
                IoOutcome::Bytes(sent) => {
                    tls.unsent.drain(..sent);
                }
                other => return Err(other),
            }
        }
        tls.unsent = Vec::new();
        Ok(())
    }

    fn send_plain(&mut self, bytes: &[u8]) -> IoOutcome {
        self.attempt(bytes.len(), |connection| {
            send(&connection.socket, bytes, SendFlags::NOSIGNAL)
        })
    }

    /// True if bytes that were received mean more than a beginning of a request: the handshake was
    /// completed, of which [`Self::take_opened`] has not told yet, or records are counted.
    #[inline]
    pub(super) fn has_news(&self) -> bool {
        let tls = self.tls.as_ref();
        tls.is_some_and(|tls| tls.is_new || tls.counted_since.is_some())
    }

    /// True if a handshake was completed of which [`Self::take_opened`] has not told yet.
    pub(super) fn has_opened(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.is_new)
    }

    /// True if a part of what comes before a request, or begins one, has arrived: it waits in the
    /// socket or in the side of TLS.
    pub(super) fn has_begun(&mut self) -> bool {
        let tls = self.tls.as_ref();
        let is_held = match self.stage {
            Stage::Handshake => tls.is_some_and(|tls| matches!(tls.state, SecureState::Session(_))),
            Stage::ProxyHeader | Stage::Idle => tls.is_some_and(|tls| !tls.held.is_empty()),
            _ => return false,
        };
        is_held || matches!(self.peek(&mut [0]), IoOutcome::Bytes(_))
    }

    /// True if the socket has TLS.
    pub(super) const fn is_secure(&self) -> bool {
        self.tls.is_some()
    }

    pub(super) fn secure_socket(&mut self) -> Option<&mut SecureSocket> {
        self.tls.as_deref_mut()
    }

    /// True if the worker's budget counts [`Self::memory_of_records`] by themselves.
    pub(super) fn is_counted(&self) -> bool {
        let tls = self.tls.as_ref();
        tls.is_some_and(|tls| tls.counted_since.is_some())
    }

    /// Bytes of memory that wait for the rest of a record, for space in a buffer, or for the
    /// socket.
    pub(super) fn memory_of_records(&self) -> usize {
        let held = |tls: &SecureSocket| {
            tls.held.capacity() + tls.plaintext.capacity() + tls.unsent.capacity()
        };
        self.tls.as_deref().map_or(0, held)
    }

    /// Returns the action of a connection that can receive no more bytes now: it waits, unless only
    /// its turn has ended.
    pub(super) fn wait(&mut self) -> NextAction {
        match &mut self.tls {
            Some(tls) if tls.turn == Turn::Ended => {
                tls.turn = Turn::Goes;
                NextAction::Yield
            }
            _ => NextAction::Wait,
        }
    }

    /// Returns the protocol that both sides have agreed on.
    pub(super) fn negotiated(&mut self) -> Negotiated {
        let session = self.tls.as_mut().and_then(|tls| tls.session());
        match session.and_then(|session| session.protocol()) {
            None | Some(b"http/1.1") => Negotiated::Http1,
            Some(b"h2") => Negotiated::Http2,
            Some(_) => Negotiated::Nothing,
        }
    }

    /// True if a client may begin HTTP/2 without having agreed on it (RFC 9113 section 3.3): not
    /// with TLS.
    pub(super) const fn may_be_http2(&self) -> bool {
        self.tls.is_none()
    }

    /// True if TLS itself has failed: nothing in common, a broken record, plain HTTP.
    pub(super) fn has_failed(&self) -> bool {
        let is_failed = |tls: &SecureSocket| matches!(tls.state, SecureState::Failed);
        self.tls.as_deref().is_some_and(is_failed)
    }

    /// True if the side of TLS panicked, which ended only this connection.
    pub(super) fn has_panicked(&self) -> bool {
        let has_panicked = |tls: &SecureSocket| matches!(tls.state, SecureState::Panicked);
        self.tls.as_deref().is_some_and(has_panicked)
    }

    /// True if this side has sent its part of the handshake since the last call. Then the costly
    /// part of the work is done.
    pub(crate) fn take_answered(&mut self) -> bool {
        let tls = self.tls.as_mut();
        tls.is_some_and(|tls| std::mem::take(&mut tls.has_answered))
    }

    /// Sends records that wait, such as the end of a handshake.
    pub(super) fn flush_records(&mut self) {
        if let Some(mut tls) = self.tls.take() {
            // What cannot be sent now is tried at the next event; a broken socket gives one too.
            let _ = self.flush(&mut tls);
            self.tls = Some(tls);
        }
    }

    /// The handshake, if it was completed since the last call.
    pub(super) fn take_opened(&mut self) -> Option<Handshake> {
        let tls = self.tls.as_mut().filter(|tls| tls.is_new)?;
        tls.is_new = false;
        let is_resumed = tls.session().is_some_and(|session| session.is_resumed());
        Some(match is_resumed {
            true => Handshake::Resumed,
            false => Handshake::Full,
        })
    }

    /// Tells the peer that nothing follows, if the socket takes it at once.
    pub(super) fn end_records(&mut self) {
        let Some(mut tls) = self.tls.take() else {
            return;
        };
        if tls.unsent.is_empty() {
            guarded(&mut tls, |tls, scratch| {
                let SecureState::Session(session) = &mut tls.state else {
                    return IoOutcome::WouldBlock;
                };
                scratch.records.clear();
                if session.close(&mut tls.held, &mut scratch.records).is_ok() {
                    let _ = send(&self.socket, scratch.records.bytes(), SendFlags::NOSIGNAL);
                }
                tls.state = SecureState::Over;
                IoOutcome::WouldBlock
            });
        }
        self.tls = Some(tls);
    }
}

/// Acts on the side of TLS with the thread's scratch memory; a panic ends only this connection.
fn guarded(
    tls: &mut SecureSocket,
    act: impl FnOnce(&mut SecureSocket, &mut Scratch) -> IoOutcome,
) -> IoOutcome {
    let acted = catch_unwind(AssertUnwindSafe(|| {
        SCRATCH.with_borrow_mut(|scratch| act(tls, scratch))
    }));
    acted.unwrap_or_else(|_| {
        tls.state = SecureState::Panicked;
        IoOutcome::Closed
    })
}
