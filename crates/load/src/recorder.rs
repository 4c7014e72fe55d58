//! What one thread measures. Nothing here is shared but two counters for the progress line.

use std::sync::atomic::{AtomicU64, Ordering};

use hdrhistogram::Histogram;

use crate::clock::{self, Nanos};
use crate::outcome::Kind;
use crate::response::Answer;
use crate::series::{LONGEST, Series, histogram};

/// Counters that the progress line reads while the threads run.
#[derive(Default)]
pub(crate) struct Live {
    pub(crate) finished: AtomicU64,
    pub(crate) errors: AtomicU64,
}

/// One thread's measurements.
pub(crate) struct Recorder {
    pub(crate) service: Histogram<u64>,
    pub(crate) connect: Histogram<u64>,
    pub(crate) errors: [u64; Kind::ALL.len()],
    pub(crate) examples: [Option<&'static str>; Kind::ALL.len()],
    pub(crate) series: Series,
    pub(crate) issued: u64,
    pub(crate) answered: u64,
    pub(crate) good: u64,
    pub(crate) failed: u64,
    /// Answers complete before the end of the measured time.
    pub(crate) answered_in_time: u64,
    pub(crate) good_in_time: u64,
    pub(crate) bytes: u64,
    /// Connections opened, whenever that was.
    pub(crate) connects: u64,
    /// Requests sent again because the server closed the connection after an earlier answer.
    pub(crate) resent: u64,
    /// When the last measured request ended.
    pub(crate) last: Nanos,
    start: Nanos,
    end: Nanos,
    cpu_at_start: Option<Nanos>,
}

/// A request that is issued and not finished.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pending {
    pub(crate) index: u32,
    /// Warm-up requests are not measured.
    pub(crate) measured: bool,
    /// When the place on the connection that it uses became free.
    pub(crate) free_at: Nanos,
    /// When its first byte was handed to the system; 0 before.
    pub(crate) sent_at: Nanos,
}

impl Recorder {
    /// For a measured part from `start` to `end`; `duration` is its length where that is known.
    pub(crate) fn new(start: Nanos, end: Nanos, duration: Option<Nanos>) -> Self {
        Self {
            service: histogram(3),
            connect: histogram(3),
            errors: [0; Kind::ALL.len()],
            examples: [None; Kind::ALL.len()],
            series: Series::new(duration),
            issued: 0,
            answered: 0,
            good: 0,
            failed: 0,
            answered_in_time: 0,
            good_in_time: 0,
            bytes: 0,
            connects: 0,
            resent: 0,
            last: start,
            start,
            end,
            cpu_at_start: None,
        }
    }

    /// Called in every turn of the loop: takes the thread's CPU time when the measured part begins.
    pub(crate) fn turn(&mut self, now: Nanos) {
        if self.cpu_at_start.is_none() && now >= self.start {
            self.cpu_at_start = Some(clock::thread_cpu());
        }
    }

    /// CPU time of this thread since the measured part began.
    pub(crate) fn cpu(&self) -> Nanos {
        self.cpu_at_start
            .map_or(0, |start| clock::thread_cpu() - start)
    }

    pub(crate) fn connected(&mut self, took: Nanos) {
        self.connects += 1;
        self.connect.saturating_record(took.clamp(1, LONGEST));
    }

    /// A complete answer; `good` says whether its status was expected.
    pub(crate) fn answered(
        &mut self,
        request: &Pending,
        answer: &Answer,
        good: bool,
        now: Nanos,
        live: &Live,
    ) {
        if !request.measured {
            return;
        }
        let service = now.saturating_sub(request.sent_at).clamp(1, LONGEST);
        self.answered += 1;
        self.bytes += answer.bytes;
        let in_time = u64::from(now <= self.end);
        self.answered_in_time += in_time;
        if good {
            self.good += 1;
            self.good_in_time += in_time;
            self.service.saturating_record(service);
        } else {
            self.error(Kind::of_status(answer.status), None, live);
        }
        self.finished(request, good.then_some(service), now, live);
    }

    /// A request that will not be answered.
    pub(crate) fn failed(
        &mut self,
        request: &Pending,
        kind: Kind,
        example: Option<&'static str>,
        now: Nanos,
        live: &Live,
    ) {
        if request.measured {
            self.failed += 1;
            self.error(kind, example, live);
            self.finished(request, None, now, live);
        }
    }

    /// Bytes that no request asked for.
    pub(crate) fn unsolicited(&mut self, now: Nanos, live: &Live) {
        if now >= self.start {
            self.error(Kind::Unsolicited, None, live);
        }
    }

    fn error(&mut self, kind: Kind, example: Option<&'static str>, live: &Live) {
        self.errors[kind as usize] += 1;
        let slot = &mut self.examples[kind as usize];
        *slot = slot.or(example);
        live.errors.fetch_add(1, Ordering::Relaxed);
    }

    fn finished(&mut self, request: &Pending, service: Option<Nanos>, now: Nanos, live: &Live) {
        let cycle = now.saturating_sub(request.free_at);
        self.series
            .record(now.saturating_sub(self.start), cycle, service);
        self.last = self.last.max(now);
        live.finished.fetch_add(1, Ordering::Relaxed);
    }
}

impl Recorder {
    /// Adds what another thread measured.
    pub(crate) fn merge(&mut self, other: Self) {
        // Both histograms have the same bounds, so nothing can fall outside.
        let _ = self.service.add(other.service);
        let _ = self.connect.add(other.connect);
        for (kind, count) in other.errors.into_iter().enumerate() {
            self.errors[kind] += count;
            self.examples[kind] = self.examples[kind].or(other.examples[kind]);
        }
        self.series.merge(other.series);
        self.issued += other.issued;
        self.answered += other.answered;
        self.good += other.good;
        self.failed += other.failed;
        self.answered_in_time += other.answered_in_time;
        self.good_in_time += other.good_in_time;
        self.bytes += other.bytes;
        self.connects += other.connects;
        self.resent += other.resent;
        self.last = self.last.max(other.last);
    }
}
