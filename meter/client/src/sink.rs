//! Where the content of a response goes; usually nowhere.
//!
//! The parser is generic over a [`Sink`], so a run that does not use contents has no cost for them.

use crate::response::ResponseHead;

/// Receives the parts of one response as the parser finds them.
pub trait Sink {
    /// The head of the final response; interim ones are not handed out.
    fn head(&mut self, head: &ResponseHead<'_>);
    /// Bytes of the body in order, without the framing of the chunked coding.
    fn body(&mut self, bytes: &[u8]);
}

/// Ignores everything.
pub struct Discard;

impl Sink for Discard {
    #[inline]
    fn head(&mut self, _head: &ResponseHead<'_>) {}
    #[inline]
    fn body(&mut self, _bytes: &[u8]) {}
}

/// Keeps the head and, up to a limit, the body of one response.
#[derive(Debug)]
pub(crate) struct Collect {
    /// The head as it came, from the status line to the empty line.
    head: Vec<u8>,
    body: Vec<u8>,
    limit: usize,
    truncated: bool,
}

impl Collect {
    /// Keeps at most `limit` bytes of a body.
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            head: Vec::new(),
            body: Vec::new(),
            limit,
            truncated: false,
        }
    }

    /// Forgets the response before; its memory is used again.
    pub(crate) fn clear(&mut self) {
        self.head.clear();
        self.body.clear();
        self.truncated = false;
    }

    /// The head as it came, from the status line to the empty line.
    pub(crate) fn head(&self) -> &[u8] {
        &self.head
    }

    /// The body, or what there is of it so far.
    pub(crate) fn content(&self) -> &[u8] {
        &self.body
    }

    /// True if the body was longer than the limit; the rest of it is not kept.
    pub(crate) fn is_truncated(&self) -> bool {
        self.truncated
    }
}

impl Sink for Collect {
    fn head(&mut self, head: &ResponseHead<'_>) {
        self.head.extend_from_slice(head.bytes);
    }

    fn body(&mut self, bytes: &[u8]) {
        let room = self.limit.saturating_sub(self.body.len());
        self.truncated |= bytes.len() > room;
        self.body.extend_from_slice(&bytes[..room.min(bytes.len())]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::response::Parser;

    /// Feeds in every possible split into two: the kept bytes must not depend on it.
    fn check(interim: &[u8], head: &[u8], framed: &[u8], body: &[u8]) {
        let bytes = [interim, head, framed].concat();
        for cut in 0..=bytes.len() {
            let (mut parser, mut kept) = (Parser::new(), Collect::new(10));
            for piece in [&bytes[..cut], &bytes[cut..]] {
                if !piece.is_empty() {
                    parser.feed(piece, false, &mut kept).unwrap();
                }
            }
            assert_eq!(
                (kept.head.as_slice(), kept.content()),
                (head, body),
                "cut at {cut}"
            );
        }
    }

    #[test]
    fn a_response_is_kept_without_its_framing() {
        check(
            b"HTTP/1.1 103 Hints\r\nLink: x\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nSet-Cookie: a=b\r\nTransfer-Encoding: chunked\r\n\r\n",
            b"3;x=y\r\nabc\r\n2\r\nde\r\n0\r\nT: v\r\n\r\n",
            b"abcde",
        );
        check(
            b"",
            b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n",
            b"hello",
            b"hello",
        );
        check(b"", b"HTTP/1.1 200 OK\r\n\r\n", b"until", b"until");
    }

    #[test]
    fn no_more_than_the_limit_is_kept() {
        let (mut parser, mut kept) = (Parser::new(), Collect::new(10));
        parser
            .feed(b"HTTP/1.1 200 OK\r\n\r\n0123456789", false, &mut kept)
            .unwrap();
        assert!(!kept.is_truncated());
        parser.feed(b"ab", false, &mut kept).unwrap();
        assert!(kept.is_truncated() && kept.content() == b"0123456789");
        kept.clear();
        assert!(!kept.is_truncated() && kept.content().is_empty() && kept.head.is_empty());
    }
}
