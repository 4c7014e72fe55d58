//! A sweep: one run at each level of a ladder, and what the runs say together.

mod attained;
mod conclude;
mod limits;
mod outcome;
mod power;

use std::sync::atomic::AtomicBool;
use std::time::Duration;

pub use outcome::{
    Attained, By, Crossing, Direction, Edge, Hysteresis, Judged, LevelPower, LevelRange, Power,
    Sweep, SweepStep, TopRate,
};

use crate::Ladder;
use crate::ladder::{Climb, LevelRun};
use millrace_client::{Error, Plan, Process, Progress, Schedule, Stop, reach};
use millrace_stats::Objective;

#[cfg(test)]
pub(crate) use conclude::tests::sample_run;

/// Steps and settings of a sweep.
#[derive(Clone, Debug)]
pub struct SweepPlan {
    /// The run at each level, without what the level sets. It ends after a duration, and has no
    /// schedule.
    pub plan: Plan,
    /// The levels.
    pub ladder: Ladder,
    /// Quantity that the levels raise.
    pub by: By,
    /// How requests are spread over time where the levels are rates.
    pub process: Process,
    /// How often the ladder is climbed, at least once. Repeats follow each other as whole climbs,
    /// so that a change with time does not look like a difference between levels.
    pub repeats: usize,
    /// True if each climb goes down again, without a second run at the top.
    pub down: bool,
    /// An objective that judges each step.
    pub objective: Option<Objective>,
    /// Seed of the intervals of the fit: an equal seed gives equal intervals.
    pub seed: u64,
}

/// Event that a sweep reports during its run.
#[derive(Clone, Copy, Debug)]
pub enum News<'a> {
    /// How far the sweep is; about four times a second.
    Progress(&'a SweepProgress),
    /// A step that is done.
    Step(&'a SweepStep),
}

/// How far a sweep is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SweepProgress {
    /// The step that runs, from 1.
    pub step: usize,
    /// All steps.
    pub steps: usize,
    /// The level of the step.
    pub level: f64,
    /// How far the step's run is.
    pub run: Progress,
    /// Planned time to the end of the sweep, without the setup of each step.
    pub remaining: Duration,
}

/// One level of a sweep, before its run.
#[derive(Clone, Copy, Debug, PartialEq)]
struct SweepLevel {
    level: f64,
    direction: Direction,
    repeat: u64,
}

/// Runs every step. Returns after the last one, or with the steps so far soon after `stop` is set.
/// `watch` is called from the calling thread.
///
/// # Errors
/// Nothing listens, or the first step cannot be run. If a later step cannot be run, the steps
/// before it are returned, with the reason.
pub fn sweep(
    plan: &SweepPlan,
    mut watch: Option<&mut dyn FnMut(News<'_>)>,
    stop: &AtomicBool,
) -> Result<Sweep, Error> {
    let each = check(plan)?;
    let places = places(plan);
    if let Some(first) = places.first() {
        reach(&step_plan(plan, *first, 0))?;
    }
    let mut steps: Vec<SweepStep> = Vec::new();
    let mut trouble = None;
    let mut climb = Climb::new(stop);
    for (number, place) in places.iter().enumerate() {
        let began = base_clock::now();
        let mut tell = |run: &Progress| {
            if let Some(watch) = watch.as_mut() {
                let passed = Duration::from_nanos(base_clock::now() - began);
                let later = each * u32::try_from(places.len() - number - 1).unwrap_or(u32::MAX);
                watch(News::Progress(&SweepProgress {
                    step: number + 1,
                    steps: places.len(),
                    level: place.level,
                    run: *run,
                    remaining: later + each.saturating_sub(passed),
                }));
            }
        };
        let level = climb.level(step_plan(plan, *place, number), &mut tell)?;
        let Some(LevelRun { run, complete }) = level else {
            let failure = climb.failure();
            trouble = failure.map(|error| format!("no run at {}: {error}", place.level));
            break;
        };
        if complete || run.accounting.issued > 0 {
            steps.push(SweepStep {
                level: place.level,
                direction: place.direction,
                repeat: place.repeat,
                complete,
                objective: plan.objective.map(|objective| run.meets(&objective)),
                run,
            });
            if let (Some(watch), Some(step)) = (watch.as_mut(), steps.last()) {
                watch(News::Step(step));
            }
        }
    }
    Ok(conclude::conclude(
        plan,
        places.len(),
        steps,
        trouble.as_deref(),
    ))
}

/// The planned time of one step, after a check of everything that can be checked beforehand.
fn check(plan: &SweepPlan) -> Result<Duration, Error> {
    let refuse = |sentence: &str| Err(Error::Plan(sentence.to_owned()));
    let Stop::Duration(duration) = plan.plan.length.stop else {
        return refuse("the steps of a sweep end after a duration, not after a number of requests");
    };
    if plan.repeats == 0 || plan.repeats > 1000 {
        return refuse("the ladder is climbed from 1 to 1000 times");
    }
    if plan.plan.load.schedule.is_some() {
        return refuse("the schedule of a step comes from its level");
    }
    let highest = match plan.by {
        By::Rate => plan.plan.load.connections,
        By::Connections => plan.ladder.whole()?.into_iter().max().unwrap_or(0),
    };
    // The top step comes last, and is the most likely one to need more than this machine has.
    for place in places(plan) {
        step_plan(plan, place, 0).check()?;
    }
    millrace_client::limits::descriptors(highest)?;
    Ok(plan.plan.length.unmeasured() + duration)
}

/// Every step in the order in which it is run.
fn places(plan: &SweepPlan) -> Vec<SweepLevel> {
    let levels = plan.ladder.levels();
    let mut places = Vec::new();
    for repeat in 1..=plan.repeats as u64 {
        let place = |direction: Direction| {
            move |level: &f64| SweepLevel {
                level: *level,
                direction,
                repeat,
            }
        };
        places.extend(levels.iter().map(place(Direction::Up)));
        if plan.down {
            places.extend(levels.iter().rev().skip(1).map(place(Direction::Down)));
        }
    }
    places
}

/// The run of one step. Each `number` has its own arrivals.
fn step_plan(plan: &SweepPlan, place: SweepLevel, number: usize) -> Plan {
    let mut step = plan.plan.clone();
    match plan.by {
        By::Connections => step.load.connections = place.level as usize,
        By::Rate => {
            let process = plan.process.reseeded(number as u64);
            step.load.schedule = Some(Schedule::new(place.level, process));
        }
    }
    step
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(ladder: &str) -> SweepPlan {
        SweepPlan {
            plan: Plan::new("http://127.0.0.1:1/"),
            ladder: ladder.parse().unwrap(),
            by: By::Connections,
            process: Process::Constant,
            repeats: 1,
            down: false,
            objective: None,
            seed: 1,
        }
    }

    fn order(plan: &SweepPlan) -> Vec<f64> {
        places(plan).iter().map(|place| place.level).collect()
    }

    #[test]
    fn a_climb_goes_up_and_down_and_again() {
        let mut plan = plan("1..3");
        assert_eq!(order(&plan), [1.0, 2.0, 3.0]);
        plan.down = true;
        assert_eq!(order(&plan), [1.0, 2.0, 3.0, 2.0, 1.0]);
        plan.repeats = 2;
        let places = places(&plan);
        assert_eq!(places.len(), 10);
        assert_eq!(
            (places[3].direction, places[3].repeat),
            (Direction::Down, 1)
        );
        assert_eq!((places[5].direction, places[5].repeat), (Direction::Up, 2));
    }

    #[test]
    fn a_level_sets_its_part_of_the_plan() {
        let mut plan = plan("2,4");
        let place = places(&plan)[1];
        assert_eq!(step_plan(&plan, place, 0).load.connections, 4);
        assert_eq!(step_plan(&plan, place, 0).load.schedule, None);
        plan.by = By::Rate;
        plan.process = Process::Poisson(7);
        let step = step_plan(&plan, place, 1);
        let schedule = step.load.schedule.unwrap();
        assert_eq!((step.load.connections, schedule.rate), (1, 4.0));
        assert_eq!(schedule.process, Process::Poisson(8));
    }

    #[test]
    fn what_cannot_be_carried_out_is_refused_before_the_first_step() {
        let refused = |plan: SweepPlan, word: &str| {
            let stop = AtomicBool::new(false);
            let message = sweep(&plan, None, &stop).unwrap_err().to_string();
            assert!(message.contains(word), "{message}");
        };
        refused(plan("1,2.5"), "whole number");
        refused(plan("1,2000000"), "million");
        refused(
            SweepPlan {
                repeats: 0,
                ..plan("1")
            },
            "climbed",
        );
        let mut counted = plan("1");
        counted.plan.length.stop = Stop::Requests(5);
        refused(counted, "duration");
        let mut scheduled = plan("1");
        scheduled.plan.load.schedule = Some(Schedule::constant(1.0));
        refused(scheduled, "schedule");
    }
}
