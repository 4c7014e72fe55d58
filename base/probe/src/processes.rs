//! The watched processes as one: counters that only rise, while processes start and end.
//!
//! A process is known by its id and its start time, so a new process with an old id is a different
//! one; `/proc/PID` is held open, so the probe never reads another process. Threads are summed by
//! the scheduler's clock. The time of threads and children that ended between two looks is in the
//! process's own tick counters. It is added from there if it exceeds their rounding, so it is
//! neither lost nor counted twice.

use std::collections::{BTreeMap, BTreeSet};

use procfs::process::Process;

use super::missing::Missing;
use super::model::{Process as Named, Thread, WatchedServer};
use super::threads::{Threads, numbers};

/// Threads that a sample names.
const NAMED: usize = 16;
/// Ticks by which two rounded counters may differ: one for user, one for system time.
const ROUNDING: u64 = 2;

/// Counters of one process.
#[derive(Clone, Copy, Debug, Default)]
struct Counters {
    run_ns: u64,
    wait_ns: u64,
    user: u64,
    system: u64,
    /// Ticks of children that ended and were waited for.
    reaped: u64,
    voluntary: Option<u64>,
    involuntary: Option<u64>,
    faults: u64,
    major_faults: u64,
    read_bytes: Option<u64>,
    written_bytes: Option<u64>,
}

struct Tracked {
    handle: Process,
    start: u64,
    threads: Threads,
    /// Ticks and run time at the first look.
    first: Option<(u64, u64)>,
    /// Run time of threads that began and ended between two looks.
    unseen_ns: u64,
    base: Counters,
    last: Counters,
    rss_bytes: u64,
    live_threads: u64,
    descriptors: Option<u64>,
    blocked: u64,
    /// When it was found to have ended.
    ended: Option<u64>,
    named: Named,
}

/// The watched processes.
#[derive(Default)]
pub(super) struct Processes {
    tracked: Vec<Tracked>,
    hz: u64,
    page: u64,
    blocked: u64,
    lost_children: u64,
    notes: Vec<String>,
}

impl Processes {
    pub(super) fn new() -> Self {
        Self {
            hz: procfs::ticks_per_second().max(1),
            page: procfs::page_size(),
            ..Self::default()
        }
    }

    /// Watches a process from now on; with `from_birth` all that it has done so far counts as well.
    ///
    /// # Errors
    /// There is no such process, or it cannot be looked at.
    pub(super) fn add(
        &mut self,
        pid: i32,
        found: &str,
        from_birth: bool,
        missing: &mut Missing,
    ) -> Result<bool, procfs::ProcError> {
        let handle = Process::new(pid)?;
        let stat = handle.stat()?;
        let is_known =
            |tracked: &Tracked| tracked.named.pid == pid && tracked.start == stat.starttime;
        if self.tracked.iter().any(is_known) {
            return Ok(false);
        }
        let mut tracked = Tracked {
            handle,
            start: stat.starttime,
            threads: Threads::default(),
            first: None,
            unseen_ns: 0,
            base: Counters::default(),
            last: Counters::default(),
            rss_bytes: 0,
            live_threads: 0,
            descriptors: None,
            blocked: 0,
            ended: None,
            named: Named {
                pid,
                name: stat.comm,
                found: found.to_owned(),
                ended_ns: None,
            },
        };
        tracked.look(self.hz, self.page, missing)?;
        if !from_birth {
            tracked.base = tracked.last;
        }
        self.tracked.push(tracked);
        Ok(true)
    }

    /// Ids of the processes alive.
    pub(super) fn alive(&self) -> Vec<i32> {
        let alive = self.tracked.iter().filter(|one| one.ended.is_none());
        alive.map(|one| one.named.pid).collect()
    }

    /// The first process alive.
    pub(super) fn first(&self) -> Option<&Process> {
        let first = self.tracked.iter().find(|one| one.ended.is_none());
        first.map(|one| &one.handle)
    }

    /// Reads everything anew; `now` is for the notes on what has ended.
    pub(super) fn look(&mut self, now: u64, missing: &mut Missing) {
        for tracked in self.tracked.iter_mut().filter(|one| one.ended.is_none()) {
            if let Err(why) = tracked.look(self.hz, self.page, missing) {
                tracked.end(now);
                if !matches!(why, procfs::ProcError::NotFound(_)) {
                    missing.note("processes", format!("process {}: {why}", tracked.named.pid));
                }
                if !tracked.named.found.starts_with("child") {
                    let Named { pid, name, .. } = &tracked.named;
                    self.notes
                        .push(format!("process {pid} ({name}) ended while it was watched"));
                }
            }
        }
        self.blocked += self.tracked.iter().map(|one| one.blocked).sum::<u64>();
        self.account_children();
    }

    /// Ticks of children that no sample has seen, from their parents' counters after their ends.
    fn account_children(&mut self) {
        let reaped: u64 = self
            .tracked
            .iter()
            .map(|one| one.last.reaped - one.base.reaped.min(one.last.reaped))
            .sum();
        let ended = self.tracked.iter().filter(|one| one.ended.is_some());
        let (seen, count) = ended.fold((0, 0), |(ticks, count), one| {
            let own = one.last.user + one.last.system + one.last.reaped;
            (ticks + own, count + 1)
        });
        let unseen = reaped.saturating_sub(seen + ROUNDING * (count + 1));
        self.lost_children = self.lost_children.max(unseen);
    }

    /// All processes together; `None` if none is alive.
    pub(super) fn server(&self) -> Option<WatchedServer> {
        let alive = || self.tracked.iter().filter(|one| one.ended.is_none());
        alive().next()?;
        let sum = |of: fn(&Counters) -> u64| -> u64 {
            let all = self.tracked.iter();
            all.map(|one| of(&one.last).saturating_sub(of(&one.base)))
                .sum()
        };
        let readable = |of: fn(&Counters) -> Option<u64>| -> Option<u64> {
            let mut all = self.tracked.iter();
            all.try_fold(0, |sum, one| {
                Some(sum + of(&one.last)?.saturating_sub(of(&one.base).unwrap_or_default()))
            })
        };
        Some(WatchedServer {
            processes: alive().count() as u64,
            threads: alive().map(|one| one.live_threads).sum(),
            run_ns: sum(|c| c.run_ns) + self.lost_children * 1_000_000_000 / self.hz,
            wait_ns: sum(|c| c.wait_ns),
            user: sum(|c| c.user),
            system: sum(|c| c.system),
            voluntary: readable(|c| c.voluntary),
            involuntary: readable(|c| c.involuntary),
            faults: sum(|c| c.faults),
            major_faults: sum(|c| c.major_faults),
            blocked: self.blocked,
            rss_bytes: alive().map(|one| one.rss_bytes).sum(),
            descriptors: alive().try_fold(0, |sum, one| Some(sum + one.descriptors?)),
            read_bytes: readable(|c| c.read_bytes),
            written_bytes: readable(|c| c.written_bytes),
        })
    }

    /// The threads with the most run time since the watch began: an old server has many threads
    /// that were busy only before.
    pub(super) fn busiest(&self) -> Vec<Thread> {
        let alive = self.tracked.iter().filter(|one| one.ended.is_none());
        let mut threads: Vec<(u64, Thread)> = alive
            .flat_map(|one| one.threads.by_use(one.named.pid))
            .collect();
        threads.sort_by_key(|(used, thread)| (std::cmp::Reverse(*used), thread.tid));
        threads.truncate(NAMED);
        threads.into_iter().map(|(_, thread)| thread).collect()
    }

    /// The cores that some thread may run on.
    pub(super) fn cores(&self) -> Vec<usize> {
        let mut rows = BTreeSet::new();
        for one in self.tracked.iter().filter(|one| one.ended.is_none()) {
            one.threads.cores("", &mut rows);
        }
        numbers(&rows)
    }

    /// Ids of the threads alive, for counters that are opened for each.
    pub(super) fn thread_ids(&self) -> Vec<i32> {
        let alive = self.tracked.iter().filter(|one| one.ended.is_none());
        let ids = alive.flat_map(|one| one.threads.list(one.named.pid).map(|thread| thread.tid));
        let mut ids: Vec<i32> = ids.collect();
        ids.sort_unstable();
        ids
    }

    /// Returns the processes that were watched, and the events of each.
    pub(super) fn into_names(self) -> (Vec<Named>, Vec<String>) {
        let mut notes = self.notes;
        let ended: BTreeMap<&str, usize> = self
            .tracked
            .iter()
            .filter(|one| one.ended.is_some() && one.named.found.starts_with("child"))
            .fold(BTreeMap::new(), |mut names, one| {
                *names.entry(one.named.name.as_str()).or_default() += 1;
                names
            });
        for (name, count) in ended {
            let plural = if count == 1 { "child" } else { "children" };
            notes.push(format!(
                "{count} {plural} ({name}) ended while being watched"
            ));
        }
        let names = self.tracked.into_iter().map(|one| one.named).collect();
        (names, notes)
    }
}

impl Tracked {
    fn look(&mut self, hz: u64, page: u64, missing: &mut Missing) -> Result<(), procfs::ProcError> {
        // Ticks are read first, so that they are never ahead of the threads' own sum.
        let stat = self.handle.stat()?;
        if stat.state == 'Z' || stat.state == 'X' {
            return Err(procfs::ProcError::NotFound(None));
        }
        self.threads.look(&self.handle, missing)?;
        let sums = self.threads.sums();
        let ticks = stat.utime + stat.stime;
        // Time of threads that ended before the first look is in the ticks of both ends.
        let &mut (first_ticks, first_ns) = self.first.get_or_insert((ticks, sums.run_ns));
        let by_ticks = ticks.saturating_sub(first_ticks + ROUNDING) * 1_000_000_000 / hz;
        self.unseen_ns = self
            .unseen_ns
            .max(by_ticks.saturating_sub(sums.run_ns - first_ns));
        let io = missing.or_note("processes.io", self.handle.io());
        self.descriptors = missing
            .or_note("processes.descriptors", self.handle.fd_count())
            .map(|count| count as u64);
        self.rss_bytes = stat.rss * page;
        self.live_threads = u64::try_from(stat.num_threads).unwrap_or_default();
        self.blocked = sums.blocked;
        self.last = Counters {
            run_ns: sums.run_ns + self.unseen_ns,
            wait_ns: sums.wait_ns,
            user: stat.utime.max(self.last.user),
            system: stat.stime.max(self.last.system),
            reaped: (stat.cutime + stat.cstime).unsigned_abs(),
            voluntary: sums.voluntary,
            involuntary: sums.involuntary,
            faults: stat.minflt + stat.majflt,
            major_faults: stat.majflt,
            read_bytes: io.as_ref().map(|io| io.read_bytes),
            written_bytes: io.as_ref().map(|io| io.write_bytes),
        };
        Ok(())
    }

    fn end(&mut self, now: u64) {
        self.threads.end();
        self.ended = Some(now);
        self.named.ended_ns = Some(now);
        self.blocked = 0;
    }
}

/// Why a process cannot be watched: a sentence without the path of the file.
pub(super) fn reason(error: &procfs::ProcError) -> String {
    match error {
        procfs::ProcError::NotFound(_) => "there is no such process on this machine".to_owned(),
        procfs::ProcError::PermissionDenied(_) => "it belongs to another user".to_owned(),
        other => other.to_string(),
    }
}
