//! The series as it is reported.

use hdrhistogram::Histogram;

use crate::hdr::Hdr;
use crate::latency::{quantile, us};
use crate::run::{Point, Timeline};
use crate::series::Series;
use crate::timings::Timings;

/// One interval of a run or of several.
pub(crate) struct Interval<'a> {
    /// When it begins, in seconds from the start of the measured part.
    pub(crate) at_s: f64,
    pub(crate) requests: u64,
    pub(crate) errors: u64,
    /// Service times, in an open loop response times.
    pub(crate) main: Option<&'a Histogram<u64>>,
    /// Only of an open loop, as is the next.
    pub(crate) service: Option<&'a Histogram<u64>>,
    pub(crate) send_lag: Option<&'a Histogram<u64>>,
}

impl Interval<'_> {
    pub(crate) fn point(&self) -> Point {
        let at = |times: Option<&Histogram<u64>>, q| quantile(times?, q);
        let longest = self.main.filter(|times| !times.is_empty());
        Point {
            at_s: self.at_s,
            requests: self.requests,
            errors: self.errors,
            p50_us: at(self.main, 0.5),
            p99_us: at(self.main, 0.99),
            max_us: longest.map(|times| us(times.max())),
            service_p50_us: at(self.service, 0.5),
            service_p99_us: at(self.service, 0.99),
            send_lag_p99_us: at(self.send_lag, 0.99),
        }
    }
}

pub(crate) fn timeline(series: &Series) -> Timeline {
    let points = series.slots.iter().enumerate().map(|(index, slot)| {
        let times = slot.times.as_ref();
        let interval = Interval {
            at_s: (index as u64 * series.interval) as f64 / 1e9,
            requests: slot.finished,
            errors: slot.errors,
            main: times.map(Timings::main),
            service: times.filter(|_| series.is_open).map(|times| &times.service),
            send_lag: times.and_then(|times| times.send_lag.as_ref()),
        };
        interval.point()
    });
    let stored = |of: fn(&Timings) -> Option<&Histogram<u64>>| {
        let slots = series.slots.iter();
        slots
            .map(|slot| Hdr::of(of(slot.times.as_ref()?)?))
            .collect()
    };
    // A closed loop has no other times than the main ones.
    let beside = |of| match series.is_open {
        true => stored(of),
        false => Vec::new(),
    };
    Timeline {
        interval_s: series.interval as f64 / 1e9,
        points: points.collect(),
        histograms: stored(|times| Some(times.main())),
        service: beside(|times| Some(&times.service)),
        send_lag: beside(|times| times.send_lag.as_ref()),
    }
}
