//! The time series of several runs, or of a class in them, on one axis.

use super::spans::Spans;
use millrace_stats::Timeline;
use millrace_stats::hdr::Hdr;
use millrace_stats::series::MOST;
use millrace_stats::timeline::Interval;

/// One interval of the sum.
#[derive(Default)]
struct Bin<'a> {
    requests: u64,
    errors: u64,
    main: Vec<&'a Hdr>,
    service: Vec<&'a Hdr>,
    send_lag: Vec<&'a Hdr>,
}

/// Merges one timeline of each run. Intervals are as long as the longest of any run, or longer if
/// there would be too many. An interval is assigned by its middle, so a count may be early or late
/// by one interval.
pub(super) fn merge(all: &[&Timeline], spans: &Spans) -> Timeline {
    let longest = all
        .iter()
        .map(|series| series.interval_s)
        .fold(0.0, f64::max);
    let last = all.iter().enumerate().flat_map(|(number, series)| {
        let points = series.points.iter();
        points.map(move |point| spans.offset(number) + point.at_s + series.interval_s)
    });
    let end = last.filter(|at| at.is_finite()).fold(0.0, f64::max);
    if longest <= 0.0 || !longest.is_finite() {
        return Timeline::default();
    }
    // Tolerates rounding, so that sums of fractions do not add an interval.
    let together = (end / longest / MOST as f64 - 1e-6).ceil().max(1.0);
    // Whole nanoseconds, as a run counts them.
    let interval = (longest * together * 1e9).round();
    let interval_s = interval / 1e9;
    let mut bins: Vec<Bin<'_>> = Vec::new();
    for (number, series) in all.iter().enumerate() {
        for (n, point) in series.points.iter().enumerate() {
            let middle = spans.offset(number) + point.at_s + series.interval_s / 2.0;
            let at = ((middle / interval_s) as usize).min(MOST);
            if bins.len() <= at {
                bins.resize_with(at + 1, Bin::default);
            }
            let bin = &mut bins[at];
            bin.requests += point.requests;
            bin.errors += point.errors;
            bin.main
                .extend(series.histograms.get(n).into_iter().flatten());
            bin.service
                .extend(series.service.get(n).into_iter().flatten());
            bin.send_lag
                .extend(series.send_lag.get(n).into_iter().flatten());
        }
    }
    summed(&bins, interval, have_all(all))
}

/// True if each run has all times of an open loop in each of its intervals. If one lacks some, as
/// results of older versions do, the sum of the others is not the sum of all samples.
fn have_all(all: &[&Timeline]) -> bool {
    all.iter().all(|series| {
        let count = series.histograms.len();
        series.service.len() == count && series.send_lag.len() == count
    })
}

/// The sum of each bin, all of them `interval` nanoseconds long.
fn summed(bins: &[Bin<'_>], interval: f64, is_whole: bool) -> Timeline {
    let mut series = Timeline {
        interval_s: interval / 1e9,
        ..Timeline::default()
    };
    for (n, bin) in bins.iter().enumerate() {
        let sum = |times: &[&Hdr]| Hdr::merge(times.iter().copied());
        let beside = |times: &[&Hdr]| sum(times).filter(|_| is_whole);
        let (main, service, send_lag) =
            (sum(&bin.main), beside(&bin.service), beside(&bin.send_lag));
        let [a, b, c] =
            [&main, &service, &send_lag].map(|hdr| hdr.as_ref().map(|hdr| hdr.histogram()));
        let interval = Interval {
            at_s: n as f64 * interval / 1e9,
            requests: bin.requests,
            errors: bin.errors,
            main: a.as_ref(),
            service: b.as_ref(),
            send_lag: c.as_ref(),
        };
        series.points.push(interval.point());
        series.histograms.push(main);
        if is_whole {
            series.service.push(service);
            series.send_lag.push(send_lag);
        }
    }
    series
}
