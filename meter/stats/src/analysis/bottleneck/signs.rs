//! The rules, one for each limit that a single level of load shows. Those of processors are here.

mod devices;

use base_probe::{CoreUse, Summary, ThreadUse};

use super::{Finding, Limit};
use crate::analysis::demand::{ClientSide, bound};

/// Share of the time from which a thread that runs or wants to run is always busy.
const ALWAYS: f64 = 0.85;
/// Share of all cores that is left idle when they are full.
const IDLE: f64 = 0.1;
/// Share of periods in which a quota that limits is used up.
const THROTTLED: f64 = 0.2;
/// Share of the machine that others take when they matter.
const OTHERS: f64 = 0.2;

/// Figures that the rules look at.
pub(super) struct Signs<'a> {
    summary: &'a Summary,
    client: ClientSide,
    /// Cores of the machine.
    cores: f64,
    /// Cores that the server may run on; all, if that is not known.
    room: f64,
    /// Cores of those in use, by the kernel's account.
    used: f64,
    /// Cores that the server used.
    server: f64,
    /// Cores that the server used or wanted to use; waiting for a quota left out.
    wanted: f64,
    /// Cores of the server's that others used, the client left out.
    others: f64,
}

impl<'a> Signs<'a> {
    pub(crate) fn new(summary: &'a Summary, client: ClientSide) -> Self {
        let (cores, own) = (&summary.cores, cores_of(summary));
        let room = own.len().max(1) as f64;
        let sum = |of: fn(&CoreUse) -> f64| own.iter().map(|core| of(core)).sum::<f64>();
        let used = room - sum(|core| core.idle + core.iowait);
        let server_use = summary.server.unwrap_or_default();
        let server = server_use.cpu_s / summary.span_s;
        let throttled = summary
            .throttle
            .map_or(0.0, |throttle| throttle.throttled_s);
        let delay = (server_use.run_delay_s - throttled).max(0.0) / summary.span_s;
        let client_cores =
            client.cpu_us.unwrap_or_default() * client.rate / 1e6 + client.spun.unwrap_or_default();
        // The client's cores count here only if the client runs on this machine and on other cores
        // than the server. The client's threads in the samples show where it runs.
        let is_on_server_cores = |core| summary.server_cores.contains(core);
        let is_known = !summary.server_cores.is_empty() && !summary.own_cores.is_empty();
        let is_apart = is_known && !summary.own_cores.iter().any(is_on_server_cores);
        let client_here = if summary.own_threads.is_empty() || is_apart {
            0.0
        } else {
            client_cores
        };
        // Some kernels count interrupts apart and charge them to no process; interrupts are no
        // other program. Other kernels do charge a process. There the share of other programs comes
        // out too low, so no program is accused without need.
        let interrupts = sum(|core| core.softirq + core.irq);
        Self {
            summary,
            client,
            cores: cores.len().max(1) as f64,
            room,
            used,
            server,
            wanted: server + delay,
            others: (used - server - client_here - interrupts).max(0.0),
        }
    }

    fn finding(&self, name: Limit, weight: f64, evidence: Vec<String>, used: f64) -> Finding {
        Finding {
            name,
            weight,
            evidence,
            bound_per_s: bound(self.client.rate, used),
        }
    }

    /// Names the cores on which the server may run, if it may not run on all.
    fn confinement(&self) -> Option<String> {
        let confined = self.room < self.cores && !self.summary.server_cores.is_empty();
        confined.then(|| {
            format!(
                "the server may run on {} of {} cores only",
                self.room, self.cores
            )
        })
    }

    fn has_quota(&self) -> bool {
        let throttle = self
            .summary
            .throttle
            .filter(|throttle| throttle.periods > 0);
        throttle.is_some_and(|throttle| {
            throttle.throttled as f64 / throttle.periods as f64 >= THROTTLED
        })
    }

    /// Threads that always run or want to, while the server as a whole leaves cores alone.
    pub(crate) fn threads(&self) -> Option<Finding> {
        let busy: Vec<&ThreadUse> = self
            .summary
            .threads
            .iter()
            .filter(|thread| always(thread) && thread.busy >= thread.run_delay / 3.0)
            .collect();
        let first = busy.first()?;
        let count = busy.len();
        // With as many of them as there are cores it is the cores that limit.
        let fill_all = count as f64 > (self.room - 1.0).max(1.0);
        if self.has_quota() || fill_all {
            return None;
        }
        let who = match count {
            1 => format!("one thread of the server ({})", first.name),
            _ => format!("{count} threads of the server ({}, …)", first.name),
        };
        let mut evidence = vec![format!(
            "{who} {} busy {} of the time",
            if count == 1 { "is" } else { "are each" },
            percent(first.busy)
        )];
        if first.run_delay > 0.05 {
            evidence.push(format!(
                "and waits for a core another {}",
                percent(first.run_delay)
            ));
        }
        evidence.push(format!(
            "the server uses {:.2} of {} cores, and {} of all cores are idle",
            self.server,
            self.cores,
            percent(self.idle_everywhere())
        ));
        evidence.extend(self.confinement());
        let weight = first.busy + first.run_delay / 2.0;
        Some(self.finding(Limit::Threads, weight, evidence, first.busy))
    }

    /// Share of the machine's cores that is idle.
    fn idle_everywhere(&self) -> f64 {
        let idle = |core: &CoreUse| core.idle + core.iowait;
        self.summary.cores.iter().map(idle).sum::<f64>() / self.cores
    }

    /// All cores that it may use are busy, and the server would use most of them.
    pub(crate) fn cores(&self) -> Option<Finding> {
        let idle = 1.0 - self.used / self.room;
        let share = self.server / self.used.max(f64::EPSILON);
        if self.has_quota() || idle > IDLE || self.wanted / self.room < 0.7 || share < 0.4 {
            return None;
        }
        let mut evidence = vec![format!(
            "the {} cores that it may use are idle {} of the time; the server uses {:.2} of them",
            self.room,
            percent(idle),
            self.server
        )];
        evidence.extend(self.confinement());
        if let Some(pressure) = self.summary.pressure.cpu.filter(|share| *share > 0.1) {
            evidence.push(format!(
                "for {} of the time some thread waits for a core (PSI)",
                percent(pressure)
            ));
        }
        if !self.summary.own_threads.is_empty() {
            evidence.push("the client runs on the same machine and takes its part".to_owned());
        }
        let weight = (1.0 - idle) * (self.wanted / self.room).min(1.0);
        Some(self.finding(Limit::Cores, weight, evidence, self.used / self.room))
    }

    /// The quota is used up in many periods.
    pub(super) fn quota(&self) -> Option<Finding> {
        let throttle = self.summary.throttle.filter(|_| self.has_quota())?;
        let share = throttle.throttled as f64 / throttle.periods as f64;
        let mut evidence = vec![format!(
            "the CPU quota was used up in {} of {} periods; threads were kept waiting {:.2} s in {:.2} s",
            throttle.throttled, throttle.periods, throttle.throttled_s, self.summary.span_s
        )];
        let mut used = 0.0;
        if let Some(quota) = throttle.quota_cores {
            used = self.server / quota;
            evidence.push(format!(
                "the quota is {quota:.2} cores, the server uses {:.2}",
                self.server
            ));
        }
        // Throttling never happens by chance, so the quota ranks above what only looks busy because
        // of it.
        Some(self.finding(Limit::Quota, 0.5 + share, evidence, used))
    }

    /// The server's threads want to run and do not, because others do.
    pub(super) fn neighbours(&self) -> Option<Finding> {
        let steal = self
            .summary
            .cores
            .iter()
            .map(|core| core.steal)
            .sum::<f64>();
        let thread = self
            .summary
            .threads
            .iter()
            .filter(|thread| always(thread) || thread.run_delay >= 0.5)
            .map(|thread| thread.run_delay)
            .fold(0.0, f64::max);
        let all_cores = if self.wanted / self.room >= ALWAYS {
            1.0 - self.server / self.wanted
        } else {
            0.0
        };
        let weight = thread.max(all_cores);
        let taken = self.others / self.room;
        if self.has_quota() || weight < 0.3 || taken < OTHERS {
            return None;
        }
        let mut evidence = vec![
            format!(
                "the server's threads together were ready to run and had no core for {:.2} s in {:.2} s",
                (self.wanted - self.server) * self.summary.span_s,
                self.summary.span_s
            ),
            format!(
                "other programs use {:.2} of {} cores",
                self.others, self.room
            ),
        ];
        if steal > 0.01 {
            evidence.push(format!("of that the hypervisor takes {steal:.2} cores"));
        }
        Some(self.finding(Limit::Neighbours, weight, evidence, 0.0))
    }

    /// A client thread that always has something to do.
    pub(crate) fn client(&self) -> Option<Finding> {
        let thread = self.summary.own_threads.first();
        let (busy, delay) = match thread {
            // A spinning thread is always on its core, with or without work.
            Some(thread) if self.client.spun.is_some() => (self.client.busiest, thread.run_delay),
            Some(thread) => (thread.busy.max(self.client.busiest), thread.run_delay),
            None => (self.client.busiest, 0.0),
        };
        if busy + delay < ALWAYS || busy < delay / 3.0 {
            return None;
        }
        let mut evidence = vec![format!(
            "a client thread is busy {} of the time",
            percent(busy)
        )];
        if delay > 0.05 {
            evidence.push(format!("and waits for a core another {}", percent(delay)));
        }
        if let Some(server) = self.summary.threads.first() {
            evidence.push(format!(
                "the busiest thread of the server is busy {}",
                percent(server.busy)
            ));
        }
        Some(self.finding(Limit::Client, busy + delay / 2.0, evidence, busy))
    }
}

/// The cores that the server may run on; all, if that is not known.
fn cores_of(summary: &Summary) -> Vec<&CoreUse> {
    let places = summary.server_cores.iter();
    let own: Vec<&CoreUse> = places.filter_map(|core| summary.cores.get(*core)).collect();
    if own.is_empty() {
        summary.cores.iter().collect()
    } else {
        own
    }
}

/// True if a thread runs or wants to run nearly all the time.
fn always(thread: &ThreadUse) -> bool {
    thread.busy + thread.run_delay >= ALWAYS
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share.max(0.0) * 100.0)
}
