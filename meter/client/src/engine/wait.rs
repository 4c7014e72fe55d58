//! How a turn of the loop waits: asleep until something happens or is due, or, where the plan says so, without sleeping at all.

use std::time::Duration;

use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;

use super::Engine;
use crate::Error;
use base_clock::{MS, Nanos};

/// The longest sleep, so that a stop is noticed.
const LONGEST: Nanos = 100 * MS;
/// A look at what has happened, without a wait.
const NO_TIME: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 0,
};

impl Engine<'_> {
    /// Whether this thread looks for events again and again instead of sleeping. While connections are opened before the run
    /// there is nothing to be gained by it.
    pub(super) fn spins(&self) -> bool {
        self.started && self.shared.plan.load.spin
    }

    /// Takes the events that there are; without any it waits for some, at most until `until`, unless it spins.
    pub(super) fn wait(&self, events: &mut Vec<epoll::Event>, until: Nanos) -> Result<(), Error> {
        let patience = if self.spins() {
            NO_TIME
        } else {
            let patience = until.saturating_sub(base_clock::now()).min(LONGEST);
            Timespec::try_from(Duration::from_nanos(patience)).unwrap_or(NO_TIME)
        };
        events.clear();
        match epoll::wait(&self.epoll, spare_capacity(events), Some(&patience)) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(errno) => Err(Error::System {
                what: "wait for events",
                source: errno.into(),
            }),
        }
    }
}
