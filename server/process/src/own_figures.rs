//! Figures of the process itself, by the names that Prometheus has for them.

use rustix::process::{Resource, getrlimit};

use crate::descriptors::open_now;
use crate::figures::{Figure, FigureValue, Figures};
use crate::process_figures::ProcessFigures;

/// Time of processors, memory and descriptors, as `/proc` has them; what it has not is left out.
pub(crate) struct OwnFigures;

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
        let process = ProcessFigures::read();
        if let Some(cpu_ms) = process.cpu_ms {
            let help = "Time of processors that the process has used.";
            let value = FigureValue::Number(cpu_ms as f64 / 1e3);
            add("cpu_seconds", "process_cpu_seconds_total", help, value);
        }
        for (bytes, name, help) in [
            (
                process.resident,
                "resident_memory_bytes",
                "Memory of the machine that the process has.",
            ),
            (
                process.addresses,
                "virtual_memory_bytes",
                "Addresses that the process has.",
            ),
        ] {
            if let Some(bytes) = bytes {
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
