//! What happened between two moments: the differences of the counters.

use std::collections::BTreeMap;

use super::model::{Core, Disk, Network, Probe, Sample, Thread, WatchedServer};
use super::summary::{
    CoreUse, DiskUse, NetworkUse, PressureUse, ServerUse, Summary, ThreadUse, ThrottleUse,
};

/// Threads that a summary names.
const NAMED: usize = 8;

/// A moment by one of the two clocks of a sample. The monotonic clock holds for the same machine
/// since its last boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// Nanoseconds of the monotonic clock.
    Monotonic(u64),
    /// Nanoseconds since 1970.
    Wall(u64),
}

impl Probe {
    /// Sums up the span between two moments, from the first sample at or after `start` to the last
    /// one at or before `end`. `None` if there are no two samples between them.
    pub fn within(&self, start: Moment, end: Moment) -> Option<Summary> {
        let after = |sample: &Sample, moment: Moment| match moment {
            Moment::Monotonic(at) => sample.mono_ns >= at,
            Moment::Wall(at) => sample.wall_ns >= at,
        };
        let before = |sample: &Sample, moment: Moment| match moment {
            Moment::Monotonic(at) => sample.mono_ns <= at,
            Moment::Wall(at) => sample.wall_ns <= at,
        };
        let first = self
            .samples
            .iter()
            .position(|sample| after(sample, start))?;
        let last = self
            .samples
            .iter()
            .rposition(|sample| before(sample, end))?;
        let samples = self.samples.get(first..=last)?;
        (samples.len() > 1).then(|| self.summary(samples))
    }

    fn summary(&self, samples: &[Sample]) -> Summary {
        let (first, last) = (&samples[0], &samples[samples.len() - 1]);
        let span_s = last.mono_ns.saturating_sub(first.mono_ns).max(1) as f64 / 1e9;
        let share = |later: Option<u64>, earlier: Option<u64>| {
            Some(later?.saturating_sub(earlier?) as f64 / 1e6 / span_s)
        };
        let sockets = samples.iter().filter_map(|sample| sample.sockets.as_ref());
        Summary {
            span_s,
            samples: samples.len() as u64,
            tick_error: 2.0 / (self.ticks_per_second.max(1) as f64 * span_s),
            cores: cores(first, last),
            server: server(samples, self.ticks_per_second),
            threads: threads(samples, span_s, |sample| &sample.threads),
            server_cores: places(samples, |sample| &sample.server_cores),
            own_threads: threads(samples, span_s, |sample| &sample.own_threads),
            own_cores: places(samples, |sample| &sample.own_cores),
            pressure: PressureUse {
                cpu: share(last.pressure.cpu_us, first.pressure.cpu_us),
                io: share(last.pressure.io_us, first.pressure.io_us),
                memory: share(last.pressure.memory_us, first.pressure.memory_us),
            },
            network: network(first, last, span_s),
            sockets: last.sockets.clone(),
            accept_queue_max: sockets.filter_map(|sockets| sockets.accept_queue).max(),
            disks: disks(first, last, span_s),
            memory: samples
                .iter()
                .filter_map(|sample| sample.memory)
                .min_by_key(|memory| memory.available),
            throttle: throttle(first, last),
            perf: last
                .perf
                .iter()
                .filter_map(|(name, later)| {
                    let earlier = first.perf.get(name)?;
                    Some((name.clone(), later.saturating_sub(*earlier)))
                })
                .collect(),
        }
    }
}

/// By the core's own ticks, which add up to the time that it was on line.
fn cores(first: &Sample, last: &Sample) -> Vec<CoreUse> {
    let all = |core: &Core| {
        [
            core.user,
            core.system,
            core.softirq,
            core.irq,
            core.steal,
            core.idle,
            core.iowait,
        ]
    };
    let pairs = first.cores.iter().zip(&last.cores);
    pairs
        .map(|(earlier, later)| {
            let (earlier, later) = (all(earlier), all(later));
            // iowait may run backwards; see proc_stat(5).
            let ticks: Vec<f64> = (0..later.len())
                .map(|n| later[n].saturating_sub(earlier[n]) as f64)
                .collect();
            let sum = ticks.iter().sum::<f64>().max(1.0);
            CoreUse {
                user: ticks[0] / sum,
                system: ticks[1] / sum,
                softirq: ticks[2] / sum,
                irq: ticks[3] / sum,
                steal: ticks[4] / sum,
                idle: ticks[5] / sum,
                iowait: ticks[6] / sum,
            }
        })
        .collect()
}

/// The cores at the last sample that has some, if they are among those that are counted.
fn places(samples: &[Sample], of: fn(&Sample) -> &Vec<usize>) -> Vec<usize> {
    let named = |sample: &&Sample| !of(sample).is_empty();
    let last = samples.iter().rev().find(named);
    last.map_or_else(Vec::new, |sample| {
        let counted = of(sample).iter().filter(|core| **core < sample.cores.len());
        counted.copied().collect()
    })
}

/// While the server ran: it may have started later, or have ended.
fn server(samples: &[Sample], ticks_per_second: u64) -> Option<ServerUse> {
    let with: Vec<&Sample> = samples
        .iter()
        .filter(|sample| sample.server.is_some())
        .collect();
    let (first, last) = (with.first()?, with.last()?);
    let (earlier, later) = (first.server?, last.server?);
    let hz = ticks_per_second.max(1) as f64;
    let differ = |of: fn(&WatchedServer) -> u64| of(&later).saturating_sub(of(&earlier));
    let maybe =
        |of: fn(&WatchedServer) -> Option<u64>| Some(of(&later)?.saturating_sub(of(&earlier)?));
    let most = |of: fn(&WatchedServer) -> u64| {
        let all = with.iter().filter_map(|sample| sample.server.as_ref());
        all.map(of).max().unwrap_or_default()
    };
    let looks = last.number.saturating_sub(first.number).max(1);
    Some(ServerUse {
        cpu_s: differ(|s| s.run_ns) as f64 / 1e9,
        user_s: differ(|s| s.user) as f64 / hz,
        system_s: differ(|s| s.system) as f64 / hz,
        run_delay_s: differ(|s| s.wait_ns) as f64 / 1e9,
        voluntary: maybe(|s| s.voluntary),
        involuntary: maybe(|s| s.involuntary),
        faults: differ(|s| s.faults),
        major_faults: differ(|s| s.major_faults),
        blocked_threads: differ(|s| s.blocked) as f64 / looks as f64,
        read_bytes: maybe(|s| s.read_bytes),
        written_bytes: maybe(|s| s.written_bytes),
        rss_bytes_max: most(|s| s.rss_bytes),
        threads_max: most(|s| s.threads),
        processes_max: most(|s| s.processes),
        descriptors_max: with
            .iter()
            .filter_map(|sample| sample.server?.descriptors)
            .max(),
    })
}

/// From the first sample that names a thread to the last. A thread that is not named at first
/// counts from its first naming, so it never looks busier than it was.
fn threads(samples: &[Sample], span_s: f64, of: fn(&Sample) -> &Vec<Thread>) -> Vec<ThreadUse> {
    let mut ends: BTreeMap<(i32, i32), (&Thread, &Thread)> = BTreeMap::new();
    for thread in samples.iter().flat_map(of) {
        let pair = ends
            .entry((thread.pid, thread.tid))
            .or_insert((thread, thread));
        pair.1 = thread;
    }
    let mut uses: Vec<ThreadUse> = ends
        .into_values()
        .map(|(earlier, later)| ThreadUse {
            pid: later.pid,
            tid: later.tid,
            name: later.name.clone(),
            busy: later.run_ns.saturating_sub(earlier.run_ns) as f64 / 1e9 / span_s,
            run_delay: later.wait_ns.saturating_sub(earlier.wait_ns) as f64 / 1e9 / span_s,
        })
        .collect();
    uses.sort_by(|a, b| b.busy.total_cmp(&a.busy));
    uses.truncate(NAMED);
    uses
}

fn network(first: &Sample, last: &Sample, span_s: f64) -> Option<NetworkUse> {
    let (earlier, later) = (first.network?, last.network?);
    let differ = |of: fn(&Network) -> u64| of(&later).saturating_sub(of(&earlier));
    let counts = Network {
        received_bytes: differ(|n| n.received_bytes),
        sent_bytes: differ(|n| n.sent_bytes),
        received_packets: differ(|n| n.received_packets),
        sent_packets: differ(|n| n.sent_packets),
        loopback_bytes: differ(|n| n.loopback_bytes),
        loopback_packets: differ(|n| n.loopback_packets),
        speed_bytes_per_s: later.speed_bytes_per_s,
        segments: differ(|n| n.segments),
        retransmits: differ(|n| n.retransmits),
        listen_overflows: differ(|n| n.listen_overflows),
        listen_drops: differ(|n| n.listen_drops),
        syn_cookies: differ(|n| n.syn_cookies),
    };
    let most = counts.received_bytes.max(counts.sent_bytes) as f64;
    let busy = counts
        .speed_bytes_per_s
        .map(|speed| most / span_s / speed as f64);
    Some(NetworkUse { counts, busy })
}

fn disks(first: &Sample, last: &Sample, span_s: f64) -> Vec<DiskUse> {
    let pairs = last.disks.iter().filter_map(|later| {
        let same = |disk: &&Disk| disk.name == later.name;
        Some((first.disks.iter().find(same)?, later))
    });
    pairs
        .map(|(earlier, later)| DiskUse {
            name: later.name.clone(),
            busy: (later.busy_ms.saturating_sub(earlier.busy_ms) as f64 / 1e3 / span_s).min(1.0),
            reads: later.reads.saturating_sub(earlier.reads),
            writes: later.writes.saturating_sub(earlier.writes),
            flushes: later.flushes.saturating_sub(earlier.flushes),
            read_bytes: later.read_bytes.saturating_sub(earlier.read_bytes),
            written_bytes: later.written_bytes.saturating_sub(earlier.written_bytes),
        })
        .collect()
}

/// The group whose quota was used up most often in this time, else the group with the smallest
/// quota.
fn throttle(first: &Sample, last: &Sample) -> Option<ThrottleUse> {
    let (earlier, later) = (&first.throttles, &last.throttles);
    if earlier.len() != later.len() {
        return None;
    }
    let quota = |one: &ThrottleUse| one.quota_cores.unwrap_or(f64::INFINITY);
    let uses = earlier
        .iter()
        .zip(later)
        .map(|(earlier, later)| ThrottleUse {
            quota_cores: later.quota_cores,
            periods: later.periods.saturating_sub(earlier.periods),
            throttled: later.throttled.saturating_sub(earlier.throttled),
            throttled_s: later.throttled_us.saturating_sub(earlier.throttled_us) as f64 / 1e6,
        });
    uses.min_by(|a, b| {
        let by_quota = quota(a).total_cmp(&quota(b));
        b.throttled.cmp(&a.throttled).then(by_quota)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Throttle;

    fn sample(number: u64, run_ns: u64) -> Sample {
        let core = Core {
            user: number * 60,
            idle: number * 40,
            ..Core::default()
        };
        Sample {
            number,
            mono_ns: number * 1_000_000_000,
            wall_ns: 5_000_000_000 + number * 1_000_000_000,
            cores: vec![core],
            server: Some(WatchedServer {
                run_ns,
                blocked: number,
                ..WatchedServer::default()
            }),
            threads: vec![Thread {
                pid: 1,
                tid: 2,
                run_ns,
                ..Thread::default()
            }],
            ..Sample::default()
        }
    }

    fn probe() -> Probe {
        Probe {
            ticks_per_second: 100,
            samples: (0..10).map(|n| sample(n, n * 500_000_000)).collect(),
            ..Probe::default()
        }
    }

    #[test]
    fn a_span_is_cut_from_inside_by_either_clock() {
        let probe = probe();
        let by = |start, end| probe.within(start, end).unwrap();
        let found = by(
            Moment::Monotonic(1_500_000_000),
            Moment::Monotonic(6_900_000_000),
        );
        assert_eq!((found.span_s, found.samples), (4.0, 5));
        assert_eq!(
            found,
            by(
                Moment::Wall(6_500_000_000),
                Moment::Monotonic(6_900_000_000)
            )
        );
        assert!((found.server.unwrap().cpu_s - 2.0).abs() < 1e-9);
        assert!((found.server.unwrap().blocked_threads - 1.0).abs() < 1e-9);
        assert!((found.threads[0].busy - 0.5).abs() < 1e-9);
        assert!((found.cores[0].user - 0.6).abs() < 1e-9);
        assert!((found.tick_error - 0.005).abs() < 1e-9);
    }

    #[test]
    fn the_most_exhausted_quota_counts() {
        let group = |quota, periods, throttled| Throttle {
            quota_cores: quota,
            periods,
            throttled,
            throttled_us: throttled * 1_000,
        };
        let mut probe = probe();
        for (n, sample) in (0..).zip(&mut probe.samples) {
            // The outer one was used up a thousand times before, the inner one is now.
            let inner = group(Some(0.5), 10 * n, 8 * n);
            sample.throttles = vec![inner, group(Some(2.0), 5_000 + 10 * n, 1_000)];
        }
        let whole = |probe: &Probe| {
            let end = Moment::Monotonic(u64::MAX);
            let summary = probe.within(Moment::Monotonic(0), end).unwrap();
            summary.throttle
        };
        let found = whole(&probe).unwrap();
        assert_eq!((found.quota_cores, found.periods), (Some(0.5), 90));
        assert_eq!((found.throttled, found.throttled_s), (72, 0.072));
        // Where none was used up, the smallest one is told.
        for sample in &mut probe.samples {
            sample.throttles = vec![group(None, 7, 0), group(Some(1.5), 7, 0)];
        }
        assert_eq!(whole(&probe).unwrap().quota_cores, Some(1.5));
        probe.samples[9].throttles.pop();
        assert_eq!(whole(&probe), None);
    }

    #[test]
    fn one_sample_is_no_span() {
        let probe = probe();
        let cut = |start, end| probe.within(Moment::Monotonic(start), Moment::Monotonic(end));
        assert_eq!(cut(1_500_000_000, 2_500_000_000), None);
        assert_eq!(cut(3_000_000_000, 1_000_000_000), None);
        assert_eq!(cut(u64::MAX, u64::MAX), None);
        assert_eq!(
            Probe::default().within(Moment::Wall(0), Moment::Wall(1)),
            None
        );
    }

    #[test]
    fn a_late_server_is_counted_while_it_runs() {
        let mut probe = probe();
        probe.samples[0].server = None;
        probe.samples[9].server = None;
        let found = probe
            .within(Moment::Monotonic(0), Moment::Monotonic(u64::MAX))
            .unwrap();
        assert!((found.server.unwrap().cpu_s - 3.5).abs() < 1e-9);
    }
}
