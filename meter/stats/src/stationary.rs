//! Checks that an open loop was the same throughout: each part has as many answers as were due.

use crate::series::{Series, Slot};
use base_clock::Nanos;

/// Parts that the measured time is cut into, if it has that many intervals.
const PARTS: usize = 10;
/// Share by which a part may differ from the schedule, beyond what chance does.
const SLACK: f64 = 0.1;
/// Standard deviations that count as chance. The number of Poisson arrivals in a part has a
/// variance equal to its mean; answers at equal distances vary less.
const CHANCE: f64 = 5.0;

/// The reason why the first `steady` nanoseconds were not stationary at `rate` requests a second;
/// `None` if nothing speaks against it. [`crate::backlog`] judges a growing backlog.
pub fn judge(series: &Series, steady: Nanos, rate: f64) -> Option<String> {
    let (parts, seconds) = parts(series, steady)?;
    unevenness(&parts, seconds, rate)
}

/// The time in parts of equal length, and how long one is in seconds.
pub fn parts(series: &Series, steady: Nanos) -> Option<(Vec<&[Slot]>, f64)> {
    let whole = ((steady / series.interval) as usize).min(series.slots.len());
    let together = whole / PARTS;
    let seconds = together as f64 * series.interval as f64 / 1e9;
    (together > 0).then(|| {
        (
            series.slots[..whole].chunks_exact(together).collect(),
            seconds,
        )
    })
}

/// Parts at the beginning that lack the answers to requests sent before the measured time, which
/// are not recorded: two mean times long, if the lack shows.
fn incomplete(parts: &[&[Slot]], seconds: f64, rate: f64, tolerance: f64) -> usize {
    let mean = mean_cycle(parts);
    if rate * mean > tolerance / 2.0 {
        (2.0 * mean / seconds).ceil() as usize
    } else {
        0
    }
}

/// Mean time in seconds from when a request was due to its end.
pub(crate) fn mean_cycle(parts: &[&[Slot]]) -> f64 {
    let slots = || parts.iter().flat_map(|part| part.iter());
    let finished: u64 = slots().map(|slot| slot.finished).sum();
    let cycles: u128 = slots().map(|slot| slot.cycle).sum();
    cycles as f64 / finished.max(1) as f64 / 1e9
}

fn unevenness(parts: &[&[Slot]], seconds: f64, rate: f64) -> Option<String> {
    let expected = rate * seconds;
    let tolerance = (SLACK * expected).max(CHANCE * expected.sqrt());
    let counts = parts
        .iter()
        .map(|part| part.iter().map(|slot| slot.finished).sum::<u64>() as f64);
    // The first: after a standstill comes a rush.
    let (index, count) = counts
        .enumerate()
        .skip(incomplete(parts, seconds, rate, tolerance))
        .find(|(_, count)| (count - expected).abs() > tolerance)?;
    let from = index as f64 * seconds;
    Some(format!(
        "not stationary: between {from:.1} and {:.1} s {:.0} requests a second ended, where {rate:.0} were asked for",
        from + seconds,
        count / seconds
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timings::Timing;
    use base_clock::MS;

    /// A minute in milliseconds, 1,000 requests in each; `change` gives the number that ended and
    /// the number in flight.
    fn series(change: impl Fn(u64) -> (u64, u64)) -> Series {
        let mut series = Series::new(Some(60 * MS), true);
        for n in 0..60 {
            let (ended, in_flight) = change(n);
            (0..ended).for_each(|_| series.record(n * MS, 1, &Timing::served(1)));
            series.sample((n + 1) * MS, MS, in_flight);
        }
        series
    }

    fn reason(change: impl Fn(u64) -> (u64, u64)) -> Option<String> {
        judge(&series(change), 60 * MS, 1_000_000.0)
    }

    #[test]
    fn an_even_run_is_stationary() {
        assert_eq!(reason(|_| (1_000, 5)), None);
        assert_eq!(reason(|n| (1_000 + n % 3 * 20, 5 + n % 7)), None);
    }

    #[test]
    fn a_standstill_is_seen_where_it_was() {
        let reason = reason(|n| {
            if (30..36).contains(&n) {
                (0, 3_000)
            } else {
                (1_000, 5)
            }
        });
        assert!(reason.unwrap().contains("between 0.0 and 0.0 s 0 requests"));
    }

    #[test]
    fn the_first_answers_come_later_and_that_is_no_change() {
        let mut series = Series::new(Some(60 * MS), true);
        for n in 0..60 {
            let ended = if n < 3 { 0 } else { 1_000 };
            (0..ended).for_each(|_| series.record(n * MS, 3 * MS, &Timing::served(1)));
            series.sample((n + 1) * MS, MS, 3_000);
        }
        assert_eq!(judge(&series, 60 * MS, 1_000_000.0), None);
    }

    #[test]
    fn a_few_requests_say_nothing() {
        let series = series(|n| (n % 2, 1));
        assert_eq!(judge(&series, 60 * MS, 500.0), None);
    }
}
