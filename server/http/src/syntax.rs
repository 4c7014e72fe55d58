//! Where the parts of a head are, and which bytes tokens and field values may have.

/// A piece of a head: offsets relative to its first byte, so that the head can be moved in its
/// buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) start: u32,
    pub(crate) len: u32,
}

impl Span {
    /// Heads are bounded by a limit far below 4 GiB (`head::scan` enforces it), so the casts lose
    /// nothing.
    #[allow(clippy::cast_possible_truncation)]
    pub(crate) const fn new(start: usize, len: usize) -> Self {
        Self {
            start: start as u32,
            len: len as u32,
        }
    }

    /// The bytes of this span in a head; empty if it lies outside.
    pub(crate) fn of(self, head: &[u8]) -> &[u8] {
        let start = self.start as usize;
        head.get(start..start + self.len as usize)
            .unwrap_or_default()
    }
}

/// One field line: where its name and its trimmed value are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FieldSpan {
    pub(crate) name: Span,
    pub(crate) value: Span,
}

/// True if `byte` may be in a token (RFC 9110 section 5.6.2).
#[inline]
pub(crate) const fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(
            byte,
            b'!' | b'#'
                | b'$'
                | b'%'
                | b'&'
                | b'\''
                | b'*'
                | b'+'
                | b'-'
                | b'.'
                | b'^'
                | b'_'
                | b'`'
                | b'|'
                | b'~'
        )
}

/// True if `byte` may be in a field value (RFC 9110 section 5.5): no control byte but the tab.
pub(crate) const fn is_field_value(byte: u8) -> bool {
    byte == b'\t' || (byte >= b' ' && byte != 0x7f)
}
