//! A socket without waiting: what can be read or sent at once.
//!
//! A read that gives less than it could, or a write that takes less, says that the socket is empty or full, so that nothing
//! is tried before an event says otherwise: waiting for the next request costs no `recv` that could only say EAGAIN, and a
//! response that fits the socket's buffer costs exactly one call.

use std::io::IoSlice;

use rustix::io::Errno;
use rustix::net::sockopt::set_tcp_cork;
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags, recv, send, sendmsg};

use super::Connection;
use super::output::{FilePart, Output};
use crate::limits::FILE_CHUNK;

/// Slices on the stack: eight responses with large bodies. A longer pipeline of such pays for one allocation per write.
const FEW: usize = 16;
/// The kernel takes no more at once.
const IOV_MAX: usize = 1024;

/// What came of trying.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moved {
    /// So many bytes, at least one.
    Bytes(usize),
    /// None: the socket is empty, or full.
    Nothing,
    /// The peer has closed the connection, or it broke.
    End,
}

impl Connection {
    /// Reads what is there into `space`.
    pub(super) fn receive(&mut self, space: &mut [u8]) -> Moved {
        if !self.ready.read {
            return Moved::Nothing;
        }
        loop {
            let room = space.len();
            match recv(&self.socket, &mut *space, RecvFlags::empty()) {
                Ok((_, 0)) => return Moved::End,
                Ok((_, len)) => {
                    // After the last bytes comes the end, of which there is no further event.
                    self.ready.read = len == room || self.ready.ends;
                    return Moved::Bytes(len);
                }
                Err(Errno::AGAIN) => {
                    self.ready.read = false;
                    return Moved::Nothing;
                }
                Err(Errno::INTR) => {}
                Err(_) => return Moved::End,
            }
        }
    }

    /// Sends what is next in `output`. A head before a file waits in the kernel for the file's first bytes, so that both leave in
    /// one segment (`MSG_MORE`, send(2)).
    pub(super) fn transmit(&mut self, output: &Output) -> Moved {
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
    pub(super) fn transmit_pair(&mut self, head: &[u8], body: &[u8]) -> Moved {
        let slices = [IoSlice::new(head), IoSlice::new(body)];
        let count = if body.is_empty() { 1 } else { 2 };
        self.transmit_slices(&slices[..count], SendFlags::NOSIGNAL)
    }

    /// One `send`, or `sendmsg`; a file's `writev` would cost the kernel a tenth of a microsecond more.
    fn transmit_slices(&mut self, slices: &[IoSlice<'_>], flags: SendFlags) -> Moved {
        let whole: usize = slices.iter().map(|slice| slice.len()).sum();
        self.attempt(whole, |connection| match slices {
            [one] => send(&connection.socket, one, flags),
            many => {
                let mut none = SendAncillaryBuffer::default();
                sendmsg(&connection.socket, many, &mut none, flags)
            }
        })
    }

    /// What is sent from now on waits until it fills segments, or for [`Connection::uncork`] (`TCP_CORK`, tcp(7)). The kernel takes a file
    /// through a pipe of 64 KiB. What is left of such a round and fills no segment would leave by itself with the next acknowledgement,
    /// as `MSG_MORE` holds for one call only.
    pub(super) fn cork(&mut self) {
        self.is_corked = self.is_corked || set_tcp_cork(&self.socket, true).is_ok();
    }

    /// What is sent leaves at once again, and what waited.
    pub(super) fn uncork(&mut self) {
        if self.is_corked {
            self.is_corked = set_tcp_cork(&self.socket, false).is_err();
        }
    }

    /// One `sendfile` of bounded length. A file that ends early cannot be answered properly any more: the length was promised, so the
    /// connection is cut and the client sees that something is missing.
    pub(super) fn transmit_file(&mut self, part: &FilePart) -> Moved {
        let mut offset = part.offset;
        let len = usize::try_from(part.len)
            .unwrap_or(usize::MAX)
            .min(FILE_CHUNK);
        // Fewer bytes may also mean that the file's page was not whole: only EAGAIN says that the socket is full.
        self.attempt(0, |connection| {
            rustix::fs::sendfile(&connection.socket, &*part.file, Some(&mut offset), len)
        })
    }

    /// Tries until no signal is in the way; the socket is full if fewer than `whole` bytes are taken.
    fn attempt(
        &mut self,
        whole: usize,
        mut write: impl FnMut(&Self) -> rustix::io::Result<usize>,
    ) -> Moved {
        if !self.ready.write {
            return Moved::Nothing;
        }
        loop {
            match write(self) {
                Ok(0) => return Moved::End,
                Ok(len) => {
                    self.ready.write = len >= whole;
                    return Moved::Bytes(len);
                }
                Err(Errno::AGAIN) => {
                    self.ready.write = false;
                    return Moved::Nothing;
                }
                Err(Errno::INTR) => {}
                Err(_) => return Moved::End,
            }
        }
    }
}
