//! The series as it is reported.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use crate::hdr::Hdr;
use crate::latency::{quantile, us};
use crate::series::Series;
use crate::timings::Timings;

/// The measured part in intervals of equal length.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Timeline {
    /// Length of one interval.
    pub interval_s: f64,
    /// The intervals in order. The last may be incomplete, and may lie after the end, with late
    /// answers.
    pub points: Vec<Point>,
    /// For each interval the times of good answers, to two significant digits; `None` where there
    /// are none. They are service times, in an open loop response times.
    #[serde(default)]
    pub histograms: Vec<Option<Hdr>>,
    /// For each interval the service times of good answers; only of an open loop, and empty in
    /// results that do not have them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub service: Vec<Option<Hdr>>,
    /// For each interval the send lags of all requests that were sent and ended in it; present
    /// where `service` is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub send_lag: Vec<Option<Hdr>>,
}

/// One interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Its beginning, from the start of the measured part.
    pub at_s: f64,
    /// Requests that ended in it, well or not.
    pub requests: u64,
    /// Requests that ended otherwise than with a good answer.
    pub errors: u64,
    /// Median service time, in an open loop response time; `None` with fewer than ten samples
    /// beyond it.
    pub p50_us: Option<f64>,
    /// 99th percentile of the same, with ten samples beyond it or not at all.
    pub p99_us: Option<f64>,
    /// The longest.
    pub max_us: Option<f64>,
    /// In an open loop the median service time, with ten samples beyond it or not at all.
    pub service_p50_us: Option<f64>,
    /// 99th percentile of the same.
    pub service_p99_us: Option<f64>,
    /// In an open loop the 99th percentile of the send lag; `None` with fewer than ten samples
    /// beyond it.
    pub send_lag_p99_us: Option<f64>,
}

/// One interval of a run or of several.
pub struct Interval<'a> {
    /// When it begins, in seconds from the start of the measured part.
    pub at_s: f64,
    /// Requests that ended in it.
    pub requests: u64,
    /// Requests that ended otherwise than with a good answer.
    pub errors: u64,
    /// Service times, in an open loop response times.
    pub main: Option<&'a Histogram<u64>>,
    /// Only of an open loop, as is the next.
    pub service: Option<&'a Histogram<u64>>,
    /// Send lags; only of an open loop.
    pub send_lag: Option<&'a Histogram<u64>>,
}

impl Interval<'_> {
    /// The interval as it is reported.
    pub fn point(&self) -> Point {
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

/// The series as it is reported.
pub fn timeline(series: &Series) -> Timeline {
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
