//! Receive times from the kernel: its timestamp of a packet (SO_TIMESTAMPNS, socket(7)).
//!
//! A server knows only when it has read a request. That is later if its thread was kept from
//! reading, because the core was asleep or the hypervisor had taken it. The kernel stamps a packet
//! when it receives the packet, independent of the server. Over loopback that happens on the
//! sender's core, within its send.

use std::io::IoSliceMut;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg, setsockopt, sockopt};
use nix::sys::time::TimeSpec;
use rustix::io::Errno;

use base_clock::Nanos;

/// Has what comes to `listener`'s connections stamped, which inherit it.
///
/// # Errors
/// The kernel refuses.
pub(super) fn enable(listener: &impl AsFd) -> std::io::Result<()> {
    Ok(setsockopt(listener, sockopt::ReceiveTimestampns, &true)?)
}

/// Reads with the kernel's stamps.
pub(super) struct Stamped {
    /// Buffer for the control message with the timestamp.
    beside: Vec<u8>,
}

impl Stamped {
    pub(super) fn new() -> Self {
        Self {
            beside: nix::cmsg_space!(TimeSpec),
        }
    }

    /// Reads from `socket`. Returns the number of bytes, and when the kernel received the last of
    /// them, on the monotonic clock. The kernel begins to stamp some moments after it was asked.
    ///
    /// # Errors
    /// Those of `recvmsg`.
    pub(super) fn receive(
        &mut self,
        socket: &OwnedFd,
        buffer: &mut [u8],
    ) -> Result<(usize, Option<Nanos>), Errno> {
        let mut buffers = [IoSliceMut::new(buffer)];
        let beside = Some(&mut self.beside[..]);
        let message = recvmsg::<()>(socket.as_raw_fd(), &mut buffers, beside, MsgFlags::empty())
            .map_err(|errno| Errno::from_raw_os_error(errno as i32))?;
        let mut said = message.cmsgs().into_iter().flatten();
        let stamp = said.find_map(|said| match said {
            ControlMessageOwned::ScmTimestampns(stamp) => Some(stamp),
            _ => None,
        });
        Ok((message.bytes, stamp.and_then(moment)))
    }
}

/// The moment of the monotonic clock at which the wall clock showed `stamp`.
fn moment(stamp: TimeSpec) -> Option<Nanos> {
    let seconds = u64::try_from(stamp.tv_sec()).ok()?;
    base_clock::monotonic_at(seconds * base_clock::SECOND + stamp.tv_nsec() as u64)
}
