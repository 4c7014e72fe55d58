//! Faults in turn, and how long the nodes take to recover from each.

use std::time::Duration;

use lab_hostile::Dice;

use crate::fault::Fault;
use crate::field::Field;
use crate::figures::Struck;
use crate::page::Ask;
use crate::reader::Visitor;
use crate::report::Report;
use crate::strike::Striker;
use base_clock::Boottime;

/// Of what lasts: longer than the bound of a second.
pub(crate) const LASTING: Duration = Duration::from_millis(2500);
/// Of what lasts, in one of five: connections are given up by the kernel then, and a frozen node's feed by the server. Only in
/// fights of [`LONG`].
const LASTING_LONG: Duration = Duration::from_secs(12);
/// From here on a fight has time for it.
const LONG: Duration = Duration::from_secs(300);
/// From one fault to the next, at most; in it there is time for hits.
const BETWEEN_MS: usize = 2000;
/// Of a hundred faults, those after which nothing is waited for: the next meets nodes that have not recovered.
const IN_A_ROW: usize = 25;
/// How often a fault is tried.
const ATTEMPTS: usize = 5;
/// How long the nodes are left alone at the end of a fight.
const LAST_LULL: Duration = Duration::from_secs(5);
/// Until everything must be well again after a fault, and the last slot gone after the fight.
pub(crate) const RECOVERY: Duration = Duration::from_secs(60);
/// From one look to the next while that is waited for.
pub(crate) const LOOK: Duration = Duration::from_millis(20);

/// Every fault once in any order, and again until the time is over.
pub(crate) fn strikes(striker: &mut Striker<'_>, length: Duration, dice: &mut Dice<'_>) -> Report {
    let mut report = Report::default();
    let began = Boottime::now();
    lull(striker, "the beginning", &mut report);
    for round in 0.. {
        for fault in shuffled(Fault::kinds(striker.packets.is_some()), dice) {
            if round > 0 && Boottime::now().since(began) >= length {
                break;
            }
            let pause = u64::try_from(dice.below(BETWEEN_MS)).unwrap_or_default();
            striker.field.span.pass(Duration::from_millis(pause));
            let is_long = length >= LONG && dice.chance(20);
            striker.lasting = if is_long { LASTING_LONG } else { LASTING };
            one(striker, fault, &mut report, dice);
        }
        if Boottime::now().since(began) >= length {
            break;
        }
    }
    lull(striker, "the end", &mut report);
    striker.field.span.pass(LAST_LULL);
    striker.field.lull.end();
    report.add(std::mem::take(&mut striker.report));
    report
}

/// Nothing is done to the nodes from here on, and all of them hear of changes: what each has in memory is ended by a write. ✗ *Of a
/// write alone a node that hears of nothing may know because it had to read.*
fn lull(striker: &mut Striker<'_>, after: &str, report: &mut Report) {
    let well = [(); 2].map(|()| recovered(striker, Boottime::now()));
    match well.into_iter().find_map(Result::err) {
        None => striker.field.lull.begin(),
        Some(reason) => report.note(format!("after {after}: {reason}")),
    }
}

/// One fault, and as a rule the recovery from it.
fn one(striker: &mut Striker<'_>, fault: Fault, report: &mut Report, dice: &mut Dice<'_>) {
    let began = Boottime::now();
    striker.field.lull.end();
    let mut is_well = false;
    // A deadlock with a writer is bad luck, and PostgreSQL's choice whom it hits.
    let mut outcome = striker.strike(fault, dice);
    for _ in 1..ATTEMPTS {
        if outcome.is_err() {
            outcome = striker.strike(fault, dice);
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
            let is_unknown = known.is_some_and(|struck| struck.measured == 0);
            let is_awaited = fault.stays() || is_unknown || !dice.chance(IN_A_ROW);
            let recovery = is_awaited.then(|| recovered(striker, since));
            if let Some(Err(reason)) = &recovery {
                report.note(format!("{name}: {reason}"));
            }
            let time = recovery.and_then(Result::ok);
            is_well = time.is_some();
            report.fault(name, Struck::one(time));
            striker.field.tally.struck();
        }
    }
    match striker.calm() {
        Ok(()) if is_well => lull(striker, name, report),
        Ok(()) => {}
        Err(error) => report.note(format!("{name}: {error}")),
    }
}

/// Writes, and waits until each node gives from memory what was written: it has heard of it, read it, and kept it. The time
/// from `since` until then.
fn recovered(striker: &mut Striker<'_>, since: Boottime) -> Result<Duration, String> {
    let mut version = striker.raise();
    for _ in 1..ATTEMPTS {
        if version.is_err() {
            version = striker.raise();
        }
    }
    let version = version?;
    let mut visitor = Visitor::new(striker.field);
    let mut waiting: Vec<usize> = (0..striker.field.nodes.len()).collect();
    loop {
        waiting.retain(|node| !visitor.has_kept(*node, 1, version));
        let time = Boottime::now().since(since);
        let is_late = time > RECOVERY;
        if waiting.is_empty() || is_late {
            striker.report.add(visitor.report);
            return if waiting.is_empty() {
                Ok(time)
            } else {
                Err(format!("no hit of nodes {waiting:?} after {time:?}"))
            };
        }
        striker.field.span.pass(LOOK);
    }
}

fn shuffled(mut faults: Vec<Fault>, dice: &mut Dice<'_>) -> Vec<Fault> {
    for last in (1..faults.len()).rev() {
        faults.swap(last, dice.below(last + 1));
    }
    faults
}

/// Waits until each node gives pages from memory again; those that do not.
pub(crate) fn lost(field: &Field, report: &mut Report) -> Vec<usize> {
    let began = Boottime::now();
    let mut visitor = Visitor::new(field);
    let mut lost: Vec<usize> = (0..field.nodes.len()).collect();
    while !lost.is_empty() && Boottime::now().since(began) < RECOVERY {
        lost.retain(|node| !visitor.has_hit(*node, &Ask::Account(2)));
        field.span.pass(LOOK);
    }
    report.add(visitor.report);
    lost
}
