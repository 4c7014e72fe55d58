//! The time series of several runs on one axis.

use super::spans::Spans;
use crate::hdr::Hdr;
use crate::latency::{quantile, us};
use crate::run::{Point, Run, Timeline};
use crate::series::MOST;

/// One interval of the sum.
#[derive(Default)]
struct Bin<'a> {
    requests: u64,
    errors: u64,
    times: Vec<&'a Hdr>,
}

/// Intervals as long as the longest of any run, or longer where there would be too many. An interval of a run goes where its middle
/// lies, so a count may be early or late by one interval.
pub(super) fn merge(runs: &[Run], spans: &Spans) -> Timeline {
    let longest = runs
        .iter()
        .map(|run| run.series.interval_s)
        .fold(0.0, f64::max);
    let last = runs.iter().enumerate().flat_map(|(number, run)| {
        let points = run.series.points.iter();
        points.map(move |point| spans.offset(number) + point.at_s + run.series.interval_s)
    });
    let end = last.filter(|at| at.is_finite()).fold(0.0, f64::max);
    if longest <= 0.0 || !longest.is_finite() {
        return Timeline::default();
    }
    // A little off each end, so that sums of fractions do not make an interval more.
    let together = (end / longest / MOST as f64 - 1e-6).ceil().max(1.0);
    // Whole nanoseconds, as a run counts them.
    let interval = (longest * together * 1e9).round();
    let interval_s = interval / 1e9;
    let mut bins: Vec<Bin<'_>> = Vec::new();
    for (number, run) in runs.iter().enumerate() {
        let series = &run.series;
        for (n, point) in series.points.iter().enumerate() {
            let middle = spans.offset(number) + point.at_s + series.interval_s / 2.0;
            let at = ((middle / interval_s) as usize).min(MOST);
            if bins.len() <= at {
                bins.resize_with(at + 1, Bin::default);
            }
            bins[at].requests += point.requests;
            bins[at].errors += point.errors;
            bins[at]
                .times
                .extend(series.histograms.get(n).into_iter().flatten());
        }
    }
    let times: Vec<Option<Hdr>> = bins
        .iter()
        .map(|bin| Hdr::merge(bin.times.iter().copied()))
        .collect();
    let point = |(n, (bin, hdr)): (usize, (&Bin<'_>, &Option<Hdr>))| {
        let times = hdr.as_ref().map(|hdr| hdr.histogram());
        Point {
            at_s: n as f64 * interval / 1e9,
            requests: bin.requests,
            errors: bin.errors,
            p50_us: times.as_ref().and_then(|times| quantile(times, 0.5)),
            p99_us: times.as_ref().and_then(|times| quantile(times, 0.99)),
            max_us: times.as_ref().map(|times| us(times.max())),
        }
    };
    let points = bins.iter().zip(&times).enumerate().map(point).collect();
    Timeline {
        interval_s,
        points,
        histograms: times,
    }
}
