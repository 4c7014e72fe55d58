//! How far a run is, told while its threads work.

use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use crate::auto::Director;
use crate::engine::{Harvest, Shared};
use crate::glimpse::Glimpse;
use crate::tickets::Times;
use crate::{Error, LengthPlan, Stop};
use base_clock::Nanos;

/// How often the progress callback is called.
const GLANCE: Duration = Duration::from_millis(250);

/// What a run is doing.
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

/// How far a run is, for a line on a terminal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// What it is doing.
    pub phase: Phase,
    /// Time since its measured part began.
    pub elapsed: Duration,
    /// Measured requests that have ended.
    pub finished: u64,
    /// Those that ended otherwise than with a good answer.
    pub errors: u64,
    /// Requests that ended in the last quarter of a second, for one second.
    pub rate: f64,
    /// Share of the measured part that is done, from 0 to 1.
    pub fraction: f64,
    /// Time until nothing more is sent, warm-up included; `None` where a number of requests ends it and none has ended yet.
    pub remaining: Option<Duration>,
    /// Requests a second that the schedule asks for; a closed loop has none.
    pub offered_rate: Option<f64>,
    /// Connections that are to be open.
    pub connections: u64,
    /// What has been measured so far.
    pub so_far: Glimpse,
}

/// Collects what the threads bring home; lets the director look and calls `progress` meanwhile.
pub(crate) fn watch(
    shared: &Shared<'_>,
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
                callback(&now_is(shared, now, finished, rate));
                (before, last) = (finished, now);
            }
        }
    }
}

/// The progress at `now`.
fn now_is(shared: &Shared<'_>, now: Nanos, finished: u64, rate: f64) -> Progress {
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
            // Nothing has ended yet, or too little for a time that can be told.
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
        so_far: shared.glimpses.look(),
    }
}

/// The length of the measured part, or where the statistics decide the most that it may become; none if requests are counted.
fn longest(length: &LengthPlan, recording: Option<Duration>) -> Option<Duration> {
    let planned = match (&length.auto, length.stop) {
        (Some(auto), _) => auto.max,
        (None, Stop::Duration(duration)) => duration,
        (None, Stop::Requests(_)) => return None,
    };
    let recorded = recording.map(|recording| recording.saturating_sub(length.unmeasured()));
    Some(recorded.map_or(planned, |recorded| recorded.min(planned)))
}
