//! Faults in turn, and how long the nodes take to recover from each.

use std::time::Duration;

use crate::Choices;

use crate::coherence::context::Context;
use crate::coherence::fault::Fault;
use crate::coherence::figures::FaultFigures;
use crate::coherence::inject::FaultInjector;
use crate::coherence::page::Ask;
use crate::coherence::reader::Visitor;
use crate::coherence::report::ScenarioReport;
use crate::coherence::scenario::Scenario;
use base_clock::Boottime;

/// Of what lasts: longer than the bound of a second.
pub(crate) const LASTING: Duration = Duration::from_millis(2500);
/// One in five lasting faults lasts this long: then the kernel gives up connections, and the server
/// gives up a frozen node's feed. Only in scenarios of [`LONG`].
const LASTING_LONG: Duration = Duration::from_secs(12);
/// From here on a scenario has time for it.
const LONG: Duration = Duration::from_secs(300);
/// From one fault to the next, at most; in it there is time for hits.
const BETWEEN_MS: usize = 2000;
/// Percentage of faults without a wait after them: the next fault meets nodes that have not
/// recovered.
const IN_A_ROW: usize = 25;
/// How often a fault is tried.
const ATTEMPTS: usize = 5;
/// How long the nodes are left alone at the end of a scenario.
const LAST_QUIET_PERIOD: Duration = Duration::from_secs(5);
/// How long a scenario goes on to read its least number of pages.
pub(crate) const READING: Duration = Duration::from_secs(600);
/// Limit for full recovery after a fault, and for the end of the last slot after the scenario.
pub(crate) const RECOVERY: Duration = Duration::from_secs(60);
/// From one look to the next while that is waited for.
pub(crate) const LOOK: Duration = Duration::from_millis(20);

/// Every fault once in any order, and again until the time is over.
pub(crate) fn inject_all(
    injector: &mut FaultInjector<'_>,
    plan: &Scenario,
    choices: &mut Choices<'_>,
) -> ScenarioReport {
    let length = plan.length;
    let mut report = ScenarioReport::default();
    let began = Boottime::now();
    quiet_period(injector, "the beginning", &mut report);
    for round in 0.. {
        for fault in shuffled(Fault::kinds(injector.packets.is_some()), choices) {
            if round > 0 && Boottime::now().since(began) >= length {
                break;
            }
            let pause = u64::try_from(choices.below(BETWEEN_MS)).unwrap_or_default();
            injector.context.span.pass(Duration::from_millis(pause));
            let is_long = length >= LONG && choices.chance(20);
            injector.lasting = if is_long { LASTING_LONG } else { LASTING };
            inject_one(injector, fault, &mut report, choices);
        }
        if Boottime::now().since(began) >= length {
            break;
        }
    }
    quiet_period(injector, "the end", &mut report);
    let context = injector.context;
    context.span.pass(LAST_QUIET_PERIOD);
    context.wait_until(READING, || context.tally.has_read(&plan.least));
    injector.context.quiet_period.end();
    report.add(std::mem::take(&mut injector.report));
    report
}

/// From here on there are no faults, and all nodes receive changes: a write invalidates what each
/// node has in memory. *Counterexample: a node without a feed may know of a write alone because it
/// had to read.*
fn quiet_period(injector: &mut FaultInjector<'_>, after: &str, report: &mut ScenarioReport) {
    let well = [(); 2].map(|()| recovered(injector, Boottime::now()));
    match well.into_iter().find_map(Result::err) {
        None => injector.context.quiet_period.begin(),
        Some(reason) => report.note(format!("after {after}: {reason}")),
    }
}

/// One fault, and as a rule the recovery from it.
fn inject_one(
    injector: &mut FaultInjector<'_>,
    fault: Fault,
    report: &mut ScenarioReport,
    choices: &mut Choices<'_>,
) {
    let began = Boottime::now();
    injector.context.quiet_period.end();
    let mut is_well = false;
    // A deadlock with a writer may happen; PostgreSQL chooses the transaction that fails.
    let mut outcome = injector.inject(fault, choices);
    for _ in 1..ATTEMPTS {
        if outcome.is_err() {
            outcome = injector.inject(fault, choices);
        }
    }
    let name = fault.name();
    match outcome {
        Err(reason) => report.note(format!("{name}: {reason}")),
        Ok(()) => {
            let since = if fault.stays() {
                began
            } else {
                Boottime::now()
            };
            let known = report.faults.get(name);
            let is_unknown = known.is_some_and(|figures| figures.measured == 0);
            let is_awaited = fault.stays() || is_unknown || !choices.chance(IN_A_ROW);
            let recovery = is_awaited.then(|| recovered(injector, since));
            if let Some(Err(reason)) = &recovery {
                report.note(format!("{name}: {reason}"));
            }
            let time = recovery.and_then(Result::ok);
            is_well = time.is_some();
            report.fault(name, FaultFigures::single(time));
            injector.context.tally.fault_injected();
        }
    }
    match injector.end_loss() {
        Ok(()) if is_well => quiet_period(injector, name, report),
        Ok(()) => {}
        Err(error) => report.note(format!("{name}: {error}")),
    }
}

/// Writes, and waits until each node serves the write from memory: the node was notified, has read
/// the row, and keeps it. Returns the time from `since` until then.
fn recovered(injector: &mut FaultInjector<'_>, since: Boottime) -> Result<Duration, String> {
    let mut version = injector.raise();
    for _ in 1..ATTEMPTS {
        if version.is_err() {
            version = injector.raise();
        }
    }
    let version = version?;
    let mut visitor = Visitor::new(injector.context);
    let mut waiting: Vec<usize> = (0..injector.context.nodes.len()).collect();
    loop {
        waiting.retain(|node| !visitor.has_kept(*node, 1, version));
        let time = Boottime::now().since(since);
        let is_late = time > RECOVERY;
        if waiting.is_empty() || is_late {
            injector.report.add(visitor.report);
            return if waiting.is_empty() {
                Ok(time)
            } else {
                Err(format!("no hit of nodes {waiting:?} after {time:?}"))
            };
        }
        injector.context.span.pass(LOOK);
    }
}

fn shuffled(mut faults: Vec<Fault>, choices: &mut Choices<'_>) -> Vec<Fault> {
    for last in (1..faults.len()).rev() {
        faults.swap(last, choices.below(last + 1));
    }
    faults
}

/// Waits until each node gives pages from memory again; those that do not.
pub(crate) fn lost(context: &Context, report: &mut ScenarioReport) -> Vec<usize> {
    let began = Boottime::now();
    let mut visitor = Visitor::new(context);
    let mut lost: Vec<usize> = (0..context.nodes.len()).collect();
    while !lost.is_empty() && Boottime::now().since(began) < RECOVERY {
        lost.retain(|node| !visitor.has_hit(*node, &Ask::Account(2)));
        context.span.pass(LOOK);
    }
    report.add(visitor.report);
    lost
}
