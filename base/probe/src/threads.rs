//! The threads of one process: run time, waiting and context switches, those of ended threads kept.

use std::collections::{BTreeSet, HashMap};

use procfs::process::{Process, Task};

use super::missing::Missing;
use super::model::Thread;

/// Last known state of a thread.
#[derive(Clone, Debug, Default)]
struct KnownThread {
    name: String,
    run_ns: u64,
    wait_ns: u64,
    /// Run time when it was first seen, which says nothing about now.
    before_ns: u64,
    slices: u64,
    voluntary: u64,
    involuntary: u64,
    state: char,
    /// First and last of each row of cores that it may run on.
    cores: Vec<(u32, u32)>,
    seen: u64,
}

/// Sums over all threads that were ever seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ThreadSums {
    pub(super) run_ns: u64,
    pub(super) wait_ns: u64,
    pub(super) voluntary: Option<u64>,
    pub(super) involuntary: Option<u64>,
    /// Threads that wait without being interruptible at this moment.
    pub(super) blocked: u64,
    /// Threads that have ended since the first look.
    pub(super) ended: u64,
}

/// The threads of one process.
#[derive(Debug, Default)]
pub(super) struct Threads {
    known: HashMap<i32, KnownThread>,
    /// Sums of ended threads when they were last seen.
    past: ThreadSums,
    looks: u64,
    no_switches: bool,
}

impl Threads {
    /// Reads every thread. An ended thread keeps its values of the last look; a new thread with an
    /// old id counts separately.
    pub(super) fn look(
        &mut self,
        process: &Process,
        missing: &mut Missing,
    ) -> Result<(), procfs::ProcError> {
        self.looks += 1;
        for task in process.tasks()?.flatten() {
            // A thread may end between the listing and the reading.
            if let Ok(schedule) = task.schedstat() {
                let known = self.known.entry(task.tid).or_default();
                if schedule.sum_exec_runtime < known.run_ns {
                    self.past.retire(&std::mem::take(known));
                }
                let has_run =
                    schedule.pcount != known.slices || schedule.sum_exec_runtime != known.run_ns;
                if known.seen == 0 {
                    known.before_ns = schedule.sum_exec_runtime;
                }
                known.run_ns = schedule.sum_exec_runtime;
                known.wait_ns = schedule.run_delay;
                known.slices = schedule.pcount;
                // Only a thread that has run can have changed its state.
                if has_run || known.state == 'R' || known.seen == 0 {
                    self.no_switches |= known.read_status(&task, missing).is_none();
                }
                known.seen = self.looks;
            }
        }
        let (past, looks) = (&mut self.past, self.looks);
        self.known.retain(|_, known| {
            let lives = known.seen == looks;
            if !lives {
                past.retire(known);
            }
            lives
        });
        Ok(())
    }

    /// The sums, with what ended threads had.
    pub(super) fn sums(&self) -> ThreadSums {
        let mut sums = self.past;
        let mut switches = (
            sums.voluntary.unwrap_or_default(),
            sums.involuntary.unwrap_or_default(),
        );
        for known in self.known.values() {
            sums.run_ns += known.run_ns;
            sums.wait_ns += known.wait_ns;
            switches.0 += known.voluntary;
            switches.1 += known.involuntary;
            sums.blocked += u64::from(known.state == 'D');
        }
        sums.voluntary = (!self.no_switches).then_some(switches.0);
        sums.involuntary = (!self.no_switches).then_some(switches.1);
        sums
    }

    /// Counts everything alive as ended: the process has.
    pub(super) fn end(&mut self) {
        for (_, known) in self.known.drain() {
            self.past.retire(&known);
        }
    }

    /// Adds the cores that the threads whose name begins with `prefix` may run on, in rows.
    pub(super) fn cores(&self, prefix: &str, rows: &mut BTreeSet<(u32, u32)>) {
        let named = |known: &&KnownThread| known.name.starts_with(prefix);
        for known in self.known.values().filter(named) {
            rows.extend(&known.cores);
        }
    }

    /// The threads alive, each with its run time since it was first seen.
    pub(super) fn by_use(&self, pid: i32) -> impl Iterator<Item = (u64, Thread)> + '_ {
        let used = |(_, known): (_, &KnownThread)| known.run_ns.saturating_sub(known.before_ns);
        self.known.iter().map(used).zip(self.list(pid))
    }

    /// The threads alive.
    pub(super) fn list(&self, pid: i32) -> impl Iterator<Item = Thread> + '_ {
        self.known.iter().map(move |(&tid, known)| Thread {
            pid,
            tid,
            name: known.name.clone(),
            run_ns: known.run_ns,
            wait_ns: known.wait_ns,
        })
    }
}

/// The numbers in rows of cores, in order.
pub(super) fn numbers(rows: &BTreeSet<(u32, u32)>) -> Vec<usize> {
    let all = rows.iter().flat_map(|&(first, last)| first..=last);
    let all: BTreeSet<usize> = all.map(|core| core as usize).collect();
    all.into_iter().collect()
}

impl KnownThread {
    /// Name, state and context switches; `None` if the kernel does not count the latter.
    fn read_status(&mut self, task: &Task, missing: &mut Missing) -> Option<()> {
        let Ok(status) = task.status() else {
            return Some(());
        };
        self.state = status.state.chars().next().unwrap_or_default();
        self.name = status.name;
        self.cores = status.cpus_allowed_list.unwrap_or_default();
        let counts = status
            .voluntary_ctxt_switches
            .zip(status.nonvoluntary_ctxt_switches);
        if counts.is_none() {
            missing.note(
                "processes.context_switches",
                "the kernel does not count them",
            );
        }
        (self.voluntary, self.involuntary) = counts?;
        Some(())
    }
}

impl ThreadSums {
    fn retire(&mut self, known: &KnownThread) {
        self.run_ns += known.run_ns;
        self.wait_ns += known.wait_ns;
        self.voluntary = Some(self.voluntary.unwrap_or_default() + known.voluntary);
        self.involuntary = Some(self.involuntary.unwrap_or_default() + known.involuntary);
        self.ended += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(run_ns: u64) -> KnownThread {
        KnownThread {
            run_ns,
            voluntary: 2,
            seen: 1,
            ..KnownThread::default()
        }
    }

    #[test]
    fn run_time_before_the_watch_does_not_count() {
        let mut threads = Threads::default();
        let process = Process::myself().unwrap();
        threads.look(&process, &mut Missing::default()).unwrap();
        let own = std::process::id().cast_signed();
        assert!(threads.list(own).any(|thread| thread.run_ns > 0));
        assert!(threads.by_use(own).all(|(used, _)| used == 0));
        for known in threads.known.values_mut() {
            known.run_ns += 7;
        }
        assert!(
            threads
                .by_use(own)
                .all(|(used, thread)| used == 7 && thread.run_ns >= 7)
        );
    }

    #[test]
    fn an_ended_thread_keeps_its_time_and_counts_once() {
        let mut threads = Threads::default();
        threads.known.insert(1, known(100));
        threads.known.insert(2, known(50));
        let gone = threads.known.remove(&2).unwrap();
        threads.past.retire(&gone);
        let sums = threads.sums();
        assert_eq!((sums.run_ns, sums.voluntary, sums.ended), (150, Some(4), 1));
        threads.end();
        assert_eq!(threads.sums().run_ns, 150);
        assert_eq!(threads.list(7).count(), 0);
    }
}
