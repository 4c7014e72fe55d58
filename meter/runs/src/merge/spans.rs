//! When runs were measuring, and which of them at the same time.

use crate::Run;

/// Share of the shorter of two runs by which they may overlap and still count as one after the
/// other: the last responses of one may arrive while the next begins.
const EDGE: f64 = 0.01;
/// Share of overlap from which runs count as running at the same time throughout.
const TOGETHER: f64 = 0.9;

/// Runs that were measuring at the same time.
#[derive(Debug)]
struct Group {
    runs: Vec<usize>,
    /// Seconds after the earliest start of all.
    from: f64,
    to: f64,
    /// The time that all of them share.
    shared: f64,
}

/// The runs in groups, one after the other.
#[derive(Debug)]
pub(super) struct Spans {
    groups: Vec<Group>,
    /// For each run, its start on a time axis without the pauses between groups.
    offsets: Vec<f64>,
}

impl Spans {
    pub(super) fn of(runs: &[Run]) -> Self {
        let zero = runs
            .iter()
            .map(|run| run.started_unix_us)
            .min()
            .unwrap_or(0);
        let start = |run: usize| (runs[run].started_unix_us - zero) as f64 / 1e6;
        let end = |run: usize| start(run) + runs[run].duration_s;
        let mut order: Vec<usize> = (0..runs.len()).collect();
        order.sort_by(|&a, &b| start(a).total_cmp(&start(b)));
        let mut groups: Vec<Group> = Vec::new();
        for run in order {
            let edge = |group: &Group| EDGE * runs[run].duration_s.min(group.to - group.from);
            match groups.last_mut() {
                Some(group) if start(run) < group.to - edge(group) => {
                    group.runs.push(run);
                    group.to = group.to.max(end(run));
                    let last_start = start(run);
                    let first_end = group.runs.iter().map(|&run| end(run));
                    let first_end = first_end.fold(f64::INFINITY, f64::min);
                    group.shared = (first_end - last_start).max(0.0);
                }
                _ => groups.push(Group {
                    runs: vec![run],
                    from: start(run),
                    to: end(run),
                    shared: runs[run].duration_s,
                }),
            }
        }
        let mut offsets = vec![0.0; runs.len()];
        let mut before = 0.0;
        for group in &groups {
            for &run in &group.runs {
                offsets[run] = before + start(run) - group.from;
            }
            before += group.to - group.from;
        }
        Self { groups, offsets }
    }

    /// Time in which at least one run was measuring.
    pub(super) fn total_s(&self) -> f64 {
        self.groups.iter().map(|group| group.to - group.from).sum()
    }

    /// Start of a run in seconds, on a time axis without the pauses between groups.
    pub(super) fn offset(&self, run: usize) -> f64 {
        self.offsets[run]
    }

    /// Runs of the same group.
    pub(super) fn together(&self) -> impl Iterator<Item = &[usize]> {
        self.groups.iter().map(|group| group.runs.as_slice())
    }

    /// Each run's figure per second, over the time of all runs: runs at the same time add up.
    /// `None` if a run lacks it.
    pub(super) fn per_second(&self, runs: &[Run], of: impl Fn(&Run) -> Option<f64>) -> Option<f64> {
        let total: Option<f64> = runs.iter().map(|run| Some(of(run)? * run.duration_s)).sum();
        let seconds = self.total_s();
        total.map(|total| if seconds > 0.0 { total / seconds } else { 0.0 })
    }

    /// The largest sum of a group.
    pub(super) fn most(&self, of: impl Fn(usize) -> u64) -> u64 {
        let sums = self
            .together()
            .map(|runs| runs.iter().map(|&run| of(run)).fold(0, u64::saturating_add));
        sums.max().unwrap_or(0)
    }

    /// Why rates that add up are in doubt: generators that did not run at the same time throughout.
    pub(super) fn overlap_doubt(&self) -> Option<String> {
        let worst = self
            .groups
            .iter()
            .filter(|group| group.runs.len() > 1)
            .map(|group| group.shared / (group.to - group.from))
            .min_by(f64::total_cmp)?;
        (worst < TOGETHER).then(|| {
            format!(
                "the runs were at the same time for {:.0} % of their time only: the sum of their rates is too low",
                worst * 100.0
            )
        })
    }
}
