//! Whether to believe a run: its own accounting, Little's law, and the client's own load.

use crate::clock::Nanos;
use crate::run::{Accounting, Little, Verdict};
use crate::series::Series;

/// Share of a core from which a client thread is taken to limit what it measures.
const BUSY: f64 = 0.9;
/// Share of requests without a good answer from which a run is suspect.
const ERRORS: f64 = 0.01;
/// Cycles that a window of Little's law has at least.
const CYCLES: f64 = 20.0;
/// Windows without which nothing can be said: the first and the last have edges.
const WINDOWS: usize = 3;

/// What the verdict is made from.
pub(crate) struct Evidence<'a> {
    pub(crate) accounting: &'a Accounting,
    pub(crate) errors: u64,
    /// Places for a connection that tried and never had one.
    pub(crate) never_established: usize,
    pub(crate) asked: usize,
    pub(crate) busiest_thread: f64,
    pub(crate) little: Option<&'a Little>,
    /// Somebody stopped the run before its end.
    pub(crate) cut_short: bool,
}

/// The verdict with its reasons, the gravest first.
pub(crate) fn judge(evidence: &Evidence<'_>) -> (Verdict, Vec<String>) {
    let mut invalid = Vec::new();
    let Accounting {
        issued,
        answered,
        good,
        failed,
        in_flight,
        ..
    } = *evidence.accounting;
    if issued != answered + failed + in_flight {
        invalid.push(format!(
            "the client lost count: {issued} issued, {answered} answered, {failed} failed, {in_flight} in flight"
        ));
    }
    if good == 0 {
        invalid.push("no request had a good answer".to_owned());
    }
    if evidence.never_established > 0 {
        invalid.push(format!(
            "{} of {} connections were never established",
            evidence.never_established, evidence.asked
        ));
    }
    let mut suspect = Vec::new();
    if evidence.cut_short {
        suspect.push(format!(
            "the run was stopped before its end, with {in_flight} requests in flight"
        ));
    }
    let share = evidence.errors as f64 / issued.max(1) as f64;
    if share > ERRORS {
        suspect.push(format!(
            "{} of {issued} requests ({:.1} %) had no good answer",
            evidence.errors,
            share * 100.0
        ));
    }
    if evidence.busiest_thread >= BUSY {
        suspect.push(format!(
            "a client thread used {:.0} % of a core: the client may be what was measured",
            evidence.busiest_thread * 100.0
        ));
    }
    match evidence.little {
        None => suspect.push("the run was too short to be checked: it lasted less than sixty mean cycles".to_owned()),
        Some(law) if (law.found - law.expected).abs() > law.tolerance => suspect.push(format!(
            "Little's law does not hold: {:.2} requests in flight by rate and time, {:.0} by the plan (± {:.2})",
            law.found, law.expected, law.tolerance
        )),
        Some(_) => {}
    }
    let verdict = match (invalid.is_empty(), suspect.is_empty()) {
        (false, _) => Verdict::Invalid,
        (true, false) => Verdict::Suspect,
        (true, true) => Verdict::Valid,
    };
    invalid.append(&mut suspect);
    (verdict, invalid)
}

/// Checks Little's law over the first `steady` nanoseconds, while no place was empty for want of requests. `None` if
/// that is less than three windows.
pub(crate) fn little(series: &Series, steady: Nanos, expected: f64) -> Option<Little> {
    let whole = (steady / series.interval) as usize;
    let slots = &series.slots[..whole.min(series.slots.len())];
    let finished: u64 = slots.iter().map(|slot| slot.finished).sum();
    let cycles: u128 = slots.iter().map(|slot| slot.cycle).sum();
    if finished == 0 {
        return None;
    }
    let shortest = CYCLES * cycles as f64 / finished as f64;
    let together = (shortest / series.interval as f64).ceil().max(1.0) as usize;
    // The remainder of the division is a window too short; it is left out.
    let products: Vec<f64> = slots
        .chunks_exact(together)
        .map(|window| {
            let length = window.len() as f64 * series.interval as f64;
            window.iter().map(|slot| slot.cycle as f64).sum::<f64>() / length
        })
        .collect();
    if products.len() < WINDOWS {
        return None;
    }
    let count = products.len() as f64;
    let found = products.iter().sum::<f64>() / count;
    let variance = products
        .iter()
        .map(|product| (product - found).powi(2))
        .sum::<f64>()
        / (count - 1.0).max(1.0);
    let tolerance = (0.05 * expected).max(3.0 * (variance / count).sqrt());
    Some(Little {
        expected,
        found,
        tolerance,
        windows: products.len() as u64,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::MS;

    static GOOD: Accounting = Accounting {
        issued: 100,
        answered: 100,
        good: 100,
        failed: 0,
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

    fn check(change: impl FnOnce(&mut Evidence<'static>), expected: Verdict, word: &str) {
        let mut evidence = Evidence {
            accounting: &GOOD,
            errors: 0,
            never_established: 0,
            asked: 10,
            busiest_thread: 0.5,
            little: Some(&LAW),
            cut_short: false,
        };
        change(&mut evidence);
        let (verdict, reasons) = judge(&evidence);
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
        check(|e| e.cut_short = true, Verdict::Suspect, "stopped");
    }

    /// Two places, each busy for all but `idle` of every millisecond.
    fn series(idle: Nanos) -> Series {
        let mut series = Series::new(Some(60 * MS));
        for n in 0..2 * 60 {
            series.record(n / 2 * MS, MS - idle, Some(1));
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
        assert!(little(&Series::new(None), 19 * MS, 2.0).is_none());
    }
}
