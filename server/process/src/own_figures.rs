//! Figures of the process itself, by the names that Prometheus has for them.

use std::fs;

use rustix::process::{Resource, getrlimit};

use crate::descriptors::open_now;
use crate::figures::{Figure, FigureValue, Figures};

/// Time of processors, memory and descriptors, as `/proc` has them; what it has not is left out.
pub(crate) struct OwnFigures;

/// Places of fields of `/proc/self/stat` behind the name of the program (proc(5)).
const USER_TIME: usize = 11;
const SYSTEM_TIME: usize = 12;
/// Units of these times in a second, the same in all that Linux gives to programs.
const TICKS: f64 = 100.0;

impl Figures for OwnFigures {
    fn each(&self, add: &mut dyn FnMut(&Figure<'_>)) {
        let mut add = |name: &str, metric: &str, help: &str, value: FigureValue| {
            add(&Figure {
                name,
                metric,
                help,
                label: None,
                value,
            });
        };
        if let Some(seconds) = cpu_seconds() {
            let help = "Time of processors that the process has used.";
            let value = FigureValue::Number(seconds);
            add("cpu_seconds", "process_cpu_seconds_total", help, value);
        }
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        for (field, name, help) in [
            (
                "VmRSS:",
                "resident_memory_bytes",
                "Memory of the process that is in the machine's.",
            ),
            (
                "VmSize:",
                "virtual_memory_bytes",
                "Addresses that the process has.",
            ),
        ] {
            if let Some(bytes) = memory(&status, field) {
                add(name, &format!("process_{name}"), help, bytes.into());
            }
        }
        let help = "File descriptors that are open.";
        add("open_fds", "process_open_fds", help, open_now().into());
        if let Some(most) = getrlimit(Resource::Nofile).current {
            let help = "File descriptors that may be open.";
            add("max_fds", "process_max_fds", help, most.into());
        }
    }
}

fn cpu_seconds() -> Option<f64> {
    let text = fs::read_to_string("/proc/self/stat").ok()?;
    // The name of a program may have spaces and brackets.
    let (_, behind) = text.rsplit_once(')')?;
    let time = |at: usize| behind.split_ascii_whitespace().nth(at)?.parse::<f64>().ok();
    Some((time(USER_TIME)? + time(SYSTEM_TIME)?) / TICKS)
}

/// Bytes of a field of `/proc/self/status`, which has kibibytes.
fn memory(status: &str, field: &str) -> Option<u64> {
    let mut lines = status.lines();
    let rest = lines.find_map(|line| line.strip_prefix(field))?;
    let kibibytes: u64 = rest.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kibibytes << 10)
}

#[cfg(test)]
mod tests {
    use super::{cpu_seconds, memory};

    #[test]
    fn fields_are_found() {
        assert!(cpu_seconds().is_some_and(|seconds| seconds >= 0.0));
        let status = "Name:\tx\nVmSize:\t   200 kB\nVmRSS:\t     3 kB\n";
        assert_eq!(memory(status, "VmRSS:"), Some(3 << 10));
        assert_eq!(memory(status, "VmSize:"), Some(200 << 10));
        assert_eq!(memory(status, "VmSwap:"), None);
    }
}
