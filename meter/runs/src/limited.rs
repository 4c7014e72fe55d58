//! What limits a server, from runs at several levels of load. A diagnosis, a sweep and a capacity
//! search share this.

use crate::Run;
use base_probe::Summary;
use millrace_stats::analysis::bottleneck::{Finding, LevelSigns, across, are_far_apart, findings};
use millrace_stats::analysis::demand::{Demands, LEAST};

pub(crate) struct RunAtLevel<'a> {
    /// Requests that are in flight all the time; `None` if the number changes, as in an open loop
    /// or with pauses.
    pub(crate) in_flight: Option<f64>,
    pub(crate) run: &'a Run,
}

/// The conclusion from all levels.
#[derive(Debug, Default)]
pub(crate) struct LimitFindings {
    /// The likeliest first.
    pub(crate) bottleneck: Vec<Finding>,
    /// Demands of one request, at the level with the highest throughput.
    pub(crate) demands: Option<Demands>,
    /// Conclusions that could not be drawn, as sentences without a full stop.
    pub(crate) remarks: Vec<String>,
}

impl LimitFindings {
    /// The conclusion from single levels, which are in order, the lowest first.
    pub(crate) fn of(levels: &[RunAtLevel<'_>]) -> Self {
        let highest = highest(levels.iter().map(|level| level.run));
        let fastest = levels
            .iter()
            .max_by(|a, b| a.run.achieved_rate.total_cmp(&b.run.achieved_rate));
        // A full resource is shown most clearly at the level at which it is fullest.
        let bottleneck = levels
            .iter()
            .rev()
            .filter(|level| level.run.achieved_rate >= LEAST * highest)
            .find_map(|level| Some(findings(summary(level.run)?, level.run.client_side())));
        let mut remarks = Vec::new();
        if levels.iter().all(|level| summary(level.run).is_none()) {
            remarks.push("no level was long enough for two samples of the host".to_owned());
        }
        Self {
            bottleneck: bottleneck.unwrap_or_default(),
            demands: fastest.and_then(|level| demands(level.run, highest)),
            remarks,
        }
    }

    /// Adds the conclusion from comparing the levels, if no single level shows a limit.
    pub(crate) fn compare(&mut self, levels: &[RunAtLevel<'_>]) {
        if !self.bottleneck.is_empty() || !self.remarks.is_empty() {
            return;
        }
        match signs(levels) {
            Ok(signs) => self.bottleneck.extend(across(&signs)),
            Err(why) => self.remarks.push(why.to_owned()),
        }
    }
}

/// The highest throughput, by which saturation is known.
pub(crate) fn highest<'a>(runs: impl Iterator<Item = &'a Run>) -> f64 {
    runs.map(|run| run.achieved_rate).fold(0.0, f64::max)
}

/// The demands of a request in a run, if its throughput is near enough to the `highest`.
pub(crate) fn demands(run: &Run, highest: f64) -> Option<Demands> {
    let share = run.achieved_rate / highest;
    Demands::of(summary(run)?, run.client_side(), Some(share))
}

fn summary(run: &Run) -> Option<&Summary> {
    run.probe.as_ref()?.summary.as_ref()
}

/// The signs of every level, or why the levels cannot be compared.
fn signs(levels: &[RunAtLevel<'_>]) -> Result<Vec<LevelSigns>, &'static str> {
    let in_flight: Option<Vec<f64>> = levels.iter().map(|level| level.in_flight).collect();
    let Some(in_flight) = in_flight else {
        return Err(
            "a lock can be distinguished from waits for others only by numbers of requests in flight: this needs connections without pauses",
        );
    };
    if !are_far_apart(&in_flight) {
        return Err(
            "a lock can be distinguished from waits for others only where the highest level is four times the lowest or more",
        );
    }
    let signs: Option<Vec<LevelSigns>> = levels
        .iter()
        .zip(in_flight)
        .map(|(level, in_flight)| signs_of(level.run, in_flight))
        .collect();
    signs.ok_or(
        "without the server's processes a lock cannot be distinguished from a busy processor",
    )
}

/// The signs to compare with the other levels; `None` if the server's processes were not probed, or
/// no request was answered.
fn signs_of(run: &Run, in_flight: f64) -> Option<LevelSigns> {
    let summary = summary(run)?;
    let server = summary.server?;
    let requests = run.achieved_rate * summary.span_s;
    (requests > 0.0).then(|| LevelSigns {
        in_flight,
        rate: run.achieved_rate,
        response_us: in_flight * 1e6 / run.achieved_rate,
        cpu_us: (server.cpu_s + server.run_delay_s) * 1e6 / requests,
        server_share: server.cpu_s / summary.span_s / summary.cores.len().max(1) as f64,
        voluntary: server.voluntary.map(|count| count as f64 / requests),
    })
}
