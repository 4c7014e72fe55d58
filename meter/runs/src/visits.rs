//! The figures of users, sessions and classes, from the results of the threads.

use hdrhistogram::Histogram;

use crate::Run;
use crate::figures::{ClassFigures, Pauses, RampDown, Sessions, StreamFigures};
use base_clock::Nanos;
use millrace_client::Errors;
use millrace_client::Process;
use millrace_client::classes::ClassTimes;
use millrace_client::recorder::Recorder;
use millrace_client::streams::StreamTimes;
use millrace_client::{LengthPlan, Pace, Plan};
use millrace_stats::hdr::Hdr;
use millrace_stats::latency::summary;
use millrace_stats::series::Series;
use millrace_stats::timeline::timeline;
use millrace_stats::timings::Timings;
use millrace_stats::{Backlog, backlog, stationary};

/// Requests a second that the schedule offered. If a workload defines the length of a session, or
/// the arrivals are recorded, it is the rate of requests that were due in the `steady` part.
pub(crate) fn offered_rate(plan: &Plan, all: &Recorder, steady: Nanos) -> Option<f64> {
    let offered = plan.load.offered()?;
    let counted = plan.request.workload.is_some() || plan.load.recording().is_some();
    Some(if counted && steady > 0 {
        all.issued as f64 * 1e9 / steady as f64
    } else {
        offered
    })
}

/// The backlog that grew in an open loop, if any. Sessions that have just begun to arrive are fewer
/// than the later ones.
pub(crate) fn backlog(plan: &Plan, all: &Recorder, steady: Nanos) -> Option<Backlog> {
    let schedule = plan.load.schedule.as_ref().filter(|_| steady > 0)?;
    let rate = all.issued as f64 * 1e9 / steady as f64;
    let is_recorded = matches!(schedule.process, Process::Recorded(_));
    let is_even = !is_recorded && !plan.has_sessions();
    backlog::judge(&all.series, steady, rate, is_even)
}

/// Why an open loop was not stationary. Recorded arrivals need not be: only a growing number of
/// requests in flight counts against those.
pub(crate) fn unsteady(
    plan: &Plan,
    series: &Series,
    steady: Nanos,
    offered_rate: Option<f64>,
    backlog: Option<Backlog>,
) -> Option<String> {
    let process = &plan.load.schedule.as_ref()?.process;
    if let Some(grown) = backlog.or_else(|| backlog::rises(series, steady)) {
        let why = format!("not stationary: {grown}, so the server does not keep up");
        return Some(why);
    }
    match process {
        Process::Recorded(_) => None,
        Process::Constant | Process::Poisson(_) => stationary::judge(series, steady, offered_rate?),
    }
}

/// The classes by name, if there is more than one.
pub(crate) fn classes(plan: &Plan, all: &Recorder) -> Vec<ClassFigures> {
    let names = plan
        .request
        .workload
        .iter()
        .flat_map(|workload| workload.classes());
    names
        .zip(&all.classes)
        .map(|(name, class)| class_figures(class, name))
        .collect()
}

/// The reported figures; a closed loop has service times only.
fn class_figures(class: &ClassTimes, name: &str) -> ClassFigures {
    let Timings {
        service,
        response,
        send_lag,
    } = &class.times;
    let latency = |times: &Option<Histogram<u64>>| summary(times.as_ref()?);
    let stored = |times: &Option<Histogram<u64>>| Hdr::of(times.as_ref()?);
    ClassFigures {
        name: name.to_owned(),
        issued: class.issued,
        requests: class.answered,
        good: class.good,
        failed: class.failed,
        shed: class.shed,
        errors: Errors::new(&class.errors),
        bytes: class.bytes,
        response_us: latency(response),
        service_us: summary(service),
        send_lag_us: latency(send_lag),
        response: stored(response),
        service: Hdr::of(service),
        send_lag: stored(send_lag),
        series: timeline(&class.series),
    }
}

pub(crate) fn sessions(plan: &Plan, all: &Recorder) -> Option<Sessions> {
    if plan.load.session.is_none() && plan.request.workload.is_none() {
        return None;
    }
    Some(Sessions {
        offered_rate: plan.load.schedule.as_ref().map(|schedule| schedule.rate),
        started: all.visits.started,
        completed: all.visits.completed,
        broken_off: all.visits.broken_off,
    })
}

pub(crate) fn streams(told: &StreamTimes) -> StreamFigures {
    StreamFigures {
        asked: told.asked,
        opened: told.opened,
        ended: told.ended,
        writes: told.writes,
        failed_writes: told.failed_writes,
        others: told.others,
        missed: told.missed,
        event_us: summary(&told.times),
        times: Hdr::of(&told.times),
    }
}

pub(crate) fn pauses(plan: &Plan, all: &Recorder) -> Option<Pauses> {
    if plan.load.pace == Pace::AtOnce && plan.request.workload.is_none() {
        return None;
    }
    let asked = if plan.request.workload.is_some() {
        "as the workload says".to_owned()
    } else {
        plan.load.pace.to_string()
    };
    Some(Pauses {
        asked,
        mean_us: all.visits.pauses as f64 / all.visits.paused.max(1) as f64 / 1000.0,
        missed_cycles: all.visits.missed_cycles,
    })
}

pub(crate) fn ramp_down(length: &LengthPlan, all: &Recorder) -> Option<RampDown> {
    (!length.ramp_down.is_zero()).then_some(RampDown {
        length_s: length.ramp_down.as_secs_f64(),
        requests: all.after,
    })
}

impl Run {
    /// True if connections paused between requests, so that fewer requests are in flight than there
    /// are connections.
    pub(crate) fn has_pauses(&self) -> bool {
        let pauses = self.pauses.as_ref();
        pauses.is_some_and(|pauses| pauses.mean_us > 0.0)
    }
}
