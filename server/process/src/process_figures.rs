//! Figures of this process and of the machine, from `/proc`.

use std::fs;

/// Milliseconds of a tick: the kernel counts hundredths of a second for programs (`USER_HZ`).
const TICK_MS: u64 = 10;
/// Figures of this process and of its machine. What cannot be read is `None`, as in a sandbox of
/// another kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessFigures {
    /// Milliseconds that the cores worked for this process.
    pub cpu_ms: Option<u64>,
    /// Milliseconds that the cores of the machine were busy.
    pub busy_ms: Option<u64>,
    /// Bytes of the machine's memory that the process has.
    pub resident: Option<u64>,
    /// Bytes of addresses that it has.
    pub addresses: Option<u64>,
}

impl ProcessFigures {
    /// Reads the figures of now.
    #[must_use]
    pub fn read() -> Self {
        let read = |path: &str| fs::read_to_string(path).ok();
        let status = read("/proc/self/status").unwrap_or_default();
        Self {
            cpu_ms: read("/proc/self/stat").and_then(|text| cpu_ms(&text)),
            busy_ms: read("/proc/stat").and_then(|text| busy_ms(&text)),
            resident: bytes(&status, "VmRSS:"),
            addresses: bytes(&status, "VmSize:"),
        }
    }
}

/// The fields `utime` and `stime`. The name of the program, in brackets, may have blanks in it.
fn cpu_ms(stat: &str) -> Option<u64> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_ascii_whitespace().skip(11);
    let mut next = || fields.next()?.parse::<u64>().ok();
    Some((next()? + next()?) * TICK_MS)
}

/// The first line: user, nice, system, idle, iowait, irq, softirq, steal.
fn busy_ms(stat: &str) -> Option<u64> {
    let fields = stat.lines().next()?.strip_prefix("cpu ")?;
    let fields: Option<Vec<u64>> = fields
        .split_ascii_whitespace()
        .take(8)
        .map(|field| field.parse().ok())
        .collect();
    let fields = fields.filter(|fields| fields.len() == 8)?;
    let busy = fields.iter().sum::<u64>() - fields[3] - fields[4];
    Some(busy * TICK_MS)
}

/// Bytes of a field of `/proc/self/status`, which has kibibytes.
fn bytes(status: &str, field: &str) -> Option<u64> {
    let mut lines = status.lines();
    let rest = lines.find_map(|line| line.strip_prefix(field))?;
    let kibibytes: u64 = rest.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kibibytes << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_the_kernel_are_found() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4 1 2 3 4 150 50 8 9 20 0 5 0 100 200 300";
        assert_eq!(cpu_ms(stat), Some(2_000));
        assert_eq!(cpu_ms("7 (a) S"), None);
        let stat = "cpu  10 0 20 1000 5 1 2 3 4 0\ncpu0 1";
        assert_eq!(busy_ms(stat), Some(360));
        assert_eq!(busy_ms("cpu  10 0"), None);
        let status = "Name:\tx\nVmSize:\t   200 kB\nVmRSS:\t     3 kB\n";
        assert_eq!(bytes(status, "VmRSS:"), Some(3 << 10));
        assert_eq!(bytes(status, "VmSwap:"), None);
        let read = ProcessFigures::read();
        assert!(read.cpu_ms.is_some() && read.resident > Some(0));
    }
}
