//! How long a request body is (RFC 9112 section 6). Every doubt here is a way to smuggle a request.

use super::Refusal;
use crate::request::Version;

/// Form of the body behind the head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    /// This many bytes; 0 without any framing field (section 6.3, item 7).
    Length(u64),
    /// Chunks (section 7.1).
    Chunked,
}

/// The framing fields of one head, gathered while its fields are walked.
#[derive(Debug, Default)]
pub(super) struct FramingFields<'a> {
    content_length: Option<&'a [u8]>,
    transfer_encoding: Option<&'a [u8]>,
    repeated: bool,
}

impl<'a> FramingFields<'a> {
    pub(super) fn content_length(&mut self, value: &'a [u8]) {
        self.repeated |= self.content_length.replace(value).is_some();
    }

    pub(super) fn transfer_encoding(&mut self, value: &'a [u8]) {
        self.repeated |= self.transfer_encoding.replace(value).is_some();
    }

    /// Decides, or refuses what has two readings.
    #[inline]
    pub(super) fn decide(&self, version: Version) -> Result<Framing, Refusal> {
        if self.repeated {
            // Section 6.3, item 5: equal lengths may be merged; no honest client sends them.
            return Err(Refusal::Malformed("a framing field is repeated"));
        }
        match (self.content_length, self.transfer_encoding) {
            (None, None) => Ok(Framing::Length(0)),
            // Section 6.1: a sender must not send both; an intermediary might read the
            // other.
            (Some(_), Some(_)) => Err(Refusal::Malformed(
                "Content-Length and Transfer-Encoding together",
            )),
            // Section 6.1: HTTP/1.0 has no transfer codings, so its framing is faulty.
            (None, Some(_)) if version == Version::Http10 => {
                Err(Refusal::Malformed("Transfer-Encoding in HTTP/1.0"))
            }
            (None, Some(coding)) if coding.eq_ignore_ascii_case(b"chunked") => Ok(Framing::Chunked),
            (None, Some(codings)) => Err(not_only_chunked(codings)),
            (Some(length), None) => parse_length(length).map(Framing::Length),
        }
    }
}

/// Returns the fault of a Transfer-Encoding that is not exactly `chunked`.
///
/// An empty list element, which RFC 9110 section 5.6.1.2 would have a recipient pass over, is
/// refused too: an intermediary that does not ignore it sees no chunks, so the request
/// has two readings.
fn not_only_chunked(codings: &[u8]) -> Refusal {
    let is_chunked = |coding: &[u8]| coding.eq_ignore_ascii_case(b"chunked");
    let mut codings = codings.split(|&b| b == b',').map(<[u8]>::trim_ascii);
    // Section 6.3, item 4: without chunked at its end the end of the body is unknown.
    if !codings.next_back().is_some_and(is_chunked) {
        return Refusal::Malformed("the last transfer coding is not chunked");
    }
    // Section 6.1: a body is put into chunks once.
    if codings.any(|coding| coding.is_empty() || is_chunked(coding)) {
        return Refusal::Malformed("Transfer-Encoding is not a list of different codings");
    }
    // Section 6.1: 501 for a coding that is not understood.
    Refusal::NotImplemented("the only transfer coding this server knows is chunked")
}

/// `1*DIGIT` (RFC 9110 section 8.6): no sign, no list, no overflow.
fn parse_length(value: &[u8]) -> Result<u64, Refusal> {
    const BAD: Refusal = Refusal::Malformed("Content-Length is not a number");
    if value.is_empty() {
        return Err(BAD);
    }
    value.iter().try_fold(0_u64, |sum, &byte| {
        let digit = byte
            .is_ascii_digit()
            .then(|| u64::from(byte - b'0'))
            .ok_or(BAD)?;
        sum.checked_mul(10)
            .and_then(|sum| sum.checked_add(digit))
            .ok_or(BAD)
    })
}
