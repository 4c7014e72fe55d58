//! The rules: one for each limit that shows itself at a single level of load.

use millpond_telemetry::probe::{CoreUse, DiskUse, Summary, ThreadUse};

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
/// Mean number of threads in a disk's queue from which the disk matters.
const BLOCKED: f64 = 0.4;
/// Share of the time in which a disk that limits has work.
const DISK: f64 = 0.7;
/// Share of the time that a disk takes of a thread that does nothing else but compute.
const ALTERNATE: f64 = 0.3;
/// Share of an interface's speed that is called full.
const FULL: f64 = 0.8;
/// Share of segments sent again from which losses matter.
const LOSSES: f64 = 0.01;

/// What the rules look at.
pub(super) struct Signs<'a> {
    summary: &'a Summary,
    client: ClientSide,
    cores: f64,
    /// Cores in use, of all, by the kernel's account.
    used: f64,
    /// Cores that the server used.
    server: f64,
    /// Cores that the server used or wanted to use; waiting for a quota left out.
    wanted: f64,
    /// Cores that others used, the client left out.
    others: f64,
}

impl<'a> Signs<'a> {
    pub(super) fn new(summary: &'a Summary, client: ClientSide) -> Self {
        let cores = summary.cores.len().max(1) as f64;
        let idle = |core: &CoreUse| core.idle + core.iowait;
        let used = cores - summary.cores.iter().map(idle).sum::<f64>();
        let server_use = summary.server.unwrap_or_default();
        let server = server_use.cpu_s / summary.span_s;
        let throttled = summary
            .throttle
            .map_or(0.0, |throttle| throttle.throttled_s);
        let delay = (server_use.run_delay_s - throttled).max(0.0) / summary.span_s;
        let client_cores = client.cpu_us.unwrap_or_default() * client.rate / 1e6;
        // The client's cores count here only if it runs here, which its own threads in the samples show.
        let client_here = if summary.own_threads.is_empty() {
            0.0
        } else {
            client_cores
        };
        Self {
            summary,
            client,
            cores,
            used,
            server,
            wanted: server + delay,
            others: (used - server - client_here).max(0.0),
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
    pub(super) fn threads(&self) -> Option<Finding> {
        let busy: Vec<&ThreadUse> = self
            .summary
            .threads
            .iter()
            .filter(|thread| always(thread) && thread.busy >= thread.run_delay / 3.0)
            .collect();
        let first = busy.first()?;
        if self.has_quota() || busy.len() as f64 > self.cores - 1.0 && self.cores > 1.0 {
            return None;
        }
        let count = busy.len();
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
            percent(1.0 - self.used / self.cores)
        ));
        let weight = first.busy + first.run_delay / 2.0;
        Some(self.finding(Limit::Threads, weight, evidence, first.busy))
    }

    /// All cores busy, and the server would use most of them.
    pub(super) fn cores(&self) -> Option<Finding> {
        let idle = 1.0 - self.used / self.cores;
        let share = self.server / self.used.max(f64::EPSILON);
        if self.has_quota() || idle > IDLE || self.wanted / self.cores < 0.7 || share < 0.4 {
            return None;
        }
        let mut evidence = vec![format!(
            "the {} cores are idle {} of the time; the server uses {:.2} of them",
            self.cores,
            percent(idle),
            self.server
        )];
        if let Some(pressure) = self.summary.pressure.cpu.filter(|share| *share > 0.1) {
            evidence.push(format!(
                "for {} of the time some thread waits for a core (PSI)",
                percent(pressure)
            ));
        }
        if !self.summary.own_threads.is_empty() {
            evidence.push("the client runs on the same machine and takes its part".to_owned());
        }
        let weight = (1.0 - idle) * (self.wanted / self.cores).min(1.0);
        Some(self.finding(Limit::Cores, weight, evidence, self.used / self.cores))
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
        // Throttling is not to be had by chance: it stands above what looks busy because of it.
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
        let all_cores = if self.wanted / self.cores >= ALWAYS {
            1.0 - self.server / self.wanted
        } else {
            0.0
        };
        let weight = thread.max(all_cores);
        let taken = self.others / self.cores;
        if self.has_quota() || weight < 0.3 || taken < OTHERS {
            return None;
        }
        let mut evidence = vec![
            format!(
                "the server's threads were ready to run and had no core for {:.2} s in {:.2} s",
                (self.wanted - self.server) * self.summary.span_s,
                self.summary.span_s
            ),
            format!(
                "other programs use {:.2} of {} cores",
                self.others, self.cores
            ),
        ];
        if steal > 0.01 {
            evidence.push(format!("of that the hypervisor takes {steal:.2} cores"));
        }
        Some(self.finding(Limit::Neighbours, weight, evidence, 0.0))
    }

    /// Threads in the disk's queue, or a disk that is always busy with this server's bytes.
    pub(super) fn disk(&self) -> Option<Finding> {
        let server = self.summary.server?;
        let busiest = self
            .summary
            .disks
            .iter()
            .max_by(|a, b| a.busy.total_cmp(&b.busy))?;
        let bytes =
            server.read_bytes.unwrap_or_default() + server.written_bytes.unwrap_or_default();
        let requests = self.client.rate * self.summary.span_s;
        let all_bytes = busiest.read_bytes + busiest.written_bytes;
        let its_own = bytes as f64 >= 512.0 * requests.max(1.0) && bytes >= all_bytes / 4;
        let blocked = server.blocked_threads;
        let is_full = busiest.busy >= DISK && its_own && blocked >= BLOCKED / 4.0;
        if !(blocked >= BLOCKED || is_full || its_own && self.alternates(busiest)) {
            return None;
        }
        let mut evidence = vec![
            format!(
                "on average {:.1} threads of the server wait for a disk",
                blocked
            ),
            format!(
                "disk {} has work {} of the time; {} flushes and {} writes for {requests:.0} requests",
                busiest.name,
                percent(busiest.busy),
                busiest.flushes,
                busiest.writes
            ),
        ];
        if let Some(pressure) = self.summary.pressure.io.filter(|share| *share > 0.1) {
            evidence.push(format!(
                "for {} of the time some thread waits for a disk (PSI)",
                percent(pressure)
            ));
        }
        let waiting = blocked.min(1.0);
        let used = if its_own {
            busiest.busy.max(waiting)
        } else {
            waiting
        };
        Some(self.finding(Limit::Disk, used, evidence, used))
    }

    /// Whether a thread does nothing but compute and wait for a disk that it makes flush, and the disk takes a large
    /// part of its time.
    fn alternates(&self, disk: &DiskUse) -> bool {
        let requests = self.client.rate * self.summary.span_s;
        let Some(thread) = self.summary.threads.first() else {
            return false;
        };
        let flushes = disk.flushes as f64 >= requests * 0.5;
        let together = disk.busy + thread.busy + thread.run_delay;
        flushes && together >= ALWAYS && disk.busy >= ALTERNATE
    }

    /// An interface that is full, or losses.
    pub(super) fn network(&self) -> Option<Finding> {
        let network = self.summary.network?;
        let counts = &network.counts;
        let losses = counts.retransmits as f64 / counts.segments.max(1) as f64;
        let busy = network.busy.unwrap_or_default();
        let lossy = losses >= LOSSES && counts.retransmits >= 10;
        if busy < FULL && !lossy {
            return None;
        }
        let mut evidence = Vec::new();
        if busy >= FULL {
            evidence.push(format!(
                "the network interface carries {} of what it can",
                percent(busy)
            ));
        }
        if lossy {
            evidence.push(format!(
                "{} of {} TCP segments ({}) were sent again",
                counts.retransmits,
                counts.segments,
                percent(losses)
            ));
        }
        let weight = busy.max((0.3 + 10.0 * losses).min(0.9));
        let used = if busy >= FULL { busy } else { 0.0 };
        Some(self.finding(Limit::Network, weight, evidence, used))
    }

    /// Connections turned away by a full queue.
    pub(super) fn backlog(&self) -> Option<Finding> {
        let counts = self.summary.network?.counts;
        if counts.listen_overflows == 0 && counts.syn_cookies == 0 {
            return None;
        }
        let mut evidence = vec![format!(
            "{} connections found the accept queue full, {} were dropped, {} SYN cookies were sent",
            counts.listen_overflows, counts.listen_drops, counts.syn_cookies
        )];
        if let Some(most) = self.summary.accept_queue_max.filter(|most| *most > 0) {
            evidence.push(format!("up to {most} connections waited to be accepted"));
        }
        Some(self.finding(Limit::Backlog, 0.6, evidence, 0.0))
    }

    /// A client thread that always runs or wants to.
    pub(super) fn client(&self) -> Option<Finding> {
        let thread = self.summary.own_threads.first();
        let (busy, delay) = match thread {
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

/// Whether a thread runs or wants to run nearly all the time.
fn always(thread: &ThreadUse) -> bool {
    thread.busy + thread.run_delay >= ALWAYS
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share.max(0.0) * 100.0)
}
