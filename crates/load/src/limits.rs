//! Whether this process may have what the plan needs, and where its threads may run.

use std::num::NonZeroU64;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity, set_current_timer_slack};

use crate::Error;

/// File descriptors beside the connections: epolls, standard streams, what the caller has open.
const BESIDE: u64 = 256;

/// Raises the limit of file descriptors to what `connections` need.
pub(crate) fn descriptors(connections: usize) -> Result<(), Error> {
    let need = connections as u64 + BESIDE;
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= need) {
        return Ok(());
    }
    let refused = Error::Descriptors {
        need,
        have: limit.maximum.unwrap_or(u64::MAX),
    };
    if limit.maximum.is_some_and(|maximum| maximum < need) {
        return Err(refused);
    }
    setrlimit(
        Resource::Nofile,
        Rlimit {
            current: Some(need),
            maximum: limit.maximum,
        },
    )
    .map_err(|_| refused)
}

/// Pins the calling thread to one core.
pub(crate) fn pin(core: usize) -> Result<(), Error> {
    confine(&[core])
}

/// Lets the calling thread, and whatever it starts, run on `cores` only.
pub(crate) fn confine(cores: &[usize]) -> Result<(), Error> {
    let cannot =
        |core: usize, why: String| Err(Error::Plan(format!("cannot run on core {core}: {why}")));
    let mut set = CpuSet::new();
    for &core in cores {
        if core >= CpuSet::MAX_CPU {
            return cannot(core, "there is none of that number".to_owned());
        }
        set.set(core);
    }
    sched_setaffinity(None, &set).or_else(|errno| {
        cannot(
            cores.first().copied().unwrap_or(0),
            std::io::Error::from(errno).to_string(),
        )
    })
}

/// Whether this thread may run on `core`.
pub(crate) fn may_run_on(core: usize) -> bool {
    core < CpuSet::MAX_CPU && sched_getaffinity(None).is_ok_and(|set| set.is_set(core))
}

/// Lets the calling thread be woken when it asked to be, and not up to 50 µs later. A kernel that refuses leaves it as it was; the
/// client's lateness is measured in any case.
pub(crate) fn precise_timers() {
    let _ = set_current_timer_slack(NonZeroU64::new(1));
}

/// Cores that this process may use.
pub(crate) fn cores() -> usize {
    sched_getaffinity(None)
        .map_or(1, |set| set.count() as usize)
        .max(1)
}
