//! What speaks against the client: its lateness, its quota, its ceiling.

use super::{Evidence, Verdict};
use crate::{Calibration, Latencies, Latency};

/// Share of a core from which a client thread is taken to limit what it measures.
const BUSY: f64 = 0.9;
/// Share of the client's ceiling above which the client is taken to be the limit.
const NEAR: f64 = 0.8;
/// Multiple of the client's floor below which a service time is mostly that of client and kernel.
const MOSTLY: f64 = 2.0;
/// Shares of the measured time for which a quota held the client: suspect, and invalid.
const THROTTLED: (f64, f64) = (0.01, 0.05);
/// Share of the measured time for which a thread waited for a core, from which it is worth a note.
const WAITED: f64 = 0.05;
/// How the reason about the ceiling begins.
const CEILING: &str = "the client itself can do only";

/// Lists the reasons against the client, each with its gravity.
pub(crate) fn judge(evidence: &Evidence<'_>) -> Vec<(Verdict, String)> {
    let mut found = Vec::new();
    found.extend(lateness(evidence.latency_us));
    found.extend(evidence.throttled.and_then(throttling));
    if evidence.busiest_thread >= BUSY {
        found.push((
            Verdict::Suspect,
            format!(
                "a client thread used {:.0} % of a core: the client may be what was measured",
                evidence.busiest_thread * 100.0
            ),
        ));
    }
    if let Some(known) = evidence.calibration.filter(|known| !known.lower_bound)
        && is_near(known, evidence.achieved_rate)
        && !known.is_surpassed(evidence.achieved_rate)
    {
        found.push((
            Verdict::Suspect,
            format!(
                "{CEILING} {:.0}/s here, and this is {:.0} % of it: it may be the limit",
                known.ceiling_per_s,
                evidence.achieved_rate / known.ceiling_per_s * 100.0
            ),
        ));
    }
    found
}

/// Withdraws the doubt about the client's ceiling from the verdict on a run: another run with the
/// same calibration surpassed that ceiling.
pub fn withdraw_ceiling(verdict: &mut Verdict, reasons: &mut Vec<String>) {
    reasons.retain(|reason| !reason.starts_with(CEILING));
    if *verdict == Verdict::Suspect && reasons.is_empty() {
        *verdict = Verdict::Valid;
    }
}

/// Lists remarks for a reader although nothing is wrong.
pub fn notes(evidence: &Evidence<'_>) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(known) = evidence.calibration {
        if known.lower_bound && is_near(known, evidence.achieved_rate) {
            let why = if known.same_core {
                "shared its cores with the null server"
            } else {
                "waited for the null server"
            };
            notes.push(format!(
                "the client was seen to do {:.0}/s, where it {why}: whether it limits this run is unknown",
                known.ceiling_per_s
            ));
        }
        if !known.lower_bound && known.is_surpassed(evidence.achieved_rate) {
            notes.push(format!(
                "the client reached {:.0} % of the {:.0}/s of its calibration: the calibration was too low to show a ceiling",
                evidence.achieved_rate / known.ceiling_per_s * 100.0,
                known.ceiling_per_s
            ));
        }
        let service = evidence.latency_us.service.and_then(|service| service.p50);
        if let Some(service) = service.filter(|&service| service < MOSTLY * known.floor_us) {
            notes.push(format!(
                "of the median service time of {service:.0} µs, {:.0} µs are the client's and the kernel's: a server that does \
                 nothing takes as long",
                known.floor_us.min(service)
            ));
        }
    }
    if let Some(share) = evidence.waited.filter(|&share| share >= WAITED) {
        notes.push(format!(
            "a client thread was ready and had no core for {:.0} % of the time: others use its cores",
            share * 100.0
        ));
    }
    notes
}

fn is_near(known: &Calibration, rate: f64) -> bool {
    rate > NEAR * known.ceiling_per_s
}

/// The share of a figure, and the time, from which the client's own lateness counts.
struct Bound {
    name: &'static str,
    of: fn(&Latency) -> Option<f64>,
    suspect_us: f64,
    invalid_us: f64,
}

/// Below a tenth of a millisecond lies the cost of a timer. One request in a hundred may also wait
/// some milliseconds for another program on the core: that alone does not make the other figures
/// worthless.
const BOUNDS: [Bound; 4] = [
    Bound {
        name: "mean",
        of: |latency| Some(latency.mean),
        suspect_us: 100.0,
        invalid_us: 1_000.0,
    },
    Bound {
        name: "median",
        of: |latency| latency.p50,
        suspect_us: 100.0,
        invalid_us: 1_000.0,
    },
    Bound {
        name: "90th percentile",
        of: |latency| latency.p90,
        suspect_us: 200.0,
        invalid_us: 1_000.0,
    },
    Bound {
        name: "99th percentile",
        of: |latency| latency.p99,
        suspect_us: 500.0,
        invalid_us: 5_000.0,
    },
];

/// The client's own lateness is part of each response time: how much of each figure may be
/// lateness. The worst finding, and the first of equal ones.
fn lateness(latency_us: &Latencies) -> Option<(Verdict, String)> {
    let (response, late) = (latency_us.response?, latency_us.lateness?);
    let judged = BOUNDS.iter().filter_map(|bound| {
        let (late, response) = ((bound.of)(&late)?, (bound.of)(&response)?);
        let share = late / response;
        let verdict = if late >= bound.invalid_us && share > 0.5 {
            Verdict::Invalid
        } else if late >= bound.suspect_us && share > 0.1 {
            Verdict::Suspect
        } else {
            return None;
        };
        let reason = format!(
            "the client itself was late: the {} of its lateness is {:.1} ms, {:.0} % of that of the response time",
            bound.name,
            late / 1000.0,
            share * 100.0
        );
        Some((verdict, reason))
    });
    judged.reduce(|gravest, next| {
        if gravest.0 != Verdict::Invalid && next.0 == Verdict::Invalid {
            next
        } else {
            gravest
        }
    })
}

/// A quota stops the client in the middle of what it does.
fn throttling(share: f64) -> Option<(Verdict, String)> {
    let (suspect, invalid) = THROTTLED;
    let verdict = if share > invalid {
        Verdict::Invalid
    } else if share > suspect {
        Verdict::Suspect
    } else {
        return None;
    };
    Some((
        verdict,
        format!(
            "the CPU quota of the client's cgroup stopped it for {:.0} % of the time",
            share * 100.0
        ),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn late(response: [f64; 4], late: [f64; 4]) -> Option<(Verdict, String)> {
        let latency = |[mean, p50, p90, p99]: [f64; 4]| {
            Some(Latency {
                mean,
                p50: Some(p50),
                p90: Some(p90),
                p99: Some(p99),
                ..Latency::default()
            })
        };
        lateness(&Latencies {
            response: latency(response),
            lateness: latency(late),
            ..Latencies::default()
        })
    }

    #[test]
    fn a_late_client_speaks_against_itself() {
        let all = |response: f64, of: f64| late([response; 4], [of; 4]).map(|(verdict, _)| verdict);
        assert_eq!(all(200.0, 50.0), None, "what a timer takes");
        assert_eq!(all(5_000.0, 400.0), None);
        assert_eq!(all(5_000.0, 600.0), Some(Verdict::Suspect));
        assert_eq!(all(5_000.0, 3_000.0), Some(Verdict::Invalid));
    }

    #[test]
    fn a_spoiled_percentile_spoils_the_run_though_the_mean_is_good() {
        let response = [1_000.0, 900.0, 2_000.0, 20_000.0];
        let (verdict, reason) = late(response, [90.0, 50.0, 60.0, 3_000.0]).unwrap();
        assert_eq!(verdict, Verdict::Suspect);
        assert!(reason.contains("99th"), "{reason}");
        let (verdict, reason) = late(response, [600.0, 50.0, 60.0, 15_000.0]).unwrap();
        assert_eq!(verdict, Verdict::Invalid);
        assert!(
            reason.contains("99th") && reason.contains("15.0 ms"),
            "{reason}"
        );
        let (verdict, reason) = late(response, [600.0, 50.0, 1_500.0, 3_000.0]).unwrap();
        assert!(
            verdict == Verdict::Invalid && reason.contains("90th"),
            "{reason}"
        );
    }

    #[test]
    fn a_surpassed_ceiling_leaves_only_the_other_doubts() {
        let ceiling = format!("{CEILING} 100/s here");
        let withdrawn = |mut verdict: Verdict, reasons: &[&str]| {
            let mut reasons: Vec<String> = reasons.iter().map(ToString::to_string).collect();
            withdraw_ceiling(&mut verdict, &mut reasons);
            (verdict, reasons.len())
        };
        assert_eq!(
            withdrawn(Verdict::Suspect, &[&ceiling]),
            (Verdict::Valid, 0)
        );
        let with_other = withdrawn(Verdict::Suspect, &["late", &ceiling]);
        assert_eq!(with_other, (Verdict::Suspect, 1));
        let worthless = withdrawn(Verdict::Invalid, &["no answers", &ceiling]);
        assert_eq!(worthless, (Verdict::Invalid, 1));
    }

    #[test]
    fn a_quota_is_named() {
        assert_eq!(throttling(0.005), None);
        assert_eq!(throttling(0.02).unwrap().0, Verdict::Suspect);
        let (verdict, reason) = throttling(0.5).unwrap();
        assert!(
            verdict == Verdict::Invalid && reason.contains("50 %"),
            "{reason}"
        );
    }
}
