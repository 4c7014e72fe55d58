//! The rules of a comparison against simulated servers: it finds a difference if and only if one
//! exists.

use super::design::carry_out;
use super::judge::{Judgement, Question, judge};
use super::length::{Detect, Length};
use super::words::Names;
use super::{Decision, Metric, Sample, Side, Trial};
use crate::Verdict;
use crate::random::Random;

/// A machine on which B costs `effect` times as much as A. All deviations are of the logarithm.
#[derive(Clone, Copy)]
struct Machine {
    effect: f64,
    /// From run to run.
    noise: f64,
    /// From block to block, the same for all runs of a block.
    block: f64,
    /// From run to run in one direction.
    drift: f64,
    /// Another program disturbs one run in this number by a few per cent; 0 for no disturbance.
    disturbed: usize,
}

const QUIET: Machine = Machine {
    effect: 1.0,
    noise: 0.01,
    block: 0.03,
    drift: 0.001,
    disturbed: 0,
};

/// A normal number (Box and Muller, 1958).
fn normal(random: &mut Random) -> f64 {
    let radius = (-2.0 * (1.0 - random.uniform()).ln()).sqrt();
    radius * (std::f64::consts::TAU * random.uniform()).cos()
}

/// A comparison of this number of blocks by the server's CPU.
const fn length(blocks: usize) -> Length {
    Length {
        blocks,
        detect: None,
        metric: Metric::Cpu,
    }
}

fn compared(machine: Machine, blocks: usize, limit: Option<f64>, seed: u64) -> Judgement {
    compared_for(machine, length(blocks), limit, seed)
}

fn compared_for(machine: Machine, length: Length, limit: Option<f64>, seed: u64) -> Judgement {
    let mut random = Random::new(seed);
    let mut block = (usize::MAX, 0.0);
    let trials = carry_out(&length, |step| {
        let here = step.number / 4;
        if block.0 != here {
            block = (here, machine.block * normal(&mut random));
        }
        let mut log = 3.0 + block.1 + machine.drift * step.number as f64;
        log += machine.noise * normal(&mut random);
        if machine.disturbed > 0 && random.below(machine.disturbed) == 0 {
            log += 0.05 * random.uniform();
        }
        if step.server() == Side::B {
            log += machine.effect.ln();
        }
        let sample = Sample {
            cpu_us: Some(log.exp()),
            throughput: Some((10.0 - log).exp()),
            ..Sample::default()
        };
        Ok::<_, ()>(Some(Trial {
            side: step.side,
            sample,
            verdict: Verdict::Valid,
            reasons: Vec::new(),
            client_at_fault: false,
        }))
    });
    let question = Question {
        metrics: &[Metric::Cpu],
        limit,
        length,
        names: Names { a: "A", b: "B" },
    };
    judge(&trials.unwrap_or_default(), &question)
}

fn count(machine: Machine, seeds: std::ops::Range<u64>, decision: Decision) -> usize {
    seeds
        .filter(|&seed| compared(machine, 10, None, seed).decision == decision)
        .count()
}

#[test]
fn of_a_thousand_comparisons_with_itself_at_most_seventy_are_flagged() {
    let same = 1000 - count(QUIET, 0..1000, Decision::NoDifference);
    // So few that the rule could not see anything would be no good sign either.
    assert!((20..=70).contains(&same), "{same}");
}

#[test]
fn a_disturbed_machine_does_not_flag_more() {
    let restless = Machine {
        disturbed: 10,
        ..QUIET
    };
    let same = 1000 - count(restless, 5000..6000, Decision::NoDifference);
    assert!(same <= 70, "{same}");
}

#[test]
fn three_per_cent_are_found() {
    let costlier = Machine {
        effect: 1.03,
        ..QUIET
    };
    let found = count(costlier, 0..100, Decision::Worse);
    assert!(found >= 95, "{found}");
    let cheaper = Machine {
        effect: 1.0 / 1.03,
        ..QUIET
    };
    assert!(count(cheaper, 0..100, Decision::Better) >= 95);
}

#[test]
fn a_drift_within_a_block_cancels() {
    let exact = Machine {
        effect: 1.02,
        noise: 0.0,
        block: 0.05,
        drift: 0.01,
        disturbed: 0,
    };
    let judgement = compared(exact, 10, None, 1);
    let ratio = judgement.effects[0].ratio.unwrap();
    assert!((ratio.ratio - 1.02).abs() < 1e-9 && ratio.high - ratio.low < 1e-9);
    assert!((judgement.effects[0].baseline.unwrap().ratio - 1.0).abs() < 1e-9);
}

#[test]
fn the_smallest_effect_is_found_four_times_out_of_five() {
    let detectable = |seed| {
        compared(QUIET, 10, None, seed).effects[0]
            .detectable
            .unwrap()
    };
    let usual = (0..200).map(detectable).sum::<f64>() / 200.0;
    let planted = Machine {
        effect: 1.0 + usual,
        ..QUIET
    };
    let found = count(planted, 1000..1500, Decision::Worse);
    assert!((360..=440).contains(&found), "{found} of 500 at {usual}");
}

/// As many blocks as detecting half a per cent takes, from 10 to `most`.
const fn until_detected(most: usize) -> Length {
    Length {
        detect: Some(Detect {
            share: 0.005,
            most_blocks: most,
        }),
        ..length(10)
    }
}

#[test]
fn a_length_by_effect_finds_the_effect_and_nothing_else() {
    let decided = |machine: Machine, seeds: std::ops::Range<u64>, decision| {
        let of = |seed| compared_for(machine, until_detected(500), None, seed);
        seeds.filter(|&seed| of(seed).decision == decision).count()
    };
    let same = 1000 - decided(QUIET, 0..1000, Decision::NoDifference);
    assert!((20..=70).contains(&same), "{same}");
    let costlier = |effect| Machine { effect, ..QUIET };
    let found = decided(costlier(1.005), 1000..1200, Decision::Worse);
    assert!(found >= 160, "{found}");
    // Half as much again, a setting for users who want to miss next to none.
    let found = decided(costlier(1.0075), 2000..2100, Decision::Worse);
    assert!(found >= 95, "{found}");
}

#[test]
fn a_noisier_machine_takes_more_blocks_and_too_noisy_a_one_decides_nothing() {
    let on = |noise, most| compared_for(Machine { noise, ..QUIET }, until_detected(most), None, 8);
    let blocks = |judgement: &Judgement| judgement.effects[0].ratio.unwrap().blocks;
    let (quiet, noisy) = (on(0.002, 1000), on(0.02, 1000));
    assert_eq!(blocks(&quiet), 10);
    assert!((80..250).contains(&blocks(&noisy)), "{}", blocks(&noisy));
    assert!(noisy.complete && noisy.verdict == Verdict::Valid);
    assert_eq!(noisy.decision, Decision::NoDifference, "{}", noisy.answer);
    let given_up = on(0.02, 50);
    assert!(given_up.complete && blocks(&given_up) == 50);
    assert_eq!(given_up.decision, Decision::Undecided);
    assert!(
        given_up
            .answer
            .starts_with("not decided: 50 blocks could see"),
        "{}",
        given_up.answer
    );
    // What is far larger than what was to be seen is seen all the same.
    let far = Machine {
        noise: 0.02,
        effect: 1.2,
        ..QUIET
    };
    let far = compared_for(far, until_detected(50), None, 7);
    assert_eq!(far.decision, Decision::Worse);
}

#[test]
fn a_limit_holds_is_exceeded_or_cannot_be_decided() {
    let costlier = Machine {
        effect: 1.05,
        ..QUIET
    };
    let judgement = compared(costlier, 10, Some(1.1), 3);
    assert_eq!(judgement.within_limit, Some(true), "{}", judgement.answer);
    assert_eq!(judgement.decision, Decision::Worse);
    let judgement = compared(costlier, 10, Some(1.04), 3);
    assert_eq!(judgement.within_limit, Some(false), "{}", judgement.answer);
    let noisy = Machine {
        noise: 0.3,
        ..QUIET
    };
    let judgement = compared(noisy, 10, Some(1.1), 3);
    assert_eq!(judgement.within_limit, None, "{}", judgement.answer);
    assert!(judgement.answer.starts_with("not decided: the A/A spread"));
    // Even if B is far from A: a machine that cannot tell A from itself cannot judge a limit, and
    // the comparison says this.
    let far = Machine {
        effect: 10.0,
        ..noisy
    };
    let judgement = compared(far, 10, Some(1.1), 3);
    assert_eq!(judgement.within_limit, None, "{}", judgement.answer);
    // A limit below 1 asks whether B is that much better.
    let cheaper = Machine {
        effect: 0.5,
        ..QUIET
    };
    let judgement = compared(cheaper, 10, Some(0.6), 3);
    assert_eq!(judgement.within_limit, Some(true), "{}", judgement.answer);
}

#[test]
fn few_blocks_are_reported() {
    let judgement = compared(QUIET, 4, None, 3);
    assert_eq!(judgement.verdict, Verdict::Suspect);
    assert!(judgement.complete && judgement.reasons[0].contains("these are 4"));
}

#[test]
fn invalid_and_stopped_comparisons_decide_nothing() {
    let ten = Length {
        metric: Metric::Throughput,
        ..length(10)
    };
    let question = Question {
        metrics: &[Metric::Throughput, Metric::P99],
        limit: Some(1.1),
        length: ten,
        names: Names { a: "A", b: "B" },
    };
    let from = |first: usize, last: usize, verdict: Verdict| {
        let trials = carry_out(&ten, |step| {
            Ok::<_, ()>((step.number <= last).then(|| Trial {
                side: step.side,
                sample: Sample {
                    throughput: Some(1000.0 + step.number as f64),
                    ..Sample::default()
                },
                verdict: if step.number >= first {
                    verdict
                } else {
                    Verdict::Valid
                },
                reasons: vec!["so".to_owned()],
                client_at_fault: false,
            }))
        });
        judge(&trials.unwrap(), &question)
    };
    let until = |last: usize, verdict: Verdict| from(last, last, verdict);
    let judgement = until(45, Verdict::Invalid);
    assert_eq!(judgement.verdict, Verdict::Invalid);
    assert_eq!(judgement.reasons, ["A/B block 2, run 2 is INVALID: so"]);
    let judgement = until(12, Verdict::Valid);
    assert_eq!(judgement.decision, Decision::Undecided);
    assert!(
        judgement.reasons[0].contains("3 of 10 A/A blocks and 0 of 10"),
        "{:?}",
        judgement.reasons
    );
    let judgement = until(60, Verdict::Suspect);
    assert_eq!(judgement.verdict, Verdict::Suspect);
    assert!(!judgement.complete);
    assert!(
        judgement
            .notes
            .iter()
            .any(|r| r.starts_with("1 of 61 runs is SUSPECT")),
        "{:?}",
        judgement.notes
    );
    let mut made = 0;
    let trials = carry_out(&ten, |step| {
        made += 1;
        let client_at_fault = made == 3;
        Ok::<_, ()>(Some(Trial {
            side: step.side,
            sample: Sample::default(),
            verdict: [Verdict::Valid, Verdict::Invalid][usize::from(client_at_fault)],
            reasons: vec!["it was late".to_owned()],
            client_at_fault,
        }))
    });
    let again = judge(&trials.unwrap(), &question);
    assert_ne!(again.verdict, Verdict::Invalid);
    assert_eq!(
        again.notes,
        [
            "one block was measured again, because the client was disturbed; it is A/A block 1: it was late"
        ]
    );
    let by_chance = from(76, 79, Verdict::Suspect);
    assert_eq!(by_chance.notes.len(), 1, "{:?}", by_chance.notes);
    assert!(!by_chance.reasons.iter().any(|r| r.contains("SUSPECT")));
    let many = from(75, 79, Verdict::Suspect);
    assert!(many.notes.is_empty() && many.reasons[0].starts_with("5 of 80 runs are SUSPECT"));
    assert!(judgement.effects[1].ratio.is_none());
}
