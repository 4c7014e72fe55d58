//! Listening sockets that another process hands over (sd_listen_fds(3)): systemd, or the server
//! whose place this process takes, which hands over the end of a pipe for the answer with them.

#![allow(
    unsafe_code,
    reason = "descriptors of another process come as bare numbers"
)]

use std::env;
use std::io::{self, Write as _};
use std::net::TcpListener;
use std::os::fd::{BorrowedFd, FromRawFd as _, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;

use rustix::io::{FdFlags, fcntl_setfd};
use rustix::net::sockopt::socket_acceptconn;
use rustix::process::getppid;

/// The number of the first descriptor.
pub(crate) const FIRST: RawFd = 3;
/// The name of the descriptor for the answer.
pub(crate) const ANSWER: &str = "answer";
/// The variable that says whether the server whose place this process takes was in a sandbox.
pub(crate) const CONFINED: &str = "MILLPOND_CONFINED";

/// Sockets that were handed over and are not taken yet.
#[derive(Debug, Default)]
pub struct Inherited {
    sockets: Vec<(String, TcpListener)>,
    answer: Option<UnixStream>,
}

impl Inherited {
    /// Takes what the environment names: `LISTEN_FDS`, `LISTEN_PID`, `LISTEN_FDNAMES`. To be called
    /// once, before the process opens anything.
    ///
    /// # Errors
    /// A descriptor is not open, or is no socket that listens.
    pub fn take() -> io::Result<Self> {
        let parent = getppid().map_or(0, |pid| pid.as_raw_nonzero().get().unsigned_abs());
        let names = names(|name| env::var(name).ok(), [std::process::id(), parent]);
        let mut taken = Self::default();
        for (fd, name) in (FIRST..).zip(names) {
            let failed = |error| {
                let message =
                    format!("descriptor {fd} ({name}) was handed over (LISTEN_FDS): {error}");
                io::Error::other(message)
            };
            // SAFETY: by the environment the number is that of an open descriptor; if
            // it is not, the call fails and changes nothing.
            let borrowed = unsafe { BorrowedFd::borrow_raw(fd) };
            fcntl_setfd(borrowed, FdFlags::CLOEXEC).map_err(|error| failed(error.into()))?;
            // SAFETY: it is open, and by the protocol this process's own; this is called once.
            let owned = unsafe { OwnedFd::from_raw_fd(fd) };
            if name == ANSWER {
                taken.answer = Some(owned.into());
            } else if socket_acceptconn(&owned).map_err(|error| failed(error.into()))? {
                taken.sockets.push((name, owned.into()));
            } else {
                return Err(failed(io::Error::other("it does not listen")));
            }
        }
        Ok(taken)
    }

    /// True if this process takes the place of a server.
    #[must_use]
    pub fn is_successor(&self) -> bool {
        self.answer.is_some()
    }

    /// True if the server whose place this process takes was in a sandbox. Code in there may have
    /// written the settings, so they must not turn it off.
    #[must_use]
    pub fn is_confined(&self) -> bool {
        self.is_successor() && env::var(CONFINED).is_ok_and(|value| value == "1")
    }

    /// Takes the sockets that `wanted` wants by their names.
    pub fn sockets(
        &mut self,
        mut wanted: impl FnMut(&str, &TcpListener) -> bool,
    ) -> Vec<TcpListener> {
        let taken = self
            .sockets
            .extract_if(.., |(name, socket)| wanted(name, socket));
        taken.map(|(_, socket)| socket).collect()
    }

    /// Tells the server whose place this process takes that this process serves.
    pub fn answer(&mut self) {
        if let Some(mut answer) = self.answer.take() {
            // It may have been ended meanwhile.
            let _ = writeln!(answer, "ready {}", std::process::id());
        }
    }
}

/// The names of the descriptors for a process, which are for it or by its parent.
fn names(value: impl Fn(&str) -> Option<String>, processes: [u32; 2]) -> Vec<String> {
    let number = |name| value(name)?.parse::<u32>().ok();
    let count = match number("LISTEN_PID") {
        Some(process) if processes.contains(&process) => number("LISTEN_FDS").unwrap_or(0),
        _ => 0,
    };
    let names = value("LISTEN_FDNAMES").unwrap_or_default();
    let names = names.split(':').map(str::to_owned);
    let names = names.chain(std::iter::repeat(String::new()));
    names.take(count as usize).collect()
}

#[cfg(test)]
mod tests {
    use super::names;

    #[test]
    fn descriptors_are_for_the_process_that_is_named() {
        let given = |pid: &str, count: &str, fd_names: &str| {
            let value = |name: &str| {
                let value = match name {
                    "LISTEN_PID" => pid,
                    "LISTEN_FDS" => count,
                    _ => fd_names,
                };
                (!value.is_empty()).then(|| value.to_owned())
            };
            names(value, [7, 6])
        };
        assert_eq!(given("7", "2", "http:https"), ["http", "https"]);
        assert_eq!(given("6", "2", "http"), ["http", ""]);
        assert_eq!(given("7", "1", ""), [""]);
        for nothing in [given("8", "2", ""), given("", "2", ""), given("7", "x", "")] {
            assert!(nothing.is_empty(), "{nothing:?}");
        }
    }
}
