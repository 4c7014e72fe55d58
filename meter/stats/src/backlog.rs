//! Finds a growing number of requests in flight: the server does not keep up with its schedule.
//! Then no objective is met, however short the measured times are.
//!
//! A server that has two thirds of the needed capacity shows a median below two seconds over ten
//! seconds; after a day the median would be hours.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::series::{Series, Slot};
use crate::stationary::{mean_cycle, parts};
use base_clock::Nanos;

/// Share of the requests that may be newly in flight at the end before that counts as a backlog.
const SLACK: f64 = 0.05;
/// Standard deviations of a Poisson number that are allowed too.
const CHANCE: f64 = 5.0;
/// Growth, and growth in requests, below which the thirds of a run are not compared.
const TIMES: f64 = 2.0;
const FEW: f64 = 10.0;

/// Requests in flight, sent or not, that became more and more during an open loop.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Backlog {
    /// The mean number at the beginning of the measured part.
    pub from: f64,
    /// The mean number at its end.
    pub to: f64,
}

impl fmt::Display for Backlog {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { from, to } = self;
        write!(
            out,
            "the backlog grew from {from:.0} to {to:.0} requests in flight"
        )
    }
}

/// The backlog that grew in the first `steady` nanoseconds, in which `rate` requests a second were
/// due. If arrivals need not be even, only a backlog that is a large part of all requests counts:
/// more in flight may mean more arrivals.
pub fn judge(series: &Series, steady: Nanos, rate: f64, is_even: bool) -> Option<Backlog> {
    let (parts, seconds) = parts(series, steady)?;
    let parts = &parts[filling(&parts, seconds)..];
    let rising = rising(parts, seconds).filter(|_| is_even);
    rising.or_else(|| left_over(parts, seconds, rate))
}

/// A number of requests in flight that grew all the time. It speaks against a run for any cause.
pub fn rises(series: &Series, steady: Nanos) -> Option<Backlog> {
    let (parts, seconds) = parts(series, steady)?;
    rising(&parts[filling(&parts, seconds)..], seconds)
}

/// Parts at the beginning in which, without a warm-up, the requests in flight rise to their normal
/// number: two mean times long. A growing backlog makes these times long too, so half of the parts
/// stay in any case.
fn filling(parts: &[&[Slot]], seconds: f64) -> usize {
    let filling = (2.0 * mean_cycle(parts) / seconds).round() as usize;
    filling.min(parts.len() / 2)
}

/// Compares the requests in flight of the thirds: each third has more, and every part of the last
/// third has more than twice as many as the first third. *Counterexample: a short pause, after
/// which no request waits any more, makes the mean of the last third many times that of the first.*
fn rising(parts: &[&[Slot]], seconds: f64) -> Option<Backlog> {
    let third = parts.len() / 3;
    let last = &parts[parts.len() - third..];
    let [from, middle, to] = [&parts[..third], &parts[third..parts.len() - third], last]
        .map(|parts| in_flight(parts, seconds));
    let each = last.iter().map(|part| in_flight(&[part], seconds));
    let grows = from <= middle && middle <= to;
    let grows = grows && each.fold(to, f64::min) > TIMES * from + FEW;
    grows.then_some(Backlog { from, to })
}

/// Compares the requests in flight in the last part with the first: too many of those due in
/// between were left over.
fn left_over(parts: &[&[Slot]], seconds: f64, rate: f64) -> Option<Backlog> {
    let ends = [parts.first()?, parts.last()?];
    let [from, to] = ends.map(|part| in_flight(&[part], seconds));
    let due = rate * seconds * (parts.len() - 1) as f64;
    (to - from > SLACK * due + CHANCE * due.sqrt()).then_some(Backlog { from, to })
}

fn in_flight(parts: &[&[Slot]], seconds: f64) -> f64 {
    let slots = parts.iter().flat_map(|part| part.iter());
    let sum: f64 = slots.map(|slot| slot.in_flight as f64).sum();
    sum / (seconds * 1e9 * parts.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timings::Timing;
    use base_clock::{MS, SECOND};

    /// Ten seconds at 1,000 requests a second with this number in flight, each of which takes
    /// `cycle`.
    fn series(in_flight: impl Fn(u64) -> u64, cycle: Nanos) -> Series {
        let mut series = Series::new(Some(10 * SECOND), true);
        for n in 0..100 {
            let at = n * 100 * MS;
            (0..100).for_each(|_| series.record(at, cycle, &Timing::served(1)));
            series.sample(at + 100 * MS, 100 * MS, in_flight(n));
        }
        series
    }

    fn judged(series: &Series) -> Option<Backlog> {
        judge(series, 10 * SECOND, 1_000.0, true)
    }

    #[test]
    fn a_number_that_stays_or_falls_or_jumps_for_a_while_is_no_backlog() {
        assert_eq!(judged(&series(|_| 5, 5 * MS)), None);
        assert_eq!(judged(&series(|n| 1_000 - 9 * n, 5 * MS)), None);
        let frozen = |n| {
            if (40..60).contains(&n) {
                (n - 40) * 100
            } else {
                5
            }
        };
        assert_eq!(judged(&series(frozen, 5 * MS)), None);
        // A pause at any time, whose queue is empty a moment later.
        for pause in [5, 25, 50, 75, 83, 97] {
            let paused = |n| if n == pause { 400 } else { 3 };
            assert_eq!(judged(&series(paused, 5 * MS)), None, "{pause}");
        }
    }

    #[test]
    fn a_slow_growth_shows_over_the_thirds_and_a_fast_one_by_what_is_left_over() {
        // One in a hundred is left over: one more each tenth of a second.
        let slow = judged(&series(|n| 5 + n, 5 * MS)).unwrap();
        assert!(slow.from < 30.0 && slow.to > 80.0, "{slow}");
        // A third is left over, in addition to a backlog from the warm-up; the mean answer is two
        // seconds late.
        let fast = series(|n| 2_000 + 33 * n, 2 * SECOND);
        let grown = judged(&fast).unwrap();
        assert!(grown.to > grown.from + 1_000.0, "{grown}");
        assert!(grown.to_string().contains("the backlog grew from"));
        assert_eq!(judge(&fast, 10 * SECOND, 1_000.0, false), Some(grown));
    }

    #[test]
    fn filling_without_a_warm_up_is_no_backlog() {
        // Each takes two seconds, so there are 2,000 after two.
        let slow = series(|n| (100 * n).min(2_000), 2 * SECOND);
        assert_eq!(judged(&slow), None);
    }

    #[test]
    fn more_in_flight_of_uneven_arrivals_is_no_backlog() {
        let busier = series(|n| 5 + n, 5 * MS);
        assert_eq!(judge(&busier, 10 * SECOND, 1_000.0, false), None);
        assert!(rises(&busier, 10 * SECOND).is_some());
    }

    #[test]
    fn a_few_requests_say_nothing() {
        assert_eq!(judged(&series(|n| n % 2, MS)), None);
        assert_eq!(judged(&Series::new(None, true)), None);
    }
}
