//! Reads the fields of a message, one after the other; what is cut short is `None`, never a panic.

/// Rest of a message. Numbers are in network order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    pub(crate) fn u8(&mut self) -> Option<u8> {
        self.array().map(u8::from_be_bytes)
    }

    pub(crate) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_be_bytes)
    }

    /// Bytes behind a length of four bytes; `Some(None)` for the length -1, which means NULL.
    pub(crate) fn sized(&mut self) -> Option<Option<&'a [u8]>> {
        match self.u32()? {
            u32::MAX => Some(None),
            length => self.take(usize::try_from(length).ok()?).map(Some),
        }
    }

    /// Bytes that end with a zero byte, without it.
    pub(crate) fn until_zero(&mut self) -> Option<&'a [u8]> {
        let end = self.0.iter().position(|byte| *byte == 0)?;
        let bytes = self.take(end)?;
        self.take(1)?;
        Some(bytes)
    }

    /// Text that ends with a zero byte.
    pub(crate) fn text(&mut self) -> Option<&'a str> {
        std::str::from_utf8(self.until_zero()?).ok()
    }
}
