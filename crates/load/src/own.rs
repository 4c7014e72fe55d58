//! What the kernel says of this process that spoils a measurement: time for which its cgroup's CPU quota stopped it, and
//! time for which its threads waited for a core.

use std::fs;

use millpond_telemetry::probe::Group;

use crate::clock::Nanos;

/// Where to read it.
pub(crate) struct Own {
    /// The own cgroup and those above it: the quota of each holds. None where the kernel counts none.
    group: Option<Group>,
}

/// What had added up at one moment; `None` where the kernel does not say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    /// Time for which the quota of a cgroup kept its ready threads from running, summed over cores and over the own cgroup and
    /// those above it: while one stops them, the others have nothing to stop.
    pub(crate) throttled: Option<Nanos>,
    /// Time for which the calling thread was ready and had no core.
    pub(crate) run_delay: Option<Nanos>,
}

impl Usage {
    /// What was added since `start`.
    pub(crate) fn since(self, start: Self) -> Self {
        let less = |now: Option<Nanos>, then: Option<Nanos>| Some(now?.saturating_sub(then?));
        Self {
            throttled: less(self.throttled, start.throttled),
            run_delay: less(self.run_delay, start.run_delay),
        }
    }
}

impl Own {
    /// Finds the cgroup of this process, of version 2 or the first.
    pub(crate) fn find() -> Self {
        Self {
            group: Group::of(std::process::id()).ok(),
        }
    }

    /// For the calling thread.
    pub(crate) fn read(&self) -> Usage {
        let groups = self.group.as_ref().and_then(|group| group.sample().ok());
        let schedstat = fs::read_to_string("/proc/thread-self/schedstat");
        Usage {
            throttled: groups.map(|groups| {
                let all = groups.iter().map(|group| group.throttled_us);
                all.fold(0, u64::saturating_add).saturating_mul(1000)
            }),
            run_delay: schedstat.ok().and_then(|text| run_delay(&text)),
        }
    }
}

/// The second figure. The others are time on a core and the number of turns.
fn run_delay(schedstat: &str) -> Option<Nanos> {
    schedstat.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_delay_is_the_second_figure() {
        assert_eq!(run_delay("1 23 4\n"), Some(23));
        assert_eq!(run_delay(""), None);
    }

    #[test]
    fn what_is_not_known_stays_unknown() {
        let known = Usage {
            throttled: Some(5),
            run_delay: Some(9),
        };
        let unknown = Usage::default();
        let expected = Usage {
            throttled: Some(0),
            run_delay: Some(0),
        };
        assert_eq!(known.since(known), expected);
        assert_eq!(known.since(unknown), unknown);
    }
}
