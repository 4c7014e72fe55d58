//! A request head as text: the fields of a header list, where [`Fields`] finds them.

use base_clock::Boottime;
use bytes::Bytes;

use crate::h1::split_query;
use crate::peer::Peer;
use crate::request::{Fields, Request, Version};
use crate::syntax::{FieldSpan, Span};

/// Buffers of a head that are kept for the next request.
const KEPT_TEXT: usize = 8 << 10;
const KEPT_FIELDS: usize = 64;

/// A request head. Its text has a line `name: value` for each field of the list, in order, but for
/// `:authority`, whose line is that of `host`; the whole cookie follows behind its crumbs. So
/// equal texts mean equal requests.
#[derive(Clone, Debug, Default)]
pub(crate) struct Http2Head {
    text: Vec<u8>,
    fields: Vec<FieldSpan>,
    pub(super) method: Span,
    pub(super) target: Span,
    pub(super) host: Option<Span>,
    /// True if it came through TLS.
    pub(super) is_secured: bool,
}

impl Http2Head {
    /// The request as a service sees it.
    pub(crate) fn request(&self, body: Bytes, peer: &Peer, received: Boottime) -> Request<'_> {
        // Method and target were checked to be ASCII, so nothing becomes empty here.
        let ascii = |span: Span| std::str::from_utf8(span.of(&self.text)).unwrap_or_default();
        let target = ascii(self.target);
        let (path, query) = split_query(target.as_bytes(), 0);
        let of_target = |span: Span| {
            let start = span.start as usize;
            target
                .get(start..start + span.len as usize)
                .unwrap_or_default()
        };
        let fields = Fields::new(&self.text, &self.fields);
        let (client, is_secure) = peer.client(fields);
        Request {
            method: ascii(self.method),
            target,
            path: of_target(path),
            query: query.map(of_target),
            version: Version::Http2,
            fields,
            body,
            peer: peer.address,
            received,
            is_secure: self.is_secured || is_secure,
            wants_validity: false,
            client,
            host: self.host.map(|host| host.of(&self.text)),
        }
    }

    /// All that the client has said in the head.
    pub(crate) fn text(&self) -> &[u8] {
        &self.text
    }

    /// Bytes of memory beside the struct itself.
    pub(super) fn memory(&self) -> usize {
        self.text.capacity() + self.fields.capacity() * size_of::<FieldSpan>()
    }

    pub(crate) fn method(&self) -> &[u8] {
        self.method.of(&self.text)
    }

    /// Appends the line of a field; gives the places of its name and its value.
    pub(super) fn push_line(&mut self, name: &[u8], value: &[u8]) -> FieldSpan {
        let start = self.text.len();
        self.text.reserve(name.len() + value.len() + 4);
        self.text.extend_from_slice(name);
        self.text.extend_from_slice(b": ");
        self.text.extend_from_slice(value);
        self.text.extend_from_slice(b"\r\n");
        FieldSpan {
            name: Span::new(start, name.len()),
            value: Span::new(start + name.len() + 2, value.len()),
        }
    }

    /// The line is that of a field of the request.
    pub(super) fn push_field(&mut self, field: FieldSpan) {
        self.fields.push(field);
    }

    /// Makes one field of `crumbs` cookies, in the place of the first (RFC 9113 section 8.2.3).
    pub(super) fn join_cookies(&mut self, crumbs: usize) {
        if crumbs < 2 {
            return;
        }
        let start = self.text.len();
        self.text.extend_from_slice(b"cookie: ");
        let mut first = None;
        for at in 0..self.fields.len() {
            let FieldSpan { name, value } = self.fields[at];
            if name.of(&self.text) != b"cookie" {
                continue;
            }
            if first.is_some() {
                self.text.extend_from_slice(b"; ");
            }
            first.get_or_insert(at);
            let value = value.start as usize..(value.start + value.len) as usize;
            self.text.extend_from_within(value);
        }
        let value_start = start + b"cookie: ".len();
        let joined = FieldSpan {
            name: Span::new(start, b"cookie".len()),
            value: Span::new(value_start, self.text.len() - value_start),
        };
        self.text.extend_from_slice(b"\r\n");
        let (text, mut at) = (&self.text, 0);
        self.fields.retain(|field| {
            let is_other = field.name.of(text) != b"cookie";
            at += 1;
            is_other || first == Some(at - 1)
        });
        if let Some(field) = first.and_then(|first| self.fields.get_mut(first)) {
            *field = joined;
        }
    }

    /// Forgets the request; keeps buffers of the usual size.
    pub(crate) fn clear(&mut self) {
        self.text.clear();
        self.text.shrink_to(KEPT_TEXT);
        self.fields.clear();
        self.fields.shrink_to(KEPT_FIELDS);
        (self.method, self.target, self.host) = (Span::default(), Span::default(), None);
    }
}
