//! What the decoder makes of bytes, however they are cut.

use std::net::{Ipv4Addr, SocketAddr};

use base_clock::Boottime;
use bytes::Bytes;

use crate::Limits;
use crate::h1::{Decoder, Event, Phase};
use crate::request::Version;

/// A request as the service would see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DecodedStream {
    pub(super) method: String,
    pub(super) target: String,
    pub(super) path: String,
    pub(super) query: Option<String>,
    pub(super) host: Option<String>,
    pub(super) version: Version,
    pub(super) keep_alive: bool,
    pub(super) fields: Vec<(String, Vec<u8>)>,
    pub(super) body: Bytes,
}

/// How a stream ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StreamEnd {
    /// With this status.
    Refused(u16),
    /// In the middle of something, or between two requests.
    Left(Phase),
}

/// Everything that came out of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DecodedRequest {
    pub(super) requests: Vec<DecodedStream>,
    pub(super) end: StreamEnd,
}

/// Decodes `pieces` in order; `reclaim` frees the room of what is done after each, as a connection
/// does. Each head is shown to `on_head` as (start, length), which are offsets into the stream
/// unless room is reclaimed.
pub(super) fn decode<'a>(
    pieces: impl IntoIterator<Item = &'a [u8]>,
    limits: &Limits,
    reclaim: bool,
    mut on_head: impl FnMut(usize, usize),
) -> DecodedRequest {
    let peer = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let mut decoder = Decoder::new();
    let mut requests = Vec::new();
    for mut piece in pieces {
        while !piece.is_empty() {
            let space = decoder.space(limits);
            let len = space.len().min(piece.len());
            space[..len].copy_from_slice(&piece[..len]);
            piece = &piece[len..];
            decoder.received(len);
            loop {
                match decoder.next(limits) {
                    Event::Request(head, body) => {
                        on_head(head.start, head.len);
                        let request =
                            decoder.request(&head, body, &peer.into(), Boottime::default());
                        requests.push(DecodedStream::of(&request, head.keep_alive));
                    }
                    Event::Refused(refusal) => {
                        let end = StreamEnd::Refused(refusal.status());
                        return DecodedRequest { requests, end };
                    }
                    Event::More => break,
                    Event::Continue | Event::Body(_) => {}
                }
            }
            if reclaim {
                decoder.reclaim();
            }
        }
    }
    let end = StreamEnd::Left(decoder.phase());
    DecodedRequest { requests, end }
}

/// Decodes a stream in one piece.
pub(super) fn decode_whole(input: &[u8], limits: &Limits) -> DecodedRequest {
    decode([input], limits, false, |_, _| {})
}

impl DecodedStream {
    fn of(request: &crate::Request<'_>, keep_alive: bool) -> Self {
        let fields = request.fields.iter();
        Self {
            method: request.method.to_owned(),
            target: request.target.to_owned(),
            path: request.path.to_owned(),
            query: request.query.map(str::to_owned),
            host: request.host().map(str::to_owned),
            version: request.version,
            keep_alive,
            fields: fields
                .map(|(name, value)| (name.to_owned(), value.to_vec()))
                .collect(),
            body: request.body.clone(),
        }
    }
}
