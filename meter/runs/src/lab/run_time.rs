//! CPU time of all processes of a server, also of threads and processes that began and ended within
//! a run.

use std::fs;

use crate::compare::cpu::ThreadTimes;

/// Nanoseconds of a clock tick: `USER_HZ` is 100 on every architecture that Linux supports today.
const TICK: u64 = 10_000_000;
/// Ticks by which the clock of a process may be behind or ahead at each reading: user and system
/// time, its own and that of its children, are each rounded down.
const ROUNDING: u64 = 4;
/// Ticks from which the clock of processes is exact enough by itself.
const ENOUGH: u64 = 20;

/// Run times at one moment, by two clocks.
///
/// The run times of threads are exact, but a thread that begins and ends between two readings is in
/// neither. The clock of a process counts ticks, and has the time of threads that ended and of
/// children that were waited for.
pub(super) struct ServerTimes {
    threads: Option<ThreadTimes>,
    ticks: Option<u64>,
    processes: u64,
}

impl ServerTimes {
    /// Reads the processes that `pids` lists.
    pub(super) fn take(pids: impl Fn() -> Vec<u32>) -> Self {
        // A process may end between the listing and the reading; then the list is read again.
        let read = || {
            let pids = pids();
            let threads = ThreadTimes::take(&pids).ok()?;
            let ticks: Option<u64> = pids.iter().map(|pid| process_ticks(*pid)).sum();
            Some(Self {
                threads: Some(threads),
                ticks: Some(ticks?),
                processes: pids.len() as u64,
            })
        };
        (0..3).find_map(|_| read()).unwrap_or(Self {
            threads: None,
            ticks: None,
            processes: 0,
        })
    }

    /// Nanoseconds from an earlier reading to this one. The clock of the processes counts where the
    /// threads' times lack more than its rounding, if it has counted enough; `None` if neither
    /// clock can say.
    pub(super) fn since(&self, earlier: &Self) -> Option<u64> {
        let threads = self.threads.as_ref().zip(earlier.threads.as_ref());
        let exact = threads.and_then(|(now, then)| now.since(then));
        let ticks = self.ticks.zip(earlier.ticks);
        let ticks = ticks.and_then(|(now, then)| now.checked_sub(then));
        best(exact, ticks, self.processes.max(earlier.processes))
    }
}

fn best(exact: Option<u64>, ticks: Option<u64>, processes: u64) -> Option<u64> {
    let coarse = ticks.map(|ticks| ticks.saturating_mul(TICK));
    let rounding = ROUNDING.saturating_mul(processes).saturating_mul(TICK);
    let enough = coarse.filter(|coarse| *coarse >= ENOUGH * TICK && *coarse >= 2 * rounding);
    match (exact, coarse) {
        (Some(exact), Some(coarse)) if coarse > exact.saturating_add(rounding) => enough,
        (Some(exact), _) => Some(exact),
        (None, _) => enough,
    }
}

/// User and system time of a process and of its children that were waited for, in ticks.
fn process_ticks(pid: u32) -> Option<u64> {
    ticks_of(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

fn ticks_of(stat: &str) -> Option<u64> {
    // The name stands in brackets and may have any character.
    let (_, fields) = stat.rsplit_once(')')?;
    // Fields 14 to 17; the one after the name is the third.
    let times = fields.split_whitespace().skip(11).take(4);
    let times: Vec<u64> = times.map_while(|time| time.parse().ok()).collect();
    (times.len() == 4).then(|| times.iter().sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_of_a_process_include_its_children() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194560 1 2 3 4 50 20 3 4 20 0 1 0 9 9 9";
        assert_eq!(ticks_of(stat), Some(77));
        assert_eq!(ticks_of("7 (a) S 1"), None);
        assert_eq!(ticks_of(""), None);
        assert!(process_ticks(std::process::id()).is_some());
    }

    #[test]
    fn threads_count_unless_some_are_missing() {
        let second = 100;
        assert_eq!(best(Some(5), Some(0), 1), Some(5));
        assert_eq!(best(Some(990_000_000), Some(second), 1), Some(990_000_000));
        // Threads that came and went.
        assert_eq!(best(Some(13_000_000), Some(second), 1), Some(1_000_000_000));
        assert_eq!(best(None, Some(second), 1), Some(1_000_000_000));
        // Too little by ticks to say.
        assert_eq!(best(None, Some(3), 1), None);
        assert_eq!(best(Some(1), Some(9), 1), None);
        // Many processes round often.
        assert_eq!(best(None, Some(second), 50), None);
        assert_eq!(best(None, None, 0), None);
    }

    #[test]
    fn a_thread_that_came_and_went_is_counted() {
        let own = || vec![std::process::id()];
        let before = ServerTimes::take(own);
        let work = || {
            let mut sum = 0_u64;
            let began = base_clock::now();
            while base_clock::since(began) < std::time::Duration::from_millis(600) {
                sum = std::hint::black_box(sum.wrapping_add(1));
            }
        };
        std::thread::spawn(work).join().unwrap();
        // Threads of other tests may end meanwhile, and the core may be shared.
        let spent = ServerTimes::take(own).since(&before);
        assert!(spent.is_none_or(|spent| spent >= 20 * TICK), "{spent:?}");
    }
}
