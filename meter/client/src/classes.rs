//! Measurements of each class of a workload, in addition to those of the whole run.

use crate::outcome::FailureKind;
use base_clock::Nanos;
use millrace_stats::hdr::FINE;
use millrace_stats::series::Series;
use millrace_stats::timings::{Timing, Timings};

/// One thread's measurements of one class.
pub struct ClassTimes {
    /// The times of its requests.
    pub times: Timings,
    /// The times of its requests by interval.
    pub series: Series,
    /// Requests issued.
    pub issued: u64,
    /// Requests with a complete response.
    pub answered: u64,
    /// Requests with a good response.
    pub good: u64,
    /// Requests that will not be answered.
    pub failed: u64,
    /// Requests that were past their deadline before they could be sent.
    pub shed: u64,
    /// Failures by kind.
    pub errors: [u64; FailureKind::ALL.len()],
    /// Bytes of the responses, heads included.
    pub bytes: u64,
}

impl ClassTimes {
    /// `series` as [`Series::of_class`] makes it.
    pub fn new(series: Series) -> Self {
        Self {
            times: Timings::new(FINE, series.is_open),
            series,
            issued: 0,
            answered: 0,
            good: 0,
            failed: 0,
            shed: 0,
            errors: [0; FailureKind::ALL.len()],
            bytes: 0,
        }
    }

    /// A complete response of `bytes`.
    pub fn answered(&mut self, bytes: u64, is_good: bool) {
        self.answered += 1;
        self.bytes += bytes;
        self.good += u64::from(is_good);
    }

    /// A request ended `at` after the start of the measured part.
    pub fn finished(&mut self, at: Nanos, cycle: Nanos, timing: &Timing) {
        self.times.record(timing);
        self.series.record(at, cycle, timing);
    }

    /// Adds what another thread measured.
    pub fn merge(&mut self, other: Self) {
        self.times.add(&other.times);
        self.series.merge(other.series);
        self.issued += other.issued;
        self.answered += other.answered;
        self.good += other.good;
        self.failed += other.failed;
        self.shed += other.shed;
        for (mine, count) in self.errors.iter_mut().zip(other.errors) {
            *mine += count;
        }
        self.bytes += other.bytes;
    }
}
