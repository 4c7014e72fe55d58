//! Makes the figures of a run from the results of its threads.

use std::collections::BTreeMap;

use crate::run::{ClientFigures, Connections, Loop, Protocol, Run};
use crate::{Host, postgres, visits};
use base_clock::Nanos;
use base_probe::postgres::PgProber;
use base_probe::{Moment, Probe};
use millrace_client::driver::{Decided, Sent};
use millrace_client::engine::Harvest;
use millrace_client::outcome::FailureKind;
use millrace_client::recorder::Recorder;
use millrace_client::{AutoFigures, Errors, Plan, Stop, spin};
use millrace_stats::hdr::{FINE, Hdr, Histograms};
use millrace_stats::latency::{buckets, quantiles, summary};
use millrace_stats::{Accounting, Latencies, timeline, verdict};

/// Everything that one run is made of.
pub(crate) struct Measured<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) sent: Sent,
    /// Whether the caller requested a stop.
    pub(crate) stopped: bool,
    /// The probe of the PostgreSQL server, still running.
    pub(crate) postgres: Option<PgProber>,
    /// The probe of the host, with begin and end of the measured part.
    pub(crate) probed: Option<(Probe, Nanos, Nanos)>,
}

/// Makes the run.
pub(crate) fn conclude(measured: Measured<'_>) -> Run {
    let Measured {
        plan,
        sent: Sent { harvests, auto },
        stopped,
        postgres,
        probed,
    } = measured;
    let Lengths {
        start,
        steady,
        duration,
    } = Lengths::of(plan, &harvests);
    let cut_short = stopped && !ended_by_itself(plan, &harvests);
    let busiest_thread = harvests
        .iter()
        .map(|harvest| harvest.used.busy())
        .fold(0.0, f64::max);
    let threads = harvests.len();
    let work = harvests.iter().map(|harvest| harvest.cpu);
    // Spinning while the last responses are awaited belongs to no request.
    let spun = harvests.iter().map(|harvest| harvest.used.cpu.spun);
    let (cpu, spun): (Nanos, Nanos) = (work.sum(), spun.sum());
    let (throttled, run_delay, waited) = kernel_delays(&harvests, duration);
    let turns = harvests.iter().map(|harvest| harvest.used.kept.turns);
    let turns: Option<u64> = turns.sum();
    let never_established = harvests.iter().map(|harvest| harvest.never).sum();
    let connections = connections(plan, &harvests);
    let depth = depth(plan, &harvests);
    let in_flight = harvests.iter().map(|harvest| harvest.in_flight).sum();
    let all = merged_recorder(harvests);
    let accounting = accounting(&all, in_flight);
    let errors = Errors::new(&all.errors);
    let little = match plan.load.schedule {
        None => verdict::little(&all.series, steady, (plan.load.connections * depth) as f64),
        Some(_) => verdict::little_sampled(&all.series, steady),
    };
    let offered_rate = visits::offered_rate(plan, &all, steady);
    let backlog = visits::backlog(plan, &all, steady);
    let unsteady = visits::unsteady(plan, &all.series, steady, offered_rate, backlog);
    let latency_us = latencies(&all);
    let seconds = duration as f64 / 1e9;
    let rate = |count: u64| {
        if duration == 0 {
            0.0
        } else {
            count as f64 / seconds
        }
    };
    let evidence = verdict::Evidence {
        accounting: &accounting,
        errors: errors.total(),
        never_established,
        asked: plan.load.connections,
        busiest_thread,
        little: little.as_ref(),
        is_open: plan.load.schedule.is_some(),
        latency_us: &latency_us,
        unsteady,
        cut_short,
        achieved_rate: rate(all.answered_in_time),
        calibration: plan.conditions.calibration.as_ref(),
        throttled: throttled.map(|time| time as f64 / duration.max(1) as f64),
        waited,
    };
    let mut judged = verdict::judge(&evidence);
    if let Some(doubt) = auto.as_ref().and_then(auto_doubt) {
        judged.doubt(doubt);
    }
    let mut notes = verdict::notes(&evidence);
    notes.extend(fewer_streams(plan, depth));
    notes.extend(spin::note(&plan.target, &plan.load));
    let warmup_s = auto
        .as_ref()
        .map_or(plan.length.unmeasured().as_secs_f64(), |auto| {
            auto.figures.warmup_s
        });
    let auto = auto.map(|auto| AutoFigures {
        measured_s: seconds,
        ..auto.figures
    });
    let series = timeline::timeline(&all.series);
    let postgres =
        postgres.map(|prober| postgres::finish(prober, start, &series, [warmup_s, seconds]));
    let finished = all.answered + all.failed;
    let times = all
        .open
        .as_ref()
        .map_or(&all.service, |open| &open.response);
    let (histogram, percentiles) = (buckets(times), quantiles(times));
    let mut run = Run {
        verdict: judged.verdict,
        reasons: judged.reasons,
        client_at_fault: judged.client_at_fault,
        kind: if plan.load.schedule.is_some() {
            Loop::Open
        } else {
            Loop::Closed
        },
        protocol: if plan.target.http2 {
            Protocol::Http2
        } else {
            Protocol::Http1
        },
        url: plan.target.url.clone(),
        duration_s: seconds,
        warmup_s,
        requests: all.answered,
        accounting,
        offered_rate,
        backlog,
        achieved_rate: rate(all.answered_in_time),
        good_rate: rate(all.good_in_time),
        bytes: all.bytes,
        errors,
        error_examples: examples(&all.examples),
        latency_us,
        connections,
        client: ClientFigures {
            cpu_us_per_request: (finished > 0).then(|| cpu as f64 / 1000.0 / finished as f64),
            busiest_thread,
            threads: threads as u64,
            throttled_us: throttled.map(|time| time / 1000),
            run_delay_us: run_delay.map(|time| time / 1000),
            turns,
            spin: plan.load.spin,
            spun_us: plan.load.spin.then_some(spun / 1000),
            started_ns: start,
        },
        little,
        host: Host::here(),
        command: plan.conditions.command.clone(),
        series,
        histogram,
        percentiles,
        classes: visits::classes(plan, &all),
        sessions: visits::sessions(plan, &all),
        pauses: visits::pauses(plan, &all),
        ramp_down: visits::ramp_down(&plan.length, &all),
        auto,
        postgres,
        calibration: plan
            .conditions
            .calibration
            .map(|known| known.after(rate(all.answered_in_time))),
        notes,
        started_unix_us: base_clock::unix_micros(start),
        histograms: histograms(&all),
        merged_from: Vec::new(),
        probe: None,
        bottleneck: None,
    };
    if let Some((probe, start, end)) = probed {
        run.attach_probe(probe, Moment::Monotonic(start), Moment::Monotonic(end));
    }
    run
}

/// Times of the measured part, by the monotonic clock.
struct Lengths {
    start: Nanos,
    /// While every thread still sent.
    steady: Nanos,
    /// Length to its planned end, or to the last response of a counted run.
    duration: Nanos,
}

impl Lengths {
    fn of(plan: &Plan, harvests: &[Harvest]) -> Self {
        let start = harvests.iter().map(|harvest| harvest.times.start).min();
        let start = start.unwrap_or_default();
        let first = harvests.iter().map(|harvest| harvest.stopped_at).min();
        let last = match plan.length.stop {
            Stop::Requests(_) => harvests.iter().map(|harvest| harvest.recorder.last).max(),
            Stop::Duration(_) => harvests.iter().map(|harvest| harvest.stopped_at).max(),
        };
        let length = |end: Option<Nanos>| end.map_or(0, |end| end.saturating_sub(start));
        Self {
            start,
            steady: length(first),
            duration: length(last),
        }
    }
}

/// The records of all threads together.
fn merged_recorder(harvests: Vec<Harvest>) -> Recorder {
    let recorders = harvests.into_iter().map(|harvest| harvest.recorder);
    let all = recorders.reduce(|mut all, recorder| {
        all.merge(recorder);
        all
    });
    let Some(all) = all else {
        unreachable!("a plan has at least one connection, and so at least one thread")
    };
    all
}

fn accounting(all: &Recorder, in_flight: u64) -> Accounting {
    Accounting {
        issued: all.issued,
        answered: all.answered,
        good: all.good,
        failed: all.failed,
        shed: all.shed,
        abandoned: all.abandoned,
        in_flight,
        resent: all.resent,
    }
}

fn connections(plan: &Plan, harvests: &[Harvest]) -> Connections {
    let established = harvests.iter().map(|harvest| harvest.established as u64);
    Connections {
        asked: plan.load.connections as u64,
        established: established.sum(),
        opened: harvests
            .iter()
            .map(|harvest| harvest.recorder.connects)
            .sum(),
        keep_alive: plan.request.keep_alive,
        depth: depth(plan, harvests) as u64,
        conforming: harvests.iter().map(|harvest| harvest.conforming).sum(),
    }
}

/// Requests for which every connection had room at a time.
fn depth(plan: &Plan, harvests: &[Harvest]) -> usize {
    let depths = harvests.iter().map(|harvest| harvest.depth);
    depths.min().unwrap_or(plan.load.depth)
}

/// A note if the server allows fewer streams at a time than requested.
fn fewer_streams(plan: &Plan, depth: usize) -> Option<String> {
    (depth < plan.load.depth).then(|| {
        format!(
            "the server allows {depth} streams at a time on a connection, and {} were asked for",
            plan.load.depth
        )
    })
}

/// Time that the kernel kept from the client: throttled time, as the last thread to end read it;
/// the time for which threads waited for a core, summed; and the share of the duration for which
/// the worst thread waited.
fn kernel_delays(
    harvests: &[Harvest],
    duration: Nanos,
) -> (Option<Nanos>, Option<Nanos>, Option<f64>) {
    let throttled = harvests
        .iter()
        .filter_map(|harvest| harvest.used.kept.throttled);
    let delays: Vec<Nanos> = harvests
        .iter()
        .filter_map(|harvest| harvest.used.kept.run_delay)
        .collect();
    let worst = delays.iter().max();
    (
        throttled.max(),
        worst.map(|_| delays.iter().sum()),
        worst.map(|&delay| delay as f64 / duration.max(1) as f64),
    )
}

fn latencies(all: &Recorder) -> Latencies {
    let open = all.open.as_deref();
    Latencies {
        response: open.and_then(|open| summary(&open.response)),
        service: summary(&all.service),
        send_lag: open.and_then(|open| summary(&open.send_lag)),
        waiting: open.and_then(|open| summary(&open.waiting)),
        lateness: open.and_then(|open| summary(&open.lateness)),
        connect: summary(&all.connect),
        full_handshake: summary(&all.handshakes[0]),
        resumed_handshake: summary(&all.handshakes[1]),
    }
}

/// Whether the plan was completed although a stop was requested: the stop was too late.
fn ended_by_itself(plan: &Plan, harvests: &[Harvest]) -> bool {
    let finished: u64 = harvests
        .iter()
        .map(|harvest| {
            harvest.recorder.answered
                + harvest.recorder.failed
                + harvest.recorder.shed
                + harvest.recorder.abandoned
        })
        .sum();
    let open = harvests.iter().any(|harvest| harvest.in_flight > 0);
    match plan.length.stop {
        Stop::Requests(count) => finished >= count,
        Stop::Duration(_) => {
            !open
                && harvests
                    .iter()
                    .all(|harvest| harvest.stopped_at >= harvest.times.end)
        }
    }
}

fn examples(found: &[Option<&'static str>]) -> BTreeMap<String, String> {
    let named = FailureKind::ALL
        .iter()
        .filter_map(|kind| Some((kind.key().to_owned(), found[*kind as usize]?.to_owned())));
    named.collect()
}

/// A doubt about a run whose parts the statistics decided.
fn auto_doubt(auto: &Decided) -> Option<String> {
    let figures = &auto.figures;
    if !auto.is_decided {
        // The run was stopped, which another reason says; drift was not checked.
        None
    } else if !figures.steady {
        Some(
            "the run never became steady: rate or time still drifted when half the time was over"
                .to_owned(),
        )
    } else if !figures.converged {
        let width = |half: Option<f64>| match half {
            Some(half) => format!("to ±{:.1} %", half * 100.0),
            None => "not at all, for its values drift or hang together".to_owned(),
        };
        Some(format!(
            "when the time was over, the mean time was known {}, and the rate {}; ±{} % were asked for",
            width(figures.half_width_response),
            width(figures.half_width_rate),
            figures.precision * 100.0
        ))
    } else {
        None
    }
}

/// The histograms of what one or all threads have recorded.
pub(crate) fn histograms(recorder: &Recorder) -> Histograms {
    let open = recorder.open.as_deref();
    Histograms {
        significant_digits: FINE,
        response: open.and_then(|open| Hdr::of(&open.response)),
        service: Hdr::of(&recorder.service),
        send_lag: open.and_then(|open| Hdr::of(&open.send_lag)),
        waiting: open.and_then(|open| Hdr::of(&open.waiting)),
        lateness: open.and_then(|open| Hdr::of(&open.lateness)),
        connect: Hdr::of(&recorder.connect),
        full_handshake: Hdr::of(&recorder.handshakes[0]),
        resumed_handshake: Hdr::of(&recorder.handshakes[1]),
    }
}
