//! How a turn of the loop waits: it sleeps until an event or a due time, or it spins if the plan
//! says so.

use std::time::Duration;

use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;

use super::Engine;
use crate::Error;
use base_clock::{MS, Nanos};

/// The longest sleep, so that a stop is noticed.
const LONGEST: Nanos = 100 * MS;
/// Polls without a wait.
const NO_TIME: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 0,
};

impl Engine<'_> {
    /// True if this thread polls for events without sleeping. Spinning would gain nothing while
    /// connections are opened before the run.
    pub(super) fn spins(&self) -> bool {
        self.started && self.shared.plan.load.spin
    }

    /// Takes the available events. If there are none, waits until `until` at most, unless the
    /// thread spins.
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
