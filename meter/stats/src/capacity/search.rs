//! The search itself. It knows only the counts of trials, so a simulation and a real server use the
//! same code.

use super::fit::{self, Crossing, Point};
use super::outcome::{CapacityTrial, SearchEnd, Stage};
use crate::{Objective, Verdict};

/// Trials at a rate before the objective counts as missed there: a single trial may be disturbed.
const ATTEMPTS: usize = 2;
/// Trials at the lowest and at the highest rate, where the result is the answer.
const ATTEMPTS_AT_END: usize = 3;
/// Ratio of the bracket's ends below which bisection gives way to the fit.
const NARROW: f64 = 1.15;
/// Rates of a round's trials around the centre, as a change of the log odds. The order keeps a
/// drift of the machine from looking like an effect of the rate.
const PLACES: [f64; 4] = [0.4, -1.2, 1.2, -0.4];
/// Rounds without which the spread of the trials is not known well enough for an interval.
const FEWEST_ROUNDS: usize = 6;
/// Rounds after which the interval stays as wide as it is.
const MOST_ROUNDS: usize = 12;
/// Slope of the log odds from which a round does not become narrower: ±1.2 % of the rate. The
/// search resolves a sudden breakdown no further, and keeps trials on both sides of the step in the
/// fit.
const STEEP: f64 = 100.0;
/// How far a round may lie from the one before, as a share of its rate.
const STRIDE: f64 = 0.15;
/// Change of the log odds from the centre within which earlier trials take part in the fit: further
/// away the line need not hold.
const WINDOW: f64 = 4.0;
/// Fresh trials of a confirmation between two looks at it.
const LOOK: usize = 3;
/// Number of looks.
const LOOKS: usize = 3;

/// Subject of a search.
#[derive(Clone, Copy, Debug)]
pub struct Question {
    /// Objective that must be met.
    pub objective: Objective,
    /// The rate of the first trial, in requests a second.
    pub from: f64,
    /// The highest rate that is tried.
    pub to: f64,
    /// Half of the 95 % interval at which the search ends, as a share of the rate.
    pub precision: f64,
}

impl Question {
    /// The fewest and the most trials of a search that finds its rate.
    pub fn trials(&self) -> [usize; 2] {
        let doublings = (self.to / self.from).log2().ceil().clamp(1.0, 1e4) as usize;
        let halvings = (2_f64.ln() / NARROW.ln()).log2().ceil() as usize;
        let fewest = 1 + ATTEMPTS + halvings + FEWEST_ROUNDS * PLACES.len() + 2 * LOOK;
        // At the top the ones that make luck unlikely; while the rate rises, each may need more.
        let bracket = ATTEMPTS_AT_END + doublings * ATTEMPTS + ATTEMPTS_AT_END - 1;
        let narrowing = halvings * ATTEMPTS;
        let most = bracket + narrowing + MOST_ROUNDS * PLACES.len() + 2 * LOOK * LOOKS;
        [fewest, most]
    }
}

/// A trial that is to be made.
#[derive(Clone, Copy, Debug)]
pub struct Ask {
    /// Purpose of the trial.
    pub stage: Stage,
    /// Requests a second to offer.
    pub rate: f64,
    /// Trials before it.
    pub number: usize,
    /// Trials that the search is expected to take in all.
    pub expected: usize,
}

/// The result of a search.
#[derive(Debug)]
pub struct Searched {
    /// How the search ended.
    pub found: SearchEnd,
    /// The crossing of the last fit.
    pub crossing: Option<Crossing>,
    /// True if fresh trials met the objective at the lower bound.
    pub met_at_low: Option<bool>,
    /// True if fresh trials failed the objective above the upper bound.
    pub failed_above_high: Option<bool>,
    /// All trials in their order.
    pub trials: Vec<CapacityTrial>,
}

/// Side of the crossing on which a rate is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Bound {
    /// The objective is met.
    Met,
    /// It is not met.
    Missed,
    /// The client cannot offer the rate.
    ClientLimit,
}

/// Why a search stops.
enum Halt<E> {
    Ended(SearchEnd),
    Error(E),
}

type SearchStep<T, E> = Result<T, Halt<E>>;

struct Search<'a, T> {
    question: &'a Question,
    trial: T,
    so_far: Searched,
}

/// Searches with trials made by `trial`; `None` from `trial` stops the search. After an error of a
/// later trial the caller remembers the error, and the search returns what it has found.
pub fn search<T, E>(question: &Question, trial: T) -> Result<Searched, E>
where
    T: FnMut(&Ask) -> Result<Option<CapacityTrial>, E>,
{
    let mut search = Search {
        question,
        trial,
        so_far: Searched {
            found: SearchEnd::Undecided,
            crossing: None,
            met_at_low: None,
            failed_above_high: None,
            trials: Vec::new(),
        },
    };
    match search.run() {
        Ok(()) => {}
        Err(Halt::Ended(found)) => search.so_far.found = found,
        Err(Halt::Error(error)) => return Err(error),
    }
    Ok(search.so_far)
}

impl<T, E> Search<'_, T>
where
    T: FnMut(&Ask) -> Result<Option<CapacityTrial>, E>,
{
    fn run(&mut self) -> SearchStep<(), E> {
        let bracket = self.bracket()?;
        let (low, high) = self.bisect(bracket)?;
        self.refine((low * high).sqrt())?;
        if let Some(crossing) = self.so_far.crossing {
            self.confirm(&crossing)?;
            self.so_far.found = SearchEnd::Rate;
        }
        Ok(())
    }

    /// One trial, unless it ends the search.
    fn measure(&mut self, stage: Stage, rate: f64) -> SearchStep<CapacityTrial, E> {
        let done = self.so_far.trials.len();
        let ask = Ask {
            stage,
            rate,
            number: done,
            expected: done + self.left(stage),
        };
        let trial = (self.trial)(&ask).map_err(Halt::Error)?;
        let Some(trial) = trial else {
            return Err(Halt::Ended(SearchEnd::Stopped));
        };
        let is_first_sign = !self.so_far.trials.iter().any(|other| other.good > 0);
        self.so_far.trials.push(trial.clone());
        if trial.client_limit {
            return Err(Halt::Ended(SearchEnd::ClientLimit));
        }
        // If a lower rate had good answers, the server cannot bear a rate without any.
        if trial.verdict == Verdict::Invalid && (is_first_sign || trial.good > 0) {
            return Err(Halt::Ended(SearchEnd::Invalid));
        }
        Ok(trial)
    }

    /// Trials that are still expected, the one that begins included.
    fn left(&self, stage: Stage) -> usize {
        let of = |stage| {
            let trials = self.so_far.trials.iter();
            trials.filter(|trial| trial.stage == stage).count()
        };
        let rounds = FEWEST_ROUNDS * PLACES.len();
        let refine = rounds.saturating_sub(of(Stage::Refine)).max(1);
        let confirm = |stage| LOOK.saturating_sub(of(stage)).max(1);
        match stage {
            Stage::Bracket => 4 + 3 + rounds + 2 * LOOK,
            Stage::Bisect => 2 + rounds + 2 * LOOK,
            Stage::Refine => refine + 2 * LOOK,
            Stage::ConfirmLow => confirm(stage) + LOOK,
            Stage::ConfirmHigh => confirm(stage),
        }
    }

    /// True if up to `attempts` trials at a rate together meet the objective.
    fn holds(&mut self, stage: Stage, rate: f64, attempts: usize) -> SearchStep<bool, E> {
        let mut all = self.measure(stage, rate)?;
        for _ in 1..attempts {
            if all.meets(&self.question.objective) {
                break;
            }
            let next = self.measure(stage, rate)?;
            all = combined(&all, &next);
        }
        Ok(all.meets(&self.question.objective))
    }

    /// Classifies `rate` for the search. A client that was late once may have been disturbed.
    fn bound(&mut self, stage: Stage, rate: f64, attempts: usize) -> SearchStep<Bound, E> {
        for attempt in 0..ATTEMPTS {
            match self.holds(stage, rate, attempts.saturating_sub(attempt).max(1)) {
                Ok(true) => return Ok(Bound::Met),
                Ok(false) => return Ok(Bound::Missed),
                Err(Halt::Ended(SearchEnd::ClientLimit)) => {}
                Err(halt) => return Err(halt),
            }
        }
        Ok(Bound::ClientLimit)
    }

    /// A rate that meets the objective, and one at most twice as high that does not, or that the
    /// client cannot offer.
    fn bracket(&mut self) -> SearchStep<(f64, f64, Bound), E> {
        let Question { from, to, .. } = *self.question;
        if !self.holds(Stage::Bracket, from, ATTEMPTS_AT_END)? {
            return Err(Halt::Ended(SearchEnd::BelowFrom));
        }
        let mut low = from;
        while low < to {
            let high = (2.0 * low).min(to);
            match self.bound(Stage::Bracket, high, ATTEMPTS)? {
                Bound::Met => low = high,
                bound => return Ok((low, high, bound)),
            }
        }
        // Met once so far; it is the answer only if it is not luck.
        for _ in 1..ATTEMPTS_AT_END {
            self.measure(Stage::Bracket, to)?;
        }
        let at_top = self.so_far.trials.iter().filter(|trial| trial.rate == to);
        let all = at_top.cloned().reduce(|all, next| combined(&all, &next));
        if all.is_some_and(|all| all.meets(&self.question.objective)) {
            return Err(Halt::Ended(SearchEnd::AboveTo));
        }
        Ok((f64::max(from, to / 2.0), to, Bound::Missed))
    }

    /// Narrows the bracket. `above` is what its upper end is. Where the client is the limit there
    /// to the end, the objective may still be met above it.
    fn bisect(
        &mut self,
        (mut low, mut high, mut above): (f64, f64, Bound),
    ) -> SearchStep<(f64, f64), E> {
        while high / low > NARROW {
            let middle = (low * high).sqrt();
            match self.bound(Stage::Bisect, middle, 1)? {
                Bound::Met => low = middle,
                bound => (high, above) = (middle, bound),
            }
        }
        match above {
            Bound::ClientLimit => Err(Halt::Ended(SearchEnd::ClientLimit)),
            Bound::Met | Bound::Missed => Ok((low, high)),
        }
    }

    /// Rounds of trials around the crossing, until the interval is narrow enough.
    fn refine(&mut self, center: f64) -> SearchStep<(), E> {
        let bad = 1.0 - self.question.objective.share;
        let mut center = center;
        let mut slope = self.first_slope(center);
        for round in 1..=MOST_ROUNDS {
            for place in PLACES {
                let rate = center * (1.0 + (place / slope).clamp(-0.12, 0.12));
                let rate = rate.clamp(self.question.from.min(center), self.question.to);
                self.measure(Stage::Refine, rate)?;
            }
            let points = self.points(center, slope);
            let crossing = fit::crossing(&points, bad, center);
            self.so_far.crossing = crossing.filter(|crossing| is_inside(crossing, &points));
            let next = match crossing {
                Some(crossing) => {
                    slope = crossing.line.slope.clamp(5.0, STEEP);
                    crossing.rate
                }
                None => center * (1.0 + toward(&points, bad) * 2.0 / slope),
            };
            center = next.clamp(center * (1.0 - STRIDE), center * (1.0 + STRIDE));
            center = center.min(self.question.to);
            let is_narrow = self
                .so_far
                .crossing
                .is_some_and(|crossing| crossing.precision() <= self.question.precision);
            if round >= FEWEST_ROUNDS && is_narrow {
                break;
            }
        }
        Ok(())
    }

    /// The slope of the log odds by what the coarse trials near `center` say.
    fn first_slope(&self, center: f64) -> f64 {
        let trials = self.so_far.trials.iter();
        let near = trials.filter(|trial| (0.6..1.6).contains(&(trial.rate / center)));
        let points: Vec<Point> = near.map(point).collect();
        let line = fit::line(&points, center, None);
        line.map_or(30.0, |line| line.slope.clamp(10.0, 100.0))
    }

    /// The trials that take part in the fit, chosen by their rate and never by what they gave.
    fn points(&self, center: f64, slope: f64) -> Vec<Point> {
        let is_near = |trial: &&CapacityTrial| {
            trial.stage == Stage::Refine && (trial.rate / center - 1.0).abs() * slope <= WINDOW
        };
        self.so_far
            .trials
            .iter()
            .filter(is_near)
            .map(point)
            .collect()
    }

    fn confirm(&mut self, crossing: &Crossing) -> SearchStep<(), E> {
        let met = self.agrees(Stage::ConfirmLow, crossing.low, true)?;
        self.so_far.met_at_low = Some(met);
        let above = crossing.high + (crossing.high - crossing.rate);
        let failed = self.agrees(Stage::ConfirmHigh, above, false)?;
        self.so_far.failed_above_high = Some(failed);
        Ok(())
    }

    /// True if fresh trials together say that the objective is met, or not, as `expected`. Bad
    /// requests come in clusters, so more trials are added if few do not agree.
    fn agrees(&mut self, stage: Stage, rate: f64, expected: bool) -> SearchStep<bool, E> {
        let mut all: Option<CapacityTrial> = None;
        for _ in 0..LOOKS {
            for _ in 0..LOOK {
                let next = self.measure(stage, rate)?;
                all = Some(all.map_or_else(|| next.clone(), |all| combined(&all, &next)));
            }
            let met = all
                .as_ref()
                .is_some_and(|all| all.meets(&self.question.objective));
            if met == expected {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Two trials at the same rate as one. A backlog of one trial is in the counts; it fails the whole
/// only if both trials have it.
fn combined(one: &CapacityTrial, other: &CapacityTrial) -> CapacityTrial {
    CapacityTrial {
        scheduled: one.scheduled + other.scheduled,
        good: one.good + other.good,
        backlog: one.backlog && other.backlog,
        ..other.clone()
    }
}

fn point(trial: &CapacityTrial) -> Point {
    Point {
        rate: trial.rate,
        scheduled: trial.scheduled as f64,
        bad: trial.scheduled.saturating_sub(trial.good) as f64,
    }
}

/// A crossing outside of the rates that were tried would be extrapolated.
fn is_inside(crossing: &Crossing, points: &[Point]) -> bool {
    let is_below = |point: &Point| point.rate <= crossing.rate;
    crossing.low > 0.0
        && points.iter().any(is_below)
        && points.iter().any(|point| point.rate >= crossing.rate)
}

/// 1 if the crossing must be higher than where `points` were, −1 if lower.
fn toward(points: &[Point], bad: f64) -> f64 {
    let all: f64 = points.iter().map(|point| point.scheduled).sum();
    let seen: f64 = points.iter().map(|point| point.bad).sum();
    if seen <= bad * all { 1.0 } else { -1.0 }
}
