//! What hostile clients send.

use crate::http::shapes::smuggling;
use crate::{
    Choices,
    http::{mutate, words},
};

/// Requests as they should be; what is hostile is made from them.
const GOOD: &[&str] = &[
    "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET /mills HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip, br;q=0.9, *;q=0\r\nAccept: text/html\r\n\r\n",
    "HEAD /mill?id=2 HTTP/1.1\r\nHost: a:8080\r\nUser-Agent: x\r\n\r\n",
    "GET /small.txt HTTP/1.1\r\nHost: a\r\nIf-None-Match: \"a\", W/\"b\"\r\nIf-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT\r\n\r\n",
    "GET /text.txt HTTP/1.1\r\nHost: a\r\nRange: bytes=0-9\r\nIf-Range: \"a\"\r\n\r\n",
    "GET /text.txt HTTP/1.1\r\nHost: a\r\nRange: bytes=0-1,3-4,-5\r\n\r\n",
    "POST /mills HTTP/1.1\r\nHost: a\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 7\r\n\r\na=1&b=2",
    "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTrailer: B\r\n\r\n3;x=y\r\na=1\r\n0\r\nB: c\r\n\r\n",
    "PUT /small.txt HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\nabc",
    "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET http://a/%2e%2e/%2e/small.txt?x=%00 HTTP/1.1\r\nHost: b\r\n\r\n",
    "GET /../../etc/passwd HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
];

/// A good request that a server answers with 200.
pub(crate) const PLAIN: &str = "GET /small.txt HTTP/1.1\r\nHost: a\r\n\r\n";
/// A request for much.
pub(crate) const LARGE: &str = "GET /big.bin HTTP/1.1\r\nHost: a\r\n\r\n";

/// Everything that messages are made from, put together once.
pub(crate) struct Messages {
    good: Vec<Vec<u8>>,
    shapes: Vec<Vec<u8>>,
}

impl Messages {
    pub(crate) fn new() -> Self {
        Self {
            good: GOOD.iter().map(|text| text.as_bytes().to_vec()).collect(),
            shapes: smuggling(),
        }
    }

    /// Good requests after a few edits.
    pub(crate) fn mutated(&self, choices: &mut Choices<'_>) -> Vec<u8> {
        mutate(choices, &self.good, &words::HTTP)
    }

    pub(crate) fn smuggled(&self, choices: &mut Choices<'_>) -> Vec<u8> {
        choices.pick(&self.shapes).cloned().unwrap_or_default()
    }

    /// A good request, as the start of something.
    pub(crate) fn good(&self, choices: &mut Choices<'_>) -> Vec<u8> {
        choices.pick(&self.good).cloned().unwrap_or_default()
    }

    /// A good request that ends too early.
    pub(crate) fn truncated(&self, choices: &mut Choices<'_>) -> Vec<u8> {
        let mut message = self.good(choices);
        message.truncate(1 + choices.below(message.len().saturating_sub(1)));
        message
    }
}

/// Makes bytes that are no HTTP at all, sometimes the beginning of another protocol.
pub(crate) fn noise(choices: &mut Choices<'_>) -> Vec<u8> {
    const BEGINNINGS: [&[u8]; 6] = [
        b"",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"SSH-2.0-x\r\n",
        b"\x05\x01\x00",
        b"*1\r\n$4\r\nPING\r\n",
    ];
    let mut message = choices
        .pick(&BEGINNINGS)
        .copied()
        .unwrap_or_default()
        .to_vec();
    message.push(choices.byte());
    message.extend(choices.bytes(400));
    message
}

/// A message over a limit: a method, a target, a line, fields, a head, a body, chunk extensions,
/// trailers.
pub(crate) fn oversized(choices: &mut Choices<'_>) -> Vec<u8> {
    let chunked = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    let text = match choices.below(9) {
        0 => format!("{} / HTTP/1.1\r\nHost: a\r\n\r\n", "M".repeat(100)),
        1 => format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "t".repeat(9000)),
        2 => format!("GET /?{}", "q".repeat(20_000)),
        3 => format!(
            "GET / HTTP/1.1\r\nHost: a\r\nA: {}\r\n\r\n",
            "v".repeat(70_000)
        ),
        4 => format!(
            "GET / HTTP/1.1\r\nHost: a\r\n{}\r\n",
            "A: b\r\n".repeat(500)
        ),
        5 => "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999\r\n\r\nabc".to_owned(),
        6 => format!("{chunked}2000000\r\nabc"),
        7 => format!(
            "{chunked}{}",
            format!("1;{}\r\na\r\n", "x".repeat(900)).repeat(40)
        ),
        _ => format!("{chunked}0\r\n{}", "A: b\r\n".repeat(3000)),
    };
    text.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::{Messages, noise, oversized};
    use crate::Choices;

    #[test]
    fn every_kind_gives_bytes() {
        let messages = Messages::new();
        let mut choices = Choices::seeded(1);
        for _ in 0..500 {
            assert!(!messages.smuggled(&mut choices).is_empty());
            assert!(!messages.truncated(&mut choices).is_empty());
            assert!(!noise(&mut choices).is_empty());
            assert!(!oversized(&mut choices).is_empty());
        }
    }
}
