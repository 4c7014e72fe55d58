//! Request smuggling: messages that one server could read as one request and another as two.
//!
//! Each has a second request in a place that some readers take for a body or for the next head. A
//! safe server answers once, with a refusal, and closes (RFC 9112 section 11.2).

/// Framing fields that have two readings, each with the section of RFC 9112 that speaks of it.
const FRAMINGS: &[&str] = &[
    // Section 6.1: both fields.
    "Content-Length: 6\r\nTransfer-Encoding: chunked",
    "Transfer-Encoding: chunked\r\nContent-Length: 6",
    // Section 6.3: lengths that differ, repeat, or are no number.
    "Content-Length: 0\r\nContent-Length: 46",
    "Content-Length: 46\r\nContent-Length: 46",
    "Content-Length: 46, 46",
    "Content-Length: 0, 46",
    "Content-Length: +46",
    "Content-Length: -1",
    "Content-Length: 0x2e",
    "Content-Length: 4 6",
    "Content-Length: 46;a",
    "Content-Length: 46.0",
    "Content-Length:",
    "Content-Length: 18446744073709551662",
    "Content-Length : 46",
    "Content-Length\t: 46",
    "Content-Length: 46\x0b",
    "Content-Length: \x0b46",
    // Section 6.1: codings that only some readers take for chunked.
    "Transfer-Encoding: xchunked",
    "Transfer-Encoding: chunked, identity",
    "Transfer-Encoding: identity",
    "Transfer-Encoding: chunked chunked",
    "Transfer-Encoding: \"chunked\"",
    "Transfer-Encoding: chunked;a=b",
    "Transfer-Encoding: chunked\x0b",
    "Transfer-Encoding: \x0bchunked",
    "Transfer-Encoding: chunked\0",
    "Transfer-Encoding : chunked",
    "Transfer-Encoding\x0b: chunked",
    "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity",
    "Transfer-Encoding: chunked\r\nTransfer-encoding: x",
    // Section 5.2: folded lines; section 2.2: bare line ends.
    "A: b\r\n Transfer-Encoding: chunked",
    "Transfer-Encoding:\r\n chunked",
    "A: b\nTransfer-Encoding: chunked",
    "A: b\rTransfer-Encoding: chunked",
    "A: b\r\r\nTransfer-Encoding: chunked",
    "\u{1}: b",
    "A\r\nTransfer-Encoding: chunked",
    " Transfer-Encoding: chunked",
    // RFC 9110 section 7.2: whose request is it?
    "Host: b",
    "Host: a/b\r\nA: b",
];

/// Chunked bodies that have two readings (section 7.1).
const CHUNKS: &[&str] = &[
    "0x2\r\nab\r\n0\r\n\r\n",
    "+2\r\nab\r\n0\r\n\r\n",
    "-2\r\nab\r\n0\r\n\r\n",
    " 2\r\nab\r\n0\r\n\r\n",
    "2\nab\r\n0\r\n\r\n",
    "2\r\nab\n0\r\n\r\n",
    "2\rab\r\n0\r\n\r\n",
    "2\r\nabc\r\n0\r\n\r\n",
    "2\r\nab0\r\n\r\n",
    "2;\r\nab\r\n0\r\n\r\n",
    "2;a=\"\n\"\r\nab\r\n0\r\n\r\n",
    "2;a\nb\r\nab\r\n0\r\n\r\n",
    "10000000000000002\r\nab\r\n0\r\n\r\n",
    "00000000000000002\r\nab\r\n0\r\n\r\n",
    "ffffffffffffffff\r\nab\r\n0\r\n\r\n",
    "\r\nab\r\n0\r\n\r\n",
    "g\r\nab\r\n0\r\n\r\n",
    "2,2\r\nab\r\n0\r\n\r\n",
    "0\r\n: b\r\n\r\n",
    "0\r\nA: b\n\r\n",
    "0\r\n folded\r\n\r\n",
];

/// Bytes in front of the second request, in a head that only some readers accept.
const HEADS: &[&str] = &[
    "POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n",
    "POST / HTTP/1.1\nHost: a\nTransfer-Encoding: chunked\n\n",
    "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\n\r\n",
    "POST  / HTTP/1.1\r\nHost: a\r\n\r\n",
    "POST / HTTP/1.1 \r\nHost: a\r\n\r\n",
    "POST\t/ HTTP/1.1\r\nHost: a\r\n\r\n",
    "POST / a HTTP/1.1\r\nHost: a\r\n\r\n",
    "POST /\0 HTTP/1.1\r\nHost: a\r\n\r\n",
    "POST / HTTP/1.1\r\n Host: a\r\n\r\n",
    "POST / HTTP/1.1\r\n\r\n",
    "POST / HTTP/1.10\r\nHost: a\r\n\r\n",
    "POST / HTTP/ 1.1\r\nHost: a\r\n\r\n",
    "POST http://a@b/ HTTP/1.1\r\nHost: a\r\n\r\n",
];

/// Requests that must never be answered.
const SECOND: &str = "GET /smuggled HTTP/1.1\r\nHost: a\r\nA: b\r\n\r\n";

/// Every shape: messages to which the only right answer is one refusal.
#[must_use]
pub fn smuggling() -> Vec<Vec<u8>> {
    let framed = FRAMINGS
        .iter()
        .map(|framing| format!("POST / HTTP/1.1\r\nHost: a\r\n{framing}\r\n\r\n0\r\n\r\n{SECOND}"));
    let chunked = CHUNKS.iter().map(|chunks| {
        format!("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n{chunks}{SECOND}")
    });
    let headed = HEADS.iter().map(|head| format!("{head}{SECOND}"));
    framed
        .chain(chunked)
        .chain(headed)
        .map(String::into_bytes)
        .collect()
}
