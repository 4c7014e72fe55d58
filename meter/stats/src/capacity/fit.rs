//! The share of bad requests against the rate, near the rate at which the share equals the
//! objective's.
//!
//! Near the crossing the logarithm of the odds of a bad request is close to a line: for a server
//! with one queue (M/M/1) the log of the share is exactly a line, with the slope T by rate. The
//! line is fitted by maximum likelihood of a binomial regression with logit link (McCullagh and
//! Nelder, "Generalized Linear Models", 1989, chapter 4), by Newton's steps. Few bad requests count
//! by their likelihood, so a trial without any bad request needs no correction.
//!
//! The interval does not come from the likelihood: bad requests come in clusters, so their number
//! varies many times more than a binomial one, most of all near saturation. Each trial is one
//! replicate, and the interval is that of the jackknife over trials (Miller, "The jackknife: a
//! review", Biometrika 61:1, 1974) with Student's quantile.

use crate::analysis::student;

/// The least slope of the log odds for one multiple of the rate. The share of bad requests does not
/// fall with the rate. A fit that falls has too few data and is held here, as isotonic regression
/// would do.
pub(crate) const FLATTEST: f64 = 0.5;
/// The greatest slope: the odds change twentyfold in a thousandth of the rate. A steeper fit is a
/// step and is held here.
pub(crate) const STEEPEST: f64 = 3000.0;
/// The factor by which the interval is wider than the jackknife's. Earlier trials chose the rates
/// of later ones, which the jackknife cannot see: without this factor 914 instead of 950 of 1,000
/// intervals held the truth on a simulated M/M/1 server.
const WIDER: f64 = 1.2;
/// Newton's steps after which a fit gets no better.
const STEPS: usize = 60;

/// Point that one trial gives to the fit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Requests a second.
    pub rate: f64,
    /// Requests that were due.
    pub scheduled: f64,
    /// Requests without a good answer in time.
    pub bad: f64,
}

/// log(p / (1 − p)) = `level` + `slope` · (rate / `center` − 1), for the share p of bad requests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LogitLine {
    pub(crate) center: f64,
    /// The log odds of a bad request at the centre.
    pub level: f64,
    pub(crate) slope: f64,
}

/// The rate at which a share is crossed, with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Crossing {
    /// The fitted line.
    pub line: LogitLine,
    /// The rate at which the line crosses the objective.
    pub rate: f64,
    /// Lower bound of the 95 % interval of the rate.
    pub low: f64,
    /// Upper bound of the 95 % interval of the rate.
    pub high: f64,
}

impl Crossing {
    /// Half the interval, as a share of the rate.
    pub fn precision(&self) -> f64 {
        (self.high - self.low) / 2.0 / self.rate
    }
}

/// The log odds of a share.
pub(crate) fn logit(share: f64) -> f64 {
    (share / (1.0 - share)).ln()
}

impl LogitLine {
    /// The share of bad requests at `rate`.
    pub fn bad(&self, rate: f64) -> f64 {
        1.0 / (1.0 + (-self.log_odds(rate)).exp())
    }

    fn log_odds(&self, rate: f64) -> f64 {
        self.level + self.slope * (rate / self.center - 1.0)
    }

    /// The rate at which the share of bad requests is `bad`.
    pub fn crossing(&self, bad: f64) -> f64 {
        self.center * (1.0 + (logit(bad) - self.level) / self.slope)
    }
}

/// The line through `points` by maximum likelihood. `None` if all requests were good, or all bad.
pub fn line(points: &[Point], center: f64, start: Option<&LogitLine>) -> Option<LogitLine> {
    let total: f64 = points.iter().map(|point| point.scheduled).sum();
    let bad: f64 = points.iter().map(|point| point.bad).sum();
    if !(bad > 0.0 && bad < total) {
        return None;
    }
    let start = start.map_or(
        LogitLine {
            center,
            level: logit(bad / total),
            slope: 10.0,
        },
        |line| LogitLine {
            center,
            level: line.log_odds(center),
            slope: line.slope * center / line.center,
        },
    );
    let mut at = start;
    let mut height = likelihood(points, &at);
    for _ in 0..STEPS {
        let (level, slope) = step(points, &at);
        let next = (0..30).find_map(|halving| {
            let share = 0.5_f64.powi(halving);
            let next = LogitLine {
                center,
                level: at.level + share * level,
                slope: (at.slope + share * slope).clamp(FLATTEST, STEEPEST),
            };
            let after = likelihood(points, &next);
            (after >= height).then_some((next, after))
        });
        // No step goes up: this is the maximum within the precision of the numbers.
        let Some((next, after)) = next else { break };
        let moved = (next.level - at.level).abs() + (next.slope - at.slope).abs() / at.slope;
        (at, height) = (next, after);
        if moved < 1e-9 {
            break;
        }
    }
    Some(at)
}

fn likelihood(points: &[Point], line: &LogitLine) -> f64 {
    let each = points.iter().map(|point| {
        let odds = line.log_odds(point.rate);
        // log(1 + e^odds) without overflow.
        point.bad * odds - point.scheduled * (odds.max(0.0) + (-odds.abs()).exp().ln_1p())
    });
    each.sum()
}

/// Newton's step of level and slope; of the level alone if the slope is at its bound and would
/// leave it.
fn step(points: &[Point], line: &LogitLine) -> (f64, f64) {
    let (mut by_level, mut by_slope) = (0.0, 0.0);
    let (mut ll, mut ls, mut ss) = (1e-12, 0.0, 1e-12);
    for point in points {
        let x = point.rate / line.center - 1.0;
        let p = line.bad(point.rate);
        let miss = point.bad - point.scheduled * p;
        let weight = point.scheduled * p * (1.0 - p);
        by_level += miss;
        by_slope += miss * x;
        ll += weight;
        ls += weight * x;
        ss += weight * x * x;
    }
    let determinant = ll * ss - ls * ls;
    let slope = (ll * by_slope - ls * by_level) / determinant;
    let leaves = (line.slope <= FLATTEST && slope < 0.0) || (line.slope >= STEEPEST && slope > 0.0);
    if leaves || determinant <= 1e-12 * ll * ss {
        return (by_level / ll, 0.0);
    }
    ((ss * by_level - ls * by_slope) / determinant, slope)
}

/// The rate at which the share `bad` is crossed, with the jackknife's interval. `None` with fewer
/// than four points, or if there is no fit.
pub fn crossing(points: &[Point], bad: f64, center: f64) -> Option<Crossing> {
    let count = points.len();
    if count < 4 {
        return None;
    }
    if let Some(step) = step_between(points, bad) {
        return Some(step);
    }
    let line = line(points, center, None)?;
    let rate = line.crossing(bad);
    let without = |left_out: usize| {
        let mut others = points.to_vec();
        others.swap_remove(left_out);
        self::line(&others, center, Some(&line)).map(|line| line.crossing(bad))
    };
    // If all bad requests were in one trial, their variance is unknown.
    let replicates: Vec<f64> = (0..count).map(without).collect::<Option<_>>()?;
    let (low, high) = interval(rate, &replicates);
    (low.is_finite() && high.is_finite()).then_some(Crossing {
        line,
        rate,
        low,
        high,
    })
}

/// The crossing of a server that breaks down at once: every trial up to some rate met the
/// objective, and every trial above it had mostly bad requests. A line of any steepness fits; only
/// the gap that holds the crossing is known.
fn step_between(points: &[Point], bad: f64) -> Option<Crossing> {
    let share = |point: &Point| point.bad / point.scheduled.max(1.0);
    let (met, broken): (Vec<&Point>, Vec<&Point>) =
        points.iter().partition(|point| share(point) <= bad);
    let low = met.iter().map(|point| point.rate).reduce(f64::max)?;
    let high = broken.iter().map(|point| point.rate).reduce(f64::min)?;
    let is_step = low < high && broken.iter().all(|point| share(point) > f64::max(0.5, bad));
    let rate = (low + high) / 2.0;
    is_step.then_some(Crossing {
        line: LogitLine {
            center: rate,
            level: logit(bad),
            slope: STEEPEST,
        },
        rate,
        low,
        high,
    })
}

/// The 95 % interval of `value` from its values without each trial, corrected for skewness by
/// Hall's transformation ("On the removal of skewness by transformation", J. R. Stat. Soc. B 54:1,
/// 1992). A rare long cluster of bad requests moves the rate down further than a trial without any
/// moves it up. If no trial has such a cluster, the spread is underestimated too. The degrees of
/// freedom are those of a variance of values with such tails (Var s² / s⁴ = (κ − 1) / n for the
/// kurtosis κ, after Satterthwaite), and the centre is free of the first order of the bias
/// (Quenouille).
fn interval(value: f64, without: &[f64]) -> (f64, f64) {
    let count = without.len() as f64;
    let mean = without.iter().sum::<f64>() / count;
    let influence = |other: &f64| (count - 1.0) * (mean - other);
    let moment = |power: i32| {
        let sum: f64 = without
            .iter()
            .map(|other| influence(other).powi(power))
            .sum();
        sum / count
    };
    let variance = moment(2);
    if variance <= 0.0 {
        return (value, value);
    }
    let error = WIDER * (variance / (count - 1.0)).sqrt();
    let skew = moment(3) / variance.powf(1.5) / count.sqrt();
    let tails = moment(4) / variance.powi(2);
    let freedom = (2.0 * count / (tails - 1.0)).clamp(2.0, count - 2.0);
    let t = student::quantile(0.975, freedom as usize);
    let back = |t: f64| {
        if skew.abs() < 1e-6 {
            t
        } else {
            ((1.0 + skew * (t - skew / 6.0)).cbrt() - 1.0) * 3.0 / skew
        }
    };
    let center = value - (count - 1.0) * (mean - value);
    (center - error * back(t), center - error * back(-t))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(line: &LogitLine, rates: impl IntoIterator<Item = f64>) -> Vec<Point> {
        let point = |rate| Point {
            rate,
            scheduled: 1e4,
            bad: 1e4 * line.bad(rate),
        };
        rates.into_iter().map(point).collect()
    }

    #[test]
    fn exact_shares_give_their_line_back() {
        for (level, slope) in [(-4.6, 45.0), (-2.0, 5.0), (0.0, 100.0), (-7.0, 15.0)] {
            let truth = LogitLine {
                center: 900.0,
                level,
                slope,
            };
            let points = points(
                &truth,
                (-4..=4).map(|n| 900.0 * (1.0 + 0.01 * f64::from(n))),
            );
            let found = line(&points, 900.0, None).unwrap();
            assert!((found.level - level).abs() < 1e-6, "{found:?}");
            assert!((found.slope / slope - 1.0).abs() < 1e-5, "{found:?}");
            let crossing = crossing(&points, 0.01, 900.0).unwrap();
            assert!((crossing.rate / truth.crossing(0.01) - 1.0).abs() < 1e-6);
            assert!(crossing.precision() < 1e-4, "{crossing:?}");
        }
    }

    #[test]
    fn a_step_is_as_wide_as_the_gap_that_it_lies_in() {
        let point = |rate, bad| Point {
            rate,
            scheduled: 1000.0,
            bad,
        };
        let points = [
            point(90.0, 0.0),
            point(95.0, 0.0),
            point(105.0, 1000.0),
            point(110.0, 1000.0),
        ];
        let found = crossing(&points, 0.01, 100.0).unwrap();
        assert_eq!((found.low, found.high), (95.0, 105.0), "{found:?}");
    }

    #[test]
    fn all_good_or_all_bad_has_no_line() {
        let point = |bad| Point {
            rate: 1.0,
            scheduled: 10.0,
            bad,
        };
        assert!(line(&[point(0.0); 5], 1.0, None).is_none());
        assert!(line(&[point(10.0); 5], 1.0, None).is_none());
        assert!(crossing(&[point(5.0); 3], 0.01, 1.0).is_none());
        // One rate gives no slope, and causes no panic.
        assert!(crossing(&[point(5.0); 5], 0.01, 1.0).is_some());
    }

    #[test]
    fn shares_that_fall_with_the_rate_are_held_flat() {
        let points: Vec<Point> = (0..6)
            .map(|n| Point {
                rate: 100.0 + f64::from(n),
                scheduled: 1000.0,
                bad: 20.0 - f64::from(n),
            })
            .collect();
        assert_eq!(line(&points, 100.0, None).unwrap().slope, FLATTEST);
    }
}
