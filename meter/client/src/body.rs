//! What the body of a good response must be. Bodies are checked while they arrive; a failure is
//! counted as `bad_body`.

use aws_lc_rs::digest;
use regex::bytes::Regex;

use crate::Error;
use crate::response::ResponseHead;
use crate::sink::{Collect, Sink};

/// Bytes of bodies that are kept for checks: of one connection, and of all together.
const LONGEST: usize = 16 << 20;
const TOGETHER: usize = 1 << 30;
/// Bytes that every connection may keep, for any number of connections.
const LEAST: usize = 64 << 10;
/// Length of a SHA-256 digest in bytes.
const DIGEST: usize = 32;

/// A condition on the body of a response, without the framing of the chunked coding.
#[derive(Clone, Debug)]
pub(crate) enum BodyCheck {
    /// The expression must match somewhere in the body.
    Matches(Regex),
    /// The body must have this SHA-256 digest.
    Sha256([u8; DIGEST]),
}

impl BodyCheck {
    /// A check by a regular expression.
    pub(crate) fn matches(expression: &str) -> Result<Self, Error> {
        Regex::new(expression).map(Self::Matches).map_err(|error| {
            Error::Plan(format!(
                "the body to expect is no regular expression: {error}"
            ))
        })
    }

    /// A check by a digest in hexadecimal.
    pub(crate) fn sha256(hex: &str) -> Result<Self, Error> {
        let wrong = || {
            Error::Plan(format!(
                "{hex:?} is no SHA-256 digest, which has 64 hexadecimal digits"
            ))
        };
        if hex.len() != 2 * DIGEST || !hex.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(wrong());
        }
        let mut expected = [0; DIGEST];
        for (byte, at) in expected.iter_mut().zip((0..).step_by(2)) {
            *byte = u8::from_str_radix(&hex[at..at + 2], 16).map_err(|_| wrong())?;
        }
        Ok(Self::Sha256(expected))
    }

    /// Checks a complete body; the error says why it fails.
    pub(crate) fn judge(&self, body: &[u8]) -> Result<(), &'static str> {
        match self {
            Self::Matches(expression) if expression.is_match(body) => Ok(()),
            Self::Matches(_) => Err(NO_MATCH),
            Self::Sha256(expected) => same(&digest::digest(&digest::SHA256, body), expected),
        }
    }

    fn needs_content(&self) -> bool {
        matches!(self, Self::Matches(_))
    }
}

/// Why a body fails.
const NO_MATCH: &str = "the body does not match the expression";
const TOO_LONG: &str = "the body is longer than what is kept of it for the expression";
const OTHER_DIGEST: &str = "the body has another SHA-256 digest";

fn same(found: &digest::Digest, expected: &[u8; DIGEST]) -> Result<(), &'static str> {
    if found.as_ref() == expected {
        Ok(())
    } else {
        Err(OTHER_DIGEST)
    }
}

/// Bytes of a body that each of `connections` may keep at most.
pub(crate) fn room(connections: usize) -> usize {
    (TOGETHER / connections.max(1)).clamp(LEAST, LONGEST)
}

/// Receives the body of one response after another and keeps what its checks need, as set by
/// [`begin`](Self::begin).
pub(crate) struct BodySink {
    /// Bytes that are kept at most.
    room: usize,
    kept: Option<Collect>,
    digest: Option<digest::Context>,
}

impl BodySink {
    /// Keeps at most `room` bytes of a body.
    pub(crate) fn new(room: usize) -> Self {
        Self {
            room,
            kept: None,
            digest: None,
        }
    }

    /// The next answer begins, and must pass `checks`.
    pub(crate) fn begin(&mut self, checks: &[BodyCheck]) {
        if checks.iter().any(BodyCheck::needs_content) {
            self.kept
                .get_or_insert_with(|| Collect::new(self.room))
                .clear();
        } else {
            self.kept = None;
        }
        let hashed = checks.iter().any(|check| !check.needs_content());
        self.digest = hashed.then(|| digest::Context::new(&digest::SHA256));
    }

    /// Checks the response that has ended; the error says why it fails.
    pub(crate) fn judge(&mut self, checks: &[BodyCheck]) -> Result<(), &'static str> {
        let digest = self.digest.take().map(digest::Context::finish);
        checks.iter().try_for_each(|check| match check {
            BodyCheck::Matches(expression) => match &self.kept {
                Some(kept) if kept.is_truncated() => Err(TOO_LONG),
                Some(kept) if expression.is_match(kept.content()) => Ok(()),
                _ => Err(NO_MATCH),
            },
            BodyCheck::Sha256(expected) => match &digest {
                Some(found) => same(found, expected),
                None => Err(OTHER_DIGEST),
            },
        })
    }
}

impl Sink for BodySink {
    fn head(&mut self, _head: &ResponseHead<'_>) {}

    fn body(&mut self, bytes: &[u8]) {
        if let Some(kept) = &mut self.kept {
            kept.body(bytes);
        }
        if let Some(digest) = &mut self.digest {
            digest.update(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The digest of "hello".
    const HELLO: &str = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";

    fn judge(checks: &[BodyCheck], pieces: &[&[u8]]) -> Result<(), &'static str> {
        let mut sink = BodySink::new(room(1));
        // The response before must not matter.
        for pieces in [&[&b"before"[..]][..], pieces] {
            sink.begin(checks);
            pieces.iter().for_each(|piece| sink.body(piece));
        }
        sink.judge(checks)
    }

    #[test]
    fn a_body_is_judged_as_a_whole() {
        let digest = BodyCheck::sha256(HELLO).unwrap();
        let both = [BodyCheck::matches("^h.l+o$").unwrap(), digest.clone()];
        assert!(judge(&both, &[b"hel", b"", b"lo"]).is_ok());
        assert!(judge(&both, &[b"hel"]).unwrap_err().contains("expression"));
        assert!(judge(&[digest], &[b"hell"]).unwrap_err().contains("SHA"));
        assert!(judge(&[], &[b"x"]).is_ok());
    }

    #[test]
    fn a_body_too_long_for_an_expression_says_so() {
        let checks = [BodyCheck::matches("x").unwrap()];
        let piece = vec![b'x'; 1024 * 1024];
        assert!(judge(&checks, &[&piece[..]; 16]).is_ok());
        let mut pieces = vec![&piece[..]; 16];
        pieces.push(b"x");
        assert!(judge(&checks, &pieces).unwrap_err().contains("longer"));
    }

    #[test]
    fn many_connections_keep_less_of_each_body() {
        assert_eq!((room(1), room(64)), (LONGEST, LONGEST));
        assert_eq!(room(1 << 10) * (1 << 10), TOGETHER);
        assert_eq!(room(1_000_000), LEAST);
    }

    #[test]
    fn an_invalid_check_is_refused() {
        assert!(BodyCheck::matches("(").is_err());
        let cut = &HELLO[1..];
        for hex in ["", "xyz", cut, &format!("{cut}g"), &format!("{cut}é")] {
            assert!(BodyCheck::sha256(hex).is_err(), "{hex}");
        }
    }
}
