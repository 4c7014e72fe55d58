//! Where a sweep has most throughput for its response time.
//!
//! Throughput over mean response time, X/R, is "power" (L. Kleinrock, "Power and Deterministic
//! Rules of Thumb for Probabilistic Problems in Computer Communications", ICC 1979). It is highest
//! where one percent more throughput begins to cost more than one percent more response time. This
//! is a figure; the knee of a curve is a matter of taste.
//!
//! With three climbs or more the level is given as a range. The same measurements choose the best
//! level and are compared with it. So a level leaves the range only if it fails a one-sided test
//! whose 5 % are divided by the number of other levels (Bonferroni; after J. C. Hsu, "Constrained
//! Simultaneous Confidence Intervals for Multiple Comparisons with the Best", Annals of Statistics
//! 12:3, 1984). Logarithms are compared within climbs, because a drift from one climb to the next
//! affects all levels alike.

use std::collections::BTreeMap;

use super::conclude::by_level;
use super::{Direction, Edge, LevelPower, LevelRange, Power, SweepStep};
use crate::Run;
use millrace_stats::FEWEST_BLOCKS;
use millrace_stats::analysis::bootstrap::Summary;
use millrace_stats::analysis::student;

/// How often the best level may be missing from the range.
const RISK: f64 = 0.05;

impl Run {
    /// Throughput over mean response time, in good answers a second for each second of it; in a
    /// closed loop of service time. `None` without a good answer.
    pub fn power(&self) -> Option<f64> {
        let (rate, seconds) = rate_and_seconds(self)?;
        Some(rate / seconds)
    }
}

fn rate_and_seconds(run: &Run) -> Option<(f64, f64)> {
    let latency = run.latency_us.response.or(run.latency_us.service)?;
    let seconds = latency.mean / 1e6;
    (run.good_rate > 0.0 && seconds > 0.0).then_some((run.good_rate, seconds))
}

/// A level with the logarithms of X and of R in each climb.
struct Candidate {
    level: f64,
    climbs: BTreeMap<u64, (f64, f64)>,
}

impl Candidate {
    /// `None` if some climb had no good answer there.
    fn of(steps: &[&SweepStep]) -> Option<Self> {
        let one = |step: &&SweepStep| {
            let (rate, seconds) = rate_and_seconds(&step.run)?;
            Some((step.repeat, (rate.ln(), seconds.ln())))
        };
        Some(Self {
            level: steps.first()?.level,
            climbs: steps.iter().map(one).collect::<Option<_>>()?,
        })
    }

    fn mean(&self, of: fn(&(f64, f64)) -> f64) -> f64 {
        self.climbs.values().map(of).sum::<f64>() / self.climbs.len() as f64
    }

    fn log_power(&self) -> f64 {
        self.mean(|(rate, seconds)| rate - seconds)
    }

    /// True if `self` is shown to be above `other`, at a one-sided `risk`.
    fn beats(&self, other: &Self, risk: f64) -> bool {
        let pairs = self.climbs.iter().filter_map(|(climb, own)| {
            let other = other.climbs.get(climb)?;
            Some((own.0 - own.1) - (other.0 - other.1))
        });
        let ahead: Vec<f64> = pairs.collect();
        Summary::of(&ahead)
            .filter(|summary| summary.count >= FEWEST_BLOCKS)
            .is_some_and(|summary| {
                let wide = student::quantile(1.0 - risk, summary.count - 1);
                summary.mean > wide * summary.error()
            })
    }
}

/// The highest X/R of the way up: the way down may show a server that has not recovered. `None` for
/// fewer than two levels, which have no highest.
pub(super) fn highest(steps: &[&SweepStep]) -> Option<Power> {
    let up = steps.iter().copied();
    let up: Vec<&SweepStep> = up.filter(|step| step.direction == Direction::Up).collect();
    let levels = by_level(&up);
    if levels.len() < 2 {
        return None;
    }
    let all: Vec<Candidate> = levels.iter().filter_map(|at| Candidate::of(at)).collect();
    let best = all
        .iter()
        .max_by(|a, b| a.log_power().total_cmp(&b.log_power()))?;
    let is_at = |at: Option<&Vec<&SweepStep>>| at.is_some_and(|at| at[0].level == best.level);
    let edge = match (is_at(levels.first()), is_at(levels.last())) {
        (true, _) => Some(Edge::Lowest),
        (_, true) => Some(Edge::Highest),
        _ => None,
    };
    let found = |candidate: &Candidate| LevelPower {
        level: candidate.level,
        value: candidate.log_power().exp(),
    };
    Some(Power {
        level: best.level,
        value: best.log_power().exp(),
        rate: best.mean(|(rate, _)| *rate).exp(),
        mean_us: best.mean(|(_, seconds)| *seconds).exp() * 1e6,
        edge,
        climbs: best.climbs.len(),
        range: range(best, &all),
        levels: all.iter().map(found).collect(),
    })
}

/// The levels that may be the best as well; `None` with too few climbs to say.
fn range(best: &Candidate, all: &[Candidate]) -> Option<LevelRange> {
    if best.climbs.len() < FEWEST_BLOCKS {
        return None;
    }
    let risk = RISK / all.len().saturating_sub(1).max(1) as f64;
    let left = all.iter().filter(|other| !best.beats(other, risk));
    let levels: Vec<f64> = left.map(|candidate| candidate.level).collect();
    Some(LevelRange {
        low: *levels.first()?,
        high: *levels.last()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::sample_run;
    use millrace_stats::random::Random;

    /// A step of a server that answers `rate` requests a second after `mean_us`.
    fn step(level: f64, repeat: u64, rate: f64, mean_us: f64) -> SweepStep {
        let mut run = sample_run(8.0, rate);
        if let Some(latency) = &mut run.latency_us.service {
            latency.mean = mean_us;
        }
        SweepStep {
            level,
            direction: Direction::Up,
            repeat,
            complete: true,
            objective: None,
            run,
        }
    }

    /// M/M/1 with μ = 1000/s, where X/R = ρ(1−ρ)μ² is highest at half of μ.
    fn queue(levels: &[f64], repeats: u64, mut noise: impl FnMut() -> f64) -> Vec<SweepStep> {
        let mut steps = Vec::new();
        for repeat in 1..=repeats {
            for &rate in levels {
                let mean_us = 1e6 / (1000.0 - rate) * noise();
                steps.push(step(rate, repeat, rate, mean_us));
            }
        }
        steps
    }

    fn found(steps: &[SweepStep]) -> Option<Power> {
        highest(&steps.iter().collect::<Vec<_>>())
    }

    const LADDER: [f64; 6] = [100.0, 300.0, 500.0, 600.0, 800.0, 950.0];

    #[test]
    fn a_queue_has_it_at_half_of_what_it_can_do() {
        let power = found(&queue(&LADDER, 1, || 1.0)).unwrap();
        assert_eq!((power.level, power.edge, power.climbs), (500.0, None, 1));
        assert!((power.value / 250_000.0 - 1.0).abs() < 1e-9, "{power:?}");
        assert!((power.rate - 500.0).abs() < 1e-6 && (power.mean_us - 2000.0).abs() < 1e-6);
        assert_eq!(power.range, None, "one climb has no spread");
        assert_eq!(power.levels.len(), 6);
    }

    #[test]
    fn an_edge_of_the_ladder_is_said_and_one_level_has_no_highest() {
        let edge = |levels: &[f64]| found(&queue(levels, 1, || 1.0)).unwrap().edge;
        assert_eq!(edge(&[100.0, 200.0, 300.0]), Some(Edge::Highest));
        assert_eq!(edge(&[600.0, 700.0]), Some(Edge::Lowest));
        assert_eq!(found(&queue(&[500.0], 3, || 1.0)), None);
        assert_eq!(found(&[]), None);
        // The top gave no good answer: the ladder does not end at what is best.
        let mut steps = queue(&[100.0, 200.0, 300.0], 1, || 1.0);
        steps[2].run.good_rate = 0.0;
        let power = found(&steps).unwrap();
        assert_eq!((power.level, power.edge), (200.0, None));
        steps[1].direction = Direction::Down;
        assert_eq!(found(&steps).unwrap().level, 100.0);
    }

    #[test]
    fn neighbours_that_cannot_be_told_apart_are_in_the_range() {
        let range = |deviation: f64| {
            let mut random = Random::new(3);
            let noise = || 1.0 + deviation * (random.uniform() - 0.5);
            found(&queue(&LADDER, 5, noise)).unwrap().range.unwrap()
        };
        let (low, high) = (500.0, 500.0);
        assert_eq!(range(0.001), LevelRange { low, high });
        let wide = range(0.2);
        assert!(wide.low <= 500.0 && wide.high >= 600.0, "{wide:?}");
        assert!(wide.low >= 300.0 && wide.high <= 800.0, "{wide:?}");
    }

    /// The best of a ladder whose levels hardly differ is in the range, however the winner was
    /// picked.
    #[test]
    fn the_range_holds_the_best_level() {
        let mut random = Random::new(17);
        let mut held = 0;
        for _ in 0..400 {
            let climb: Vec<f64> = (0..5).map(|_| 1.0 + 0.3 * random.uniform()).collect();
            let steps = (1..=5).flat_map(|repeat| {
                let drift = climb[repeat - 1];
                let noise: Vec<f64> = (0..8).map(|_| 1.0 + 0.02 * random.uniform()).collect();
                let at = move |(n, noise): (usize, f64)| {
                    let better = if n == 4 { 1.001 } else { 1.0 };
                    step(
                        n as f64,
                        repeat as u64,
                        1000.0 * better,
                        1000.0 * drift * noise,
                    )
                };
                noise.into_iter().enumerate().map(at).collect::<Vec<_>>()
            });
            let steps: Vec<SweepStep> = steps.collect();
            let range = found(&steps).unwrap().range.unwrap();
            held += u32::from(range.low <= 4.0 && 4.0 <= range.high);
        }
        // Two standard errors below 95 % of 400 are 371.
        assert!(held >= 371, "{held}");
    }
}
