//! Counters of `perf_event_open`: those of the processor if the kernel gives them, else the
//! kernel's.
//!
//! A counter is opened for each thread that exists at the start, and threads started later by these
//! threads inherit it. When the probe ends, the kernel keeps nothing of it.

use std::collections::BTreeMap;
use std::io;

use perf_event::events::{Hardware, Software};
use perf_event::{Builder, Counter};

use super::missing::Missing;

/// A process with at least this many threads is not counted: each thread needs four descriptors,
/// and each counter makes the server's task switches slower.
const MOST: usize = 64;

const HARDWARE: [(&str, Hardware); 4] = [
    ("instructions", Hardware::INSTRUCTIONS),
    ("cycles", Hardware::CPU_CYCLES),
    ("cache_misses", Hardware::CACHE_MISSES),
    ("branch_misses", Hardware::BRANCH_MISSES),
];
const SOFTWARE: [(&str, Software); 4] = [
    ("task_clock_ns", Software::TASK_CLOCK),
    ("context_switches", Software::CONTEXT_SWITCHES),
    ("page_faults", Software::PAGE_FAULTS),
    ("cpu_migrations", Software::CPU_MIGRATIONS),
];

/// The open counters.
#[derive(Default)]
pub(super) struct Perf {
    counters: Vec<(&'static str, Counter)>,
}

impl Perf {
    /// Opens counters for `threads` as well.
    pub(super) fn attach(&mut self, threads: &[i32], missing: &mut Missing) {
        if threads.len() > MOST {
            let why = format!(
                "the server has {} threads, and counters for more than {MOST} would slow it down",
                threads.len()
            );
            return missing.note("perf", why);
        }
        let mut found_one = false;
        for (name, event) in HARDWARE {
            let make = || Builder::new(event);
            found_one |= self.open(name, make, threads, missing);
        }
        if !found_one {
            for (name, event) in SOFTWARE {
                let make = || Builder::new(event);
                self.open(name, make, threads, missing);
            }
        }
    }

    /// Opens one counter for each thread; whether there is one at all.
    fn open<'a>(
        &mut self,
        name: &'static str,
        make: impl Fn() -> Builder<'a>,
        threads: &[i32],
        missing: &mut Missing,
    ) -> bool {
        let before = self.counters.len();
        for &thread in threads {
            match counter(make(), make(), thread) {
                Ok(counter) => self.counters.push((name, counter)),
                // It has ended meanwhile.
                Err(error) if error.raw_os_error() == Some(ESRCH) => {}
                Err(error) => {
                    missing.note(&format!("perf.{name}"), explain(&error));
                    self.counters.truncate(before);
                    return false;
                }
            }
        }
        self.counters.len() > before
    }

    /// The sum of all counters, scaled if the processor has fewer counters than were opened.
    pub(super) fn read(&mut self, missing: &mut Missing) -> BTreeMap<String, u64> {
        let mut sums = BTreeMap::new();
        for (name, counter) in &mut self.counters {
            match counter.read_count_and_time() {
                Ok(read) if read.time_running > 0 => {
                    let scaled = u128::from(read.count) * u128::from(read.time_enabled)
                        / u128::from(read.time_running);
                    *sums.entry((*name).to_owned()).or_default() +=
                        u64::try_from(scaled).unwrap_or(u64::MAX);
                }
                // The thread has not run yet.
                Ok(_) => *sums.entry((*name).to_owned()).or_default() += 0,
                Err(error) => missing.note(&format!("perf.{name}"), error),
            }
        }
        sums
    }
}

/// `ESRCH`, in every Linux architecture.
const ESRCH: i32 = 3;

/// Counts user and kernel mode; only user mode where more is not allowed.
fn counter(mut both: Builder<'_>, mut user: Builder<'_>, thread: i32) -> io::Result<Counter> {
    both.include_kernel();
    let open = |builder: &mut Builder<'_>| {
        builder
            .observe_pid(thread)
            .inherit(true)
            .enabled(true)
            .build()
    };
    match open(&mut both) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => open(&mut user),
        result => result,
    }
}

fn explain(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::PermissionDenied => {
            "not allowed (kernel.perf_event_paranoid, CAP_PERFMON)".to_owned()
        }
        io::ErrorKind::NotFound | io::ErrorKind::Unsupported => {
            "this kernel or its virtual machine has no such counter".to_owned()
        }
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn either_a_counter_or_a_reason() {
        let (mut perf, mut missing) = (Perf::default(), Missing::default());
        let me = rustix::thread::gettid().as_raw_nonzero().get();
        perf.attach(&[me], &mut missing);
        let counts = perf.read(&mut missing);
        let reasons = missing.into_reasons();
        for (name, _) in HARDWARE {
            let said = reasons.contains_key(&format!("perf.{name}"));
            assert!(
                counts.contains_key(name) != said,
                "{name}: {counts:?} {reasons:?}"
            );
        }
    }
}
