//! The one deadline of an event loop, as a descriptor of its set (timerfd_create(2)).
//!
//! A deadline that is the timeout of each wait is a timer of the kernel's that every wait sets up
//! and takes down again, for seconds that it never lives to see. This one is set when the deadline
//! comes nearer, and rings by itself.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use base_clock::Boottime;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};

/// Ends a wait at a moment, or before.
#[derive(Debug)]
pub(super) struct DeadlineTimer {
    timer: OwnedFd,
    /// When it rings; never, if it has rung.
    at: Boottime,
}

impl DeadlineTimer {
    pub(super) fn new() -> io::Result<Self> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        Ok(Self {
            timer: timerfd_create(TimerfdClockId::Boottime, flags)?,
            at: Boottime::NEVER,
        })
    }

    /// To be watched edge-triggered: it is never read.
    pub(super) fn timer(&self) -> BorrowedFd<'_> {
        self.timer.as_fd()
    }

    /// Rings at `at` or before; at once if that has passed.
    pub(super) fn expire_by(&mut self, at: Boottime) -> io::Result<()> {
        if at >= self.at {
            return Ok(());
        }
        // All zero would be to never ring.
        let nanos = at.as_nanos().max(1);
        let value = Timespec {
            tv_sec: (nanos / 1_000_000_000) as i64,
            tv_nsec: (nanos % 1_000_000_000) as i64,
        };
        let once = Itimerspec {
            it_interval: Timespec::default(),
            it_value: value,
        };
        timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &once)?;
        self.at = at;
        Ok(())
    }

    /// It has rung.
    pub(super) fn expired(&mut self) {
        self.at = Boottime::NEVER;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn has_expired(deadline_timer: &DeadlineTimer) -> bool {
        rustix::io::read(deadline_timer.timer(), &mut [0; 8]).is_ok()
    }

    #[test]
    fn it_rings_at_the_earliest_of_what_was_asked_and_again_when_it_is_asked_again() {
        let mut deadline_timer = DeadlineTimer::new().unwrap();
        let soon = || Boottime::now().plus(Duration::from_millis(2));
        deadline_timer.expire_by(Boottime::NEVER).unwrap();
        let late = Boottime::now().plus(Duration::from_secs(3600));
        deadline_timer.expire_by(late).unwrap();
        assert!(!has_expired(&deadline_timer));
        for at in [soon(), Boottime::from_nanos(0), soon()] {
            deadline_timer.expire_by(at).unwrap();
            // A later one changes nothing.
            deadline_timer.expire_by(late).unwrap();
            while !has_expired(&deadline_timer) {
                std::thread::yield_now();
            }
            assert!(Boottime::now() >= at);
            deadline_timer.expired();
        }
        assert!(!has_expired(&deadline_timer));
    }
}
