//! What happened in the measured part of a run.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::model::{PgCounters, PgProbe, PgSample};

/// A probe's samples within the measured part.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PgSummary {
    /// Samples in the measured part.
    pub samples: u64,
    /// Seconds between the samples that could be compared: without gaps, and without a restart
    /// between them.
    pub covered_s: f64,
    /// Requests that ended in these seconds.
    pub requests: f64,
    /// Client sessions.
    pub connections: Option<MeanMax>,
    /// Client sessions by state.
    pub states: BTreeMap<String, MeanMax>,
    /// Waits of sessions and background processes, the most frequent first; `none` is at work.
    pub waits: Vec<PgWait>,
    /// Lock requests that were not granted.
    pub locks_waiting: Option<MeanMax>,
    /// The longest age of an open transaction that was seen, in seconds.
    pub longest_transaction_s: Option<f64>,
    /// Most bytes of WAL that a replication slot kept, by slot.
    pub slots: BTreeMap<String, u64>,
    /// Work in the covered seconds.
    pub totals: PgCounters,
    /// Work for one request; none without requests.
    pub per_request: Option<PgPerRequest>,
    /// Cores that the server's processes used on average.
    pub cores: Option<f64>,
}

/// A gauge over the samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MeanMax {
    /// Mean of the samples.
    pub mean: f64,
    /// The largest.
    pub max: u64,
}

/// Something that is waited for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PgWait {
    /// Type and event, such as `Lock:transactionid`.
    pub event: String,
    /// How many waited for it at the same time.
    pub waiting: MeanMax,
}

/// Cost of one request in the database.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PgPerRequest {
    /// Transactions committed.
    pub commits: Option<f64>,
    /// Transactions rolled back.
    pub rollbacks: Option<f64>,
    /// Blocks asked of the operating system.
    pub blocks_read: Option<f64>,
    /// Blocks found in shared buffers.
    pub blocks_hit: Option<f64>,
    /// Rows that scans have read.
    pub rows_read: Option<f64>,
    /// Rows inserted, updated and deleted.
    pub rows_written: Option<f64>,
    /// Bytes of WAL.
    pub wal_bytes: Option<f64>,
    /// CPU time of all the server's processes, in microseconds.
    pub cpu_us: Option<f64>,
}

impl PgProbe {
    /// Sums up the first `duration_s` seconds from the origin. `requests` gives the number of
    /// requests that ended between two moments, in seconds from the same origin: work and requests
    /// are counted over the same time, even if the probe lost its connection for a while. Work is
    /// counted from the first sample after `from_s` (before the origin, if nothing was asked there)
    /// to the last one, which is taken when the requests have ended.
    pub fn summary(
        &self,
        from_s: f64,
        duration_s: f64,
        requests: impl Fn(f64, f64) -> f64,
    ) -> PgSummary {
        let within: Vec<&PgSample> = self
            .samples
            .iter()
            .filter(|sample| (0.0..=duration_s).contains(&sample.at_s))
            .collect();
        let mut summary = PgSummary {
            samples: within.len() as u64,
            connections: gauge(within.iter().map(|sample| Some(sample.sessions.total()))),
            states: by_name(&within, |sample| &sample.sessions.by_state),
            waits: waits(&within),
            locks_waiting: gauge(within.iter().map(|sample| sample.locks_waiting)),
            longest_transaction_s: within
                .iter()
                .filter_map(|sample| sample.sessions.longest_transaction_s)
                .reduce(f64::max),
            slots: by_name(&within, |sample| &sample.slots)
                .into_iter()
                .map(|(slot, retained)| (slot, retained.max))
                .collect(),
            ..PgSummary::default()
        };
        let counted: Vec<&PgSample> = self
            .samples
            .iter()
            .filter(|sample| sample.at_s >= from_s)
            .collect();
        summary.add_up(&counted, requests);
        summary
    }
}

impl PgSummary {
    /// Adds up what happened between samples that follow each other on one connection.
    fn add_up(&mut self, samples: &[&PgSample], requests: impl Fn(f64, f64) -> f64) {
        let mut total: Option<PgCounters> = None;
        for pair in samples.windows(2) {
            let (earlier, later) = (pair[0], pair[1]);
            let happened = later.counters.since(&earlier.counters);
            let Some(happened) = happened.filter(|_| earlier.connection == later.connection) else {
                continue;
            };
            self.covered_s += later.at_s - earlier.at_s;
            self.requests += requests(earlier.at_s, later.at_s);
            total = Some(total.map_or(happened, |total| total.plus(&happened)));
        }
        let Some(totals) = total else { return };
        self.totals = totals;
        let seconds = Some(self.covered_s).filter(|&seconds| seconds > 0.0);
        self.cores = totals
            .cpu_ns
            .zip(seconds)
            .map(|(cpu, seconds)| cpu as f64 / 1e9 / seconds);
        if self.requests > 0.0 {
            let each = |total: Option<u64>| total.map(|total| total as f64 / self.requests);
            self.per_request = Some(PgPerRequest {
                commits: each(totals.commits),
                rollbacks: each(totals.rollbacks),
                blocks_read: each(totals.blocks_read),
                blocks_hit: each(totals.blocks_hit),
                rows_read: each(totals.rows_read),
                rows_written: each(totals.rows_written),
                wal_bytes: each(totals.wal_bytes),
                cpu_us: each(totals.cpu_ns).map(|nanoseconds| nanoseconds / 1e3),
            });
        }
    }
}

/// Mean and largest of the samples that have the figure.
fn gauge(values: impl Iterator<Item = Option<u64>>) -> Option<MeanMax> {
    let values: Vec<u64> = values.flatten().collect();
    let max = values.iter().copied().max()?;
    let mean = values.iter().sum::<u64>() as f64 / values.len() as f64;
    Some(MeanMax { mean, max })
}

/// The gauge of each name; a sample without it is a zero.
fn by_name(
    samples: &[&PgSample],
    of: fn(&PgSample) -> &BTreeMap<String, u64>,
) -> BTreeMap<String, MeanMax> {
    let names = samples.iter().flat_map(|sample| of(sample).keys());
    let gauges = names.map(|name| {
        let values = samples.iter().map(|sample| of(sample).get(name));
        let values = values.map(|value| Some(value.copied().unwrap_or(0)));
        (name.clone(), gauge(values).unwrap_or_default())
    });
    gauges.collect()
}

fn waits(samples: &[&PgSample]) -> Vec<PgWait> {
    let mut waits: Vec<PgWait> = by_name(samples, |sample| &sample.sessions.waits)
        .into_iter()
        .map(|(event, waiting)| PgWait { event, waiting })
        .collect();
    waits.sort_by(|a, b| b.waiting.mean.total_cmp(&a.waiting.mean));
    waits
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::postgres::PgSessions;

    fn sample(at_s: f64, connection: u64, commits: u64, locked: u64) -> PgSample {
        PgSample {
            at_s,
            connection,
            sessions: PgSessions {
                by_state: BTreeMap::from([("active".to_owned(), 2)]),
                waits: BTreeMap::from([("none".to_owned(), 1), ("Lock:tuple".to_owned(), locked)]),
                longest_transaction_s: Some(at_s),
            },
            counters: PgCounters {
                commits: Some(commits),
                cpu_ns: Some(commits * 1_000_000),
                ..PgCounters::default()
            },
            ..PgSample::default()
        }
    }

    /// A hundred requests a second.
    fn requests(from: f64, to: f64) -> f64 {
        (to - from) * 100.0
    }

    #[test]
    fn work_and_requests_are_of_the_same_time() {
        let probe = PgProbe {
            samples: vec![
                sample(-1.0, 0, 0, 9),
                sample(0.0, 0, 1_000, 3),
                sample(1.0, 0, 1_200, 1),
                // The connection was lost, and the counters began anew.
                sample(5.0, 1, 10, 3),
                sample(6.0, 1, 210, 1),
                // The counters were reset.
                sample(7.0, 1, 0, 9),
            ],
            ..PgProbe::default()
        };
        let summary = probe.summary(0.0, 6.5, requests);
        assert_eq!(summary.samples, 4);
        assert_eq!((summary.covered_s, summary.requests), (2.0, 200.0));
        let each = summary.per_request.unwrap();
        assert_eq!((each.commits, each.cpu_us), (Some(2.0), Some(2_000.0)));
        assert_eq!((each.wal_bytes, summary.totals.wal_bytes), (None, None));
        assert_eq!(summary.cores, Some(0.2));
        assert_eq!(summary.waits[0].event, "Lock:tuple");
        assert_eq!(summary.waits[0].waiting, MeanMax { mean: 2.0, max: 3 });
        assert_eq!(summary.longest_transaction_s, Some(6.0));
        let earlier = probe.summary(-1.0, 6.5, requests);
        assert_eq!(
            (earlier.covered_s, earlier.totals.commits),
            (3.0, Some(1_400))
        );
    }

    #[test]
    fn without_samples_nothing_is_said() {
        let summary = PgProbe::default().summary(0.0, 10.0, requests);
        assert_eq!(summary, PgSummary::default());
        assert!(summary.connections.is_none() && summary.per_request.is_none());
    }
}
