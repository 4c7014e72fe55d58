//! Whether to believe a run: its own accounting, Little's law, and the client's own load.

mod client;

use serde::{Deserialize, Serialize};

use crate::series::{Series, Slot};
use crate::{Calibration, Latencies};
use base_clock::Nanos;
pub use client::{notes, withdraw_ceiling};

/// Judgement of a run's figures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Verdict {
    /// Every check passed.
    Valid,
    /// Something speaks against the figures; the reasons say what.
    Suspect,
    /// The figures mean nothing.
    #[default]
    Invalid,
}

impl std::fmt::Display for Verdict {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.pad(match self {
            Self::Valid => "VALID",
            Self::Suspect => "SUSPECT",
            Self::Invalid => "INVALID",
        })
    }
}

/// Counts of every measured request: `issued = answered + failed + shed + abandoned + in_flight`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Accounting {
    /// Requests issued; in an open loop those that were due.
    pub issued: u64,
    /// Requests with a complete answer.
    pub answered: u64,
    /// Answered requests whose status was expected.
    pub good: u64,
    /// Requests that will not be answered.
    pub failed: u64,
    /// Requests that were past their deadline before they could be sent, and were not sent.
    #[serde(default)]
    pub shed: u64,
    /// Requests of sessions that arrived by a schedule and ended early, because a request before
    /// these had no good answer.
    #[serde(default)]
    pub abandoned: u64,
    /// Requests still open when the run was stopped.
    pub in_flight: u64,
    /// Requests sent again, because the server closed the connection in good order after an earlier
    /// answer.
    pub resent: u64,
}

/// Little's law: rate times time, against the requests in flight by another count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Little {
    /// In a closed loop connections times depth; in an open loop the mean of samples, about two
    /// hundred a second.
    pub expected: f64,
    /// Rate times mean cycle (send lag and service time), mean of the windows.
    pub found: f64,
    /// The larger of 5 % and three standard errors.
    pub tolerance: f64,
    /// Windows of at least twenty cycles.
    pub windows: u64,
}

/// Share of requests without a good answer above which a run is suspect.
const ERRORS: f64 = 0.01;
/// Cycles that a window of Little's law has at least.
const CYCLES: f64 = 20.0;
/// Windows without which nothing can be said: the first and the last have edges.
const WINDOWS: usize = 3;

/// Figures that the verdict is made from.
pub struct Evidence<'a> {
    /// Counts of every measured request.
    pub accounting: &'a Accounting,
    /// Measured requests that had no good answer.
    pub errors: u64,
    /// Places of connections that never connected.
    pub never_established: usize,
    /// Connections requested by the plan.
    pub asked: usize,
    /// Share of one core that the busiest client thread used.
    pub busiest_thread: f64,
    /// Little's law, where it could be checked.
    pub little: Option<&'a Little>,
    /// True if the loop was open.
    pub is_open: bool,
    /// The latencies.
    pub latency_us: &'a Latencies,
    /// Why an open loop was not stationary.
    pub unsteady: Option<String>,
    /// The run was stopped before its end.
    pub cut_short: bool,
    /// Complete answers a second.
    pub achieved_rate: f64,
    /// Capacity of the client by itself, if that was measured.
    pub calibration: Option<&'a Calibration>,
    /// Share of the measured time for which a CPU quota stopped the client.
    pub throttled: Option<f64>,
    /// Share of the measured time for which a client thread waited for a core.
    pub waited: Option<f64>,
}

/// Verdict on a run, with reasons.
pub struct Judgement {
    /// Verdict on the run.
    pub verdict: Verdict,
    /// The gravest first.
    pub reasons: Vec<String>,
    /// Only the client makes it `INVALID`.
    pub client_at_fault: bool,
}

impl Judgement {
    /// Adds something that speaks against the figures.
    pub fn doubt(&mut self, reason: String) {
        self.reasons.push(reason);
        if self.verdict == Verdict::Valid {
            self.verdict = Verdict::Suspect;
        }
    }
}

/// The verdict with its reasons.
pub fn judge(evidence: &Evidence<'_>) -> Judgement {
    let mut invalid = invalidating_reasons(evidence);
    let is_worthless = !invalid.is_empty();
    let mut suspect = Vec::new();
    for (verdict, reason) in client::judge(evidence) {
        match verdict {
            Verdict::Invalid => invalid.push(reason),
            _ => suspect.push(reason),
        }
    }
    suspect.extend(doubts(evidence));
    let verdict = match (invalid.is_empty(), suspect.is_empty()) {
        (false, _) => Verdict::Invalid,
        (true, false) => Verdict::Suspect,
        (true, true) => Verdict::Valid,
    };
    invalid.append(&mut suspect);
    Judgement {
        verdict,
        reasons: invalid,
        client_at_fault: verdict == Verdict::Invalid && !is_worthless,
    }
}

/// Why the figures mean nothing.
fn invalidating_reasons(evidence: &Evidence<'_>) -> Vec<String> {
    let mut reasons = Vec::new();
    let Accounting {
        issued,
        answered,
        good,
        failed,
        shed,
        abandoned,
        in_flight,
        ..
    } = *evidence.accounting;
    if issued != answered + failed + shed + abandoned + in_flight {
        reasons.push(format!(
            "the client lost count: {issued} issued, {answered} answered, {failed} failed, {shed} shed, {abandoned} abandoned, {in_flight} in flight"
        ));
    }
    if good == 0 {
        reasons.push("no request had a good answer".to_owned());
    }
    if evidence.never_established > 0 {
        reasons.push(format!(
            "{} of {} connections were never established",
            evidence.never_established, evidence.asked
        ));
    }
    reasons
}

/// Lists the reasons against the figures, the client apart.
fn doubts(evidence: &Evidence<'_>) -> Vec<String> {
    let mut reasons = Vec::new();
    let Accounting {
        issued,
        good,
        abandoned,
        in_flight,
        ..
    } = *evidence.accounting;
    // A server without answers needs no further reason.
    reasons.extend(evidence.unsteady.clone().filter(|_| good > 0));
    if evidence.cut_short {
        reasons.push(format!(
            "the run was stopped before its end, with {in_flight} requests in flight"
        ));
    }
    let bad = evidence.errors + abandoned;
    let share = bad as f64 / issued.max(1) as f64;
    if share > ERRORS {
        reasons.push(format!(
            "{bad} of {issued} requests ({:.1} %) had no good answer",
            share * 100.0
        ));
    }
    match evidence.little {
        None => reasons.push("the run was too short to be checked: it lasted less than sixty mean cycles".to_owned()),
        Some(law) if (law.found - law.expected).abs() > law.tolerance => reasons.push(format!(
            "Little's law does not hold: {:.2} requests in flight by rate and time, {:.2} by {} (± {:.2})",
            law.found,
            law.expected,
            if evidence.is_open { "count" } else { "the plan" },
            law.tolerance
        )),
        Some(_) => {}
    }
    reasons
}

/// Checks Little's law over the first `steady` nanoseconds, while no place was empty for lack of
/// requests. `None` if that is less than three windows.
pub fn little(series: &Series, steady: Nanos, expected: f64) -> Option<Little> {
    let products: Vec<f64> = windows(series, steady)?
        .map(|(window, length)| in_flight_by_time(window, length))
        .collect();
    let (found, error) = mean(&products)?;
    Some(Little {
        expected,
        found,
        tolerance: (0.05 * expected).max(3.0 * error),
        windows: products.len() as u64,
    })
}

/// Checks Little's law over the first `steady` nanoseconds of an open loop, against the counted
/// requests in flight: the two sides come from different places, the ends of requests and the
/// clock.
pub fn little_sampled(series: &Series, steady: Nanos) -> Option<Little> {
    let pairs: Vec<(f64, f64)> = windows(series, steady)?
        .map(|(window, length)| {
            let counted: u128 = window.iter().map(|slot| slot.in_flight).sum();
            (in_flight_by_time(window, length), counted as f64 / length)
        })
        .collect();
    let differences: Vec<f64> = pairs
        .iter()
        .map(|(found, counted)| found - counted)
        .collect();
    let (difference, error) = mean(&differences)?;
    let expected = pairs.iter().map(|(_, counted)| counted).sum::<f64>() / pairs.len() as f64;
    Some(Little {
        expected,
        found: expected + difference,
        tolerance: (0.05 * expected).max(3.0 * error),
        windows: pairs.len() as u64,
    })
}

/// Windows of at least twenty mean cycles, with their length in nanoseconds.
fn windows(series: &Series, steady: Nanos) -> Option<impl Iterator<Item = (&[Slot], f64)>> {
    let whole = (steady / series.interval) as usize;
    let slots = &series.slots[..whole.min(series.slots.len())];
    let finished: u64 = slots.iter().map(|slot| slot.finished).sum();
    let cycles: u128 = slots.iter().map(|slot| slot.cycle).sum();
    if finished == 0 {
        return None;
    }
    let shortest = CYCLES * cycles as f64 / finished as f64;
    let together = (shortest / series.interval as f64).ceil().max(1.0) as usize;
    let interval = series.interval as f64;
    // The remainder of the division is a window too short; it is left out.
    Some(
        slots
            .chunks_exact(together)
            .map(move |window| (window, window.len() as f64 * interval)),
    )
}

fn in_flight_by_time(window: &[Slot], length: f64) -> f64 {
    window.iter().map(|slot| slot.cycle as f64).sum::<f64>() / length
}

/// The mean and its standard error, of enough windows.
fn mean(values: &[f64]) -> Option<(f64, f64)> {
    if values.len() < WINDOWS {
        return None;
    }
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares = values.iter().map(|value| (value - mean).powi(2));
    let variance = squares.sum::<f64>() / (count - 1.0).max(1.0);
    Some((mean, (variance / count).sqrt()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timings::Timing;
    use base_clock::MS;

    static GOOD: Accounting = Accounting {
        issued: 100,
        answered: 100,
        good: 100,
        failed: 0,
        shed: 0,
        abandoned: 0,
        in_flight: 0,
        resent: 0,
    };
    static LOST: Accounting = Accounting {
        issued: 101,
        ..GOOD
    };
    static NONE: Accounting = Accounting { good: 0, ..GOOD };
    static LAW: Little = Little {
        expected: 10.0,
        found: 9.9,
        tolerance: 0.5,
        windows: 3,
    };
    static BROKEN: Little = Little { found: 8.0, ..LAW };

    static SLOW: Calibration = Calibration {
        ceiling_per_s: 1_200.0,
        floor_us: 30.0,
        cpu_us_per_request: 9.0,
        response_bytes: 100,
        same_core: false,
        lower_bound: false,
    };
    static FAST: Calibration = Calibration {
        ceiling_per_s: 1_300.0,
        ..SLOW
    };
    static EXCEEDED: Calibration = Calibration {
        ceiling_per_s: 900.0,
        ..SLOW
    };
    static SHARED: Calibration = Calibration {
        same_core: true,
        lower_bound: true,
        ..SLOW
    };

    static CLOSED: Latencies = Latencies {
        response: None,
        service: None,
        send_lag: None,
        waiting: None,
        lateness: None,
        connect: None,
        full_handshake: None,
        resumed_handshake: None,
    };

    #[test]
    fn the_count_and_the_times_must_agree() {
        let mut all = series(0);
        (1..=60).for_each(|n| all.sample(n * MS, MS, 2));
        let law = little_sampled(&all, 60 * MS).unwrap();
        assert!((law.expected - 2.0).abs() < 1e-9 && (law.found - 2.0).abs() < 1e-9);
        let mut lost = series(0);
        (1..=60).for_each(|n| lost.sample(n * MS, MS, 3));
        let law = little_sampled(&lost, 60 * MS).unwrap();
        assert!((law.found - law.expected).abs() > law.tolerance);
    }

    fn check(change: impl FnOnce(&mut Evidence<'static>), expected: Verdict, word: &str) {
        let mut evidence = Evidence {
            accounting: &GOOD,
            errors: 0,
            never_established: 0,
            asked: 10,
            busiest_thread: 0.5,
            little: Some(&LAW),
            is_open: false,
            latency_us: &CLOSED,
            unsteady: None,
            cut_short: false,
            achieved_rate: 1_000.0,
            calibration: None,
            throttled: Some(0.0),
            waited: Some(0.01),
        };
        change(&mut evidence);
        let Judgement {
            verdict,
            reasons,
            client_at_fault,
        } = judge(&evidence);
        assert_eq!(client_at_fault, word == "quota", "{reasons:?}");
        assert_eq!(verdict, expected, "{reasons:?}");
        assert_eq!(reasons.is_empty(), verdict == Verdict::Valid);
        assert!(reasons.join("; ").contains(word), "{reasons:?}");
    }

    #[test]
    fn each_sign_has_its_verdict() {
        check(|_| (), Verdict::Valid, "");
        check(|e| e.accounting = &LOST, Verdict::Invalid, "lost count");
        check(|e| e.accounting = &NONE, Verdict::Invalid, "no request");
        check(|e| e.never_established = 3, Verdict::Invalid, "3 of 10");
        check(|e| e.errors = 2, Verdict::Suspect, "2.0 %");
        check(|e| e.errors = 1, Verdict::Valid, "");
        check(|e| e.busiest_thread = 0.95, Verdict::Suspect, "95 %");
        check(|e| e.little = None, Verdict::Suspect, "too short");
        check(|e| e.little = Some(&BROKEN), Verdict::Suspect, "Little");
        check(|e| e.throttled = Some(0.4), Verdict::Invalid, "quota");
        check(
            |e| e.calibration = Some(&SLOW),
            Verdict::Suspect,
            "only 1200/s",
        );
        check(|e| e.calibration = Some(&FAST), Verdict::Valid, "");
        check(|e| e.calibration = Some(&EXCEEDED), Verdict::Valid, "");
        check(|e| e.calibration = Some(&SHARED), Verdict::Valid, "");
        check(|e| e.cut_short = true, Verdict::Suspect, "stopped");
        check(
            |e| e.unsteady = Some("not stationary".into()),
            Verdict::Suspect,
            "not stationary",
        );
    }

    /// Two places, each busy for all but `idle` of every millisecond.
    fn series(idle: Nanos) -> Series {
        let mut series = Series::new(Some(60 * MS), false);
        for n in 0..2 * 60 {
            series.record(n / 2 * MS, MS - idle, &Timing::served(1));
        }
        series
    }

    #[test]
    fn littles_law_sees_empty_places() {
        let law = little(&series(0), 60 * MS, 2.0).unwrap();
        assert!(law.windows == 3 && (law.found - 2.0).abs() < 1e-9);
        let law = little(&series(MS / 5), 60 * MS, 2.0).unwrap();
        assert!((law.found - law.expected).abs() > law.tolerance);
        assert!(little(&series(0), 59 * MS, 2.0).is_none());
        assert!(little(&Series::new(None, false), 19 * MS, 2.0).is_none());
    }
}
