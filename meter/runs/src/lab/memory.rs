//! Memory that processes have, as the kernel counts it.

use std::fs;

/// Resident bytes of all of `pids`, summed; shared pages count for each process. `None` if the
/// kernel does not say.
pub(super) fn resident(pids: &[u32]) -> Option<u64> {
    let one = |pid: &u32| {
        // Exact, unlike /proc/PID/statm, whose counters lag by some pages per thread.
        let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
        read(&rollup)
    };
    pids.iter().map(one).sum()
}

fn read(rollup: &str) -> Option<u64> {
    let line = rollup.lines().find_map(|line| line.strip_prefix("Rss:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resident_bytes_are_read() {
        let text =
            "5581-7ffd ---p 00000000 00:00 0    [rollup]\nRss:                2312 kB\nPss: 1 kB\n";
        assert_eq!(read(text), Some(2312 * 1024));
        assert_eq!(read("Rss: many kB"), None);
        assert!(resident(&[std::process::id()]).unwrap() > 100_000);
        assert_eq!(resident(&[u32::MAX]), None);
    }
}
