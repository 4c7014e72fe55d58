//! Carries out a plan: starts threads, watches them and collects what they recorded.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread::Scope;

use socket2::SockAddr;

use crate::auto::{AutoFigures, Director, Pulse};
use crate::engine::{self, Harvest, RunContext, ThreadPart};
use crate::live_snapshot::ThreadSnapshots;
use crate::progress::{self, Progress};
use crate::recorder::Live;
use crate::request::Requests;
use crate::scheduler_stats::SchedulerStats;
use crate::streams::{StreamTimes, Subscribers};
use crate::tickets::{Agreed, Gate, Tickets};
use crate::transport::Target;
use crate::url::Url;
use crate::{Error, Plan, limits};

/// The names of client threads begin with this.
pub const THREAD: &str = "load-";

/// A checked plan, with everything that its threads need before they start.
pub struct PreparedRun<'a> {
    plan: &'a Plan,
    requests: Requests,
    target: Target,
    url: Url,
}

/// The result of a plan.
pub struct Sent {
    /// The records of each thread; there is at least one.
    pub harvests: Vec<Harvest>,
    /// Decisions of the statistics, if the plan left the decisions to them.
    pub auto: Option<Decided>,
    /// Results of the streams of the plan.
    pub streams: Option<StreamTimes>,
}

/// Decisions of the statistics about warm-up and length.
#[derive(Clone, Copy, Debug)]
pub struct Decided {
    /// The figures. The length of the measured part is 0: the records of the threads give it.
    pub figures: AutoFigures,
    /// True if the statistics decided the end. If not, the run was stopped before.
    pub is_decided: bool,
}

impl<'a> PreparedRun<'a> {
    /// Checks a plan, renders its requests and finds its server.
    ///
    /// # Errors
    /// The plan cannot be carried out.
    pub fn new(plan: &'a Plan) -> Result<Self, Error> {
        let url = plan.check()?;
        let requests = Requests::render(&plan.target, &plan.request, &url)?;
        limits::descriptors(plan.load.connections)?;
        let target = Target::find(&plan.target, &url, plan.request.timeout)?;
        if plan.target.unix_socket.is_none() {
            limits::source_ports(plan.load.connections)?;
        }
        Ok(Self {
            plan,
            requests,
            target,
            url,
        })
    }

    /// The addresses of the server; there is at least one.
    pub fn addresses(&self) -> &[SockAddr] {
        self.target.addresses()
    }

    /// Sends the requests of the plan. Returns at the end of the plan, or soon after `stop` is set
    /// with the records so far. `progress` is called about four times a second from the calling
    /// thread.
    ///
    /// # Errors
    /// A thread could not be started, or failed.
    pub fn carry_out(
        &self,
        mut progress: Option<&mut dyn FnMut(&Progress)>,
        stop: &AtomicBool,
    ) -> Result<Sent, Error> {
        let plan = self.plan;
        let workload = plan.request.workload.as_ref();
        let streams = workload.and_then(|workload| workload.streams());
        let open = |streams| Subscribers::open(plan, streams, &self.url, &self.target);
        let streams = streams.map(open);
        let (streams, is_over) = (streams.transpose()?, AtomicBool::new(false));
        let threads = plan.load.thread_count();
        let scheduler_stats = SchedulerStats::find();
        let (tickets, gate, live) = (
            Tickets::new(plan.length.stop, stop),
            Gate::new(threads),
            Live {
                pulse: plan.length.auto.as_ref().map(Pulse::new),
                ..Live::default()
            },
        );
        let agreed = Agreed::new(base_clock::nanos(plan.length.ramp_down));
        let mut director = plan
            .length
            .auto
            .zip(live.pulse.as_ref())
            .map(|(auto, pulse)| Director::new(auto, pulse, &agreed));
        let snapshots = ThreadSnapshots::new(threads, progress.is_some());
        let shared = RunContext {
            plan,
            target: &self.target,
            requests: &self.requests,
            scheduler_stats: &scheduler_stats,
            tickets: &tickets,
            gate: &gate,
            live: &live,
            agreed: director.is_some().then_some(&agreed),
            snapshots: &snapshots,
        };
        let (sender, harvests) = mpsc::channel();
        let (results, streams) = std::thread::scope(|scope| {
            let held = streams.map(|streams| scope.spawn(|| streams.hold(&is_over)));
            launch(scope, &shared, threads, &sender);
            drop(sender);
            let results = progress::watch(&shared, &mut director, &harvests, &mut progress);
            is_over.store(true, Ordering::Release);
            (
                results,
                held.map(|held| held.join().map_err(|_| Error::Thread)),
            )
        });
        let harvests = results.into_iter().collect::<Result<Vec<_>, _>>()?;
        if harvests.len() < threads {
            return Err(Error::Thread);
        }
        let opened_at = gate.opened_at().unwrap_or_default();
        let auto = director.map(|director| Decided {
            figures: director.figures(opened_at, 0.0),
            is_decided: director.is_decided(),
        });
        Ok(Sent {
            harvests,
            auto,
            streams: streams.transpose()?,
        })
    }
}

/// Starts all client threads, each with a sender for its records. If a thread cannot be started,
/// the others end as well.
fn launch<'scope>(
    scope: &'scope Scope<'scope, '_>,
    shared: &'scope RunContext<'_>,
    threads: usize,
    sender: &mpsc::Sender<Result<Harvest, Error>>,
) {
    for thread in 0..threads {
        let mine = sender.clone();
        // The receiver outlives the scope.
        let body = move || drop(mine.send(client(shared, thread, threads)));
        let started = std::thread::Builder::new()
            .name(format!("{THREAD}{thread}"))
            .spawn_scoped(scope, body);
        if let Err(source) = started {
            (thread..threads).for_each(|_| drop(shared.gate.arrival()));
            shared.tickets.abort();
            drop(sender.send(Err(Error::System {
                what: "start a thread",
                source,
            })));
            return;
        }
    }
}

/// One client thread. If it fails, the others end as well.
fn client(shared: &RunContext<'_>, thread: usize, threads: usize) -> Result<Harvest, Error> {
    let arrival = shared.gate.arrival();
    let connections = shared.plan.load.connections;
    // The first threads share the remainder of the division.
    let share = connections / threads + usize::from(thread < connections % threads);
    let pinned = shared
        .plan
        .load
        .cores
        .as_ref()
        .map_or(Ok(()), |cores| limits::pin(cores[thread % cores.len()]));
    let result = pinned.and_then(|()| {
        let part = ThreadPart {
            thread,
            threads,
            connections: share,
        };
        engine::run(shared, part, arrival)
    });
    if result.is_err() {
        shared.tickets.abort();
    }
    result
}
