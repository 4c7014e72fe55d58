//! The rules of disks, interfaces, and the queue of new connections.

use base_probe::DiskUse;

use super::super::{Finding, Limit};
use super::{ALWAYS, Signs, percent};

/// Mean number of threads in a disk's queue from which the disk matters.
const BLOCKED: f64 = 0.4;
/// Share of the time in which a disk that limits has work.
const DISK: f64 = 0.7;
/// Share of the time that a disk takes of a thread that does nothing else but compute.
const ALTERNATE: f64 = 0.3;
/// Share of the time in which a disk works, or a thread waits for one. From this share on, threads
/// that cannot be interrupted are assumed to wait for the disk; below it they may wait for a kernel
/// lock.
const WORKS: f64 = 0.1;
/// Share of an interface's speed that is called full.
const FULL: f64 = 0.8;
/// Share of segments sent again from which losses matter.
const LOSSES: f64 = 0.01;

impl Signs<'_> {
    /// Threads in the disk's queue, or a disk that is always busy with this server's bytes.
    pub(in super::super) fn disk(&self) -> Option<Finding> {
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
        let pressure = self.summary.pressure.io;
        let works = busiest.busy >= WORKS || pressure.is_some_and(|share| share >= WORKS);
        let waits = blocked >= BLOCKED && works;
        if !(waits || is_full || its_own && self.alternates(busiest)) {
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
        if let Some(pressure) = pressure.filter(|share| *share > 0.1) {
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

    /// True if a thread only computes and waits for flushes of a disk, and the disk takes a large
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
    pub(in super::super) fn network(&self) -> Option<Finding> {
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
    pub(in super::super) fn backlog(&self) -> Option<Finding> {
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
}
