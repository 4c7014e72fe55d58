//! Responses (RFC 9112) as a state machine: it is fed with bytes of the socket and finds where a
//! response ends.
//!
//! It has no socket and no clock, and holds at most `HEAD` bytes: a head that arrived in pieces. A
//! response that can be read in two ways is refused, because a client that guesses would measure
//! something else than it reports.

use crate::chunked::Chunked;
use crate::sink::Sink;

/// Longest response head.
const HEAD: usize = 64 * 1024;
/// Most fields in a head.
const FIELDS: usize = 128;
/// Most interim (1xx) responses before the real one.
const INTERIM: u8 = 16;

/// Why a response is malformed, in a few words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed(pub &'static str);

/// A complete response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompleteResponse {
    /// The status code.
    pub status: u16,
    /// True if the connection may carry another one.
    pub reusable: bool,
    /// Bytes of head and body as they came over the connection.
    pub bytes: u64,
}

/// One connection's reader of responses.
#[derive(Debug)]
pub struct Parser {
    state: ParserState,
    /// The beginning of a head whose end has not arrived.
    carry: Vec<u8>,
    /// Length of `carry` at which parsing is tried although no empty line was seen. So garbage is
    /// noticed early, and a head that arrives byte by byte is not parsed at every byte.
    retry: usize,
    interim: u8,
    answer: CompleteResponse,
}

#[derive(Debug)]
enum ParserState {
    ResponseHead,
    Length(u64),
    Chunked(Chunked),
    UntilClose,
}

/// The head of a response, as a [`Sink`] sees it.
pub struct ResponseHead<'a> {
    /// From the status line to the empty line.
    pub bytes: &'a [u8],
}

/// Description of the rest of the response, by its complete head.
struct HeadOutcome {
    length: usize,
    status: u16,
    reusable: bool,
    body: Body,
}

enum Body {
    Length(u64),
    Chunked,
    UntilClose,
}

impl Default for Parser {
    fn default() -> Self {
        Self::new()
    }
}

impl Parser {
    /// A parser before its first byte.
    pub fn new() -> Self {
        Self {
            state: ParserState::ResponseHead,
            carry: Vec::new(),
            retry: 0,
            interim: 0,
            answer: FRESH,
        }
    }

    /// Takes bytes up to the end of one response. Returns how many were taken, and the response if
    /// it is complete. Without a response all bytes were taken. `head` says that the request was a
    /// HEAD; `sink` receives the content.
    pub fn feed<S: Sink>(
        &mut self,
        bytes: &[u8],
        head: bool,
        sink: &mut S,
    ) -> Result<(usize, Option<CompleteResponse>), Malformed> {
        let mut at = 0;
        loop {
            let rest = &bytes[at..];
            let (used, complete) = match &mut self.state {
                ParserState::ResponseHead => match self.head(rest, head, sink)? {
                    Some((used, complete)) => (used, complete),
                    None => (rest.len(), false),
                },
                ParserState::Length(left) => {
                    let used = (*left).min(rest.len() as u64);
                    *left -= used;
                    sink.body(&rest[..used as usize]);
                    (used as usize, *left == 0)
                }
                ParserState::Chunked(chunked) => chunked.feed(rest, sink)?,
                ParserState::UntilClose => {
                    sink.body(rest);
                    (rest.len(), false)
                }
            };
            at += used;
            self.answer.bytes += used as u64;
            if complete {
                return Ok((at, Some(self.finish())));
            }
            if at == bytes.len() {
                return Ok((at, None));
            }
        }
    }

    /// The connection was closed cleanly: completes a body that ends with the connection.
    pub fn closed(&mut self) -> Option<CompleteResponse> {
        self.ends_with_connection().then(|| self.finish())
    }

    /// True if a body has begun that ends with the connection.
    pub(crate) fn ends_with_connection(&self) -> bool {
        matches!(self.state, ParserState::UntilClose)
    }

    /// True if no byte of the next response has arrived.
    pub(crate) fn is_at_start(&self) -> bool {
        self.answer.bytes == 0
    }

    fn finish(&mut self) -> CompleteResponse {
        self.state = ParserState::ResponseHead;
        self.interim = 0;
        std::mem::replace(&mut self.answer, FRESH)
    }

    /// Reads a head: how many of these bytes belong to it, and whether the response ends with it.
    fn head<S: Sink>(
        &mut self,
        bytes: &[u8],
        request_is_head: bool,
        sink: &mut S,
    ) -> Result<Option<(usize, bool)>, Malformed> {
        let carried = self.carry.len();
        let parsed = if carried == 0 {
            parse(bytes, request_is_head)?
        } else {
            // Only bytes up to the limit are read, and kept only until the head is complete.
            let room = HEAD.saturating_sub(carried).min(bytes.len());
            self.carry.extend_from_slice(&bytes[..room]);
            let from = carried.saturating_sub(3);
            if ends(&self.carry[from..]) || self.carry.len() >= self.retry {
                self.retry = self.carry.len() * 2;
                parse(&self.carry, request_is_head)?
            } else {
                None
            }
        };
        let Some(head) = parsed else {
            if carried == 0 {
                if bytes.len() < HEAD {
                    self.carry.extend_from_slice(bytes);
                    self.retry = bytes.len() * 2;
                    return Ok(None);
                }
            } else if self.carry.len() < HEAD {
                return Ok(None);
            }
            return Err(Malformed("a head of more than 64 KiB"));
        };
        if head.status >= 200 {
            let whole = if carried == 0 { bytes } else { &self.carry };
            sink.head(&ResponseHead {
                bytes: &whole[..head.length],
            });
        }
        self.carry = Vec::new();
        let used = head.length.saturating_sub(carried);
        Ok(Some((used, self.begin(&head)?)))
    }

    /// Starts the body; true if there is none.
    fn begin(&mut self, head: &HeadOutcome) -> Result<bool, Malformed> {
        if head.status < 200 {
            self.interim += 1;
            if head.status == 101 || self.interim > INTERIM {
                return Err(Malformed("interim responses that were not asked for"));
            }
            return Ok(false);
        }
        self.answer.status = head.status;
        self.answer.reusable = head.reusable;
        self.state = match head.body {
            Body::Length(0) => return Ok(true),
            Body::Length(length) => ParserState::Length(length),
            Body::Chunked => ParserState::Chunked(Chunked::new()),
            Body::UntilClose => ParserState::UntilClose,
        };
        Ok(false)
    }
}

const FRESH: CompleteResponse = CompleteResponse {
    status: 0,
    reusable: false,
    bytes: 0,
};

/// True if there is an empty line in these bytes.
fn ends(bytes: &[u8]) -> bool {
    bytes.windows(2).any(|pair| pair == b"\n\n") || bytes.windows(3).any(|three| three == b"\n\r\n")
}

/// Parses a head and decides where the body ends (RFC 9112, section 6.3); `None` while the head is
/// incomplete.
fn parse(bytes: &[u8], request_is_head: bool) -> Result<Option<HeadOutcome>, Malformed> {
    let mut fields = [httparse::EMPTY_HEADER; FIELDS];
    let mut response = httparse::Response::new(&mut fields);
    // RFC 9112 section 5.2: a user agent reads a field over several lines as one of one line.
    let mut parser = httparse::ParserConfig::default();
    parser.allow_obsolete_multiline_headers_in_responses(true);
    let length = match parser.parse_response(&mut response, bytes) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(httparse::Error::TooManyHeaders) => return Err(Malformed("more than 128 fields")),
        Err(_) => return Err(Malformed("something that is no HTTP/1 response")),
    };
    let (status, version) = (response.code.unwrap_or(0), response.version.unwrap_or(0));
    if !(100..600).contains(&status) {
        return Err(Malformed("a status outside 100 to 599"));
    }
    let mut framing = Framing {
        persistent: version == 1,
        ..Framing::default()
    };
    for field in response.headers.iter() {
        framing.note(field.name, field.value)?;
    }
    let body = framing.body(status, request_is_head)?;
    let reusable = framing.persistent && !framing.close && !matches!(body, Body::UntilClose);
    Ok(Some(HeadOutcome {
        length,
        status,
        reusable,
        body,
    }))
}

/// The fields that decide where a response ends.
#[derive(Default)]
struct Framing {
    length: Option<u64>,
    chunked: bool,
    persistent: bool,
    close: bool,
}

impl Framing {
    fn note(&mut self, name: &str, value: &[u8]) -> Result<(), Malformed> {
        // The length alone distinguishes most fields.
        match name.len() {
            10 if name.eq_ignore_ascii_case("connection") => {
                for option in value.split(|&byte| byte == b',').map(<[u8]>::trim_ascii) {
                    self.close |= option.eq_ignore_ascii_case(b"close");
                    self.persistent |= option.eq_ignore_ascii_case(b"keep-alive");
                }
            }
            14 if name.eq_ignore_ascii_case("content-length") => {
                let length =
                    decimal(value).ok_or(Malformed("a Content-Length that is no number"))?;
                if self
                    .length
                    .replace(length)
                    .is_some_and(|earlier| earlier != length)
                {
                    return Err(Malformed("two different Content-Lengths"));
                }
            }
            17 if name.eq_ignore_ascii_case("transfer-encoding") => {
                if self.chunked || !value.trim_ascii().eq_ignore_ascii_case(b"chunked") {
                    return Err(Malformed("a Transfer-Encoding other than chunked"));
                }
                self.chunked = true;
            }
            _ => {}
        }
        Ok(())
    }

    fn body(&self, status: u16, request_is_head: bool) -> Result<Body, Malformed> {
        if self.chunked && self.length.is_some() {
            return Err(Malformed("both Content-Length and Transfer-Encoding"));
        }
        Ok(
            if request_is_head || status < 200 || status == 204 || status == 304 {
                Body::Length(0)
            } else if self.chunked {
                Body::Chunked
            } else {
                self.length.map_or(Body::UntilClose, Body::Length)
            },
        )
    }
}

fn decimal(value: &[u8]) -> Option<u64> {
    let value = value.trim_ascii();
    let digits = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(value)
        .ok()
        .filter(|_| digits)?
        .parse()
        .ok()
}

#[cfg(test)]
#[path = "response_tests.rs"]
mod tests;
