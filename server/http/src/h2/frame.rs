//! Frames: heads, kinds, flags and error codes (RFC 9113 sections 4, 6 and 7).

/// Bytes of a frame head (section 4.1).
pub(crate) const FRAME_HEAD: usize = 9;
/// The longest payload that a peer may send without our consent, which we never give, and that we
/// may send without its consent (section 4.2).
pub(crate) const DEFAULT_FRAME: u32 = 1 << 14;
/// Bytes that a client sends first (section 3.4).
pub(crate) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// The highest stream number, and the largest window.
pub(crate) const MAX_31_BITS: u32 = (1 << 31) - 1;

/// The last frame of a stream's half: on DATA and HEADERS.
pub(crate) const END_STREAM: u8 = 0x1;
/// On SETTINGS and PING.
pub(crate) const ACK: u8 = 0x1;
/// The last frame of a header block: on HEADERS and CONTINUATION.
pub(crate) const END_HEADERS: u8 = 0x4;
/// On DATA and HEADERS.
pub(crate) const PADDED: u8 = 0x8;
/// On HEADERS: five bytes of deprecated priority come first.
pub(crate) const WITH_PRIORITY: u8 = 0x20;

/// Kind of a frame (section 6; RFC 9218 section 7.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FrameKind {
    Data,
    Headers,
    Priority,
    RstStream,
    Settings,
    PushPromise,
    Ping,
    GoAway,
    WindowUpdate,
    Continuation,
    PriorityUpdate,
    /// Any other kind. It must be ignored (section 5.5).
    Unknown,
}

impl FrameKind {
    const fn of(byte: u8) -> Self {
        match byte {
            0x0 => Self::Data,
            0x1 => Self::Headers,
            0x2 => Self::Priority,
            0x3 => Self::RstStream,
            0x4 => Self::Settings,
            0x5 => Self::PushPromise,
            0x6 => Self::Ping,
            0x7 => Self::GoAway,
            0x8 => Self::WindowUpdate,
            0x9 => Self::Continuation,
            0x10 => Self::PriorityUpdate,
            _ => Self::Unknown,
        }
    }

    const fn byte(self) -> u8 {
        match self {
            Self::Data => 0x0,
            Self::Headers => 0x1,
            Self::Priority => 0x2,
            Self::RstStream => 0x3,
            Self::Settings => 0x4,
            Self::PushPromise => 0x5,
            Self::Ping => 0x6,
            Self::GoAway => 0x7,
            Self::WindowUpdate => 0x8,
            Self::Continuation => 0x9,
            Self::PriorityUpdate => 0x10,
            Self::Unknown => 0xff,
        }
    }
}

/// Why a stream or a connection ends (section 7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum ErrorCode {
    NoError = 0x0,
    ProtocolError = 0x1,
    InternalError = 0x2,
    FlowControlError = 0x3,
    StreamClosed = 0x5,
    FrameSizeError = 0x6,
    RefusedStream = 0x7,
    Cancel = 0x8,
    CompressionError = 0x9,
    EnhanceYourCalm = 0xb,
}

/// The head of a frame. The reserved bit is ignored, and sent as zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FrameHead {
    /// Bytes of the payload.
    pub(crate) len: u32,
    pub(crate) kind: FrameKind,
    pub(crate) flags: u8,
    /// Zero for the connection itself.
    pub(crate) stream: u32,
}

impl FrameHead {
    pub(crate) const fn parse(bytes: &[u8; FRAME_HEAD]) -> Self {
        let [a, b, c, kind, flags, s, t, u, v] = *bytes;
        Self {
            len: u32::from_be_bytes([0, a, b, c]),
            kind: FrameKind::of(kind),
            flags,
            stream: u32::from_be_bytes([s, t, u, v]) & MAX_31_BITS,
        }
    }

    pub(crate) const fn to_bytes(self) -> [u8; FRAME_HEAD] {
        let [_, a, b, c] = self.len.to_be_bytes();
        let [s, t, u, v] = (self.stream & MAX_31_BITS).to_be_bytes();
        [a, b, c, self.kind.byte(), self.flags, s, t, u, v]
    }

    pub(crate) const fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// Appends a frame. The payload must fit into a frame of the default length, or be of a length
/// that the peer allows.
pub(crate) fn push_frame(
    out: &mut Vec<u8>,
    kind: FrameKind,
    flags: u8,
    stream: u32,
    payload: &[u8],
) {
    // Lengths are bounded by SETTINGS_MAX_FRAME_SIZE, which has 24 bits.
    let len = u32::try_from(payload.len()).unwrap_or_default();
    let head = FrameHead {
        len,
        kind,
        flags,
        stream,
    };
    out.extend_from_slice(&head.to_bytes());
    out.extend_from_slice(payload);
}

/// Appends RST_STREAM (section 6.4).
pub(crate) fn push_reset(out: &mut Vec<u8>, stream: u32, error: ErrorCode) {
    let payload = (error as u32).to_be_bytes();
    push_frame(out, FrameKind::RstStream, 0, stream, &payload);
}

/// Appends WINDOW_UPDATE (section 6.9). The increment is not zero.
pub(crate) fn push_window_update(out: &mut Vec<u8>, stream: u32, increment: u32) {
    let payload = increment.to_be_bytes();
    push_frame(out, FrameKind::WindowUpdate, 0, stream, &payload);
}

/// Appends GOAWAY without debug data (section 6.8).
pub(crate) fn push_go_away(out: &mut Vec<u8>, last_stream: u32, error: ErrorCode) {
    let mut payload = [0; 8];
    payload[..4].copy_from_slice(&last_stream.to_be_bytes());
    payload[4..].copy_from_slice(&(error as u32).to_be_bytes());
    push_frame(out, FrameKind::GoAway, 0, 0, &payload);
}

/// The number in the first four bytes of `payload`, without the reserved bit.
pub(crate) fn number_31(payload: &[u8]) -> Option<u32> {
    Some(u32::from_be_bytes(*payload.first_chunk()?) & MAX_31_BITS)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 9113 section 4.1.
    #[test]
    fn a_frame_head_is_read_as_it_was_written() {
        for kind in 0..=0x11 {
            let kind = FrameKind::of(kind);
            let head = FrameHead {
                len: 0x01_02_03,
                kind,
                flags: 0x25,
                stream: 0x7fff_fffe,
            };
            assert_eq!(FrameHead::parse(&head.to_bytes()), head);
        }
        let reserved = [0, 0, 1, 0, 0, 0xff, 0xff, 0xff, 0xff];
        assert_eq!(FrameHead::parse(&reserved).stream, MAX_31_BITS);
        assert!(FrameHead::parse(&reserved).to_bytes()[5] < 0x80);
    }
}
