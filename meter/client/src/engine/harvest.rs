//! The results of one thread at the end of a run.

use super::open::Open;
use super::{Engine, ThreadUsage};
use crate::connection::ClientConnection;
use crate::recorder::Recorder;
use crate::tickets::Times;
use base_clock::Nanos;

/// The results of one thread.
pub struct Harvest {
    /// The thread's measurements.
    pub recorder: Recorder,
    /// Places for a connection that were ever connected.
    pub established: usize,
    /// Places for a connection whose attempts all failed.
    pub never: usize,
    /// Places that kept SPECweb99's pace, where bandwidth was limited.
    pub conforming: Option<u64>,
    /// Measured requests without an end, because the run was stopped.
    pub in_flight: u64,
    /// CPU time of its work from the start of the measured part to the last response, or to the
    /// start of a ramp-down.
    pub cpu: Nanos,
    /// Its use of a core while requests could be issued.
    pub used: ThreadUsage,
    /// When the parts of the run began and ended.
    pub times: Times,
    /// Requests that each of its connections could have in flight.
    pub depth: usize,
    /// When the first measured request could not be issued any more.
    pub stopped_at: Nanos,
}

impl Engine<'_> {
    /// The run is over for this thread.
    pub(super) fn finish(mut self) -> Harvest {
        self.connections
            .iter_mut()
            .for_each(ClientConnection::return_to_pending);
        let used = self.used();
        let in_flight = self
            .connections
            .iter()
            .flat_map(|connection| &connection.pending);
        let waiting = self.open.as_ref().map_or(0, Open::measured_waiting);
        Harvest {
            in_flight: in_flight.filter(|request| request.measured).count() as u64 + waiting,
            never: self
                .connections
                .iter()
                .filter(|c| c.attempted && !c.established)
                .count(),
            established: self
                .connections
                .iter()
                .filter(|connection| connection.established)
                .count(),
            conforming: self
                .connections
                .iter()
                .filter_map(ClientConnection::conforms)
                .fold(None, |count, conforms| {
                    Some(count.unwrap_or(0) + u64::from(conforms))
                }),
            // The work of a ramp-down belongs to no measured request. Cutting at its start loses as
            // much as the start of the measured part adds.
            cpu: match self.times.has_ramp_down() {
                true => used.cpu.work,
                false => self.recorder.work.cpu().work,
            },
            used,
            times: self.times,
            depth: self.depth,
            stopped_at: self
                .stopped_at
                .unwrap_or_else(base_clock::now)
                .min(self.times.end),
            recorder: self.recorder,
        }
    }
}
