//! The measurements of one thread. Only two counters for the progress line are shared.

use std::sync::atomic::{AtomicU64, Ordering};

use hdrhistogram::Histogram;

use crate::auto::Pulse;
use crate::classes::ClassTimes;
use crate::cpu_accounting::CpuAccount;
use crate::outcome::{FailureKind, Fault};
use crate::response::CompleteResponse;
use crate::tickets::Times;
use base_clock::Nanos;
use millrace_stats::series::{LONGEST, Series, histogram};
use millrace_stats::timings::Timing;

/// Counters that the progress line reads while the threads run.
#[derive(Default)]
pub struct Live {
    /// Measured requests that have ended.
    pub finished: AtomicU64,
    /// Measured requests that ended without a good response.
    pub errors: AtomicU64,
    /// Only for a run whose parts are decided during the run.
    pub(crate) pulse: Option<Pulse>,
}

/// One thread's measurements.
pub struct Recorder {
    /// Service times of good responses.
    pub service: Histogram<u64>,
    /// Times that only an open loop has.
    pub open: Option<Box<OpenTimes>>,
    /// Times that connections took to be established.
    pub connect: Histogram<u64>,
    /// Times of TLS handshakes, full ones and resumed ones.
    pub handshakes: [Histogram<u64>; 2],
    /// Failures by kind.
    pub errors: [u64; FailureKind::ALL.len()],
    /// A detail of the first failure of each kind.
    pub examples: [Option<&'static str>; FailureKind::ALL.len()],
    /// The measured part over time.
    pub series: Series,
    /// Requests issued.
    pub issued: u64,
    /// Requests issued after the measured part, which nothing else here counts.
    pub after: u64,
    /// Requests with a complete response.
    pub answered: u64,
    /// Requests with a good response.
    pub good: u64,
    /// Requests that will not be answered.
    pub failed: u64,
    /// Requests that were past their deadline before they could be sent.
    pub shed: u64,
    /// Responses completed in the measured time, including those to requests of the warm-up.
    pub answered_in_time: u64,
    /// Good responses among these.
    pub good_in_time: u64,
    /// Bytes of responses, heads included.
    pub bytes: u64,
    /// Connections opened, whenever that was.
    pub connects: u64,
    /// Requests sent again because the server closed the connection after an earlier answer.
    pub resent: u64,
    /// Requests of sessions that were not made, because the session ended early.
    pub abandoned: u64,
    /// Sessions and pauses.
    pub visits: Visits,
    /// Empty if there is only one class.
    pub classes: Vec<ClassTimes>,
    /// When the last measured request ended.
    pub last: Nanos,
    start: Nanos,
    end: Nanos,
    /// CPU time of the measured part.
    pub work: CpuAccount,
    /// When the requests in flight were last counted.
    sampled_at: Nanos,
}

/// Times counted from the time at which a request was due.
pub struct OpenTimes {
    /// To the complete response, of good responses.
    pub response: Histogram<u64>,
    /// To the actual send, of all that were sent.
    pub send_lag: Histogram<u64>,
    /// The part of it until a connection was ready.
    pub waiting: Histogram<u64>,
    /// The rest: the client's own lateness.
    pub lateness: Histogram<u64>,
}

impl OpenTimes {
    fn new() -> Self {
        Self {
            response: histogram(3),
            send_lag: histogram(3),
            waiting: histogram(3),
            lateness: histogram(3),
        }
    }

    fn record(&mut self, request: &Pending, timing: &Timing) {
        if let Some(response) = timing.response {
            self.response.saturating_record(response);
        }
        let Some(send_lag) = timing.send_lag else {
            return;
        };
        let ready = request.free_at.max(request.due);
        let times = [
            (&mut self.send_lag, send_lag),
            (&mut self.waiting, ready - request.due),
            (&mut self.lateness, request.sent_at.saturating_sub(ready)),
        ];
        for (histogram, time) in times {
            histogram.saturating_record(time.min(LONGEST));
        }
    }

    fn merge(&mut self, other: Self) {
        // All have the same bounds, so nothing can fall outside.
        let _ = self.response.add(other.response);
        let _ = self.send_lag.add(other.send_lag);
        let _ = self.waiting.add(other.waiting);
        let _ = self.lateness.add(other.lateness);
    }
}

/// Sums over the measured requests of users who pause, and over their sessions.
#[derive(Clone, Copy, Debug, Default)]
pub struct Visits {
    /// Planned pauses before requests, and how many requests that were.
    pub pauses: u128,
    /// Requests that had one.
    pub paused: u64,
    /// Requests whose response arrived after the next request was due.
    pub missed_cycles: u64,
    /// Sessions whose first request was measured.
    pub started: u64,
    /// Sessions whose last request was measured and had a good response.
    pub completed: u64,
    /// Sessions that ended early with a measured request that had no good response.
    pub broken_off: u64,
}

impl Visits {
    fn add(&mut self, other: Self) {
        self.pauses += other.pauses;
        self.paused += other.paused;
        self.missed_cycles += other.missed_cycles;
        self.started += other.started;
        self.completed += other.completed;
        self.broken_off += other.broken_off;
    }
}

/// A request that is issued and not finished.
#[derive(Clone, Copy, Debug)]
pub struct Pending {
    /// The request of the plan that was chosen.
    pub index: u32,
    /// The class of a workload that it belongs to.
    pub class: u16,
    /// Warm-up requests are not measured.
    pub measured: bool,
    /// When the request was due: by the schedule, or in a closed loop when its place on a
    /// connection became free.
    pub due: Nanos,
    /// When its place on the connection became free; for a connection of its own, when the
    /// connection was open.
    pub free_at: Nanos,
    /// When its first byte was handed to the system; 0 before.
    pub sent_at: Nanos,
    /// The planned pause before the request, in a closed loop with pauses. Pause and time from
    /// `due` on are a cycle of the connection. The client's own lateness is left out, so that
    /// Little's law reveals it.
    pub pause: Nanos,
}

impl Recorder {
    /// Records a measured part from `start` to `end`; `duration` is its length, if known.
    pub fn new(start: Nanos, end: Nanos, duration: Option<Nanos>, is_open: bool) -> Self {
        Self {
            service: histogram(3),
            open: is_open.then(|| Box::new(OpenTimes::new())),
            connect: histogram(3),
            handshakes: [histogram(3), histogram(3)],
            errors: [0; FailureKind::ALL.len()],
            examples: [None; FailureKind::ALL.len()],
            series: Series::new(duration, is_open),
            issued: 0,
            after: 0,
            answered: 0,
            good: 0,
            failed: 0,
            shed: 0,
            answered_in_time: 0,
            good_in_time: 0,
            bytes: 0,
            connects: 0,
            resent: 0,
            abandoned: 0,
            visits: Visits::default(),
            classes: Vec::new(),
            last: start,
            start,
            end,
            work: CpuAccount::default(),
            sampled_at: start,
        }
    }

    /// The measured part begins and ends at these times, which were not known before.
    pub(crate) fn adopt(&mut self, times: Times) {
        if self.start != times.start {
            (self.start, self.last, self.sampled_at) = (times.start, times.start, times.start);
        }
        self.end = times.end;
    }

    /// A request is issued that is due `at`.
    #[inline]
    pub(crate) fn issue(&mut self, measured: bool, at: Nanos) {
        self.issued += u64::from(measured);
        self.after += u64::from(!measured && at >= self.end);
    }

    /// Counts a user's request, with its pause and its class.
    pub fn made(&mut self, request: &Pending) {
        if !request.measured {
            return;
        }
        self.visits.pauses += u128::from(request.pause);
        self.visits.paused += 1;
        if let Some(class) = self.classes.get_mut(usize::from(request.class)) {
            class.issued += 1;
        }
    }

    /// Records that `in_flight` requests were due and have not ended. The count holds for the time
    /// since the last sample.
    pub fn sample(&mut self, now: Nanos, in_flight: usize) {
        let until = now.min(self.end);
        if until > self.sampled_at {
            let since = until - self.sampled_at;
            self.series
                .sample(until - self.start, since, in_flight as u64);
            self.sampled_at = until;
        }
    }

    /// Called in every turn of the loop. `is_empty` says that a spinning thread had nothing to do
    /// in the turn.
    pub fn turn(&mut self, now: Nanos, is_empty: bool) {
        self.work.turn(now, self.start, is_empty);
    }

    /// Share of a core that this thread has worked since the measured part began.
    pub fn busy(&self) -> f64 {
        let span = base_clock::now().saturating_sub(self.start);
        match span {
            0 => 0.0,
            _ => (self.work.cpu().work as f64 / span as f64).min(1.0),
        }
    }

    /// Records the time that a connection took to be established.
    pub fn connected(&mut self, took: Nanos) {
        self.connects += 1;
        self.connect.saturating_record(took.clamp(1, LONGEST));
    }

    /// Records the time of a TLS handshake. A resumed one proves an earlier session instead of a
    /// certificate (RFC 8446 section 2.2).
    pub fn shook_hands(&mut self, took: Nanos, is_resumed: bool) {
        self.handshakes[usize::from(is_resumed)].saturating_record(took.clamp(1, LONGEST));
    }

    /// Counts a complete response; `end` says why it is not good, if so.
    pub fn answered(
        &mut self,
        request: &Pending,
        answer: &CompleteResponse,
        end: Result<(), Fault>,
        now: Nanos,
        live: &Live,
    ) {
        let good = end.is_ok();
        let timing = Timing::of(
            [request.due, request.sent_at, now],
            good,
            self.open.is_some(),
        );
        if let (Some(pulse), Some(time)) = (&live.pulse, timing.main()) {
            pulse.record(now, time);
        }
        // Responses to requests in flight at the start of the measured part belong to its
        // throughput, because those in flight at its end do not.
        let in_time = u64::from((self.start..=self.end).contains(&now));
        self.answered_in_time += in_time;
        self.good_in_time += in_time * u64::from(good);
        if !request.measured {
            return;
        }
        self.answered += 1;
        self.bytes += answer.bytes;
        self.good += u64::from(good);
        if let Some(class) = self.classes.get_mut(usize::from(request.class)) {
            class.answered(answer.bytes, good);
        }
        if let Err((kind, example)) = end {
            self.count_failure(request, kind, example, live);
        }
        self.finished(request, &timing, now, live);
    }

    /// Counts a request that will not be answered.
    pub fn failed(
        &mut self,
        request: &Pending,
        kind: FailureKind,
        example: Option<&'static str>,
        now: Nanos,
        live: &Live,
    ) {
        if request.measured {
            self.failed += 1;
            if let Some(class) = self.classes.get_mut(usize::from(request.class)) {
                class.failed += 1;
            }
            self.count_failure(request, kind, example, live);
            self.ended_without_response(request, now, live);
        }
    }

    /// Counts a request that was past its deadline before it could be sent.
    pub fn shed(&mut self, request: &Pending, now: Nanos, live: &Live) {
        if request.measured {
            self.shed += 1;
            if let Some(class) = self.classes.get_mut(usize::from(request.class)) {
                class.shed += 1;
            }
            self.count_failure(request, FailureKind::Shed, None, live);
            self.ended_without_response(request, now, live);
        }
    }

    /// Counts bytes that answer no request.
    pub fn unsolicited(&mut self, now: Nanos, live: &Live) {
        if (self.start..=self.end).contains(&now) {
            self.error(FailureKind::Unsolicited, None, live);
        }
    }

    /// Counts a failure for the run and for the request's class.
    fn count_failure(
        &mut self,
        request: &Pending,
        kind: FailureKind,
        example: Option<&'static str>,
        live: &Live,
    ) {
        if let Some(class) = self.classes.get_mut(usize::from(request.class)) {
            class.errors[kind as usize] += 1;
        }
        self.error(kind, example, live);
    }

    fn error(&mut self, kind: FailureKind, example: Option<&'static str>, live: &Live) {
        self.errors[kind as usize] += 1;
        let slot = &mut self.examples[kind as usize];
        *slot = slot.or(example);
        live.errors.fetch_add(1, Ordering::Relaxed);
    }

    fn ended_without_response(&mut self, request: &Pending, now: Nanos, live: &Live) {
        let timing = Timing::of(
            [request.due, request.sent_at, now],
            false,
            self.open.is_some(),
        );
        self.finished(request, &timing, now, live);
    }

    fn finished(&mut self, request: &Pending, timing: &Timing, now: Nanos, live: &Live) {
        if let Some(service) = timing.service {
            self.service.saturating_record(service);
        }
        if let Some(open) = &mut self.open {
            open.record(request, timing);
        }
        let at = now.saturating_sub(self.start);
        let cycle = now.saturating_sub(request.due) + request.pause;
        if let Some(class) = self.classes.get_mut(usize::from(request.class)) {
            class.finished(at, cycle, timing);
        }
        self.series.record(at, cycle, timing);
        self.last = self.last.max(now);
        live.finished.fetch_add(1, Ordering::Relaxed);
    }
}

impl Recorder {
    /// Adds what another thread measured.
    pub fn merge(&mut self, other: Self) {
        // Both histograms have the same bounds, so nothing can fall outside.
        let _ = self.service.add(other.service);
        let _ = self.connect.add(other.connect);
        for (mine, others) in self.handshakes.iter_mut().zip(other.handshakes) {
            let _ = mine.add(others);
        }
        if let (Some(open), Some(others)) = (&mut self.open, other.open) {
            open.merge(*others);
        }
        for (kind, count) in other.errors.into_iter().enumerate() {
            self.errors[kind] += count;
            self.examples[kind] = self.examples[kind].or(other.examples[kind]);
        }
        self.series.merge(other.series);
        self.issued += other.issued;
        self.after += other.after;
        self.answered += other.answered;
        self.good += other.good;
        self.failed += other.failed;
        self.shed += other.shed;
        self.answered_in_time += other.answered_in_time;
        self.good_in_time += other.good_in_time;
        self.bytes += other.bytes;
        self.connects += other.connects;
        self.resent += other.resent;
        self.abandoned += other.abandoned;
        self.visits.add(other.visits);
        for (mine, class) in self.classes.iter_mut().zip(other.classes) {
            mine.merge(class);
        }
        self.last = self.last.max(other.last);
    }
}
