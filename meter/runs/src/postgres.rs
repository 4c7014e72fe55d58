//! The PostgreSQL server behind the measured server: watched during a run, and related to its
//! requests.

use base_probe::postgres::{PgProbe, PgProber, PgSummary};
use serde::{Deserialize, Serialize};

use base_clock::Nanos;
use millrace_client::{Error, RunConditions};
use millrace_stats::Timeline;

/// Measurements of a PostgreSQL server during a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Postgres {
    /// The measured part.
    pub summary: PgSummary,
    /// Every sample, those of the warm-up before zero seconds.
    #[serde(flatten)]
    pub probe: PgProbe,
}

/// Begins to watch the PostgreSQL server of a run, if there is one.
pub(crate) fn watch(conditions: &RunConditions) -> Result<Option<PgProber>, Error> {
    let prober = conditions.postgres.as_deref().map(PgProber::start);
    prober.transpose().map_err(Error::Postgres)
}

/// Ends the probe, after a run whose measured part began at `start`, had this series, and lasted
/// this many seconds.
pub(crate) fn finish(
    prober: PgProber,
    start: Nanos,
    series: &Timeline,
    [warmup_s, duration_s]: [f64; 2],
) -> Box<Postgres> {
    let probe = prober.finish(start);
    let ended = |from, to| ended(series, from, to);
    // Without a warm-up no request precedes the measured part, and the sample before it is its
    // beginning.
    let from = if warmup_s > 0.0 {
        0.0
    } else {
        f64::NEG_INFINITY
    };
    Box::new(Postgres {
        summary: probe.summary(from, duration_s, ended),
        probe,
    })
}

/// Requests that ended between two moments; an interval that lies partly within counts in part.
fn ended(series: &Timeline, from: f64, to: f64) -> f64 {
    let length = series.interval_s;
    if length <= 0.0 {
        return 0.0;
    }
    let within = series.points.iter().map(|point| {
        let overlap = to.min(point.at_s + length) - from.max(point.at_s);
        point.requests as f64 * (overlap / length).clamp(0.0, 1.0)
    });
    within.sum()
}

#[cfg(test)]
mod tests {
    use super::ended;
    use millrace_stats::{Point, Timeline};

    #[test]
    fn an_interval_counts_by_its_share() {
        let point = |at_s| Point {
            at_s,
            requests: 100,
            ..Point::default()
        };
        let series = Timeline {
            interval_s: 0.5,
            points: vec![point(0.0), point(0.5), point(1.0)],
            ..Timeline::default()
        };
        assert_eq!(ended(&series, 0.0, 1.5), 300.0);
        assert_eq!(ended(&series, 0.25, 1.25), 200.0);
        assert_eq!(ended(&series, 2.0, 3.0), 0.0);
        assert_eq!(ended(&Timeline::default(), 0.0, 3.0), 0.0);
    }
}
