//! Where messages begin and end: one byte of kind, four of length, and the body.

use crate::value::MAX_RESULT;

/// The longest message that is taken: a row that is longer is too large for a result anyway.
pub(super) const LONGEST: usize = MAX_RESULT;
/// Kind and length.
pub(super) const HEAD: usize = 5;

/// A length that no message has, or none that is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WrongLength {
    pub(super) tag: u8,
    pub(super) length: usize,
}

/// The kind of the first message, and how many bytes it has in all; `None` if its head is not there
/// yet.
pub(super) fn head(input: &[u8]) -> Result<Option<(u8, usize)>, WrongLength> {
    let Some(&[tag, a, b, c, d]) = input.first_chunk::<HEAD>() else {
        return Ok(None);
    };
    let length = u32::from_be_bytes([a, b, c, d]) as usize;
    if (4..=LONGEST).contains(&length) {
        Ok(Some((tag, length + 1)))
    } else {
        Err(WrongLength { tag, length })
    }
}

/// Follows messages that go by in pieces, without keeping them.
#[derive(Debug, Default)]
struct Passing {
    head: [u8; HEAD],
    /// Bytes of the head that were seen.
    seen: usize,
    /// Bytes of the body that were not.
    left: usize,
}

impl Passing {
    /// The first message of a client has no kind.
    fn untagged() -> Self {
        Self {
            seen: 1,
            ..Self::default()
        }
    }

    /// Takes what goes by, and tells the kind of each message that has passed.
    fn pass(&mut self, mut bytes: &[u8], mut passed: impl FnMut(u8)) {
        while let Some((first, rest)) = bytes.split_first() {
            if self.left > 0 {
                let body = self.left.min(bytes.len());
                bytes = &bytes[body..];
                self.left -= body;
            } else {
                self.head[self.seen] = *first;
                self.seen += 1;
                bytes = rest;
                if self.seen < HEAD {
                    continue;
                }
                let [_, a, b, c, d] = self.head;
                self.left = (u32::from_be_bytes([a, b, c, d]) as usize).saturating_sub(4);
            }
            if self.left == 0 {
                self.seen = 0;
                passed(self.head[0]);
            }
        }
    }

    fn is_between(&self) -> bool {
        self.seen == 0
    }
}

/// Count that tells if the driver has all its answers, from what it sends and receives.
#[derive(Debug)]
pub(super) struct Exchanges {
    sent: Passing,
    received: Passing,
    /// Answers that have not ended yet.
    open: usize,
}

impl Exchanges {
    /// Of a connection before the login.
    pub(super) fn new() -> Self {
        Self {
            sent: Passing::untagged(),
            received: Passing::default(),
            // Logging in ends as an answer does.
            open: 1,
        }
    }

    /// The driver sends this.
    pub(super) fn send(&mut self, bytes: &[u8]) {
        let open = &mut self.open;
        self.sent.pass(bytes, |tag| {
            // A Sync, a query of the simple protocol, a call of a function: each ends with the
            // server being ready.
            if matches!(tag, b'S' | b'Q' | b'F') {
                *open += 1;
            }
        });
    }

    /// The driver gets this.
    pub(super) fn receive(&mut self, bytes: &[u8]) {
        let open = &mut self.open;
        self.received.pass(bytes, |tag| {
            if tag == b'Z' {
                *open = open.saturating_sub(1);
            }
        });
    }

    /// True if the driver waits for nothing, and neither side is in the middle of a message.
    pub(super) fn are_over(&self) -> bool {
        self.open == 0 && self.sent.is_between() && self.received.is_between()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STARTUP: &[u8] = b"\0\0\0\x09\0\x03\0\0\0";
    const READY: &[u8] = b"Z\0\0\0\x05I";
    const SYNC: &[u8] = b"S\0\0\0\x04";

    #[test]
    fn a_head_says_how_long_a_message_is() {
        assert_eq!(head(b"Z\0\0\0"), Ok(None));
        assert_eq!(head(READY), Ok(Some((b'Z', 6))));
        let wrong = |tag, length| Err(WrongLength { tag, length });
        assert_eq!(head(b"Z\0\0\0\x03"), wrong(b'Z', 3));
        assert_eq!(head(b"D\x7f\xff\xff\xff"), wrong(b'D', 0x7fff_ffff));
    }

    #[test]
    fn exchanges_are_over_when_each_is_answered_however_they_are_cut() {
        let sent = [STARTUP, b"P\0\0\0\x06aS", SYNC, b"Q\0\0\0\x05\0"].concat();
        let received = [b"R\0\0\0\x08\0\0\0\0", READY, b"1\0\0\0\x04", READY, READY].concat();
        for cut in 0..received.len() {
            let mut exchanges = Exchanges::new();
            for byte in &sent {
                assert!(!exchanges.are_over());
                exchanges.send(&[*byte]);
            }
            exchanges.receive(&received[..cut]);
            assert!(!exchanges.are_over(), "{cut}");
            exchanges.receive(&received[cut..]);
            assert!(exchanges.are_over(), "{cut}");
        }
    }

    #[test]
    fn half_a_message_is_no_pause() {
        let mut exchanges = Exchanges::new();
        exchanges.send(STARTUP);
        exchanges.receive(READY);
        assert!(exchanges.are_over());
        exchanges.receive(b"N\0\0\0");
        assert!(!exchanges.are_over());
        exchanges.receive(b"\x05\0");
        assert!(exchanges.are_over());
        exchanges.send(&SYNC[..4]);
        assert!(!exchanges.are_over());
    }
}
