//! What the scheduler gave to each thread of a process so far.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use procfs::ProcError;
use procfs::process::Process;

/// Run times of the threads of the process `pid` in nanoseconds, by thread id. A thread that ends
/// during the read is left out.
///
/// `/proc/PID/task/TID/schedstat` has them; `stat` counts in ticks of mostly 10 ms, too coarse for
/// runs of a few seconds.
///
/// # Errors
/// There is no such process on this machine, or its kernel does not count run times.
pub fn run_times(pid: u32) -> io::Result<BTreeMap<u32, u64>> {
    let other = |error: ProcError| io::Error::other(error.to_string());
    let process = Process::new(pid.cast_signed()).map_err(other)?;
    let mut times = BTreeMap::new();
    for task in process.tasks().map_err(other)?.flatten() {
        match task.schedstat() {
            Ok(counted) => {
                times.insert(task.tid.cast_unsigned(), counted.sum_exec_runtime);
            }
            Err(_) if !Path::new(&format!("/proc/{pid}/task/{}", task.tid)).exists() => {}
            Err(error) => return Err(other(error)),
        }
    }
    Ok(times)
}

#[cfg(test)]
mod tests {
    use super::run_times;

    #[test]
    fn run_times_exist_for_this_process_only() {
        let times = run_times(std::process::id()).unwrap();
        assert!(times.values().sum::<u64>() > 0, "{times:?}");
        assert!(run_times(u32::MAX).is_err());
    }
}
