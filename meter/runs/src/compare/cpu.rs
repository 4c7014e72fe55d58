//! CPU time of a server on this machine, from the run times of its threads.

use std::collections::BTreeMap;

use base_probe::run_times;

use millrace_client::Error;

/// Run time of each thread in nanoseconds, by process and thread.
type Times = BTreeMap<(u32, u32), u64>;

/// Run times of all threads at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ThreadTimes(Times);

impl ThreadTimes {
    /// Reads all threads of `pids`; nothing for none.
    pub(crate) fn take(pids: &[u32]) -> Result<Self, Error> {
        let mut times = Times::new();
        for &pid in pids {
            let threads = run_times(pid).map_err(|error| {
                Error::Plan(format!(
                    "no CPU time of process {pid}: {error}; it must run on this machine, under a kernel with \
                     /proc/PID/schedstat"
                ))
            })?;
            times.extend(
                threads
                    .into_iter()
                    .map(|(thread, time)| ((pid, thread), time)),
            );
        }
        Ok(Self(times))
    }

    /// Nanoseconds from an earlier reading to this one. `None` if a thread ended between them,
    /// because its last part cannot be read.
    pub(crate) fn since(&self, earlier: &Self) -> Option<u64> {
        if earlier.0.is_empty() || earlier.0.keys().any(|thread| !self.0.contains_key(thread)) {
            return None;
        }
        let spent = self.0.iter().map(|(thread, &time)| {
            // A new thread starts at zero.
            time.saturating_sub(earlier.0.get(thread).copied().unwrap_or(0))
        });
        Some(spent.sum())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(threads: &[(u32, u64)]) -> ThreadTimes {
        ThreadTimes(
            threads
                .iter()
                .map(|&(thread, time)| ((1, thread), time))
                .collect(),
        )
    }

    #[test]
    fn new_threads_count_and_lost_ones_spoil_the_sum() {
        let before = reading(&[(1, 100), (2, 50)]);
        assert_eq!(
            reading(&[(1, 130), (2, 50), (3, 7)]).since(&before),
            Some(37)
        );
        assert_eq!(reading(&[(1, 130), (3, 7)]).since(&before), None);
        assert_eq!(ThreadTimes::default().since(&ThreadTimes::default()), None);
    }

    #[test]
    fn this_process_has_used_cpu_time() {
        let pids = [std::process::id()];
        let before = ThreadTimes::take(&pids).unwrap();
        let later = ThreadTimes::take(&pids).unwrap();
        assert!(!later.0.is_empty());
        // Threads of other tests start and end; the time of this thread never falls.
        assert!(
            before
                .0
                .iter()
                .all(|(thread, time)| later.0.get(thread).is_none_or(|new| new >= time))
        );
        let text = ThreadTimes::take(&[u32::MAX]).unwrap_err().to_string();
        assert!(text.contains("no CPU time of process 4294967295"), "{text}");
    }
}
