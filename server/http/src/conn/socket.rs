//! A socket without waiting: reads and sends that complete at once.
//!
//! A read that gives less than it could, or a write that takes less, shows that the socket is empty
//! or full. Then no call is tried before the next event: waiting for the next request costs no
//! `recv` that could only return EAGAIN, and a response that fits the socket's buffer costs exactly
//! one call.

use std::io::IoSlice;

use rustix::io::Errno;
use rustix::net::sockopt::set_tcp_cork;
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags, recv, send, sendmsg};

use super::Connection;
use super::allowance::LEAST_BATCH;
use super::output::{FilePart, Output};
use crate::event::SocketEnd;
use crate::limits::FILE_CHUNK;

/// Slices on the stack: eight responses with large bodies. A longer pipeline of large bodies costs
/// one allocation per write.
const FEW: usize = 16;
/// The kernel accepts no more slices at once.
const IOV_MAX: usize = 1024;

/// The result of one call on a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IoOutcome {
    /// The number of bytes, at least one.
    Bytes(usize),
    /// The socket is empty, or full.
    WouldBlock,
    /// The peer has closed the connection, or the connection broke.
    Closed,
}

impl Connection {
    /// Reads the bytes that have arrived into `space`.
    #[inline]
    pub(super) fn receive(&mut self, space: &mut [u8]) -> IoOutcome {
        if !self.ready.read {
            return IoOutcome::WouldBlock;
        }
        if self.tls.is_some() {
            return self.receive_secure(space);
        }
        self.receive_plain(space)
    }

    /// As [`Self::receive`], bytes as they are on the socket, if it has some.
    pub(super) fn receive_raw(&mut self, space: &mut [u8]) -> IoOutcome {
        match self.ready.read {
            true => self.receive_plain(space),
            false => IoOutcome::WouldBlock,
        }
    }

    /// Receives bytes as they are on the socket, if it has some or not.
    #[inline]
    pub(super) fn receive_plain(&mut self, space: &mut [u8]) -> IoOutcome {
        self.receive_with_flags(space, RecvFlags::empty())
    }

    /// Looks at bytes as they are on the socket, which keeps them.
    pub(super) fn peek(&mut self, space: &mut [u8]) -> IoOutcome {
        self.receive_with_flags(space, RecvFlags::PEEK)
    }

    #[inline]
    fn receive_with_flags(&mut self, space: &mut [u8], flags: RecvFlags) -> IoOutcome {
        loop {
            let room = space.len();
            match recv(&self.socket, &mut *space, flags) {
                Ok((_, 0)) => return IoOutcome::Closed,
                Ok((_, len)) => {
                    // The end follows the last bytes and has no further event.
                    self.ready.read = len == room || self.ready.ends > SocketEnd::Open;
                    return IoOutcome::Bytes(len);
                }
                Err(Errno::AGAIN) => {
                    self.ready.read = false;
                    return IoOutcome::WouldBlock;
                }
                Err(Errno::INTR) => {}
                Err(_) => return IoOutcome::Closed,
            }
        }
    }

    /// Sends the next bytes of `output`. A head before a file waits in the kernel for the file's
    /// first bytes, so that both leave in one segment (`MSG_MORE`, send(2)).
    pub(super) fn transmit(&mut self, output: &Output) -> IoOutcome {
        let mut flags = SendFlags::NOSIGNAL;
        flags.set(SendFlags::MORE, output.ends_with_file());
        if output.slice_count() <= FEW {
            let mut slices = [IoSlice::new(&[]); FEW];
            let count = output.slices(&mut slices);
            self.transmit_slices(&slices[..count], flags)
        } else {
            let mut slices = vec![IoSlice::new(&[]); output.slice_count().min(IOV_MAX)];
            let count = output.slices(&mut slices);
            self.transmit_slices(&slices[..count], flags)
        }
    }

    /// Sends a head and a body, which may be empty, in one call.
    pub(super) fn transmit_pair(&mut self, head: &[u8], body: &[u8]) -> IoOutcome {
        let slices = [IoSlice::new(head), IoSlice::new(body)];
        let count = if body.is_empty() { 1 } else { 2 };
        self.transmit_slices(&slices[..count], SendFlags::NOSIGNAL)
    }

    /// Sends bytes in one call.
    pub(super) fn transmit_bytes(&mut self, bytes: &[u8]) -> IoOutcome {
        self.transmit_slices(&[IoSlice::new(bytes)], SendFlags::NOSIGNAL)
    }

    /// One `send`, or `sendmsg`; `writev` would cost the kernel a tenth of a microsecond more.
    fn transmit_slices(&mut self, slices: &[IoSlice<'_>], flags: SendFlags) -> IoOutcome {
        if self.tls.is_some() {
            return self.transmit_secure(slices);
        }
        let whole: usize = slices.iter().map(|slice| slice.len()).sum();
        self.attempt(whole, |connection| match slices {
            [one] => send(&connection.socket, one, flags),
            many => {
                let mut none = SendAncillaryBuffer::default();
                sendmsg(&connection.socket, many, &mut none, flags)
            }
        })
    }

    /// Holds further bytes back until they fill segments, or until [`Connection::uncork`]
    /// (`TCP_CORK`, tcp(7)). The kernel moves a file through a pipe of 64 KiB. The rest of such a
    /// round that fills no segment would leave by itself with the next acknowledgement, as
    /// `MSG_MORE` holds for one call only.
    pub(super) fn cork(&mut self) {
        // Records of TLS fill their segments as well as the socket's buffer has room.
        if self.tls.is_some() {
            return;
        }
        self.is_corked = self.is_corked || set_tcp_cork(&self.socket, true).is_ok();
    }

    /// Ends [`Connection::cork`]: the bytes that were held back leave at once.
    pub(super) fn uncork(&mut self) {
        if self.is_corked {
            self.is_corked = set_tcp_cork(&self.socket, false).is_err();
        }
    }

    /// Bytes of a file that are sent at once: not much more than the client may have.
    fn most_of_file(&self) -> usize {
        let left = usize::try_from(self.bytes_left).unwrap_or(0);
        FILE_CHUNK.min(left.max(LEAST_BATCH))
    }

    /// One `sendfile` of bounded length. If a file ends early, the promised length is wrong: the
    /// connection is cut, and the client sees that bytes are missing.
    pub(super) fn transmit_file(&mut self, part: &FilePart) -> IoOutcome {
        if self.tls.is_some() {
            return self.transmit_file_secure(part);
        }
        let mut offset = part.offset;
        let len = usize::try_from(part.len)
            .unwrap_or(usize::MAX)
            .min(self.most_of_file());
        // Fewer bytes may also mean that the file's page was not whole: only EAGAIN shows that the
        // socket is full.
        self.attempt(0, |connection| {
            rustix::fs::sendfile(&connection.socket, &*part.file, Some(&mut offset), len)
        })
    }

    /// Tries again after a signal; the socket is full if it takes fewer than `whole` bytes.
    pub(super) fn attempt(
        &mut self,
        whole: usize,
        mut write: impl FnMut(&Self) -> rustix::io::Result<usize>,
    ) -> IoOutcome {
        if !self.ready.write {
            return IoOutcome::WouldBlock;
        }
        loop {
            match write(self) {
                Ok(0) => return IoOutcome::Closed,
                Ok(len) => {
                    self.ready.write = len >= whole;
                    return IoOutcome::Bytes(len);
                }
                Err(Errno::AGAIN) => {
                    self.ready.write = false;
                    return IoOutcome::WouldBlock;
                }
                Err(Errno::INTR) => {}
                Err(_) => return IoOutcome::Closed,
            }
        }
    }
}
