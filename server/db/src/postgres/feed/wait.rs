//! Waiting on sockets, on the clock and on the stop signal; and why a feed session ends.

use std::fmt;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use base_clock::Boottime;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

/// Why a life of the feed ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FeedEnd {
    /// The feed was stopped.
    Stopped,
    /// The server says no: its SQLSTATE and its sentence.
    Refused { code: String, sentence: String },
    /// A connection ended, or is silent for too long.
    Disconnected(String),
    /// Something is wrong; the sentence says what to do where that is known.
    Lost(String),
}

/// The classes of SQLSTATEs by which a server ends connections, or takes none: it stops or starts,
/// an operator wants it, or it lacks resources.
const ENDS_CONNECTIONS: [&str; 3] = ["08", "53", "57"];

impl FeedEnd {
    pub(crate) fn lost(why: impl fmt::Display) -> Self {
        Self::Lost(why.to_string())
    }

    pub(crate) fn disconnected(why: impl fmt::Display) -> Self {
        Self::Disconnected(why.to_string())
    }

    /// True if only the connection has ended. Then the last heartbeat still says what it said.
    pub(crate) fn is_disconnection(&self) -> bool {
        match self {
            Self::Disconnected(_) => true,
            Self::Refused { code, .. } => {
                ENDS_CONNECTIONS.iter().any(|class| code.starts_with(class))
            }
            Self::Stopped | Self::Lost(_) => false,
        }
    }

    /// Adds the place where the end happened.
    pub(crate) fn at(self, place: &str) -> Self {
        let why = format!("{place}: {self}");
        match self.is_disconnection() {
            true => Self::Disconnected(why),
            false => Self::Lost(why),
        }
    }
}

impl From<io::Error> for FeedEnd {
    fn from(error: io::Error) -> Self {
        Self::disconnected(error)
    }
}

impl From<Errno> for FeedEnd {
    fn from(error: Errno) -> Self {
        Self::disconnected(io::Error::from(error))
    }
}

impl fmt::Display for FeedEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stopped => f.write_str("the feed is stopped"),
            Self::Refused { sentence, .. }
            | Self::Disconnected(sentence)
            | Self::Lost(sentence) => f.write_str(sentence),
        }
    }
}

/// Sockets that can be waited for at a time.
const MOST: usize = 2;

/// Sockets that are ready, among those that were waited for, in their order.
pub(crate) type Ready = [bool; MOST];

/// The end of a pair of sockets that becomes readable when the feed shall end: its other end is
/// dropped then, in every case.
pub(crate) struct Stop(pub(crate) UnixStream);

impl Stop {
    /// Waits until a socket is ready or the deadline is reached, and says which; fails at once when
    /// the feed shall end.
    pub(crate) fn wait<const N: usize>(
        &self,
        sockets: [(BorrowedFd<'_>, PollFlags); N],
        until: Boottime,
    ) -> Result<Ready, FeedEnd> {
        const { assert!(N <= MOST) };
        let stop = || PollFd::from_borrowed_fd(self.0.as_fd(), PollFlags::IN);
        let mut waiting: [PollFd<'_>; MOST + 1] = std::array::from_fn(|_| stop());
        for (waits, (socket, flags)) in waiting[1..].iter_mut().zip(sockets) {
            *waits = PollFd::from_borrowed_fd(socket, flags);
        }
        let left = until.since(Boottime::now());
        let left = Timespec {
            tv_sec: left.as_secs().cast_signed(),
            tv_nsec: left.subsec_nanos().into(),
        };
        match poll(&mut waiting[..=N], Some(&left)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        if !waiting[0].revents().is_empty() {
            return Err(FeedEnd::Stopped);
        }
        Ok(std::array::from_fn(|at| {
            at < N && !waiting[at + 1].revents().is_empty()
        }))
    }

    /// Waits without anything else to wait for.
    pub(crate) fn sleep(&self, time: Duration) -> Result<(), FeedEnd> {
        let until = Boottime::now().plus(time);
        while Boottime::now() < until {
            self.wait([], until)?;
        }
        Ok(())
    }
}

/// How long an exchange with the server may take.
#[derive(Clone, Copy)]
pub(crate) struct Patience<'a> {
    pub(crate) stop: &'a Stop,
    pub(crate) until: Boottime,
}

impl<'a> Patience<'a> {
    pub(crate) fn of(stop: &'a Stop, time: Duration) -> Self {
        Self {
            stop,
            until: Boottime::now().plus(time),
        }
    }

    /// Waits for one socket; fails when the time is over.
    pub(crate) fn wait(self, socket: BorrowedFd<'_>, flags: PollFlags) -> Result<(), FeedEnd> {
        if Boottime::now() >= self.until {
            return Err(FeedEnd::disconnected("the server does not answer in time"));
        }
        self.stop.wait([(socket, flags)], self.until)?;
        Ok(())
    }
}
