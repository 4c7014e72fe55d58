//! The sampling thread: reads everything a few times a second and puts what that cost beside it.

use std::collections::BTreeSet;
use std::io;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::Duration;

use super::cgroup::Group;
use super::discovery::{children_of, listening};
use super::missing::Missing;
use super::model::{Cost, Probe, Sample};
use super::perf::Perf;
use super::processes::{Processes, reason};
use super::sockets::SocketProbe;
use super::threads::{Threads, numbers};
use super::{host, network};

/// The shortest time between two samples.
pub const FASTEST: Duration = Duration::from_millis(100);
/// The longest time between two samples.
pub const SLOWEST: Duration = Duration::from_secs(1);

/// Samples that are kept; past it every second one goes.
const KEPT: usize = 600;
/// Time between two looks for new processes, and at the table of sockets.
const SEARCH: u64 = 1_000_000_000;
/// The pause after a search is this many times its duration: searching stays below 2 % of a core.
const RARELY: u64 = 50;

/// Settings of a probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProberOptions {
    /// Time between two samples, from [`FASTEST`] to [`SLOWEST`].
    pub interval: Duration,
    /// Processes to watch, with their children.
    pub pids: Vec<i32>,
    /// Ports whose listeners are watched, with their children.
    pub ports: Vec<u16>,
    /// True if a missing process or listener is an error.
    pub required: bool,
    /// Beginning of the names of those threads of this program that are sampled as well.
    pub own_threads: Option<&'static str>,
    /// True to open `perf_event_open` counters.
    pub perf: bool,
}

impl Default for ProberOptions {
    /// Four samples a second of the machine alone.
    fn default() -> Self {
        Self {
            interval: Duration::from_millis(250),
            pids: Vec::new(),
            ports: Vec::new(),
            required: false,
            own_threads: None,
            perf: true,
        }
    }
}

/// A running probe.
#[derive(Debug)]
pub struct Prober {
    stop: mpsc::Sender<()>,
    thread: JoinHandle<Probe>,
}

impl Prober {
    /// Finds the processes, takes the first sample and continues on a thread of its own.
    ///
    /// # Errors
    /// The interval is out of bounds, a required process or listener does not exist, or no thread
    /// can be started.
    pub fn start(options: ProberOptions) -> io::Result<Self> {
        if !(FASTEST..=SLOWEST).contains(&options.interval) {
            let why = format!(
                "the time between two samples is {:?}; it must be from {FASTEST:?} to {SLOWEST:?}",
                options.interval
            );
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        let (stop, stopped) = mpsc::channel();
        let mut sampler = Sampler::new(options)?;
        sampler.sample();
        let thread = std::thread::Builder::new()
            .name("probe".to_owned())
            .spawn(move || sampler.run(&stopped))?;
        Ok(Self { stop, thread })
    }

    /// Takes a last sample and gives back all of them.
    pub fn stop(self) -> Probe {
        // A thread that ended by itself has panicked; `join` returns the panic.
        let _ = self.stop.send(());
        self.thread.join().unwrap_or_else(|_| {
            let why = "the sampling thread panicked; please report this as a bug";
            Probe {
                unavailable: [("samples".to_owned(), why.to_owned())].into(),
                ..Probe::default()
            }
        })
    }
}

struct Sampler {
    options: ProberOptions,
    processes: Processes,
    own: Threads,
    sockets: SocketProbe,
    group: Option<Group>,
    perf: Perf,
    missing: Missing,
    samples: Vec<Sample>,
    taken: u64,
    /// Of the samples so far, those with a number that this divides are kept.
    stride: u64,
    next_search: u64,
    /// CPU time of the thread that made the start, which is not the sampling thread.
    cpu_before: u64,
}

impl Sampler {
    fn new(options: ProberOptions) -> io::Result<Self> {
        let began = base_clock::thread_cpu();
        let mut sampler = Self {
            options,
            processes: Processes::new(),
            own: Threads::default(),
            sockets: SocketProbe::default(),
            group: None,
            perf: Perf::default(),
            missing: Missing::default(),
            samples: Vec::new(),
            taken: 0,
            stride: 1,
            next_search: 0,
            cpu_before: 0,
        };
        sampler.find_first()?;
        if let Some(first) = sampler.processes.first() {
            let group = Group::of(first.pid().cast_unsigned());
            sampler.group = sampler.missing.or_note("throttle", group);
        } else {
            sampler
                .missing
                .note("processes", "no process was asked for, by its id or a port");
        }
        sampler.cpu_before = base_clock::thread_cpu() - began;
        Ok(sampler)
    }

    /// The processes that are there at the start.
    fn find_first(&mut self) -> io::Result<()> {
        for pid in self.options.pids.clone() {
            let added = self
                .processes
                .add(pid, "by its id", false, &mut self.missing);
            if let Err(why) = added
                && (self.options.required || !matches!(why, procfs::ProcError::NotFound(_)))
            {
                let why = format!("process {pid} cannot be watched: {}", reason(&why));
                self.refuse(io::ErrorKind::NotFound, why)?;
            }
        }
        for port in self.options.ports.clone() {
            let found = listening(port)?;
            for &pid in &found.pids {
                self.add_listener(pid, port, false);
            }
            if found.pids.is_empty() {
                let denied = match found.denied {
                    0 => String::new(),
                    count => format!(
                        "; the descriptors of {count} processes of other users cannot be looked at, so run as the \
                         server's user or as root, or give --pid"
                    ),
                };
                let why = format!("no process was found that listens on port {port}{denied}");
                self.refuse(io::ErrorKind::NotFound, why)?;
            }
        }
        self.find_children(false);
        if self.options.perf && self.processes.first().is_some() {
            let threads = self.processes.thread_ids();
            self.perf.attach(&threads, &mut self.missing);
        }
        Ok(())
    }

    fn refuse(&mut self, kind: io::ErrorKind, why: String) -> io::Result<()> {
        if self.options.required {
            return Err(io::Error::new(kind, why));
        }
        self.missing.note("processes", why);
        Ok(())
    }

    /// Watches a listener, unless it is this program itself, or the service manager that holds
    /// sockets for other programs.
    fn add_listener(&mut self, pid: i32, port: u16, from_birth: bool) -> bool {
        if pid == own_pid() {
            self.missing.note(
                "processes",
                format!("what listens on port {port} is this program itself"),
            );
            return false;
        }
        let found = format!("listens on port {port}");
        // One that has just ended is nothing to complain about.
        pid != 1
            && self
                .processes
                .add(pid, &found, from_birth, &mut self.missing)
                .unwrap_or(false)
    }

    fn find_children(&mut self, from_birth: bool) {
        let mut parents = self.processes.alive();
        parents.retain(|pid| *pid != 1);
        if parents.is_empty() {
            return;
        }
        let Some(children) = self
            .missing
            .or_note("processes.children", children_of(&parents))
        else {
            return;
        };
        for pid in children {
            if pid != own_pid() {
                // One that has just ended is in its parent's counters.
                let _ = self
                    .processes
                    .add(pid, "child", from_birth, &mut self.missing);
            }
        }
    }

    /// Looks for new children, and for a new listener when the server has gone.
    fn search(&mut self) {
        let began = base_clock::now();
        if self.processes.alive().is_empty() {
            for port in self.options.ports.clone() {
                let found = listening(port).unwrap_or_default();
                for pid in found.pids {
                    if self.add_listener(pid, port, true) && self.options.perf {
                        let threads = self.processes.thread_ids();
                        self.perf.attach(&threads, &mut self.missing);
                    }
                }
            }
        }
        self.find_children(true);
        let now = base_clock::now();
        self.next_search = now + SEARCH.max((now - began) * RARELY);
    }

    /// Takes samples until the prober stops.
    fn run(mut self, stopped: &mpsc::Receiver<()>) -> Probe {
        let (cpu, began) = (base_clock::thread_cpu(), base_clock::now());
        let interval = u64::try_from(self.options.interval.as_nanos()).unwrap_or(u64::MAX);
        let mut next = began + interval;
        loop {
            let patience = Duration::from_nanos(next.saturating_sub(base_clock::now()));
            match stopped.recv_timeout(patience) {
                Err(RecvTimeoutError::Timeout) => self.sample(),
                Ok(()) | Err(RecvTimeoutError::Disconnected) => break,
            }
            // Samples that were missed are not made up for.
            let now = base_clock::now();
            next += interval * ((now.saturating_sub(next)) / interval + 1);
        }
        self.sample();
        let spent = base_clock::thread_cpu() - cpu;
        let elapsed = (base_clock::now() - began).max(1);
        let cost = Cost {
            cpu_ms: (spent + self.cpu_before) as f64 / 1e6,
            core_share: spent as f64 / elapsed as f64,
            samples: self.taken,
        };
        self.finish(cost)
    }

    fn sample(&mut self) {
        let now = base_clock::now();
        let searches = now >= self.next_search;
        if searches && self.taken > 0 {
            self.search();
        }
        let mut sample = Sample {
            number: self.taken,
            ..Sample::default()
        };
        self.processes.look(now, &mut self.missing);
        // The stamp stands between the processes, which matter most, and the rest.
        (sample.mono_ns, sample.wall_ns) = (base_clock::now(), base_clock::unix_nanos());
        sample.server = self.processes.server();
        sample.threads = self.processes.busiest();
        sample.server_cores = self.processes.cores();
        self.own_threads(&mut sample);
        host::sample(&mut sample, &mut self.missing);
        let myself;
        let process = match self.processes.first() {
            Some(first) => Some(first),
            None => {
                myself = procfs::process::Process::myself().ok();
                myself.as_ref()
            }
        };
        if let Some(process) = process {
            sample.network = network::sample(process, &mut self.missing);
            let ports = &self.options.ports;
            sample.sockets = self
                .sockets
                .sample(process, ports, searches, &mut self.missing);
        }
        if let Some(group) = &self.group {
            let all = self.missing.or_note("throttle", group.sample());
            sample.throttles = all.unwrap_or_default();
        }
        sample.perf = self.perf.read(&mut self.missing);
        if self.taken == 0 {
            self.next_search = now + SEARCH;
        }
        self.keep(sample);
    }

    /// This program's own threads with the requested prefix, and the cores on which they may run.
    fn own_threads(&mut self, sample: &mut Sample) {
        let Some(prefix) = self.options.own_threads else {
            return;
        };
        let looked = procfs::process::Process::myself()
            .and_then(|myself| self.own.look(&myself, &mut self.missing));
        self.missing.or_note("own_threads", looked);
        let all = self.own.list(own_pid());
        let asked_for = all.filter(|thread| thread.name.starts_with(prefix));
        sample.own_threads = asked_for.collect();
        let mut rows = BTreeSet::new();
        self.own.cores(prefix, &mut rows);
        sample.own_cores = numbers(&rows);
    }

    fn keep(&mut self, sample: Sample) {
        self.taken += 1;
        // The last sample is always present; the next one replaces it, unless it is one of those to
        // keep.
        if self.samples.len() > 1
            && let Some(last) = self.samples.last()
            && last.number % self.stride != 0
        {
            self.samples.pop();
        }
        self.samples.push(sample);
        if self.samples.len() > KEPT {
            self.stride *= 2;
            let (stride, last) = (self.stride, self.taken - 1);
            self.samples
                .retain(|sample| sample.number % stride == 0 || sample.number == last);
        }
    }

    fn finish(self, cost: Cost) -> Probe {
        let (processes, notes) = self.processes.into_names();
        Probe {
            interval_ms: self.options.interval.as_secs_f64() * 1e3,
            ticks_per_second: procfs::ticks_per_second(),
            processes,
            samples: self.samples,
            unavailable: self.missing.into_reasons(),
            notes,
            cost,
        }
    }
}

fn own_pid() -> i32 {
    std::process::id().cast_signed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_has_ended_is_an_error_where_it_is_required() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let ended = i32::try_from(child.id()).unwrap();
        child.wait().unwrap();
        let options = |required| ProberOptions {
            pids: vec![own_pid(), ended],
            required,
            perf: false,
            ..ProberOptions::default()
        };
        let sampler = Sampler::new(options(false)).unwrap();
        assert!(sampler.processes.alive().contains(&own_pid()));
        let error = Sampler::new(options(true)).err().unwrap().to_string();
        assert!(error.contains("there is no such process"), "{error}");
    }

    #[test]
    fn many_samples_are_thinned_and_the_last_one_stays() {
        let mut sampler = Sampler::new(ProberOptions::default()).unwrap();
        for number in 0..5_000 {
            sampler.keep(Sample {
                number,
                ..Sample::default()
            });
            assert!(sampler.samples.len() <= KEPT + 1);
            assert_eq!(sampler.samples.last().unwrap().number, number);
        }
        assert_eq!(sampler.samples[0].number, 0);
        assert_eq!(sampler.samples[1].number, sampler.stride);
    }
}
