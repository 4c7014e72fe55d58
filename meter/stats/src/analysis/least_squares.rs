//! The curve of the Universal Scalability Law through measured points, by nonlinear least squares.
//!
//! The algorithm is Levenberg's and Marquardt's (D. Marquardt, "An Algorithm for Least-Squares
//! Estimation of Nonlinear Parameters", SIAM J. 11:2, 1963), its damping scaled by the diagonal of
//! the normal equations. Contention and crosstalk are shares from 0 to 1; above 1 only their ratio
//! to λ would matter. If the free fit leaves that range, each combination of bounds is tried, and
//! the best fit within the bounds is taken.

/// The parameters of X(N) = λN / (1 + σ(N−1) + κN(N−1)).
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Parameters {
    /// Contention.
    pub sigma: f64,
    /// Crosstalk.
    pub(crate) kappa: f64,
    /// Throughput at a load of 1.
    pub(crate) lambda: f64,
}

/// Steps after which a fit is given up; it takes about ten.
const STEPS: usize = 200;

impl Parameters {
    /// Throughput at a load of `n`.
    pub(crate) fn throughput(&self, n: f64) -> f64 {
        self.lambda * n / self.denominator(n)
    }

    fn denominator(&self, n: f64) -> f64 {
        1.0 + self.sigma * (n - 1.0) + self.kappa * n * (n - 1.0)
    }

    /// The slopes of the throughput at `n` by σ, κ and λ.
    fn slopes(&self, n: f64) -> [f64; 3] {
        let denominator = self.denominator(n);
        let throughput = self.lambda * n / denominator;
        let by_sigma = -throughput * (n - 1.0) / denominator;
        [by_sigma, by_sigma * n, n / denominator]
    }

    fn squares(&self, points: &[(f64, f64)]) -> f64 {
        let miss = |&(n, x): &(f64, f64)| (x - self.throughput(n)).powi(2);
        points.iter().map(miss).sum()
    }

    /// True if the curve is defined and positive at every point: a trial step may leave that range.
    fn is_sound(&self, points: &[(f64, f64)]) -> bool {
        self.lambda > 0.0 && points.iter().all(|&(n, _)| self.denominator(n) > 0.0)
    }

    fn moved(&self, step: [f64; 3]) -> Self {
        Self {
            sigma: self.sigma + step[0],
            kappa: self.kappa + step[1],
            lambda: self.lambda + step[2],
        }
    }
}

/// The curve through `points` of load and throughput, both above 0, with σ and κ from 0 to 1.
/// `None` if there is no such curve, for example with fewer than three loads. A `start` that is
/// near saves steps.
pub(crate) fn fit(points: &[(f64, f64)], start: Option<&Parameters>) -> Option<Parameters> {
    let is_share = |value: f64| (0.0..=1.0).contains(&value);
    let keeps = |found: &Parameters| is_share(found.sigma) && is_share(found.kappa);
    let start = start.copied().unwrap_or(Parameters {
        sigma: 0.1,
        kappa: 0.001,
        lambda: points.iter().map(|(n, x)| x / n).fold(0.0, f64::max),
    });
    if let Some(free) = descend(points, start, [None, None]).filter(keeps) {
        return Some(free);
    }
    let held = [None, Some(0.0), Some(1.0)];
    let pairs = held
        .into_iter()
        .flat_map(|sigma| held.map(|kappa| [sigma, kappa]));
    pairs
        .skip(1)
        .filter_map(|held| descend(points, start, held).filter(keeps))
        .min_by(|a, b| a.squares(points).total_cmp(&b.squares(points)))
}

/// A fit in which σ and κ are free, or held at a value.
fn descend(points: &[(f64, f64)], start: Parameters, held: [Option<f64>; 2]) -> Option<Parameters> {
    let mut at = Parameters {
        sigma: held[0].unwrap_or(start.sigma),
        kappa: held[1].unwrap_or(start.kappa),
        ..start
    };
    let free = [held[0].is_none(), held[1].is_none(), true];
    let mut squares = at.squares(points);
    let mut damping = 1e-3;
    for _ in 0..STEPS {
        let (normal, gradient) = equations(&at, points, free);
        let next = solve(normal, gradient, damping).map(|step| (step, at.moved(step)));
        let Some((step, next)) = next.filter(|(_, next)| next.is_sound(points)) else {
            damping *= 10.0;
            continue;
        };
        let after = next.squares(points);
        if after > squares || !after.is_finite() {
            // No lower value within the precision of the numbers.
            if damping > 1e12 {
                return Some(at);
            }
            damping *= 10.0;
            continue;
        }
        let sizes = [1e-6, 1e-9, at.lambda];
        let is_still = (0..3).all(|k| {
            let size = [at.sigma, at.kappa, 0.0][k].abs() + sizes[k];
            step[k].abs() <= 1e-10 * size
        });
        (at, squares) = (next, after);
        if is_still {
            return Some(at);
        }
        damping = f64::max(damping / 10.0, 1e-15);
    }
    None
}

/// The normal equations JᵀJ and Jᵀr; the row of a held parameter changes nothing.
fn equations(at: &Parameters, points: &[(f64, f64)], free: [bool; 3]) -> ([[f64; 3]; 3], [f64; 3]) {
    let (mut normal, mut gradient) = ([[0.0; 3]; 3], [0.0; 3]);
    for &(n, x) in points {
        let (slopes, miss) = (at.slopes(n), x - at.throughput(n));
        for row in (0..3).filter(|&row| free[row]) {
            gradient[row] += slopes[row] * miss;
            for column in (0..3).filter(|&column| free[column]) {
                normal[row][column] += slopes[row] * slopes[column];
            }
        }
    }
    for held in (0..3).filter(|&k| !free[k]) {
        normal[held][held] = 1.0;
    }
    (normal, gradient)
}

/// The step of the damped equations, by Cramer's rule after scaling each parameter by its diagonal.
fn solve(normal: [[f64; 3]; 3], gradient: [f64; 3], damping: f64) -> Option<[f64; 3]> {
    let scale: [f64; 3] = std::array::from_fn(|k| normal[k][k].sqrt());
    if scale
        .iter()
        .any(|scale| !(*scale > 0.0 && scale.is_finite()))
    {
        return None;
    }
    let matrix: [[f64; 3]; 3] = std::array::from_fn(|row| {
        std::array::from_fn(|column| {
            let damped = if row == column { 1.0 + damping } else { 1.0 };
            normal[row][column] / (scale[row] * scale[column]) * damped
        })
    });
    let right: [f64; 3] = std::array::from_fn(|k| gradient[k] / scale[k]);
    let whole = determinant(&matrix);
    // The scaled matrix has ones on its diagonal: a smaller determinant is rounding.
    if whole.abs() < 1e-30 {
        return None;
    }
    Some(std::array::from_fn(|k| {
        let mut replaced = matrix;
        for row in 0..3 {
            replaced[row][k] = right[row];
        }
        determinant(&replaced) / whole / scale[k]
    }))
}

fn determinant(m: &[[f64; 3]; 3]) -> f64 {
    m[0][0] * (m[1][1] * m[2][2] - m[1][2] * m[2][1])
        - m[0][1] * (m[1][0] * m[2][2] - m[1][2] * m[2][0])
        + m[0][2] * (m[1][0] * m[2][1] - m[1][1] * m[2][0])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(sigma: f64, kappa: f64, lambda: f64) {
        let truth = Parameters {
            sigma,
            kappa,
            lambda,
        };
        let points: Vec<(f64, f64)> = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0]
            .map(|n| (n, truth.throughput(n)))
            .to_vec();
        let found = fit(&points, None).unwrap();
        assert!((found.sigma - sigma).abs() < 1e-6, "{found:?} {truth:?}");
        assert!((found.kappa - kappa).abs() < 1e-8, "{found:?} {truth:?}");
        assert!((found.lambda / lambda - 1.0).abs() < 1e-6, "{found:?}");
    }

    #[test]
    fn exact_points_give_their_parameters_back() {
        for sigma in [0.0, 0.001, 0.03, 0.3, 0.9, 1.0] {
            for kappa in [0.0, 1e-6, 1e-4, 0.01] {
                for lambda in [0.01, 1.0, 1e6] {
                    check(sigma, kappa, lambda);
                }
            }
        }
    }

    #[test]
    fn a_missing_lowest_load_keeps_the_fit_bounded() {
        // These points give only λ/σ, and nothing about one connection.
        let points: Vec<(f64, f64)> = (4..=12)
            .map(|n| (f64::from(n), 100.0 - f64::from(n)))
            .collect();
        let found = fit(&points, None).unwrap();
        assert!(found.sigma <= 1.0 && found.kappa <= 1.0, "{found:?}");
        assert!((found.throughput(8.0) - 92.0).abs() < 2.0, "{found:?}");
    }

    #[test]
    fn negative_parameters_are_held_at_zero() {
        // Rises faster than in proportion: no contention explains it.
        let points: Vec<(f64, f64)> = (1..=8)
            .map(|n| (f64::from(n), f64::from(n).powf(1.1)))
            .collect();
        let found = fit(&points, None).unwrap();
        assert!(found.sigma == 0.0 && found.kappa == 0.0, "{found:?}");
        // A plateau that is reached at once: crosstalk would have to be negative.
        let points: Vec<(f64, f64)> = (1..=8).map(|n| (f64::from(n), 100.0)).collect();
        let found = fit(&points, None).unwrap();
        assert!(found.kappa < 1e-9 && (found.sigma - 1.0).abs() < 1e-6);
    }
}
