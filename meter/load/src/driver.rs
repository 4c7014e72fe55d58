//! One run from plan to figures: threads are started, watched and harvested.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread::Scope;

use crate::auto::{self, Director, Pulse};
use crate::awake::Awake;
use crate::conclude::conclude;
use crate::engine::{self, Harvest, Part, Shared};
use crate::glimpse::Glimpses;
use crate::own::Own;
use crate::progress::{self, Progress};
use crate::recorder::Live;
use crate::request::Requests;
use crate::run::Run;
use crate::tickets::{Agreed, Gate, Tickets};
use crate::transport::Target;
use crate::{Error, Plan, limits, postgres, probe};

/// Measures what `plan` says and returns when it is done, or soon after `stop` is set, with what there is by then.
/// `progress` is called about four times a second from the calling thread.
///
/// # Errors
/// The plan cannot be carried out. What goes wrong between client and server is counted in [`Run::errors`] instead.
pub fn run(
    plan: &Plan,
    mut progress: Option<&mut dyn FnMut(&Progress)>,
    stop: &AtomicBool,
) -> Result<Run, Error> {
    let url = plan.check()?;
    let requests = Requests::render(plan, &url)?;
    limits::descriptors(plan.connections)?;
    let _awake = Awake::hold(plan.awake)?;
    let watched = postgres::watch(plan)?;
    let target = Target::find(plan, &url)?;
    let threads = threads(plan);
    let own = Own::find();
    let (tickets, gate, live) = (
        Tickets::new(plan.stop, stop),
        Gate::new(threads),
        Live {
            pulse: plan.auto.as_ref().map(Pulse::new),
            ..Live::default()
        },
    );
    let agreed = Agreed::new(base_clock::nanos(plan.ramp_down));
    let mut director = plan
        .auto
        .zip(live.pulse.as_ref())
        .map(|(auto, pulse)| Director::new(auto, pulse, &agreed));
    let glimpses = Glimpses::new(threads, progress.is_some());
    let shared = Shared {
        plan,
        target: &target,
        requests: &requests,
        own: &own,
        tickets: &tickets,
        gate: &gate,
        live: &live,
        agreed: director.is_some().then_some(&agreed),
        glimpses: &glimpses,
    };
    let probing = probe::start(plan, target.address())?;
    let (sender, harvests) = mpsc::channel();
    let results = std::thread::scope(|scope| {
        launch(scope, &shared, threads, &sender);
        drop(sender);
        progress::watch(&shared, &mut director, &harvests, &mut progress)
    });
    let harvests = results.into_iter().collect::<Result<Vec<_>, _>>()?;
    if harvests.len() < threads {
        return Err(Error::Thread);
    }
    let start = harvests.iter().map(|harvest| harvest.times.start).min();
    let probed = probing.map(|probing| probing.finish(&harvests));
    let mut run = conclude(plan, harvests, stop.load(Ordering::Relaxed));
    if let Some(director) = director {
        let opened_at = gate.opened_at().unwrap_or_default();
        let figures = director.figures(opened_at, run.duration_s);
        auto::conclude(&mut run, figures, director.is_decided());
    }
    run.postgres = watched.map(|probe| postgres::attach(probe, start.unwrap_or(0), &run));
    Ok(probe::attached(run, probed))
}

/// Starts all client threads, each with a way to bring home what it found. If one cannot be started, the others end as well.
fn launch<'scope>(
    scope: &'scope Scope<'scope, '_>,
    shared: &'scope Shared<'_>,
    threads: usize,
    sender: &mpsc::Sender<Result<Harvest, Error>>,
) {
    for thread in 0..threads {
        let mine = sender.clone();
        // The receiver outlives the scope.
        let body = move || drop(mine.send(client(shared, thread, threads)));
        let started = std::thread::Builder::new()
            .name(format!("load-{thread}"))
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

/// Threads that a run of `plan` has.
pub(crate) fn threads(plan: &Plan) -> usize {
    let threads = if plan.threads == 0 {
        plan.cores.as_ref().map_or_else(limits::cores, Vec::len)
    } else {
        plan.threads
    };
    threads.min(plan.connections)
}

/// One client thread; if it cannot do its part, the others end as well.
fn client(shared: &Shared<'_>, thread: usize, threads: usize) -> Result<Harvest, Error> {
    let arrival = shared.gate.arrival();
    let connections = shared.plan.connections;
    // The first threads take one more where the division leaves a remainder.
    let share = connections / threads + usize::from(thread < connections % threads);
    let pinned = shared
        .plan
        .cores
        .as_ref()
        .map_or(Ok(()), |cores| limits::pin(cores[thread % cores.len()]));
    let result = pinned.and_then(|()| {
        let part = Part {
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
