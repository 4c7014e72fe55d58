//! The series as it is reported.

use hdrhistogram::Histogram;

use crate::hdr::Hdr;
use crate::latency::{quantile, us};
use crate::run::{Point, Timeline};
use crate::series::{Series, Slot};

pub(crate) fn timeline(series: &Series) -> Timeline {
    let interval_s = series.interval as f64 / 1e9;
    let point = |(index, slot): (usize, &Slot)| {
        let times: Option<&Histogram<u64>> = slot.times.as_ref();
        Point {
            at_s: (index as u64 * series.interval) as f64 / 1e9,
            requests: slot.finished,
            errors: slot.errors,
            p50_us: times.and_then(|times| quantile(times, 0.5)),
            p99_us: times.and_then(|times| quantile(times, 0.99)),
            max_us: times.map(|times| us(times.max())),
        }
    };
    Timeline {
        interval_s,
        points: series.slots.iter().enumerate().map(point).collect(),
        histograms: series
            .slots
            .iter()
            .map(|slot| Hdr::of(slot.times.as_ref()?))
            .collect(),
    }
}
