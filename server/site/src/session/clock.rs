//! The calendar's time of a request: a session ends at a moment that must mean the same after a restart.

use std::time::{SystemTime, UNIX_EPOCH};

use millpond_store::clock::Boottime;

/// Seconds since 1970 at the moment `at`. The wall clock is read each time, so that one that is set right counts at once.
pub(crate) fn unix_at(at: Boottime) -> u64 {
    let (wall, boot) = (SystemTime::now(), Boottime::now());
    let wall = wall.duration_since(UNIX_EPOCH).unwrap_or_default();
    let then = if at > boot {
        wall.saturating_add(at.since(boot))
    } else {
        wall.saturating_sub(boot.since(at))
    };
    then.as_secs()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_moment_has_one_time_of_the_calendar() {
        let now = Boottime::now();
        let hour = Duration::from_secs(3600);
        let base = unix_at(now);
        assert!(unix_at(now.plus(hour)).abs_diff(base + 3600) <= 1);
        assert!(unix_at(Boottime::from_nanos(0)) <= base);
        assert!(unix_at(Boottime::NEVER) > base);
    }
}
