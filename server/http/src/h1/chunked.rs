//! The chunked transfer coding (RFC 9112 section 7.1), read strictly; extensions and trailers are
//! discarded.

use bytes::BytesMut;
use memchr::memchr;

use super::Refusal;
use crate::limits::{CHUNK_EXTENSIONS, CHUNK_LINE, TRAILERS};
use crate::syntax::{is_field_value, is_token};

const BAD_SIZE: Refusal = Refusal::Malformed("a chunk size is malformed");
const BAD_EXTENSION: Refusal = Refusal::Malformed("a chunk extension is malformed");
const BAD_END: Refusal = Refusal::Malformed("a chunk does not end with CRLF");
const BAD_TRAILER: Refusal = Refusal::Malformed("a trailer line is malformed");

/// Part of the body in which the next byte is.
#[derive(Clone, Copy, Debug)]
enum ChunkState {
    Size,
    Data(usize),
    DataEnd,
    Trailers,
    Done,
}

/// Turns chunks into bytes. Lines are taken only when complete, so a partial one stays with the
/// caller.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chunked {
    state: ChunkState,
    extensions: usize,
    trailers: usize,
}

impl Chunked {
    pub(super) const fn new() -> Self {
        Self {
            state: ChunkState::Size,
            extensions: 0,
            trailers: 0,
        }
    }

    pub(super) const fn is_done(&self) -> bool {
        matches!(self.state, ChunkState::Done)
    }

    /// Appends what `input` holds of the body to `body` and says how many bytes of `input` are used
    /// up. Unless done, the rest of `input` is the beginning of a line and must be given again with
    /// more.
    pub(super) fn decode(
        &mut self,
        input: &[u8],
        body: &mut BytesMut,
        limit: usize,
    ) -> Result<usize, Refusal> {
        let mut at = 0;
        loop {
            let rest = &input[at..];
            match self.state {
                ChunkState::Size => {
                    let Some(line) = line(rest, CHUNK_LINE, BAD_SIZE)? else {
                        return Ok(at);
                    };
                    at += line.len() + 2;
                    self.state = self.size(line, body.len(), limit)?;
                }
                ChunkState::Data(0) => self.state = ChunkState::DataEnd,
                ChunkState::Data(left) => {
                    if rest.is_empty() {
                        return Ok(at);
                    }
                    let taken = left.min(rest.len());
                    body.extend_from_slice(&rest[..taken]);
                    at += taken;
                    self.state = ChunkState::Data(left - taken);
                }
                ChunkState::DataEnd => match rest {
                    [b'\r', b'\n', ..] => {
                        at += 2;
                        self.state = ChunkState::Size;
                    }
                    [] | [b'\r'] => return Ok(at),
                    _ => return Err(BAD_END),
                },
                ChunkState::Trailers => {
                    let Some(line) = line(rest, TRAILERS - self.trailers, Refusal::HeadTooLarge)?
                    else {
                        return Ok(at);
                    };
                    at += line.len() + 2;
                    self.trailers += line.len() + 2;
                    if line.is_empty() {
                        self.state = ChunkState::Done;
                    } else {
                        check_trailer(line)?;
                    }
                }
                ChunkState::Done => return Ok(at),
            }
        }
    }

    /// `chunk-size [ chunk-ext ]`. The size is judged against the limit before a byte of the chunk
    /// is taken.
    fn size(&mut self, line: &[u8], have: usize, limit: usize) -> Result<ChunkState, Refusal> {
        let digits = line
            .iter()
            .position(|b| !b.is_ascii_hexdigit())
            .unwrap_or(line.len());
        // Sixteen digits fill 64 bits; more could only be zeros or an overflow.
        if digits == 0 || digits > 16 {
            return Err(BAD_SIZE);
        }
        let size = line[..digits]
            .iter()
            .fold(0_u64, |sum, &b| sum << 4 | u64::from(hex(b)));
        let extensions = &line[digits..];
        check_extensions(extensions)?;
        self.extensions += extensions.len();
        if self.extensions > CHUNK_EXTENSIONS {
            return Err(Refusal::Malformed("too many chunk extensions"));
        }
        match usize::try_from(size) {
            Ok(0) => Ok(ChunkState::Trailers),
            Ok(size) if size <= limit.saturating_sub(have) => Ok(ChunkState::Data(size)),
            _ => Err(Refusal::BodyTooLarge),
        }
    }
}

/// The line at the beginning of `input` without its CRLF; none while it is incomplete, `long` when
/// it is over `limit`.
fn line(input: &[u8], limit: usize, long: Refusal) -> Result<Option<&[u8]>, Refusal> {
    match memchr(b'\n', input) {
        Some(end) if end + 1 > limit => Err(long),
        Some(end) => input[..end]
            .strip_suffix(b"\r")
            .map(Some)
            .ok_or(Refusal::Malformed("a line ends with a bare LF")),
        None if input.len() > limit => Err(long),
        None => Ok(None),
    }
}

fn hex(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        _ => (digit | 0x20) - b'a' + 10,
    }
}

/// `*( BWS ";" BWS name [ BWS "=" BWS ( token / quoted-string ) ] )` (section 7.1.1).
fn check_extensions(mut rest: &[u8]) -> Result<(), Refusal> {
    while !rest.is_empty() {
        rest = skip_space(rest).strip_prefix(b";").ok_or(BAD_EXTENSION)?;
        rest = take_token(skip_space(rest))?;
        if let Some(value) = skip_space(rest).strip_prefix(b"=") {
            let value = skip_space(value);
            rest = match value.strip_prefix(b"\"") {
                Some(quoted) => take_quoted(quoted)?,
                None => take_token(value)?,
            };
        }
    }
    Ok(())
}

fn skip_space(bytes: &[u8]) -> &[u8] {
    let space = bytes
        .iter()
        .take_while(|&&b| b == b' ' || b == b'\t')
        .count();
    &bytes[space..]
}

fn take_token(bytes: &[u8]) -> Result<&[u8], Refusal> {
    let len = bytes.iter().take_while(|&&b| is_token(b)).count();
    if len == 0 {
        Err(BAD_EXTENSION)
    } else {
        Ok(&bytes[len..])
    }
}

/// The rest after a quoted-string whose opening quote is already taken (RFC 9110 section 5.6.4).
fn take_quoted(bytes: &[u8]) -> Result<&[u8], Refusal> {
    let mut at = 0;
    loop {
        match bytes.get(at) {
            Some(b'"') => return Ok(&bytes[at + 1..]),
            Some(b'\\') if bytes.get(at + 1).is_some_and(|&b| is_field_value(b)) => at += 2,
            Some(&b) if b != b'\\' && is_field_value(b) => at += 1,
            _ => return Err(BAD_EXTENSION),
        }
    }
}

fn check_trailer(line: &[u8]) -> Result<(), Refusal> {
    let colon = memchr(b':', line).ok_or(BAD_TRAILER)?;
    let (name, value) = (&line[..colon], &line[colon + 1..]);
    let good = !name.is_empty()
        && name.iter().copied().all(is_token)
        && value.iter().copied().all(is_field_value);
    if good { Ok(()) } else { Err(BAD_TRAILER) }
}
