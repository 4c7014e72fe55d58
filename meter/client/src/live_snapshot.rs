//! A snapshot of a run's measurements during the run, for a live view.
//!
//! If a live view is open, each client thread leaves a copy of its histograms four times a second.
//! The thread never waits: while the view reads the last copy, the thread tries again in its next
//! turn. A copy takes about fifteen microseconds; the first two take some hundred microseconds
//! more, to allocate memory.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use hdrhistogram::Histogram;

use crate::outcome::FailureKind;
use crate::recorder::Recorder;
use base_clock::{MS, Nanos};
use millrace_stats::latency::{Latency, summary};
use millrace_stats::series::histogram;

/// Time between two copies of a thread.
const PAUSE: Nanos = 250 * MS;
/// Kinds of error that a snapshot names.
const KINDS: usize = 4;

/// Measurements of all threads of a run, at most a quarter of a second old.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LiveSnapshot {
    /// From the scheduled send to the complete response, of good responses; a closed loop has none.
    pub response: Option<Latency>,
    /// From the actual send to the complete response, of good responses.
    pub service: Option<Latency>,
    /// Connections that are open now.
    pub connected: u64,
    /// The most frequent kinds of error with their counts, the most frequent first.
    pub errors: [Option<(&'static str, u64)>; KINDS],
    /// Share of one core that the busiest client thread has used, from 0 to 1.
    pub busiest_thread: f64,
}

/// The copies of all threads; empty without a live view.
pub(crate) struct ThreadSnapshots(Vec<SnapshotSlot>);

/// One thread's slot.
struct SnapshotSlot {
    /// When the next copy is due.
    due: AtomicU64,
    copy: Mutex<ThreadCopy>,
}

struct ThreadCopy {
    response: Histogram<u64>,
    service: Histogram<u64>,
    errors: [u64; FailureKind::ALL.len()],
    connected: u64,
    busy: f64,
}

impl ThreadSnapshots {
    /// Slots for `threads` threads, if there is a live view.
    pub(crate) fn new(threads: usize, is_watched: bool) -> Self {
        let place = |_| SnapshotSlot {
            due: AtomicU64::new(0),
            copy: Mutex::new(ThreadCopy {
                response: histogram(3),
                service: histogram(3),
                errors: [0; FailureKind::ALL.len()],
                connected: 0,
                busy: 0.0,
            }),
        };
        let threads = if is_watched { threads } else { 0 };
        Self((0..threads).map(place).collect())
    }

    /// Called by a client thread in every turn of its loop. Leaves a copy when one is due; only
    /// then `connected` is called.
    pub(crate) fn publish(
        &self,
        thread: usize,
        now: Nanos,
        recorder: &Recorder,
        connected: impl FnOnce() -> usize,
    ) {
        let Some(place) = self.0.get(thread) else {
            return;
        };
        if now < place.due.load(Ordering::Relaxed) {
            return;
        }
        if let Ok(mut copy) = place.copy.try_lock() {
            copy.take(recorder, connected() as u64);
            place
                .due
                .store(base_clock::now() + PAUSE, Ordering::Relaxed);
        }
    }

    /// All threads together.
    pub(crate) fn merged(&self) -> LiveSnapshot {
        let (mut response, mut service) = (histogram(3), histogram(3));
        let mut errors = [0; FailureKind::ALL.len()];
        let mut snapshot = LiveSnapshot::default();
        for place in &self.0 {
            let copy = place.copy.lock().unwrap_or_else(PoisonError::into_inner);
            // All have the same bounds, so nothing can fall outside.
            let _ = response.add(&copy.response);
            let _ = service.add(&copy.service);
            for (sum, count) in errors.iter_mut().zip(copy.errors) {
                *sum += count;
            }
            snapshot.connected += copy.connected;
            snapshot.busiest_thread = snapshot.busiest_thread.max(copy.busy);
        }
        LiveSnapshot {
            response: summary(&response),
            service: summary(&service),
            errors: most_frequent(&errors),
            ..snapshot
        }
    }
}

impl ThreadCopy {
    fn take(&mut self, recorder: &Recorder, connected: u64) {
        // A copy of memory; clearing the old copy and adding would be several times slower.
        if let Some(open) = &recorder.open {
            self.response = open.response.clone();
        }
        self.service = recorder.service.clone();
        self.errors = recorder.errors;
        self.connected = connected;
        self.busy = recorder.busy();
    }
}

fn most_frequent(counts: &[u64; FailureKind::ALL.len()]) -> [Option<(&'static str, u64)>; KINDS] {
    let mut kinds: Vec<(&'static str, u64)> = FailureKind::ALL
        .iter()
        .map(|kind| (kind.key(), counts[*kind as usize]))
        .filter(|(_, count)| *count > 0)
        .collect();
    kinds.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let mut first = [None; KINDS];
    for (place, kind) in first.iter_mut().zip(kinds) {
        *place = Some(kind);
    }
    first
}

#[cfg(test)]
mod tests {
    use super::*;
    use base_clock::SECOND;

    #[test]
    fn a_copy_is_left_four_times_a_second_and_only_for_a_live_view() {
        let recorder = Recorder::new(0, SECOND, None, false);
        ThreadSnapshots::new(1, false).publish(0, 1, &recorder, || panic!("no live view"));
        let snapshots = ThreadSnapshots::new(1, true);
        snapshots.publish(0, base_clock::now(), &recorder, || 7);
        snapshots.publish(0, base_clock::now(), &recorder, || panic!("too early"));
        let snapshot = snapshots.merged();
        assert_eq!((snapshot.connected, snapshot.service), (7, None));
    }

    #[test]
    fn the_most_frequent_errors_come_first() {
        let mut counts = [0; FailureKind::ALL.len()];
        counts[FailureKind::Timeout as usize] = 3;
        counts[FailureKind::Reset as usize] = 9;
        let first = most_frequent(&counts);
        assert_eq!(first[..3], [Some(("reset", 9)), Some(("timeout", 3)), None]);
    }
}
