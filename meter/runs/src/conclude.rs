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
    /// True if the caller requested a stop.
    pub(crate) stopped: bool,
    /// The probe of the PostgreSQL server, still running.
    pub(crate) postgres: Option<PgProber>,
    /// The probe of the host, with begin and end of the measured part.
    pub(crate) probed: Option<(Probe, Nanos, Nanos)>,
}

pub(crate) fn conclude(measured: Measured<'_>) -> Run {
    let Measured { plan, sent, .. } = measured;
    let whole = Whole::of(plan, sent.harvests, measured.stopped);
    let mut run = run_of(plan, &whole);
    run.streams = sent.streams.as_ref().map(visits::streams).map(Box::new);
    judge(&mut run, plan, &whole, sent.auto.as_ref());
    if let Some(auto) = sent.auto {
        run.warmup_s = auto.figures.warmup_s;
        run.auto = Some(AutoFigures {
            measured_s: run.duration_s,
            ..auto.figures
        });
    }
    run.postgres = measured.postgres.map(|prober| {
        let lengths = [run.warmup_s, run.duration_s];
        postgres::finish(prober, whole.lengths.start, &run.series, lengths)
    });
    if let Some((probe, start, end)) = measured.probed {
        run.attach_probe(probe, Moment::Monotonic(start), Moment::Monotonic(end));
    }
    run
}

/// The results of all threads together.
struct Whole {
    lengths: Lengths,
    /// True if a requested stop ended the run before its plan did.
    cut_short: bool,
    client: ClientFigures,
    delays: Delays,
    never_established: usize,
    connections: Connections,
    in_flight: u64,
    all: Recorder,
}

impl Whole {
    fn of(plan: &Plan, harvests: Vec<Harvest>, stopped: bool) -> Self {
        let lengths = Lengths::of(plan, &harvests);
        let delays = Delays::of(&harvests);
        Self {
            cut_short: stopped && !ended_by_itself(plan, &harvests),
            client: client_figures(plan, &harvests, lengths.start, &delays),
            never_established: harvests.iter().map(|harvest| harvest.never).sum(),
            connections: connections(plan, &harvests),
            in_flight: harvests.iter().map(|harvest| harvest.in_flight).sum(),
            lengths,
            delays,
            all: merged_recorder(harvests),
        }
    }

    fn per_second(&self, count: u64) -> f64 {
        match self.lengths.duration {
            0 => 0.0,
            duration => count as f64 / (duration as f64 / 1e9),
        }
    }
}

/// The run with its figures, before it is judged.
fn run_of(plan: &Plan, whole: &Whole) -> Run {
    let (all, steady) = (&whole.all, whole.lengths.steady);
    let is_open = plan.load.schedule.is_some();
    let times = all.open.as_ref();
    let times = times.map_or(&all.service, |open| &open.response);
    let achieved_rate = whole.per_second(all.answered_in_time);
    let in_flight = (plan.load.connections * whole.connections.depth as usize) as f64;
    Run {
        kind: if is_open { Loop::Open } else { Loop::Closed },
        protocol: match plan.target.http2 {
            true => Protocol::Http2,
            false => Protocol::Http1,
        },
        url: plan.target.url.clone(),
        duration_s: whole.lengths.duration as f64 / 1e9,
        warmup_s: plan.length.unmeasured().as_secs_f64(),
        requests: all.answered,
        accounting: accounting(all, whole.in_flight),
        offered_rate: visits::offered_rate(plan, all, steady),
        backlog: visits::backlog(plan, all, steady),
        achieved_rate,
        good_rate: whole.per_second(all.good_in_time),
        bytes: all.bytes,
        errors: Errors::new(&all.errors),
        error_examples: examples(&all.examples),
        latency_us: latencies(all),
        connections: whole.connections,
        client: whole.client,
        little: match is_open {
            false => verdict::little(&all.series, steady, in_flight),
            true => verdict::little_sampled(&all.series, steady),
        },
        host: Host::here(),
        command: plan.conditions.command.clone(),
        series: timeline::timeline(&all.series),
        histogram: buckets(times),
        percentiles: quantiles(times),
        classes: visits::classes(plan, all),
        sessions: visits::sessions(plan, all),
        pauses: visits::pauses(plan, all),
        ramp_down: visits::ramp_down(&plan.length, all),
        calibration: (plan.conditions.calibration).map(|known| known.after(achieved_rate)),
        started_unix_us: base_clock::unix_micros(whole.lengths.start),
        histograms: histograms(all),
        ..Run::default()
    }
}

/// Adds the verdict, its reasons and the notes.
fn judge(run: &mut Run, plan: &Plan, whole: &Whole, auto: Option<&Decided>) {
    let (series, steady) = (&whole.all.series, whole.lengths.steady);
    let (offered, backlog) = (run.offered_rate, run.backlog);
    let evidence = verdict::Evidence {
        accounting: &run.accounting,
        errors: run.errors.total(),
        never_established: whole.never_established,
        asked: plan.load.connections,
        busiest_thread: run.client.busiest_thread,
        little: run.little.as_ref(),
        is_open: plan.load.schedule.is_some(),
        latency_us: &run.latency_us,
        unsteady: visits::unsteady(plan, series, steady, offered, backlog),
        cut_short: whole.cut_short,
        achieved_rate: run.achieved_rate,
        calibration: plan.conditions.calibration.as_ref(),
        throttled: whole.lengths.share(whole.delays.throttled),
        waited: whole.lengths.share(whole.delays.worst),
    };
    let mut judged = verdict::judge(&evidence);
    let mut notes = verdict::notes(&evidence);
    if let Some(doubt) = auto.and_then(auto_doubt) {
        judged.doubt(doubt);
    }
    notes.extend(fewer_streams(plan, whole.connections.depth));
    notes.extend(spin::note(&plan.target, &plan.load));
    run.verdict = judged.verdict;
    run.reasons = judged.reasons;
    run.client_at_fault = judged.client_at_fault;
    run.notes = notes;
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

    /// Returns a time as a share of the duration.
    fn share(&self, time: Option<Nanos>) -> Option<f64> {
        time.map(|time| time as f64 / self.duration.max(1) as f64)
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
    // Every connection had room for as many requests at a time.
    let depths = harvests.iter().map(|harvest| harvest.depth);
    Connections {
        asked: plan.load.connections as u64,
        established: established.sum(),
        opened: harvests
            .iter()
            .map(|harvest| harvest.recorder.connects)
            .sum(),
        keep_alive: plan.request.keep_alive,
        depth: depths.min().unwrap_or(plan.load.depth) as u64,
        conforming: harvests.iter().map(|harvest| harvest.conforming).sum(),
    }
}

/// A note if the server allows fewer streams at a time than requested.
fn fewer_streams(plan: &Plan, depth: u64) -> Option<String> {
    (depth < plan.load.depth as u64).then(|| {
        format!(
            "the server allows {depth} streams at a time on a connection, and {} were asked for",
            plan.load.depth
        )
    })
}

/// Time that the kernel kept from the client.
struct Delays {
    /// As the last thread to end read it.
    throttled: Option<Nanos>,
    /// While threads waited for a core, summed.
    waited: Option<Nanos>,
    /// While the worst thread waited for one.
    worst: Option<Nanos>,
}

impl Delays {
    fn of(harvests: &[Harvest]) -> Self {
        let kept = || harvests.iter().map(|harvest| &harvest.used.kept);
        let waited = || kept().filter_map(|kept| kept.run_delay);
        let worst = waited().max();
        Self {
            throttled: kept().filter_map(|kept| kept.throttled).max(),
            waited: worst.map(|_| waited().sum()),
            worst,
        }
    }
}

/// Sums the resources that the client itself used. Spinning while the last responses are awaited
/// belongs to no request.
fn client_figures(
    plan: &Plan,
    harvests: &[Harvest],
    start: Nanos,
    delays: &Delays,
) -> ClientFigures {
    let used = || harvests.iter().map(|harvest| &harvest.used);
    let cpu: Nanos = harvests.iter().map(|harvest| harvest.cpu).sum();
    let spun: Nanos = used().map(|used| used.cpu.spun).sum();
    let recorders = harvests.iter().map(|harvest| &harvest.recorder);
    let finished = recorders.map(|recorder| recorder.answered + recorder.failed);
    let finished: u64 = finished.sum();
    ClientFigures {
        cpu_us_per_request: (finished > 0).then(|| cpu as f64 / 1000.0 / finished as f64),
        busiest_thread: used().map(|used| used.busy()).fold(0.0, f64::max),
        threads: harvests.len() as u64,
        throttled_us: delays.throttled.map(|time| time / 1000),
        run_delay_us: delays.waited.map(|time| time / 1000),
        turns: used().map(|used| used.kept.turns).sum(),
        spin: plan.load.spin,
        spun_us: plan.load.spin.then_some(spun / 1000),
        started_ns: start,
    }
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

/// True if the plan was completed although a stop was requested: the stop was too late.
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
