//! A run over time: answers, and what the servers used, in bins of equal length.

use std::collections::BTreeMap;

use super::cost::all_servers;
use super::figure::LabFigure;
use super::measure::LevelRun;
use super::outcome::LabMoment;
use super::run_time::ServerTimes;
use super::sampled;
use crate::Run;
use base_clock::Nanos;

/// Bins that a run has at most.
const BINS: usize = 300;
/// The shortest bin in seconds: servers are looked at some five times a second.
const SHORTEST_S: f64 = 0.5;

impl LabFigure {
    /// True if it can be drawn over the time of a run.
    pub fn is_over_time(self) -> bool {
        matches!(
            self,
            Self::Throughput
                | Self::Failed
                | Self::Cores
                | Self::Ipc
                | Self::CacheMisses
                | Self::BranchMisses
        )
    }
}

/// Readings of each server during a run.
#[derive(Default)]
pub(super) struct ServerWatch {
    servers: BTreeMap<String, WatchedTimes>,
}

/// The readings of one server.
struct WatchedTimes {
    /// True if it counts as the measured server's own.
    is_counted: bool,
    last: ServerTimes,
    /// Nanoseconds of CPU time since the first reading.
    spent: Counter,
}

/// A counter that only grows: moments in nanoseconds, and its values.
#[derive(Clone, Debug, Default)]
struct Counter(Vec<(Nanos, f64)>);

impl Counter {
    fn push(&mut self, at: Nanos, value: f64) {
        self.0.push((at, value));
    }

    /// Its value at a moment, on a straight line between two readings; `None` outside of them.
    fn at(&self, moment: Nanos) -> Option<f64> {
        let after = self.0.partition_point(|(at, _)| *at < moment);
        let &(t1, v1) = self.0.get(after)?;
        if t1 == moment {
            return Some(v1);
        }
        let &(t0, v0) = self.0.get(after.checked_sub(1)?)?;
        let share = (moment - t0) as f64 / (t1 - t0).max(1) as f64;
        Some(v0 + (v1 - v0) * share)
    }

    /// How much it grew from one moment to another.
    fn between(&self, from: Nanos, to: Nanos) -> Option<f64> {
        Some(self.at(to)? - self.at(from)?)
    }

    fn sum(all: &[&Self]) -> Option<Self> {
        let (first, rest) = all.split_first()?;
        let sum = |&(at, value): &(Nanos, f64)| {
            let others: Option<f64> = rest.iter().map(|other| other.at(at)).sum();
            Some((at, value + others?))
        };
        Some(Self(first.0.iter().filter_map(sum).collect()))
    }
}

impl ServerWatch {
    /// Reads every server.
    pub(super) fn look(&mut self, level_run: &LevelRun<'_, '_>) {
        for running in all_servers(level_run) {
            let times = ServerTimes::take(|| running.pids());
            let at = base_clock::now();
            match self.servers.get_mut(&running.record.name) {
                None => {
                    let watched = WatchedTimes {
                        is_counted: running.spec.counted,
                        last: times,
                        spent: Counter(vec![(at, 0.0)]),
                    };
                    self.servers.insert(running.record.name.clone(), watched);
                }
                // Where it cannot be read, the next reading has the time since the last good one.
                Some(watched) => {
                    if let Some(nanos) = times.since(&watched.last) {
                        let before = watched.spent.0.last().map_or(0.0, |(_, value)| *value);
                        watched.spent.push(at, before + nanos as f64);
                        watched.last = times;
                    }
                }
            }
        }
    }

    /// The bins of the run that was watched.
    pub(super) fn moments(&self, run: &Run) -> Vec<LabMoment> {
        let width_s = (run.duration_s / BINS as f64).max(SHORTEST_S);
        let count = ((run.duration_s / width_s).floor() as usize).min(BINS);
        let began = run.client.started_ns;
        let moment = |n: usize| began + (n as f64 * width_s * 1e9) as Nanos;
        let counters = RunCounters::of(run);
        let own: Vec<&WatchedTimes> = self.servers.values().collect();
        let counted = own.iter().filter(|server| server.is_counted);
        let whole = Counter::sum(&counted.map(|server| &server.spent).collect::<Vec<_>>());
        let bin = |n: usize| {
            let (from, to) = (moment(n), moment(n + 1));
            let cores = |spent: &Counter| Some(spent.between(from, to)? / (to - from) as f64);
            let mut figures = counters.figures(from, to);
            let all = whole.as_ref().and_then(cores);
            figures.extend(all.map(|cores| (LabFigure::Cores, cores)));
            let each = self.servers.iter().filter(|_| own.len() > 1);
            LabMoment {
                at_s: n as f64 * width_s,
                figures,
                cores_of: each
                    .filter_map(|(name, server)| Some((name.clone(), cores(&server.spent)?)))
                    .collect(),
            }
        };
        (0..count).map(bin).collect()
    }
}

/// Counts of the client and of the probe during a run.
struct RunCounters {
    ended: Counter,
    failed: Counter,
    /// Counters of the processor, by their names.
    processor: BTreeMap<String, Counter>,
}

impl RunCounters {
    fn of(run: &Run) -> Self {
        let began = run.client.started_ns;
        let (mut ended, mut failed) = (Counter::default(), Counter::default());
        let (mut all, mut bad) = (0, 0);
        ended.push(began, 0.0);
        failed.push(began, 0.0);
        for point in &run.series.points {
            all += point.requests;
            bad += point.errors;
            let at = began + ((point.at_s + run.series.interval_s) * 1e9) as Nanos;
            ended.push(at, all as f64);
            failed.push(at, bad as f64);
        }
        let mut processor: BTreeMap<String, Counter> = BTreeMap::new();
        let samples = run.probe.iter().flat_map(|probed| &probed.samples.samples);
        for sample in samples {
            for (name, count) in &sample.perf {
                let counter = processor.entry(name.clone()).or_default();
                counter.push(sample.mono_ns, *count as f64);
            }
        }
        Self {
            ended,
            failed,
            processor,
        }
    }

    fn figures(&self, from: Nanos, to: Nanos) -> BTreeMap<LabFigure, f64> {
        let seconds = (to - from) as f64 / 1e9;
        let ended = self.ended.between(from, to);
        let failed = self.failed.between(from, to);
        let good = ended.zip(failed).map(|(ended, failed)| ended - failed);
        let ended = ended.filter(|ended| *ended > 0.0);
        let count = |name: &str| self.processor.get(name)?.between(from, to);
        let all = [
            (LabFigure::Throughput, good.map(|good| good / seconds)),
            (
                LabFigure::Failed,
                failed.zip(ended).map(|(failed, ended)| failed / ended),
            ),
        ];
        all.into_iter()
            .filter_map(|(figure, value)| Some((figure, value?)))
            .chain(sampled::processor(count, ended))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_is_a_straight_line_between_its_readings() {
        let counter = Counter(vec![(10, 0.0), (20, 10.0), (40, 10.0)]);
        assert_eq!(counter.at(10), Some(0.0));
        assert_eq!(counter.at(15), Some(5.0));
        assert_eq!(counter.between(15, 30), Some(5.0));
        assert_eq!(counter.at(9), None);
        assert_eq!(counter.at(41), None);
        let other = Counter(vec![(0, 0.0), (100, 100.0)]);
        let sum = Counter::sum(&[&counter, &other]).unwrap();
        assert_eq!(sum.at(20), Some(30.0));
        assert!(Counter::sum(&[]).is_none());
    }
}
