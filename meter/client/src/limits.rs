//! Checks that this process may have what the plan needs, and which cores its threads may use.

use std::net::IpAddr;
use std::num::NonZeroU64;

use rustix::process::{Pid, Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity, set_current_timer_slack};

use crate::{Error, Plan, Stop};

/// File descriptors besides the connections: epolls, standard streams, the caller's files.
const BESIDE: u64 = 256;

/// Raises the limit of file descriptors to what `connections` need.
pub fn descriptors(connections: usize) -> Result<(), Error> {
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

/// How long a closed connection keeps its pair of ports: Linux's `TCP_TIMEWAIT_LEN`, in seconds.
const TIME_WAIT: f64 = 60.0;

/// Checks that there is a source port for each connection to one address. If the range cannot be
/// read, nothing is refused; connections without a port are counted anyway.
pub fn source_ports(connections: usize) -> Result<(), Error> {
    match (connections as u64, ports()) {
        (need, Some(have)) if need > have => Err(Error::SourcePorts { need, have }),
        _ => Ok(()),
    }
}

/// A warning for a plan whose connections may use up the source ports, because a closed connection
/// keeps its port for a minute.
pub(crate) fn source_ports_over_time(plan: &Plan) -> Option<String> {
    if plan.target.unix_socket.is_some()
        || (plan.request.keep_alive && plan.request.per_connection.is_none())
    {
        return None;
    }
    let have = ports()?;
    let requests = match (plan.length.stop, plan.load.offered()) {
        (_, Some(rate)) => rate * TIME_WAIT,
        (Stop::Requests(count), None) => count as f64,
        (Stop::Duration(_), None) => return None,
    };
    let need = requests / plan.request.per_connection.unwrap_or(1).max(1) as f64;
    (need > have as f64).then(|| {
        format!(
            "up to {need:.0} connections in a minute need as many source ports, and there are {have}: a closed \
             connection keeps its port for 60 s on the side that closed it. Those that find none are counted as \
             no_source_port"
        )
    })
}

/// Source ports that the kernel chooses from.
fn ports() -> Option<u64> {
    let read = |name: &str| std::fs::read_to_string(format!("/proc/sys/net/ipv4/{name}")).ok();
    let reserved = read("ip_local_reserved_ports").unwrap_or_default();
    count_ports(&read("ip_local_port_range")?, &reserved)
}

/// Ports in a range such as `32768 60999`, less those in a list such as `8080,40000-40009`.
fn count_ports(range: &str, reserved: &str) -> Option<u64> {
    let mut ends = range.split_ascii_whitespace().map(str::parse::<u64>);
    let (first, last) = (ends.next()?.ok()?, ends.next()?.ok()?);
    let taken = reserved.trim().split(',').filter_map(|part| {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        let (from, to) = (from.parse::<u64>().ok()?, to.parse::<u64>().ok()?);
        Some((to.min(last) + 1).saturating_sub(from.max(first)))
    });
    Some((last + 1).saturating_sub(first).saturating_sub(taken.sum()))
}

/// Pins the calling thread to one core.
pub fn pin(core: usize) -> Result<(), Error> {
    confine(&[core])
}

/// Lets the calling thread, and the threads that it starts, run on `cores` only.
pub fn confine(cores: &[usize]) -> Result<(), Error> {
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

/// True if this thread may run on `core`.
pub fn may_run_on(core: usize) -> bool {
    core < CpuSet::MAX_CPU && sched_getaffinity(None).is_ok_and(|set| set.is_set(core))
}

/// Makes the kernel wake the calling thread on time instead of up to 50 µs later. If the kernel
/// refuses, nothing changes; the client's lateness is measured anyway.
pub(crate) fn precise_timers() {
    let _ = set_current_timer_slack(NonZeroU64::new(1));
}

/// Cores on which this thread or another process may run; none if the kernel does not say.
pub fn cores_of(process: Option<Pid>) -> Vec<usize> {
    let Ok(set) = sched_getaffinity(process) else {
        return Vec::new();
    };
    let all = 0..CpuSet::MAX_CPU;
    all.filter(|&core| set.is_set(core)).collect()
}

/// True if the name says that the server is on this machine.
pub fn is_local(host: &str) -> bool {
    host == "localhost"
        || host
            .parse()
            .is_ok_and(|address: IpAddr| address.is_loopback())
}

/// Cores that this process may use.
pub fn cores() -> usize {
    sched_getaffinity(None)
        .map_or(1, |set| set.count() as usize)
        .max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn source_ports_are_counted_without_the_reserved() {
        assert_eq!(count_ports("32768\t60999\n", "\n"), Some(28_232));
        assert_eq!(
            count_ports("1000 1009", "80,1000-1003,1009,1009-2000,5-9"),
            Some(4)
        );
        assert_eq!(count_ports("1000 1009", "0-65535"), Some(0));
        assert_eq!(count_ports("9 1", ""), Some(0));
        assert_eq!(count_ports("x", ""), None);
        assert_eq!(count_ports("", ""), None);
    }

    #[test]
    fn many_short_connections_are_noted() {
        let short = Plan::new("http://h/").with(|plan| {
            plan.request.keep_alive = false;
            plan.length.stop = Stop::Requests(1_000_000);
        });
        assert!(short.notes()[0].contains("1000000 connections"));
        let few = short
            .clone()
            .with(|plan| plan.length.stop = Stop::Requests(10));
        let kept = short.clone().with(|plan| plan.request.keep_alive = true);
        let long = short.with(|plan| {
            plan.request.keep_alive = true;
            plan.request.per_connection = Some(100_000);
        });
        for plan in [few, kept, long] {
            assert!(plan.notes().is_empty(), "{plan:?}");
        }
    }
}
