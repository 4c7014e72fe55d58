//! How much may be made ahead.

use std::time::Duration;

use base_clock::Boottime;

/// Time that one page is taken to need at most: more is a machine that slept.
const LONGEST: Duration = Duration::from_secs(60);

/// Limits work to a share of the time: each piece of work is followed by a proportional rest. Only
/// one piece runs at a time and unused time is not saved. So the limit holds for each span from the
/// beginning of one piece to the beginning of another, and work after a rest begins at once.
#[derive(Debug)]
pub(super) struct Cap {
    percent: u64,
    until: Boottime,
}

impl Cap {
    pub(super) fn new(percent: usize) -> Self {
        Self {
            percent: (percent as u64).clamp(1, 100),
            until: Boottime::default(),
        }
    }

    /// Returns the time that is left of the rest at `now`.
    pub(super) fn rest(&self, now: Boottime) -> Duration {
        self.until.since(now)
    }

    pub(super) fn worked(&mut self, began: Boottime, ended: Boottime) {
        let took = u64::try_from(ended.since(began).min(LONGEST).as_nanos()).unwrap_or(u64::MAX);
        let rest = took.saturating_mul(100 - self.percent) / self.percent;
        self.until = ended.plus(Duration::from_nanos(rest));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_never_takes_more_than_its_share() {
        for percent in [1, 25, 50, 99, 100] {
            let mut cap = Cap::new(percent);
            let start = 1_000_000;
            let (mut now, mut worked) = (start, 0);
            for work in [1, 5_000, 77, 1_000_000, 3, 900]
                .into_iter()
                .cycle()
                .take(600)
            {
                assert!(cap.rest(Boottime::from_nanos(now)).is_zero());
                cap.worked(Boottime::from_nanos(now), Boottime::from_nanos(now + work));
                worked += work;
                now += work;
                now += cap.rest(Boottime::from_nanos(now)).as_nanos() as u64;
                // A rest is cut to a nanosecond.
                assert!(worked * 100 <= (now - start + 600) * percent as u64);
            }
        }
    }

    #[test]
    fn nothing_is_saved_up_and_the_first_begins_at_once() {
        let mut cap = Cap::new(25);
        let at = Boottime::from_nanos;
        assert!(cap.rest(at(0)).is_zero());
        cap.worked(at(1_000_000), at(1_000_100));
        assert_eq!(cap.rest(at(1_000_100)), Duration::from_nanos(300));
        cap.worked(at(9_000_000), at(9_000_100));
        assert_eq!(cap.rest(at(9_000_200)), Duration::from_nanos(200));
    }
}
