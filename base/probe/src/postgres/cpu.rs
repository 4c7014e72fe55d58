//! CPU time of a PostgreSQL server on this machine: the postmaster and its children.
//!
//! An ended process is no longer in `/proc`. But its postmaster has waited for it, and the kernel
//! has added its time to the postmaster's `cutime` and `cstime` (proc_pid_stat(5)). These count in
//! clock ticks, of mostly 10 ms, all children together: the error is at most two ticks for any
//! number of ended children. The time of living processes is that of the scheduler, in nanoseconds.
//! PostgreSQL's processes have one thread each.

use procfs::ProcError;
use procfs::process::{Process, Stat};

/// How often children may end while they are counted before the count is given up.
const ATTEMPTS: usize = 5;
/// The most by which the age of a process may differ from the age that the server reports, in
/// seconds.
const SAME_AGE: f64 = 0.5;

/// The processes of one server.
#[derive(Debug)]
pub(super) struct PgProcesses {
    postmaster: i32,
    /// When it started, in ticks since boot: its number may be another's by now.
    started: u64,
}

impl PgProcesses {
    /// The server of a backend with this process number, which reports an age of `age` seconds. If
    /// the number belongs to another machine or container, no local process with the number is that
    /// old.
    pub(super) fn of_backend(pid: i32, age: f64) -> Result<Self, String> {
        const ELSEWHERE: &str = "another machine, or processes that cannot be seen from here";
        let backend = Process::new(pid).and_then(|process| process.stat());
        let backend = backend.map_err(|_| ELSEWHERE.to_owned())?;
        let uptime = base_clock::Boottime::now().as_nanos() as f64 / 1e9;
        let here = uptime - backend.starttime as f64 / procfs::ticks_per_second() as f64;
        if !backend.comm.starts_with("postgres") || (here - age).abs() > SAME_AGE {
            return Err(ELSEWHERE.to_owned());
        }
        let postmaster = Process::new(backend.ppid).and_then(|process| process.stat());
        let postmaster = postmaster.map_err(|error| error.to_string())?;
        let processes = Self {
            postmaster: postmaster.pid,
            started: postmaster.starttime,
        };
        // An obstacle that every sample would meet is reported now.
        processes.run_time().map(|_| processes)
    }

    /// Nanoseconds of CPU so far, of all processes that live and all that have ended.
    pub(super) fn run_time(&self) -> Result<u64, String> {
        for _ in 0..ATTEMPTS {
            if let Some(total) = self.try_run_time().map_err(|error| error.to_string())? {
                return Ok(total);
            }
        }
        Err("processes came and went too fast to be counted".to_owned())
    }

    /// `None` if a child ended meanwhile: it would be counted twice or not at all.
    fn try_run_time(&self) -> Result<Option<u64>, ProcError> {
        let postmaster = Process::new(self.postmaster)?;
        let before = postmaster.stat()?;
        if before.starttime != self.started {
            return Err(ProcError::NotFound(None));
        }
        let mut total = postmaster.schedstat()?.sum_exec_runtime;
        for child in postmaster.task_main_thread()?.children()? {
            let child = Process::new(child.cast_signed()).and_then(|child| child.schedstat());
            match child {
                Ok(times) => total += times.sum_exec_runtime,
                Err(ProcError::NotFound(_)) => return Ok(None),
                Err(error) => return Err(error),
            }
        }
        let after = postmaster.stat()?;
        let same = ended(&before) == ended(&after);
        Ok(same.then(|| total + ended(&after) * (1_000_000_000 / procfs::ticks_per_second())))
    }
}

/// Ticks of the children that have ended.
fn ended(postmaster: &Stat) -> u64 {
    let ticks = postmaster.cutime + postmaster.cstime;
    ticks.max(0).cast_unsigned()
}

#[cfg(test)]
mod tests {
    use super::PgProcesses;

    #[test]
    fn another_process_of_that_number_is_not_the_server() {
        let me = std::process::id().cast_signed();
        for pid in [me, i32::MAX] {
            let error = PgProcesses::of_backend(pid, 0.0).unwrap_err();
            assert!(error.contains("another machine"), "{error}");
        }
    }
}
