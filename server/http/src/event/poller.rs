//! epoll. Sockets are watched edge-triggered and once, for reading and writing: an event costs no
//! second look by the kernel, and nothing is ever changed in the set (epoll(7)).

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use base_clock::Boottime;
use rustix::event::epoll;
use rustix::io::Errno;

use super::Token;
use super::deadline_timer::DeadlineTimer;
use super::spin::{Spin, SpinResult};
use super::wait::{EpollEvent, NOTHING, wait};

/// Events taken at once.
const EVENTS: usize = 512;
/// The poller's own timer, which gives no event.
const DEADLINE: Token = Token::reserved(u16::MAX as u32);

/// How long to wait for events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// Not at all: a connection is runnable.
    Not,
    /// Until then; it may end before.
    Until(Boottime),
    Forever,
}

/// Directions in which a socket can go on, as far as is known: an edge says so, and a call that
/// could not do all it was asked to says no.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ready {
    pub(crate) read: bool,
    pub(crate) write: bool,
    /// The peer has ended its side, or the connection broke: the next read will tell, however short
    /// the last one was.
    pub(crate) ends: SocketEnd,
}

/// How far a socket has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum SocketEnd {
    Open,
    /// The peer sends no more.
    HalfClosed,
    /// Nothing can be sent either.
    Closed,
}

impl Ready {
    /// A socket that was just accepted: nothing is known to have come, and its buffer is empty.
    pub(crate) const NEW: Self = Self {
        read: false,
        write: true,
        ends: SocketEnd::Open,
    };

    fn of(flags: epoll::EventFlags) -> Self {
        let ends = if flags.intersects(epoll::EventFlags::HUP | epoll::EventFlags::ERR) {
            SocketEnd::Closed
        } else if flags.contains(epoll::EventFlags::RDHUP) {
            SocketEnd::HalfClosed
        } else {
            SocketEnd::Open
        };
        let has_ended = ends > SocketEnd::Open;
        Self {
            read: has_ended || flags.contains(epoll::EventFlags::IN),
            write: has_ended || flags.contains(epoll::EventFlags::OUT),
            ends,
        }
    }

    /// Adds what an event said.
    pub(crate) fn add(&mut self, news: Self) {
        self.read |= news.read;
        self.write |= news.write;
        self.ends = self.ends.max(news.ends);
    }
}

/// The set of what a worker waits for.
pub(crate) struct Poller {
    epoll: OwnedFd,
    deadline_timer: DeadlineTimer,
    spin: Spin,
    events: Box<[EpollEvent]>,
    /// How many of them the last wait gave.
    count: usize,
}

impl Poller {
    pub(crate) fn new() -> io::Result<Self> {
        let poller = Self {
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
            deadline_timer: DeadlineTimer::new()?,
            spin: Spin::default(),
            events: vec![NOTHING; EVENTS].into(),
            count: 0,
        };
        poller.watch_input(poller.deadline_timer.timer(), DEADLINE, true)?;
        Ok(poller)
    }

    /// Watches a socket for both directions, until it is closed.
    pub(crate) fn watch(&self, socket: impl AsFd, token: Token) -> io::Result<()> {
        let flags = epoll::EventFlags::IN
            | epoll::EventFlags::OUT
            | epoll::EventFlags::RDHUP
            | epoll::EventFlags::ET;
        Ok(epoll::add(&self.epoll, socket, data(token), flags)?)
    }

    /// Watches a descriptor for input; `is_edge` as for [`Poller::watch`], else events arrive as
    /// long as the descriptor is readable.
    pub(crate) fn watch_input(&self, of: impl AsFd, token: Token, is_edge: bool) -> io::Result<()> {
        let mut flags = epoll::EventFlags::IN;
        flags.set(epoll::EventFlags::ET, is_edge);
        Ok(epoll::add(&self.epoll, of, data(token), flags)?)
    }

    pub(crate) fn unwatch(&self, of: impl AsFd) -> io::Result<()> {
        Ok(epoll::delete(&self.epoll, of)?)
    }

    /// Waits until something is ready, or as long as that; awake for a while if that `is_soon`. A
    /// signal ends it too. Whether it was waited awake for what came.
    pub(crate) fn wait(&mut self, how_long: Wait, is_soon: bool) -> io::Result<bool> {
        self.count = 0;
        if let Wait::Until(at) = how_long {
            self.deadline_timer.expire_by(at)?;
        }
        if is_soon && how_long != Wait::Not {
            let (epoll, events, count) = (self.epoll.as_fd(), &mut self.events, &mut self.count);
            let is_there = || {
                *count = wait(epoll, events, false).unwrap_or(0);
                *count > 0
            };
            match self.spin.look(is_there) {
                SpinResult::AtOnce => return Ok(false),
                SpinResult::Awaited => return Ok(true),
                SpinResult::Nothing => {}
            }
        }
        match wait(self.epoll.as_fd(), &mut self.events, how_long != Wait::Not) {
            Ok(count) => self.count = count,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        Ok(false)
    }

    /// How many events the last wait gave.
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// One of them; none if it was only time.
    pub(crate) fn event(&mut self, at: usize) -> Option<(Token, Ready)> {
        let event = &self.events[at];
        // The kernel's struct is packed.
        let (flags, data) = (event.events, event.u64);
        let flags = epoll::EventFlags::from_bits_retain(flags);
        let token = Token::from_u64(data);
        if token == DEADLINE {
            self.deadline_timer.expired();
            return None;
        }
        Some((token, Ready::of(flags)))
    }
}

fn data(token: Token) -> epoll::EventData {
    epoll::EventData::new_u64(token.to_u64())
}
