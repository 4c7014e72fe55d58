//! Measurements of each class of a workload, beside those of the whole run.

use hdrhistogram::Histogram;

use crate::Errors;
use crate::figures::ClassFigures;
use crate::hdr::{FINE, Hdr};
use crate::latency::summary;
use crate::outcome::Kind;
use crate::series::Series;
use crate::timeline::timeline;
use crate::timings::{Timing, Timings};
use base_clock::Nanos;

/// What one thread measures of one class.
pub(crate) struct ClassTimes {
    times: Timings,
    series: Series,
    pub(crate) issued: u64,
    pub(crate) answered: u64,
    pub(crate) good: u64,
    pub(crate) failed: u64,
    pub(crate) shed: u64,
    pub(crate) errors: [u64; Kind::ALL.len()],
    pub(crate) bytes: u64,
}

impl ClassTimes {
    /// `series` as [`Series::of_class`] makes it.
    pub(crate) fn new(series: Series) -> Self {
        Self {
            times: Timings::new(FINE, series.is_open),
            series,
            issued: 0,
            answered: 0,
            good: 0,
            failed: 0,
            shed: 0,
            errors: [0; Kind::ALL.len()],
            bytes: 0,
        }
    }

    /// A complete answer of `bytes`.
    pub(crate) fn answered(&mut self, bytes: u64, is_good: bool) {
        self.answered += 1;
        self.bytes += bytes;
        self.good += u64::from(is_good);
    }

    /// A request ended `at` after the start of the measured part.
    pub(crate) fn finished(&mut self, at: Nanos, cycle: Nanos, timing: &Timing) {
        self.times.record(timing);
        self.series.record(at, cycle, timing);
    }

    pub(crate) fn merge(&mut self, other: Self) {
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

    /// As it is reported; a closed loop has service times only.
    pub(crate) fn figures(&self, name: &str) -> ClassFigures {
        let Timings {
            service,
            response,
            send_lag,
        } = &self.times;
        let latency = |times: &Option<Histogram<u64>>| summary(times.as_ref()?);
        let stored = |times: &Option<Histogram<u64>>| Hdr::of(times.as_ref()?);
        ClassFigures {
            name: name.to_owned(),
            issued: self.issued,
            requests: self.answered,
            good: self.good,
            failed: self.failed,
            shed: self.shed,
            errors: Errors::new(&self.errors),
            bytes: self.bytes,
            response_us: latency(response),
            service_us: summary(service),
            send_lag_us: latency(send_lag),
            response: stored(response),
            service: Hdr::of(service),
            send_lag: stored(send_lag),
            series: timeline(&self.series),
        }
    }
}
