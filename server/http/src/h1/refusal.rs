//! Why a request is not given to the service: one status and one sentence each.

use bytes::Bytes;

/// A request that the protocol layer answers itself: the connection makes the response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// 400: not HTTP, or HTTP that two readers could read in two ways.
    Malformed(&'static str),
    /// 408: the head or the body took too long.
    TooSlow,
    /// 408: unfinished heads take all the memory there is for them.
    TooManyHeads,
    /// 413: the body is over the limit.
    BodyTooLarge,
    /// 414: the target is over the limit.
    TargetTooLong,
    /// 415: the body has a content coding.
    ContentCoding,
    /// 417: an expectation other than 100-continue.
    Expectation,
    /// 421: an `https` URL over a connection without TLS, or an `http` URL over one with TLS.
    Misdirected,
    /// 429: the client has made too many requests, or writes, of late.
    TooManyRequests,
    /// 431: the head or the trailer section is over the limit, or has too many fields.
    HeadTooLarge,
    /// 501: something the protocol has and this server has not.
    NotImplemented(&'static str),
    /// 503: the bodies that are being received or wait for their answers take all the memory, or
    /// all the disk, there is for them.
    TooManyBodies,
    /// 505: a major version other than 1.
    Version,
}

impl Refusal {
    /// The status of the answer.
    pub(crate) const fn status(self) -> u16 {
        match self {
            Self::Malformed(_) => 400,
            Self::TooSlow | Self::TooManyHeads => 408,
            Self::BodyTooLarge => 413,
            Self::TargetTooLong => 414,
            Self::ContentCoding => 415,
            Self::Expectation => 417,
            Self::Misdirected => 421,
            Self::TooManyRequests => 429,
            Self::HeadTooLarge => 431,
            Self::NotImplemented(_) => 501,
            Self::TooManyBodies => 503,
            Self::Version => 505,
        }
    }

    /// Returns the field lines that say what the client may do about it.
    pub(crate) const fn fields(self) -> Bytes {
        match self {
            // A client that has made too many has another one within a second.
            Self::TooManyBodies | Self::TooManyHeads | Self::TooManyRequests => {
                Bytes::from_static(b"Retry-After: 1\r\n")
            }
            // RFC 9110 section 12.5.3.
            Self::ContentCoding => Bytes::from_static(b"Accept-Encoding: identity\r\n"),
            _ => Bytes::new(),
        }
    }

    /// Returns the fault in words, for the reader of the response.
    pub(crate) const fn reason(self) -> &'static str {
        match self {
            Self::Malformed(reason) | Self::NotImplemented(reason) => reason,
            Self::TooSlow => "the request took too long to arrive",
            Self::TooManyHeads => "too many unfinished requests at once; please try again",
            Self::BodyTooLarge => "the request body is larger than this server accepts",
            Self::TargetTooLong => "the request target is longer than this server accepts",
            Self::ContentCoding => "a request body must not have a content coding",
            Self::Expectation => "the only expectation this server knows is 100-continue",
            Self::Misdirected => {
                "an https URL needs a connection with TLS, and an http URL one without"
            }
            Self::TooManyRequests => "too many requests from your address; please try again",
            Self::HeadTooLarge => "the request head is larger than this server accepts",
            Self::TooManyBodies => "too many request bodies at once; please try again",
            Self::Version => "this server speaks HTTP/1.1",
        }
    }
}
