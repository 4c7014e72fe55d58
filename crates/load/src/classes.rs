//! Measurements of each class of a workload, beside those of the whole run.

use hdrhistogram::Histogram;

use crate::clock::Nanos;
use crate::figures::ClassFigures;
use crate::hdr::Hdr;
use crate::latency::summary;
use crate::series::histogram;

/// What one thread measures of one class.
pub(crate) struct ClassTimes {
    pub(crate) service: Histogram<u64>,
    pub(crate) response: Histogram<u64>,
    pub(crate) issued: u64,
    pub(crate) answered: u64,
    pub(crate) good: u64,
    pub(crate) failed: u64,
    pub(crate) shed: u64,
    pub(crate) bytes: u64,
}

impl ClassTimes {
    pub(crate) fn new() -> Self {
        Self {
            service: histogram(3),
            response: histogram(3),
            issued: 0,
            answered: 0,
            good: 0,
            failed: 0,
            shed: 0,
            bytes: 0,
        }
    }

    /// A complete answer of `bytes`; the times of a good one.
    pub(crate) fn answered(&mut self, bytes: u64, times: Option<(Nanos, Nanos)>) {
        self.answered += 1;
        self.bytes += bytes;
        if let Some((service, response)) = times {
            self.good += 1;
            self.service.saturating_record(service);
            self.response.saturating_record(response);
        }
    }

    pub(crate) fn merge(&mut self, other: Self) {
        // All have the same bounds, so nothing can fall outside.
        let _ = self.service.add(other.service);
        let _ = self.response.add(other.response);
        self.issued += other.issued;
        self.answered += other.answered;
        self.good += other.good;
        self.failed += other.failed;
        self.shed += other.shed;
        self.bytes += other.bytes;
    }

    /// As it is reported; a closed loop has no response times.
    pub(crate) fn figures(&self, name: &str, is_open: bool) -> ClassFigures {
        ClassFigures {
            name: name.to_owned(),
            issued: self.issued,
            requests: self.answered,
            good: self.good,
            failed: self.failed,
            shed: self.shed,
            bytes: self.bytes,
            response_us: summary(&self.response).filter(|_| is_open),
            service_us: summary(&self.service),
            response: Hdr::of(&self.response).filter(|_| is_open),
            service: Hdr::of(&self.service),
        }
    }
}
