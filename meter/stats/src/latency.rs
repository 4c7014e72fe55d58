//! Latencies as they are reported: in microseconds, without figures that the samples do not carry.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// A distribution of times in microseconds, to three significant digits. A percentile with fewer
/// than ten samples beyond it is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// Number of samples.
    pub count: u64,
    /// Arithmetic mean.
    pub mean: f64,
    /// Median.
    pub p50: Option<f64>,
    /// 90th percentile.
    pub p90: Option<f64>,
    /// 95th percentile.
    pub p95: Option<f64>,
    /// 99th percentile.
    pub p99: Option<f64>,
    /// 99.9th percentile.
    pub p999: Option<f64>,
    /// The longest.
    pub max: f64,
}

/// The latencies of a run; `None` where there is nothing to measure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Latencies {
    /// From the scheduled send to the complete answer. A closed loop has no schedule.
    pub response: Option<Latency>,
    /// From the actual send to the complete answer, of good answers.
    pub service: Option<Latency>,
    /// From the scheduled to the actual send.
    pub send_lag: Option<Latency>,
    /// The part of the send lag spent waiting for a connection with room, or for a new one.
    pub waiting: Option<Latency>,
    /// The rest of the send lag, caused by the client: only this part speaks against the client.
    pub lateness: Option<Latency>,
    /// From asking for a connection to having it, for every connection opened.
    pub connect: Option<Latency>,
    /// TLS handshakes with a certificate, a part of `connect`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub full_handshake: Option<Latency>,
    /// TLS handshakes that resumed an earlier session (RFC 8446 section 2.2), a part of `connect`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resumed_handshake: Option<Latency>,
}

/// One bar of a histogram.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bucket {
    /// Above this time.
    pub from_us: f64,
    /// Up to this time.
    pub to_us: f64,
    /// Samples between the two.
    pub count: u64,
}

/// One point of the percentile curve.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Quantile {
    /// Share of samples that are at most `us`, below 1.
    pub q: f64,
    /// Time in microseconds.
    pub us: f64,
}

/// Nanoseconds as microseconds.
pub fn us(nanos: u64) -> f64 {
    nanos as f64 / 1000.0
}

/// A quantile in microseconds, if at least ten samples lie beyond it.
pub fn quantile(histogram: &Histogram<u64>, q: f64) -> Option<f64> {
    let beyond = histogram.len() as f64 * (1.0 - q);
    // A millionth of a sample for 1000 x (1 - 0.99), which is not quite 10 in binary.
    (beyond + 1e-6 >= 10.0).then(|| us(histogram.value_at_quantile(q)))
}

/// The summary of a histogram of nanoseconds, if it has any.
pub fn summary(histogram: &Histogram<u64>) -> Option<Latency> {
    (!histogram.is_empty()).then(|| Latency {
        count: histogram.len(),
        mean: histogram.mean() / 1000.0,
        p50: quantile(histogram, 0.5),
        p90: quantile(histogram, 0.9),
        p95: quantile(histogram, 0.95),
        p99: quantile(histogram, 0.99),
        p999: quantile(histogram, 0.999),
        max: us(histogram.max()),
    })
}

/// Twenty bars for each factor of ten, from the first that is not empty to the last.
pub fn buckets(histogram: &Histogram<u64>) -> Vec<Bucket> {
    let base = 10_f64.powf(0.05);
    let mut buckets = Vec::new();
    // From 100 ns: below, bars would be narrower than the histogram can tell.
    for step in histogram.iter_log(100, base) {
        let to_us = us(step.value_iterated_to());
        let count = step.count_since_last_iteration();
        let from_us = buckets.last().map_or(0.0, |last: &Bucket| last.to_us);
        buckets.push(Bucket {
            from_us,
            to_us,
            count,
        });
    }
    let first = buckets
        .iter()
        .position(|bucket| bucket.count > 0)
        .unwrap_or(buckets.len());
    buckets.drain(..first);
    buckets
}

/// The percentile curve, as far as ten samples lie beyond, denser toward the tail.
pub fn quantiles(histogram: &Histogram<u64>) -> Vec<Quantile> {
    let mut curve = Vec::new();
    // Ten points for each halving of what lies beyond.
    for step in 0..400 {
        let q = 1.0 - 2_f64.powf(-f64::from(step) / 10.0);
        match quantile(histogram, q) {
            Some(us) => curve.push(Quantile { q, us }),
            None => break,
        }
    }
    curve
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::series::histogram;

    #[test]
    fn a_percentile_needs_ten_samples_beyond_it() {
        let mut times = histogram(3);
        assert!(summary(&times).is_none());
        (0..999).for_each(|_| times.record(5000).unwrap());
        assert!(summary(&times).unwrap().p99.is_none());
        times.record(5000).unwrap();
        let latency = summary(&times).unwrap();
        assert!((latency.p99.unwrap() - 5.0).abs() < 0.005);
        assert!(latency.p999.is_none());
    }

    #[test]
    fn bars_and_curve_hold_every_sample() {
        let mut times = histogram(3);
        (1..=10_000).for_each(|n| times.record(n * 1000).unwrap());
        let bars = buckets(&times);
        assert_eq!(bars.iter().map(|bar| bar.count).sum::<u64>(), 10_000);
        assert!(bars.iter().all(|bar| bar.from_us < bar.to_us));
        assert!(bars.len() < 100, "{}", bars.len());
        let curve = quantiles(&times);
        assert!(
            curve.len() > 80
                && curve
                    .windows(2)
                    .all(|pair| pair[0].q < pair[1].q && pair[0].us <= pair[1].us)
        );
        assert!(curve.last().unwrap().q < 0.9991);
    }
}
