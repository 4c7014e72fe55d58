//! The decoder: a buffer that bytes are put into, and the requests that come out of it in order.

use base_clock::Boottime;
use bytes::{Bytes, BytesMut};

use super::Refusal;
use super::chunked::Chunked;
use super::framing::Framing;
use super::head::{Head, Scanner, parse_at_once};
use crate::limits::{EMPTY_LINES, Limits, READ_BUFFER};
use crate::peer::Peer;
use crate::request::{Fields, Request};
use crate::syntax::{FieldSpan, Span};

/// Event that the bytes so far amount to.
#[derive(Debug)]
pub(crate) enum Event {
    /// Nothing further without more bytes.
    More,
    /// Nothing further without more bytes, and the client waits for `100 Continue` before it sends
    /// them.
    Continue,
    /// The head of a request whose body follows: say with [`Decoder::accept_body`] how long that
    /// may be. Only from a decoder that [announces](Decoder::announcing) bodies.
    Body(Head),
    /// A whole request, with its body except the bytes that were [moved](Decoder::move_body).
    Request(Head, Bytes),
    /// The connection must be answered with this and closed; the decoder is of no further use to
    /// it.
    Refused(Refusal),
}

/// Phase of the decoder; each has its own deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Between requests, with no byte of the next.
    Idle,
    /// Part of a head has arrived.
    Head,
    /// The head is complete, the body is not.
    Body,
}

#[derive(Debug)]
enum DecoderState {
    Head {
        scanner: Scanner,
        empty_lines: u8,
    },
    Body {
        head: Head,
        coding: BodyCoding,
        may_continue: bool,
    },
}

#[derive(Debug)]
enum BodyCoding {
    Length(u64),
    Chunked(Chunked),
}

const START: DecoderState = DecoderState::Head {
    scanner: Scanner::new(),
    empty_lines: 0,
};

/// The usual methods need no look at their bytes but the comparison.
fn method(bytes: &[u8]) -> &str {
    match bytes {
        b"GET" => "GET",
        b"HEAD" => "HEAD",
        b"POST" => "POST",
        other => std::str::from_utf8(other).unwrap_or_default(),
    }
}

/// A request as the service sees it: a head with its bytes and its field lines.
pub(crate) fn request<'a>(
    head: &Head,
    bytes: &'a [u8],
    fields: &'a [FieldSpan],
    body: Bytes,
    peer: &Peer,
    received: Boottime,
) -> Request<'a> {
    // The request line was checked to be ASCII, so nothing becomes empty here.
    let target = std::str::from_utf8(head.target.of(bytes)).unwrap_or_default();
    let of_target = |span: Span| {
        let start = (span.start - head.target.start) as usize;
        target
            .get(start..start + span.len as usize)
            .unwrap_or_default()
    };
    let path = of_target(head.path);
    let fields = Fields::new(bytes, fields);
    let (client, is_secure) = peer.client(fields);
    Request {
        method: method(head.method.of(bytes)),
        target,
        path: if path.is_empty() { "/" } else { path },
        query: head.query.map(of_target),
        version: head.version,
        fields,
        body,
        peer: peer.address,
        received,
        is_secure: head.is_secured || is_secure,
        wants_validity: false,
        client,
        host: head.host.map(|host| host.of(bytes)),
    }
}

/// Heads stay in the buffer, and their field lines in the arena, until [`Decoder::reclaim`], so
/// that requests can be looked at again when their responses have been sent.
#[derive(Debug)]
pub(crate) struct Decoder {
    /// Always initialised to its full length; bytes `..filled` have been received, `..at` are
    /// decoded.
    buffer: Vec<u8>,
    filled: usize,
    at: usize,
    state: DecoderState,
    fields: Vec<FieldSpan>,
    /// The bytes of the present body, except those that were moved elsewhere.
    body: BytesMut,
    moved: usize,
    /// The most bytes that the present body may have.
    body_limit: usize,
    /// True if the bytes come through TLS.
    is_secured: bool,
    /// True if [`Event::Body`] comes before a body.
    announces: bool,
}

impl Decoder {
    pub(crate) fn new() -> Self {
        Self {
            buffer: vec![0; READ_BUFFER],
            filled: 0,
            at: 0,
            state: START,
            fields: Vec::with_capacity(32),
            body: BytesMut::new(),
            moved: 0,
            body_limit: 0,
            is_secured: false,
            announces: false,
        }
    }

    /// Returns a decoder that gives [`Event::Body`] before each body. Without it a body may be as
    /// long as the limits say.
    pub(crate) fn announcing(self) -> Self {
        Self {
            announces: true,
            ..self
        }
    }

    /// Sets if the bytes come through TLS.
    pub(crate) fn secured(self, is_secured: bool) -> Self {
        Self { is_secured, ..self }
    }

    /// Room for more bytes, at least 4 KiB; say with [`Decoder::received`] how much of it was used.
    ///
    /// The buffer grows with what is incomplete in it and is bounded: a head by its limit, the line
    /// of a chunked body by its own; body bytes leave it as they come.
    pub(crate) fn space(&mut self, limits: &Limits) -> &mut [u8] {
        const ROOM: usize = READ_BUFFER / 4;
        if self.buffer.len() - self.filled < ROOM {
            let bound = limits.head.max(READ_BUFFER) + READ_BUFFER;
            let len = (self.buffer.len() * 2).min(bound).max(self.filled + ROOM);
            self.buffer.resize(len, 0);
        }
        &mut self.buffer[self.filled..]
    }

    /// `len` bytes were put into [`Decoder::space`].
    pub(crate) fn received(&mut self, len: usize) {
        self.filled = (self.filled + len).min(self.buffer.len());
    }

    /// Returns the bytes that have been received beyond the last request, if nothing of them was
    /// looked at yet.
    pub(crate) fn undecoded(&self) -> Option<&[u8]> {
        let input = &self.buffer[self.at..self.filled];
        match &self.state {
            DecoderState::Head {
                scanner,
                empty_lines: 0,
            } if scanner.is_fresh() && !input.is_empty() => Some(input),
            _ => None,
        }
    }

    /// `len` bytes of what is [undecoded](Decoder::undecoded) are a request that is known.
    pub(crate) fn skip(&mut self, len: usize) {
        self.at = (self.at + len).min(self.filled);
    }

    /// The bytes and the field lines of a head that was decoded, until [`Decoder::reclaim`].
    pub(crate) fn parts_of(&self, head: &Head) -> (&[u8], &[FieldSpan]) {
        let bytes = self.buffer.get(head.start..head.start + head.len);
        let fields = self.fields.get(head.fields.0..head.fields.1);
        (bytes.unwrap_or_default(), fields.unwrap_or_default())
    }

    /// Puts a head that was decoded elsewhere into the empty decoder, so that its
    /// [parts](Self::parts_of) are found.
    pub(crate) fn restore(&mut self, head: &mut Head, bytes: &[u8], fields: &[FieldSpan]) {
        debug_assert!(self.filled == 0, "what was received would be lost");
        if self.buffer.len() < bytes.len() {
            self.buffer.resize(bytes.len(), 0);
        }
        self.buffer[..bytes.len()].copy_from_slice(bytes);
        (self.at, self.filled) = (bytes.len(), bytes.len());
        self.fields.extend_from_slice(fields);
        (head.start, head.fields) = (0, (0, fields.len()));
    }

    /// Returns the phase of the decoder.
    pub(crate) fn phase(&self) -> Phase {
        match self.state {
            DecoderState::Body { .. } => Phase::Body,
            DecoderState::Head { .. } if self.at == self.filled => Phase::Idle,
            DecoderState::Head { .. } => Phase::Head,
        }
    }

    /// True if the present request is a HEAD, as far as can be told of one that is refused.
    pub(crate) fn is_head(&self) -> bool {
        match &self.state {
            DecoderState::Body { head, .. } => head.is_head,
            DecoderState::Head { .. } => self.buffer[self.at..self.filled].starts_with(b"HEAD "),
        }
    }

    /// Bytes of the present body so far: the measure of its progress.
    pub(crate) fn body_len(&self) -> usize {
        self.moved + self.body.len()
    }

    /// Bytes of the present body that are in memory here.
    pub(crate) fn body_in_memory(&self) -> usize {
        self.body.len()
    }

    /// Moves these bytes to where `take` puts them; unless that fails, they are gone here, and the
    /// body of the request will be what came after them.
    pub(crate) fn move_body<E>(
        &mut self,
        take: impl FnOnce(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        take(&self.body)?;
        self.moved += self.body.len();
        self.body = BytesMut::new();
        Ok(())
    }

    /// Bytes of memory that the decoder takes.
    pub(crate) fn memory(&self) -> usize {
        let fields = self.fields.capacity() * size_of::<FieldSpan>();
        self.buffer.capacity() + fields + self.body.capacity()
    }

    /// Frees the room in which nothing has arrived: for a client that is one of many that wait.
    pub(crate) fn shrink(&mut self) {
        self.buffer.truncate(self.filled);
        self.buffer.shrink_to_fit();
        self.fields.shrink_to_fit();
    }

    /// Decodes the next request out of what has been received.
    pub(crate) fn next(&mut self, limits: &Limits) -> Event {
        let event = match self.state {
            DecoderState::Head { .. } => self.next_head(limits),
            DecoderState::Body { .. } => self.next_body(),
        };
        event.unwrap_or_else(Event::Refused)
    }

    fn next_head(&mut self, limits: &Limits) -> Result<Event, Refusal> {
        let DecoderState::Head {
            scanner,
            empty_lines,
        } = &mut self.state
        else {
            return Ok(Event::More);
        };
        while *empty_lines < EMPTY_LINES && self.buffer[self.at..self.filled].starts_with(b"\r\n") {
            self.at += 2;
            *empty_lines += 1;
        }
        let input = &self.buffer[self.at..self.filled];
        if input.is_empty() || (*empty_lines < EMPTY_LINES && input == b"\r") {
            return Ok(Event::More);
        }
        let at_once = if scanner.is_fresh() {
            parse_at_once(input, self.at, &mut self.fields, limits)
        } else {
            None
        };
        let mut head = match at_once {
            Some(head) => head,
            None => match scanner.scan(input, self.is_secured, limits)? {
                Some(len) => scanner.parse(&input[..len], self.at, &mut self.fields, limits)?,
                None => return Ok(Event::More),
            },
        };
        head.is_secured = self.is_secured;
        self.at += head.len;
        let coding = match head.framing {
            Framing::Length(0) => {
                self.state = START;
                return Ok(Event::Request(head, Bytes::new()));
            }
            Framing::Length(len) => BodyCoding::Length(len),
            Framing::Chunked => BodyCoding::Chunked(Chunked::new()),
        };
        self.state = DecoderState::Body {
            head,
            coding,
            may_continue: head.expects_continue,
        };
        if self.announces {
            return Ok(Event::Body(head));
        }
        self.accept_body(limits.body)?;
        self.next_body()
    }

    /// Says how many bytes the body may have whose head was just decoded.
    pub(crate) fn accept_body(&mut self, limit: usize) -> Result<(), Refusal> {
        self.body_limit = limit;
        match &self.state {
            DecoderState::Body {
                coding: BodyCoding::Length(length),
                ..
            } if *length > limit as u64 => Err(Refusal::BodyTooLarge),
            _ => Ok(()),
        }
    }

    /// The head of the request whose body is being received.
    pub(crate) fn head_of_body(&self) -> Option<Head> {
        match &self.state {
            DecoderState::Body { head, .. } => Some(*head),
            DecoderState::Head { .. } => None,
        }
    }

    fn next_body(&mut self) -> Result<Event, Refusal> {
        let DecoderState::Body {
            head,
            coding,
            may_continue,
        } = &mut self.state
        else {
            return Ok(Event::More);
        };
        let input = &self.buffer[self.at..self.filled];
        // RFC 9110 section 10.1.1: no 100 is needed once part of the content has arrived.
        let wants_continue = std::mem::take(may_continue) && input.is_empty();
        let done = match coding {
            BodyCoding::Length(left) => {
                let taken = usize::try_from(*left)
                    .unwrap_or(usize::MAX)
                    .min(input.len());
                self.body.extend_from_slice(&input[..taken]);
                self.at += taken;
                *left -= taken as u64;
                *left == 0
            }
            BodyCoding::Chunked(chunked) => {
                self.at += chunked.decode(
                    input,
                    &mut self.body,
                    self.body_limit.saturating_sub(self.moved),
                )?;
                chunked.is_done()
            }
        };
        if done {
            let head = *head;
            self.state = START;
            self.moved = 0;
            return Ok(Event::Request(
                head,
                std::mem::take(&mut self.body).freeze(),
            ));
        }
        Ok(if wants_continue {
            Event::Continue
        } else {
            Event::More
        })
    }

    /// A request as the service sees it.
    pub(crate) fn request(
        &self,
        head: &Head,
        body: Bytes,
        peer: &Peer,
        received: Boottime,
    ) -> Request<'_> {
        let (bytes, fields) = self.parts_of(head);
        request(head, bytes, fields, body, peer, received)
    }

    /// Frees the room of requests that are done with; the one being received moves to the front.
    pub(crate) fn reclaim(&mut self) {
        let keep = match &mut self.state {
            DecoderState::Head { .. } => {
                self.fields.clear();
                0
            }
            DecoderState::Body { head, .. } => {
                self.buffer
                    .copy_within(head.start..head.start + head.len, 0);
                self.fields.drain(..head.fields.0);
                head.fields = (0, head.fields.1 - head.fields.0);
                head.start = 0;
                head.len
            }
        };
        self.buffer.copy_within(self.at..self.filled, keep);
        self.filled = keep + (self.filled - self.at);
        self.at = keep;
    }

    /// Resets the decoder for another connection; false if it has grown beyond the usual.
    pub(crate) fn renew(&mut self) -> bool {
        (self.filled, self.at, self.moved) = (0, 0, 0);
        if self.buffer.len() < READ_BUFFER {
            self.buffer.resize(READ_BUFFER, 0);
        }
        self.state = START;
        self.fields.clear();
        self.body = BytesMut::new();
        self.buffer.len() == READ_BUFFER && self.fields.capacity() <= 1024
    }
}
