//! Which levels of a sweep meet an objective, and where between two levels it ceases to hold.

use super::conclude::by_level;
use super::{Attained, Crossing, Judged, SweepStep};
use crate::Run;
use millrace_stats::Objective;
use millrace_stats::latency::quantile;
use millrace_stats::objective::Met;

pub(super) fn attained(objective: Objective, steps: &[&SweepStep]) -> Attained {
    let groups = by_level(steps);
    let levels: Vec<Judged> = groups.iter().map(|level| judged(level)).collect();
    let meeting = levels.iter().rposition(|level| level.met == Met::Yes);
    let crossing = crossing(objective, &groups, &levels, meeting);
    Attained {
        objective,
        highest: meeting.map(|place| levels[place].level),
        crossing: crossing.as_ref().ok().copied(),
        crossing_refused: crossing.err().unwrap_or_default(),
        levels,
    }
}

fn judged(level: &[&SweepStep]) -> Judged {
    let any = |met| level.iter().any(|step| step.objective == Some(met));
    Judged {
        level: level[0].level,
        met: if any(Met::No) {
            Met::No
        } else if any(Met::Undecided) {
            Met::Undecided
        } else {
            Met::Yes
        },
    }
}

/// Finds the level at which the objective ceases to hold, between the highest level that meets it
/// and the lowest level above that misses it. Response times grow about exponentially towards
/// saturation, so their logarithm is interpolated.
fn crossing(
    objective: Objective,
    groups: &[Vec<&SweepStep>],
    levels: &[Judged],
    meeting: Option<usize>,
) -> Result<Crossing, String> {
    let from = meeting.ok_or("no level meets it")?;
    let above = (from..levels.len()).find(|&place| levels[place].met == Met::No);
    let to = above.ok_or("no level above misses it")?;
    let (low, high) = (levels[from].level, levels[to].level);
    let from_us = slowest(objective, &groups[from], low)?;
    let to_us = slowest(objective, &groups[to], high)?;
    if !(from_us <= objective.within_us && objective.within_us <= to_us && from_us < to_us) {
        // The time did not decide: the step is INVALID, or its backlog grew.
        return Err(format!(
            "at {high} it is not the response time that misses it"
        ));
    }
    let share = (objective.within_us / from_us).ln() / (to_us / from_us).ln();
    Ok(Crossing {
        level: low + share * (high - low),
        from: low,
        from_us,
        to: high,
        to_us,
    })
}

/// The time within which the objective's share of all requests had a good answer, at the worst step
/// of a level: an objective holds at a level if it does at every step.
fn slowest(objective: Objective, steps: &[&SweepStep], level: f64) -> Result<f64, String> {
    let mut times = steps.iter().map(|step| time_us(objective, &step.run));
    times
        .try_fold(0.0, |slowest: f64, time| Ok(slowest.max(time?)))
        .map_err(|why: &str| format!("at {level} {why}"))
}

fn time_us(objective: Objective, run: &Run) -> Result<f64, &'static str> {
    let times = &run.histograms;
    let times = times.response.as_ref().or(times.service.as_ref());
    let times = times.ok_or("there was no good answer")?.histogram();
    // Of all that were due, the answers that are in the histogram are a part.
    let share = objective.share * run.accounting.issued as f64 / run.accounting.good.max(1) as f64;
    if share > 1.0 {
        return Err("too many requests had no good answer, whenever it might have come");
    }
    quantile(&times, share).ok_or("there were too few requests for the percentile")
}

#[cfg(test)]
mod tests {
    use super::super::conclude::conclude;
    use super::super::conclude::tests::{climb, plan, step};
    use super::super::{By, Direction, SweepPlan};
    use super::*;
    use millrace_stats::Verdict;
    use millrace_stats::hdr::Hdr;
    use millrace_stats::series::histogram;

    #[test]
    fn the_highest_level_that_meets_the_objective_is_named() {
        let mut steps = climb();
        for (n, step) in steps.iter_mut().enumerate() {
            step.objective = Some(match n {
                0..6 => Met::Yes,
                6 => Met::Undecided,
                _ => Met::No,
            });
        }
        steps.push(SweepStep {
            objective: Some(Met::No),
            ..step(6.0, Direction::Down, 1.0)
        });
        let objective = Some("99% < 5ms".parse().unwrap());
        let plan = SweepPlan {
            objective,
            ..plan(By::Rate)
        };
        let attained = conclude(&plan, 11, steps, None).objective.unwrap();
        assert_eq!(attained.highest, Some(5.0));
        assert_eq!(attained.levels[6].met, Met::Undecided);
        let none = conclude(&plan, 11, Vec::new(), None).objective.unwrap();
        assert_eq!(none.highest, None);
        assert_eq!(none.crossing_refused, "no level meets it");
    }

    /// A thousand answers, all but one in fifty at once, these after `slow_us`; and as many
    /// requests without an answer as asked for.
    fn slow(level: f64, slow_us: u64, failed: u64) -> SweepStep {
        let mut times = histogram(3);
        for n in 0..1000 {
            let nanos = if n % 50 == 0 { slow_us * 1000 } else { 1000 };
            times.record(nanos).unwrap();
        }
        let mut step = step(level, Direction::Up, 100.0);
        step.run.histograms.service = Hdr::of(&times);
        step.run.accounting.issued = 1000 + failed;
        step.run.accounting.good = 1000;
        step
    }

    fn at(objective: &str, mut steps: Vec<SweepStep>, met: &[Met]) -> Attained {
        let levels: Vec<&SweepStep> = steps.iter().collect();
        assert_eq!(by_level(&levels).len(), met.len());
        let known: Vec<f64> = by_level(&levels).iter().map(|at| at[0].level).collect();
        for step in &mut steps {
            let place = known.iter().position(|level| *level == step.level);
            step.objective = place.map(|place| met[place]);
        }
        let steps: Vec<&SweepStep> = steps.iter().collect();
        attained(objective.parse().unwrap(), &steps)
    }

    #[test]
    fn the_crossing_is_on_the_line_of_the_logarithm() {
        // 1 ms at 100/s and 100 ms at 300/s: 10 ms in the middle.
        let steps = || vec![slow(100.0, 1000, 0), slow(300.0, 100_000, 0)];
        let found = at("99% < 10ms", steps(), &[Met::Yes, Met::No]);
        let crossing = found.crossing.unwrap();
        assert!((crossing.level - 200.0).abs() < 0.1, "{crossing:?}");
        assert_eq!((crossing.from, crossing.to), (100.0, 300.0));
        assert_eq!(
            (found.highest, found.crossing_refused),
            (Some(100.0), String::new())
        );
        // Of repeats the slowest counts.
        let mut more = steps();
        more.push(slow(100.0, 5000, 0));
        let later = at("99% < 10ms", more, &[Met::Yes, Met::No])
            .crossing
            .unwrap();
        assert!((later.from_us / 5000.0 - 1.0).abs() < 0.01, "{later:?}");
        assert!(later.level < 200.0, "{later:?}");
        // A level that decides nothing stands between.
        let mut between = steps();
        between.push(slow(200.0, 1000, 0));
        let met = [Met::Yes, Met::Undecided, Met::No];
        let crossing = at("99% < 10ms", between, &met).crossing.unwrap();
        assert!((crossing.level - 200.0).abs() < 0.1, "{crossing:?}");
    }

    #[test]
    fn requests_without_an_answer_are_late() {
        // 97.6 % of 1005 requests are 98.1 % of 1000 answers, and the slow ones begin at 98 %.
        let steps = vec![slow(100.0, 1000, 5), slow(200.0, 4000, 5)];
        let found = at("97.6% < 2ms", steps, &[Met::Yes, Met::No]);
        let crossing = found.crossing.unwrap();
        assert!((crossing.level - 150.0).abs() < 0.1, "{crossing:?}");
    }

    #[test]
    fn what_cannot_be_said_is_said() {
        let refused = |objective: &str, steps: Vec<SweepStep>, met: &[Met]| {
            let found = at(objective, steps, met);
            assert_eq!(found.crossing, None);
            found.crossing_refused
        };
        let both = [Met::Yes, Met::No];
        let steps = |failed| vec![slow(100.0, 1000, 0), slow(200.0, 100_000, failed)];
        let none = refused("99% < 1s", steps(0), &[Met::Yes, Met::Yes]);
        assert_eq!(none, "no level above misses it");
        let none = refused("99% < 10ms", steps(0), &[Met::No, Met::Undecided]);
        assert_eq!(none, "no level meets it");
        let failed = refused("99% < 10ms", steps(100), &both);
        assert!(failed.starts_with("at 200 too many requests"), "{failed}");
        let few = refused("99.9% < 10ms", steps(0), &both);
        assert!(few.starts_with("at 100 there were too few"), "{few}");
        let mut invalid = vec![slow(100.0, 1000, 0), slow(200.0, 2000, 0)];
        invalid[1].run.verdict = Verdict::Invalid;
        let invalid = refused("99% < 10ms", invalid, &both);
        assert!(invalid.contains("not the response time"), "{invalid}");
    }
}
