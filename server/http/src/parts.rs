//! The parser of heads by itself, so that `lab/instructions` can count what it costs apart from
//! sockets.
//!
//! Compiled only with the feature `parts`, which no part of the server asks for.

use std::net::{Ipv4Addr, SocketAddr};

use base_clock::Boottime;
use bytes::Bytes;

use crate::Limits;
use crate::h1::{Decoder, Event};
use crate::peer::Peer;

/// Parses heads one after the other, as a connection does that stays open.
#[derive(Debug)]
pub struct Heads {
    decoder: Decoder,
    limits: Limits,
    received: Boottime,
}

impl Heads {
    /// A parser with the default limits.
    #[must_use]
    pub fn new() -> Self {
        Self {
            decoder: Decoder::new(),
            limits: Limits::default(),
            received: Boottime::now(),
        }
    }

    /// From the bytes of one head to the request that a service sees; gives the number of its field
    /// lines. None if the bytes are refused, are not all of a head, or announce a body.
    pub fn parse(&mut self, head: &[u8]) -> Option<usize> {
        let space = self.decoder.space(&self.limits);
        space.get_mut(..head.len())?.copy_from_slice(head);
        self.decoder.received(head.len());
        let Event::Request(head, _) = self.decoder.next(&self.limits) else {
            return None;
        };
        let peer = Peer::from(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
        let request = self
            .decoder
            .request(&head, Bytes::new(), &peer, self.received);
        let fields = request.fields.len();
        self.decoder.reclaim();
        Some(fields)
    }
}

impl Default for Heads {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::Heads;

    #[test]
    fn heads_follow_each_other() {
        let mut heads = Heads::new();
        for _ in 0..1000 {
            assert_eq!(
                heads.parse(b"GET / HTTP/1.1\r\nHost: a\r\nAccept: */*\r\n\r\n"),
                Some(2)
            );
        }
        assert_eq!(heads.parse(b"GET / HTTP/1.1\r\nHost: a\r\n"), None);
    }
}
