//! Limits that only several levels of load show: one request at a time, or waiting for others.
//!
//! The asymptotic bounds of a closed system (Denning and Buzen 1978): with N requests in flight the
//! throughput is at most the smaller of 1/D of the fullest resource and N/R₁. If throughput stays
//! flat and nothing on the machine is full, the limiting resource takes no time of the machine. If
//! throughput follows N/R₁ throughout, the requests share nothing.

use super::{Finding, Limit};

/// The last level has at least this many times the requests in flight of the level beside it.
const APART: f64 = 4.0;
/// Highest gain that [`APART`] times the requests in flight may bring and that is still called
/// flat.
const FLAT: f64 = 1.25;
/// Share of a core's time that must be left where nothing on the machine is full.
const IDLE: f64 = 0.5;
/// By how much a response time that stays may grow.
const STAYS: f64 = 1.5;
/// Time below which a response is no waiting but the way there and back.
const WAITING_US: f64 = 1_000.0;

/// One level, in the figures by which levels are compared.
#[derive(Clone, Copy, Debug)]
pub struct LevelSigns {
    /// Requests in flight.
    pub in_flight: f64,
    /// Answers a second.
    pub rate: f64,
    /// Mean time in the system by Little's law.
    pub response_us: f64,
    /// CPU time of the server for one request, with the time that it waited for a core.
    pub cpu_us: f64,
    /// Share of all cores that the server used.
    pub server_share: f64,
    /// Times that a thread of the server waited for something, for one request.
    pub voluntary: Option<f64>,
}

/// A limit that shows over several levels, the lowest first, if no single level has shown one.
/// `None` also if the levels are not [far enough apart](are_far_apart).
pub fn across(levels: &[LevelSigns]) -> Option<Finding> {
    let (first, high) = (levels.first()?, levels.last()?);
    if levels.iter().any(|level| level.server_share > IDLE) {
        return None;
    }
    let is_low = |level: &&LevelSigns| level.in_flight * APART <= high.in_flight;
    let low = levels.iter().rev().find(is_low)?;
    serialised(low, high).or_else(|| waits_elsewhere(first, high))
}

/// True if numbers of requests in flight, the lowest first, are far enough apart for [`across`].
pub fn are_far_apart(in_flight: &[f64]) -> bool {
    let ends = in_flight.first().zip(in_flight.last());
    ends.is_some_and(|(first, last)| first * APART <= *last)
}

fn serialised(low: &LevelSigns, high: &LevelSigns) -> Option<Finding> {
    let more = high.in_flight / low.in_flight;
    // With a CPU time as long as the distance between two answers, a full thread would be the
    // limit.
    let distance_us = 1e6 / high.rate;
    if high.rate > low.rate * FLAT || high.cpu_us > distance_us * 0.7 {
        return None;
    }
    let mut evidence = vec![
        format!(
            "with {more:.0} times the requests in flight ({:.0} to {:.0}) throughput goes from {:.0}/s to {:.0}/s, and \
             the response time from {:.1} ms to {:.1} ms",
            low.in_flight,
            high.in_flight,
            low.rate,
            high.rate,
            low.response_us / 1e3,
            high.response_us / 1e3
        ),
        format!(
            "the server uses {:.0} % of the cores: a request leaves every {:.2} ms and takes {:.2} ms of CPU",
            high.server_share * 100.0,
            distance_us / 1e3,
            high.cpu_us / 1e3
        ),
    ];
    evidence.extend(
        high.voluntary
            .map(|count| format!("a thread waits {count:.1} times for one request")),
    );
    Some(Finding {
        name: Limit::Serialised,
        weight: 0.8,
        evidence,
        bound_per_s: Some(high.rate.max(low.rate)),
    })
}

fn waits_elsewhere(first: &LevelSigns, high: &LevelSigns) -> Option<Finding> {
    let follows = high.rate >= first.rate * high.in_flight / first.in_flight / STAYS;
    let waits = first.response_us >= WAITING_US && high.cpu_us <= high.response_us * 0.3;
    if !(follows && waits) {
        return None;
    }
    Some(Finding {
        name: Limit::WaitsElsewhere,
        weight: 0.7,
        evidence: vec![
            format!(
                "a request takes {:.1} ms with {:.0} in flight and {:.1} ms with {:.0}: requests do not wait for each other",
                first.response_us / 1e3,
                first.in_flight,
                high.response_us / 1e3,
                high.in_flight
            ),
            format!(
                "of that {:.2} ms is CPU of the server, which uses {:.0} % of the cores",
                high.cpu_us / 1e3,
                high.server_share * 100.0
            ),
        ],
        bound_per_s: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn level(in_flight: f64, rate: f64, cpu_us: f64) -> LevelSigns {
        LevelSigns {
            in_flight,
            rate,
            response_us: in_flight * 1e6 / rate,
            cpu_us,
            server_share: rate * cpu_us / 1e6 / 2.0,
            voluntary: Some(2.0),
        }
    }

    fn name(rates: [f64; 4], cpu_us: f64) -> Option<Limit> {
        let flights = [1.0, 4.0, 8.0, 16.0];
        let levels: Vec<LevelSigns> = flights
            .iter()
            .zip(rates)
            .map(|(&n, rate)| level(n, rate, cpu_us))
            .collect();
        across(&levels).map(|finding| finding.name)
    }

    #[test]
    fn a_lock_and_a_sleep_are_told_apart() {
        assert_eq!(
            name([450.0, 470.0, 470.0, 460.0], 50.0),
            Some(Limit::Serialised)
        );
        assert_eq!(
            name([50.0, 200.0, 400.0, 790.0], 50.0),
            Some(Limit::WaitsElsewhere)
        );
        // A pool of four.
        assert_eq!(
            name([100.0, 400.0, 400.0, 400.0], 50.0),
            Some(Limit::Serialised)
        );
    }

    #[test]
    fn a_limit_of_neither_kind_has_no_name() {
        // It grows, but not with the requests in flight.
        assert_eq!(name([100.0, 200.0, 300.0, 400.0], 50.0), None);
        // A fast server on an idle machine.
        assert_eq!(name([5_000.0, 20_000.0, 40_000.0, 80_000.0], 5.0), None);
        // A processor that is full.
        assert_eq!(name([900.0, 990.0, 990.0, 990.0], 1_000.0), None);
        assert!(across(&[]).is_none());
    }
}
