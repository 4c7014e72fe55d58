//! The chunked transfer coding (RFC 9112, section 7.1) as a state machine. It checks the framing
//! and keeps no content.

use crate::response::Malformed;
use crate::sink::Sink;

/// Bytes allowed in one chunk's extensions, and in all trailer fields together.
const EXTRA: u32 = 16 * 1024;

/// Part of a chunked body to which the next byte belongs.
#[derive(Debug)]
pub(crate) struct Chunked {
    state: ChunkState,
    /// Bytes of extensions or trailers so far.
    extra: u32,
}

#[derive(Clone, Copy, Debug)]
enum ChunkState {
    Size { size: u64, digits: u8 },
    Extension { size: u64 },
    SizeLf { size: u64 },
    Data { left: u64 },
    DataCr,
    DataLf,
    TrailerStart,
    Trailer,
    TrailerLf,
    LastLf,
    Done,
}

impl Chunked {
    pub(crate) fn new() -> Self {
        Self {
            state: ChunkState::Size { size: 0, digits: 0 },
            extra: 0,
        }
    }

    /// Consumes bytes up to the end of the body. Returns the number consumed, and whether the body
    /// ended. `sink` receives the content of the chunks.
    pub(crate) fn feed<S: Sink>(
        &mut self,
        bytes: &[u8],
        sink: &mut S,
    ) -> Result<(usize, bool), Malformed> {
        let mut at = 0;
        while at < bytes.len() {
            if let ChunkState::Data { left } = self.state {
                // Only this state takes more than one byte: it holds the content.
                let taken = left.min((bytes.len() - at) as u64);
                sink.body(&bytes[at..at + taken as usize]);
                at += taken as usize;
                self.state = if taken == left {
                    ChunkState::DataCr
                } else {
                    ChunkState::Data { left: left - taken }
                };
                continue;
            }
            self.state = self.framing(bytes[at])?;
            at += 1;
            if let ChunkState::Done = self.state {
                return Ok((at, true));
            }
        }
        Ok((at, false))
    }

    fn framing(&mut self, byte: u8) -> Result<ChunkState, Malformed> {
        Ok(match (self.state, byte) {
            (ChunkState::Size { size, digits }, _) if byte.is_ascii_hexdigit() => {
                if digits == 15 {
                    return Err(Malformed("a chunk size of more than 15 digits"));
                }
                let digit = char::from(byte).to_digit(16).unwrap_or_default();
                ChunkState::Size {
                    size: size << 4 | u64::from(digit),
                    digits: digits + 1,
                }
            }
            (ChunkState::Size { digits: 0, .. }, _) => {
                return Err(Malformed("a chunk size that is not hexadecimal"));
            }
            (ChunkState::Size { size, .. } | ChunkState::Extension { size }, b'\r') => {
                ChunkState::SizeLf { size }
            }
            (ChunkState::Size { size, .. }, b';' | b' ' | b'\t') => ChunkState::Extension { size },
            (ChunkState::Size { .. }, _) => {
                return Err(Malformed("a chunk size that is not hexadecimal"));
            }
            (ChunkState::Extension { .. }, b'\n') => {
                return Err(Malformed("a bare line feed in a chunk's extension"));
            }
            (ChunkState::Extension { size }, _) => {
                self.count()?;
                ChunkState::Extension { size }
            }
            (ChunkState::SizeLf { size: 0 }, b'\n') => ChunkState::TrailerStart,
            (ChunkState::SizeLf { size }, b'\n') => ChunkState::Data { left: size },
            (ChunkState::DataCr, b'\r') => ChunkState::DataLf,
            (ChunkState::DataLf, b'\n') => {
                self.extra = 0;
                ChunkState::Size { size: 0, digits: 0 }
            }
            (ChunkState::TrailerStart, b'\r') => ChunkState::LastLf,
            (ChunkState::LastLf, b'\n') => ChunkState::Done,
            (ChunkState::Trailer, b'\r') => ChunkState::TrailerLf,
            (ChunkState::TrailerLf, b'\n') => ChunkState::TrailerStart,
            (ChunkState::TrailerStart | ChunkState::Trailer, _) if byte != b'\n' => {
                self.count()?;
                ChunkState::Trailer
            }
            _ => return Err(Malformed("a chunk that does not end where its size says")),
        })
    }

    fn count(&mut self) -> Result<(), Malformed> {
        self.extra += 1;
        if self.extra > EXTRA {
            Err(Malformed("chunk extensions or trailers without end"))
        } else {
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sink::Discard;

    /// Feeds in every possible split into two, and byte by byte: the result must not depend on it.
    fn check(body: &[u8], expected: Option<usize>) {
        for cut in 0..=body.len() {
            let mut chunked = Chunked::new();
            let end = match chunked.feed(&body[..cut], &mut Discard) {
                Ok((used, true)) => Some(used),
                Ok((_, false)) => match chunked.feed(&body[cut..], &mut Discard) {
                    Ok((used, true)) => Some(cut + used),
                    _ => None,
                },
                Err(_) => None,
            };
            assert_eq!(
                end,
                expected,
                "{:?} cut at {cut}",
                String::from_utf8_lossy(body)
            );
        }
    }

    #[test]
    fn bodies_end_where_they_should() {
        check(b"0\r\n\r\n", Some(5));
        check(b"5\r\nhello\r\n0\r\n\r\nHTTP/1.1", Some(15));
        check(b"a;x=\"y\"\r\n0123456789\r\n00\r\nT: v\r\n\r\n", Some(33));
        check(b"5 \r\nhello\r\n0\r\n\r\n", Some(16));
    }

    #[test]
    fn bad_framing_is_refused() {
        for body in [
            &b"\r\n"[..],
            b"x\r\n",
            b"5\nhello",
            b"5\r\nhelloo\r\n",
            b"5\r\nhello\n0",
            b"-1\r\n",
            b"5;a\nb",
            b"0\r\n\n",
            b"10000000000000000\r\n",
            b"0\r\nT: v\n\r\n",
        ] {
            check(body, None);
        }
    }

    #[test]
    fn extensions_and_trailers_are_bounded() {
        let mut chunked = Chunked::new();
        assert!(chunked.feed(b"1;", &mut Discard).is_ok());
        assert!(chunked.feed(&vec![b'x'; 100_000], &mut Discard).is_err());
        let mut chunked = Chunked::new();
        assert!(chunked.feed(b"0\r\n", &mut Discard).is_ok());
        let mut trailers = Vec::new();
        (0..10_000).for_each(|_| trailers.extend_from_slice(b"A: b\r\n"));
        assert!(chunked.feed(&trailers, &mut Discard).is_err());
    }
}
