//! The fit against published figures, and what it refuses.

use super::*;
use crate::random::Random;

fn observations(points: &[(f64, f64)]) -> Vec<Observation> {
    let one = |&(load, throughput): &(f64, f64)| Observation {
        load,
        throughput,
        error_share: 0.0,
    };
    points.iter().map(one).collect()
}

fn near(value: f64, expected: f64, relative: f64) {
    assert!(
        (value / expected - 1.0).abs() < relative,
        "{value} {expected}"
    );
}

/// The measurements of the `usl` crate's tests (a Cisco router, from B. Schwartz, "Practical
/// Scalability Analysis with the Universal Scalability Law", 2015) at loads of 1 to 32.
const ROUTER: [f64; 32] = [
    955.16, 1878.91, 2688.01, 3548.68, 4315.54, 5130.43, 5931.37, 6531.08, 7219.8, 7867.61,
    8278.71, 8646.7, 9047.84, 9426.55, 9645.37, 9897.24, 10097.6, 10240.5, 10532.39, 10798.52,
    11151.43, 11518.63, 11806.0, 12089.37, 12075.41, 12177.29, 12211.41, 12158.93, 12155.27,
    12118.04, 12140.4, 12074.39,
];

/// SPEC SDM91, as in the R package `usl`.
const SDM91: [(f64, f64); 7] = [
    (1.0, 64.9),
    (18.0, 995.9),
    (36.0, 1652.4),
    (72.0, 1853.2),
    (108.0, 1828.9),
    (144.0, 1775.0),
    (216.0, 1702.2),
];

fn router() -> Vec<Observation> {
    let points: Vec<(f64, f64)> = (1..=32).map(f64::from).zip(ROUTER).collect();
    observations(&points)
}

#[test]
fn the_reference_vector_comes_back() {
    let usl = Usl::fit(&router(), 1).unwrap();
    near(usl.sigma.value, 0.02671591, 1e-5);
    near(usl.kappa.value, 7.690945e-4, 1e-5);
    near(usl.lambda.value, 995.6486, 1e-5);
    near(usl.throughput(20.0).unwrap(), 11063.633101824058, 1e-6);
    near(usl.throughput(35.0).unwrap(), 12341.74571391328, 1e-6);
    assert_eq!(usl.resampled, Resampled::Residuals);
    let peak = usl.peak_load.unwrap();
    assert!(peak.value.floor() == 35.0 && peak.low < peak.value && peak.value < peak.high);
    near(usl.peak_throughput.unwrap(), 12341.7454, 1e-3);
    for estimate in [usl.sigma, usl.kappa, usl.lambda] {
        assert!(estimate.low < estimate.value && estimate.value < estimate.high);
        assert!(estimate.low > 0.0, "{estimate:?}");
    }
    assert!(usl.peak_note.is_empty());
    assert_eq!(Usl::fit(&router(), 1).unwrap(), usl);
}

#[test]
fn the_table_of_sdm91_comes_back() {
    let usl = Usl::fit(&observations(&SDM91), 1).unwrap();
    near(usl.sigma.value, 0.0277, 0.01);
    near(usl.kappa.value, 1.044e-4, 0.01);
    near(usl.lambda.value, 90.0, 0.01);
    near(
        ((1.0 - usl.sigma.value) / usl.kappa.value).sqrt(),
        96.5,
        0.01,
    );
    // The curve misses the first point by 28 %. With one measurement a level, any level may be that
    // wrong.
    assert!(usl.peak_note.contains("not reached"), "{}", usl.peak_note);
}

/// Three measurements a level about a known curve, with a noise of 1 %.
fn noisy(truth: Parameters, seed: u64) -> Vec<Observation> {
    let mut random = Random::new(seed);
    let mut points = Vec::new();
    for load in [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0] {
        for _ in 0..3 {
            // A sum of twelve is normal enough, with a deviation of 1.
            let normal = (0..12).map(|_| random.uniform()).sum::<f64>() - 6.0;
            points.push((load, truth.throughput(load) * (1.0 + 0.01 * normal)));
        }
    }
    observations(&points)
}

#[test]
fn intervals_hold_the_truth_as_often_as_they_say() {
    let truth = Parameters {
        sigma: 0.05,
        kappa: 5e-4,
        lambda: 1000.0,
    };
    let mut held = 0;
    for seed in 0..10 {
        let usl = Usl::fit(&noisy(truth, seed), seed).unwrap();
        assert_eq!(usl.resampled, Resampled::Replicates);
        for (estimate, value) in [
            (usl.sigma, truth.sigma),
            (usl.kappa, truth.kappa),
            (usl.lambda, truth.lambda),
        ] {
            held += usize::from(estimate.low <= value && value <= estimate.high);
        }
    }
    // 28.5 of 30 on average.
    assert!(held >= 26, "{held}");
}

#[test]
fn without_crosstalk_there_is_no_peak() {
    let truth = Parameters {
        sigma: 0.2,
        kappa: 0.0,
        lambda: 1000.0,
    };
    let usl = Usl::fit(&noisy(truth, 3), 3).unwrap();
    assert_eq!((usl.peak_load, usl.peak_throughput), (None, None));
    assert!(usl.peak_note.contains("not reached"), "{}", usl.peak_note);
}

fn refused(observations: &[Observation], word: &str) {
    let refusal = Usl::fit(observations, 1).unwrap_err();
    assert!(refusal.to_string().contains(word), "{refusal}");
}

#[test]
fn what_cannot_be_fitted_is_refused_with_the_reason() {
    refused(&[], "0 levels");
    refused(&router()[..5], "5 levels");
    let twice = [&router()[..5], &router()[..5]].concat();
    refused(&twice, "5 levels");
    refused(&router()[..8], "before saturation");
    let straight: Vec<(f64, f64)> = (1..=8).map(|n| (f64::from(n), f64::from(n))).collect();
    refused(&observations(&straight), "before saturation");
    let mut failing = router();
    failing[20].error_share = 0.02;
    refused(&failing, "2.0 % of the requests at 21");
    let mut slow_start = router();
    slow_start[0].throughput = 700.0;
    refused(&slow_start, "throughput at 2 is 1.34 times");
    let mut nothing = router();
    nothing[5].throughput = 0.0;
    refused(&nothing, "no curve");
}

#[test]
fn the_law_is_not_asked_far_beyond_what_was_measured() {
    let usl = Usl::fit(&router(), 1).unwrap();
    assert!(usl.throughput(64.0).is_ok());
    let refusal = usl.throughput(65.0).unwrap_err();
    assert!(refusal.to_string().contains("up to 64"), "{refusal}");
}
