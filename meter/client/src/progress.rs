//! Progress of a run, reported while its threads work.

use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use crate::auto::Director;
use crate::engine::{Harvest, RunContext};
use crate::live_snapshot::LiveSnapshot;
use crate::tickets::Times;
use crate::{Error, LengthPlan, Stop};
use base_clock::Nanos;

/// How often the progress callback is called.
const GLANCE: Duration = Duration::from_millis(250);

/// The part of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Connections are being opened.
    Connecting,
    /// Requests are sent and not measured.
    WarmUp,
    /// Requests are measured.
    Measuring,
    /// Requests are sent on and not measured any more.
    RampDown,
}

/// Progress of a run, for a line on a terminal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// The current part of the run.
    pub phase: Phase,
    /// Time since its measured part began.
    pub elapsed: Duration,
    /// Measured requests that have ended.
    pub finished: u64,
    /// Measured requests that ended without a good response.
    pub errors: u64,
    /// Requests that ended in the last quarter of a second, for one second.
    pub rate: f64,
    /// Share of the measured part that is done, from 0 to 1.
    pub fraction: f64,
    /// Time until the last request is sent, warm-up included; `None` if a number of requests ends
    /// the run and none has ended yet.
    pub remaining: Option<Duration>,
    /// Requests a second that the schedule asks for; a closed loop has none.
    pub offered_rate: Option<f64>,
    /// The planned number of connections.
    pub connections: u64,
    /// Measurements so far.
    pub so_far: LiveSnapshot,
}

/// Collects the results of the threads; meanwhile lets the director look and calls `progress`.
pub(crate) fn watch(
    shared: &RunContext<'_>,
    director: &mut Option<Director<'_>>,
    harvests: &mpsc::Receiver<Result<Harvest, Error>>,
    progress: &mut Option<&mut dyn FnMut(&Progress)>,
) -> Vec<Result<Harvest, Error>> {
    let mut results = Vec::new();
    let (mut last, mut before) = (base_clock::now(), 0);
    loop {
        match harvests.recv_timeout(GLANCE) {
            Ok(result) => results.push(result),
            Err(RecvTimeoutError::Disconnected) => return results,
            Err(RecvTimeoutError::Timeout) => {
                let now = base_clock::now();
                if let (Some(director), Some(at)) = (director.as_mut(), shared.gate.opened_at()) {
                    director.look(at, now);
                }
                let Some(callback) = progress else { continue };
                let finished = shared.live.finished.load(Ordering::Relaxed);
                let rate = (finished - before) as f64 / ((now - last) as f64 / 1e9);
                callback(&progress_at(shared, now, finished, rate));
                (before, last) = (finished, now);
            }
        }
    }
}

fn progress_at(shared: &RunContext<'_>, now: Nanos, finished: u64, rate: f64) -> Progress {
    let plan = shared.plan;
    let times = shared.gate.opened_at().map(|at| match shared.agreed {
        Some(agreed) => agreed.times(),
        None => Times::of(&plan.length, &plan.load, at),
    });
    let elapsed = Duration::from_nanos(times.map_or(0, |times| now.saturating_sub(times.start)));
    let before = times.map_or(plan.length.unmeasured(), |times| {
        Duration::from_nanos(times.start.saturating_sub(now))
    });
    let after = match times {
        Some(times) if times.end < Nanos::MAX => {
            Duration::from_nanos(times.last.saturating_sub(now.max(times.end)))
        }
        _ => plan.length.ramp_down,
    };
    let (fraction, left) = match longest(&plan.length, plan.load.recording()) {
        Some(longest) => (
            elapsed.as_secs_f64() / longest.as_secs_f64(),
            Some(longest.saturating_sub(elapsed)),
        ),
        None => {
            let count = match plan.length.stop {
                Stop::Requests(count) => count,
                Stop::Duration(_) => 1,
            };
            let share = finished as f64 / count as f64;
            let left = elapsed.as_secs_f64() * (1.0 / share - 1.0).max(0.0);
            // No request has ended yet, or too few for an estimate.
            (share, Duration::try_from_secs_f64(left).ok())
        }
    };
    Progress {
        phase: match times {
            None => Phase::Connecting,
            Some(times) if now < times.start => Phase::WarmUp,
            Some(times) if times.has_ramp_down() && now >= times.end => Phase::RampDown,
            Some(_) => Phase::Measuring,
        },
        elapsed,
        finished,
        errors: shared.live.errors.load(Ordering::Relaxed),
        rate,
        fraction: fraction.min(1.0),
        remaining: left.map(|left| before.saturating_add(left).saturating_add(after)),
        offered_rate: plan.load.schedule.as_ref().map(|schedule| schedule.rate),
        connections: plan.load.connections as u64,
        so_far: shared.snapshots.merged(),
    }
}

/// Length of the measured part, or its maximum if the statistics decide it; `None` if requests are
/// counted.
fn longest(length: &LengthPlan, recording: Option<Duration>) -> Option<Duration> {
    let planned = match (&length.auto, length.stop) {
        (Some(auto), _) => auto.max,
        (None, Stop::Duration(duration)) => duration,
        (None, Stop::Requests(_)) => return None,
    };
    let recorded = recording.map(|recording| recording.saturating_sub(length.unmeasured()));
    Some(recorded.map_or(planned, |recorded| recorded.min(planned)))
}
