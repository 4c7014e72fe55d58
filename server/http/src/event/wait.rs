//! epoll_wait(2) itself. `rustix` makes it epoll_pwait2, which kernels before 5.11 do not have, nor
//! sandboxes and tools that stand in for one.

#![allow(unsafe_code)]

use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::io::Errno;

/// An event as the kernel writes it.
pub(super) type EpollEvent = libc::epoll_event;

/// None.
pub(super) const NOTHING: EpollEvent = EpollEvent { events: 0, u64: 0 };

/// Looks for what is ready in the set, and with `sleeps` waits until something is. Returns the
/// number of `events` that were written.
///
/// # Errors
/// Those of epoll_wait(2).
pub(super) fn wait(
    epoll: BorrowedFd<'_>,
    events: &mut [EpollEvent],
    sleeps: bool,
) -> Result<usize, Errno> {
    let millis = if sleeps { -1 } else { 0 };
    let room = i32::try_from(events.len()).unwrap_or(i32::MAX);
    // SAFETY: `epoll` is an open descriptor for the length of the call, and the kernel writes at
    // most `room` events to `events`, which has that length, is initialised, and is borrowed
    // exclusively.
    let count = unsafe { libc::epoll_wait(epoll.as_raw_fd(), events.as_mut_ptr(), room, millis) };
    usize::try_from(count).map_err(|_| {
        let error = std::io::Error::last_os_error();
        Errno::from_io_error(&error).unwrap_or(Errno::INVAL)
    })
}
