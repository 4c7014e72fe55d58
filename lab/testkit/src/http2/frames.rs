//! A client of HTTP/2 that sends any frame (RFC 9113 section 4.1).

use std::io::{self, ErrorKind, Read, Write};

/// DATA.
pub const DATA: u8 = 0;
/// HEADERS.
pub const HEADERS: u8 = 1;
/// RST_STREAM.
pub const RESET: u8 = 3;
/// SETTINGS.
pub const SETTINGS: u8 = 4;
/// PING.
pub const PING: u8 = 6;
/// GOAWAY.
pub const GO_AWAY: u8 = 7;
/// WINDOW_UPDATE.
pub const WINDOW: u8 = 8;
/// CONTINUATION.
pub const CONTINUATION: u8 = 9;
/// The flag END_STREAM; on SETTINGS and PING it is ACK.
pub const END_STREAM: u8 = 1;
/// The flag END_HEADERS.
pub const END_HEADERS: u8 = 4;

/// A connection, encrypted or not.
pub trait ReadWrite: Read + Write + Send {}

impl<T: Read + Write + Send> ReadWrite for T {}

/// A frame of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The type.
    pub kind: u8,
    /// The flags.
    pub flags: u8,
    /// The stream; 0 is the connection.
    pub stream: u32,
    /// The payload.
    pub payload: Vec<u8>,
}

impl Frame {
    /// The error code of RST_STREAM or GOAWAY.
    #[must_use]
    pub fn error(&self) -> Option<u32> {
        let code = match self.kind {
            RESET => self.payload.get(..4)?,
            GO_AWAY => self.payload.get(4..8)?,
            _ => return None,
        };
        Some(u32::from_be_bytes(code.try_into().ok()?))
    }
}

/// Frames over one connection, in the order in which they are written.
pub struct Frames {
    stream: Box<dyn ReadWrite>,
    received: Vec<u8>,
}

impl std::fmt::Debug for Frames {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Frames").finish_non_exhaustive()
    }
}

impl Frames {
    /// Begins a connection with these settings, as name and value (RFC 9113 section 6.5.2).
    ///
    /// # Errors
    /// The connection fails.
    pub fn open(stream: impl ReadWrite + 'static, settings: &[(u16, u32)]) -> io::Result<Self> {
        let mut frames = Self {
            stream: Box::new(stream),
            received: Vec::new(),
        };
        let mut payload = Vec::new();
        for (name, value) in settings {
            payload.extend_from_slice(&name.to_be_bytes());
            payload.extend_from_slice(&value.to_be_bytes());
        }
        let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
        bytes.extend(frame(SETTINGS, 0, 0, &payload));
        frames.write(&bytes)?;
        Ok(frames)
    }

    /// Sends bytes that are no frame.
    ///
    /// # Errors
    /// The connection fails.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)?;
        self.stream.flush()
    }

    /// Sends a frame.
    ///
    /// # Errors
    /// The connection fails.
    pub fn send(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) -> io::Result<()> {
        let bytes = frame(kind, flags, stream, payload);
        self.write(&bytes)
    }

    /// A GET request.
    ///
    /// # Errors
    /// The connection fails.
    pub fn get(&mut self, stream: u32, path: &str) -> io::Result<()> {
        let flags = END_STREAM | END_HEADERS;
        self.send(HEADERS, flags, stream, &head("GET", path))
    }

    /// The next frame; none at the end of the connection, however it comes.
    ///
    /// # Errors
    /// Nothing arrives in time.
    pub fn receive(&mut self) -> io::Result<Option<Frame>> {
        loop {
            if let Some(frame) = self.take() {
                return Ok(Some(frame));
            }
            let mut piece = [0; 16 << 10];
            match self.stream.read(&mut piece) {
                Ok(0) => return Ok(None),
                Ok(len) => self.received.extend_from_slice(&piece[..len]),
                Err(error) if is_patience(&error) => return Err(error),
                Err(_) => return Ok(None),
            }
        }
    }

    fn take(&mut self) -> Option<Frame> {
        let head = *self.received.first_chunk::<9>()?;
        let len = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        let payload = self.received.get(9..9 + len)?.to_vec();
        self.received.drain(..9 + len);
        let stream = [head[5] & 0x7f, head[6], head[7], head[8]];
        Some(Frame {
            kind: head[3],
            flags: head[4],
            stream: u32::from_be_bytes(stream),
            payload,
        })
    }

    /// The status and the body of the response on a stream. The windows are opened again, and other
    /// streams are not looked at.
    ///
    /// # Errors
    /// The stream or the connection ends before its response does.
    pub fn response(&mut self, stream: u32) -> io::Result<(u16, Vec<u8>)> {
        let (mut status, mut body) = (0, Vec::new());
        loop {
            let frame = self
                .receive()?
                .ok_or_else(|| io::Error::other("the connection has ended"))?;
            match frame.kind {
                GO_AWAY | RESET if frame.kind == GO_AWAY || frame.stream == stream => {
                    return Err(io::Error::other(format!("error {:?}", frame.error())));
                }
                SETTINGS if frame.flags & END_STREAM == 0 => {
                    self.send(SETTINGS, END_STREAM, 0, &[])?;
                }
                HEADERS if frame.stream == stream => status = status_of(&frame.payload),
                DATA if frame.stream == stream => {
                    let len = u32::try_from(frame.payload.len()).unwrap_or_default();
                    body.extend_from_slice(&frame.payload);
                    if len > 0 {
                        self.send(WINDOW, 0, 0, &len.to_be_bytes())?;
                        if frame.flags & END_STREAM == 0 {
                            self.send(WINDOW, 0, stream, &len.to_be_bytes())?;
                        }
                    }
                }
                _ => continue,
            }
            if matches!(frame.kind, HEADERS | DATA)
                && frame.stream == stream
                && frame.flags & END_STREAM != 0
            {
                return Ok((status, body));
            }
        }
    }
}

/// True if reading has waited as long as it may.
#[must_use]
pub fn is_patience(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

/// The bytes of a frame.
#[must_use]
pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let len = u32::try_from(payload.len())
        .unwrap_or(u32::MAX)
        .to_be_bytes();
    let mut bytes = vec![len[1], len[2], len[3], kind, flags];
    bytes.extend_from_slice(&stream.to_be_bytes());
    bytes.extend_from_slice(payload);
    bytes
}

/// The header block of a request for `https`, all fields literal and not indexed (RFC 7541 section
/// 6.2.2).
#[must_use]
pub fn head(method: &str, path: &str) -> Vec<u8> {
    head_of("https", method, path)
}

/// Returns the header block of a request with a scheme.
#[must_use]
pub fn head_of(scheme: &str, method: &str, path: &str) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in [
        (":method", method),
        (":scheme", scheme),
        (":path", path),
        (":authority", "localhost"),
    ] {
        field(&mut block, name.as_bytes(), value.as_bytes());
    }
    block
}

/// Appends a field.
pub fn field(block: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    block.push(0);
    for part in [name, value] {
        length(block, part.len());
        block.extend_from_slice(part);
    }
}

/// An integer with a prefix of seven bits (RFC 7541 section 5.1).
pub fn length(block: &mut Vec<u8>, len: usize) {
    if len < 127 {
        block.push(len.to_le_bytes()[0]);
        return;
    }
    block.push(127);
    let mut rest = len - 127;
    while rest >= 128 {
        block.push(rest.to_le_bytes()[0] | 128);
        rest /= 128;
    }
    block.push(rest.to_le_bytes()[0]);
}

/// A number in the code of RFC 7541 appendix B, where 0 to 2 have five bits and 3 to 9 six.
fn huffman_digits(bytes: &[u8]) -> u16 {
    let bits: Vec<u16> = bytes
        .iter()
        .flat_map(|byte| (0..8).rev().map(move |at| u16::from(byte >> at & 1)))
        .collect();
    let number = |bits: &[u16]| bits.iter().fold(0, |number, bit| number * 2 + bit);
    let mut rest = &bits[..];
    let mut status = 0;
    while let Some((five, after)) = rest.split_at_checked(5) {
        let digit = match number(five) {
            digit @ 0..=2 => {
                rest = after;
                digit
            }
            _ => {
                let Some((six, after)) = rest.split_at_checked(6) else {
                    break;
                };
                rest = after;
                match number(six).checked_sub(0x19) {
                    Some(digit @ 0..=6) => digit + 3,
                    // The ones at the end.
                    _ => break,
                }
            }
        };
        status = status * 10 + digit;
    }
    status
}

/// The status of a response, which is an entry of the static table, or its literal value.
#[must_use]
pub fn status_of(block: &[u8]) -> u16 {
    const INDEXED: [u16; 7] = [200, 204, 206, 304, 400, 404, 500];
    // A change of the table's size may come first.
    let block = match block.first() {
        Some(first) if first & 0xe0 == 0x20 => &block[1..],
        _ => block,
    };
    match block {
        [first, ..] if first & 0x80 != 0 => {
            let at = usize::from(first & 0x7f).wrapping_sub(8);
            INDEXED.get(at).copied().unwrap_or_default()
        }
        [_, length, digits @ ..] if length & 0x80 != 0 => {
            let digits = digits.get(..usize::from(length & 0x7f));
            digits.map_or(0, huffman_digits)
        }
        [_, 3, digits @ ..] => {
            let digits = digits
                .get(..3)
                .and_then(|text| std::str::from_utf8(text).ok());
            digits
                .and_then(|text| text.parse().ok())
                .unwrap_or_default()
        }
        _ => 0,
    }
}
