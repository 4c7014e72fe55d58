//! When a certificate is renewed, and when a failure is tried again.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use aws_lc_rs::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};

use super::{AcmeTiming, retry_after};
use crate::facts::CertificateFacts;

/// Renewal information of the authority (RFC 9773 section 4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RenewalWindow {
    pub(super) start: SystemTime,
    pub(super) end: SystemTime,
}

/// The moment at which a certificate is due: a moment in the authority's window, or else two thirds
/// of the lifetime. The moment in the window is random over certificates but always the same for
/// one, so that all nodes and every restart agree on it. A window that ends before it begins is
/// invalid (RFC 9773 section 4.2), and one that ends after the certificate is not believed.
pub(super) fn due_at(facts: &CertificateFacts, window: Option<RenewalWindow>) -> SystemTime {
    let is_usable =
        |window: &RenewalWindow| window.start < window.end && window.end < facts.not_after;
    let Some(window) = window.filter(is_usable) else {
        return facts.two_thirds();
    };
    let length = window.end.duration_since(window.start).unwrap_or_default();
    window.start + length.mul_f64(fraction(&facts.serial))
}

/// A number from 0 to 1, evenly spread over serial numbers.
fn fraction(serial: &[u8]) -> f64 {
    let digest = digest(&SHA256, serial);
    let (first, _) = digest
        .as_ref()
        .split_first_chunk::<4>()
        .unwrap_or((&[0; 4], &[]));
    f64::from(u32::from_be_bytes(*first)) / f64::from(u32::MAX)
}

/// Record of failed tries, in the storage: neither a restart nor another node tries sooner.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FailureRecord {
    /// Failed tries since the last certificate.
    pub(super) failures: u32,
    /// When the last one failed, in seconds since 1970.
    failed_at: u64,
    /// When the next try may be, by this server's own back-off.
    retry_at: u64,
    /// When the next try may be, by the authority's `Retry-After`.
    asked_to_wait_until: u64,
}

impl FailureRecord {
    /// The record after one more failure. `random` is a number from 0 to 1.
    pub(super) fn after_failure(
        self,
        now: SystemTime,
        retry_after: Option<SystemTime>,
        timing: &AcmeTiming,
        random: f64,
    ) -> Self {
        let failures = self.failures.saturating_add(1);
        let doubled = timing
            .first_retry
            .saturating_mul(1 << (failures - 1).min(16));
        let delay = spread(doubled.min(timing.longest_retry), random);
        Self {
            failures,
            failed_at: seconds(now),
            retry_at: seconds(now + delay),
            asked_to_wait_until: retry_after.map_or(0, seconds),
        }
    }

    /// When the next try may be.
    pub(super) fn retry_at(self) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(self.retry_at.max(self.asked_to_wait_until))
    }

    /// True if the last failure of `other` is later.
    pub(super) fn is_before(self, other: Self) -> bool {
        self.failed_at < other.failed_at
    }

    /// The record with the authority's pause of `other` if that is longer.
    pub(super) fn with_pause_of(self, other: Self) -> Self {
        Self {
            asked_to_wait_until: self.asked_to_wait_until.max(other.asked_to_wait_until),
            ..self
        }
    }

    /// The record with no wait longer than any that begins at `now`. A record from a time when the
    /// clock was ahead would hold up all tries until then.
    pub(super) fn limited(self, now: SystemTime, timing: &AcmeTiming) -> Self {
        let longest = spread(timing.longest_retry.max(timing.first_retry), 1.0);
        Self {
            failures: self.failures,
            failed_at: self.failed_at.min(seconds(now)),
            retry_at: self.retry_at.min(seconds(now + longest)),
            asked_to_wait_until: self
                .asked_to_wait_until
                .min(seconds(now + retry_after::LONGEST)),
        }
    }

    /// The record for a person who wants a try now: only the authority's own pause counts, and a
    /// minute since the last try, as a program may restart the server again and again.
    pub(super) fn without_own_delay(self, timing: &AcmeTiming) -> Self {
        let pause = timing.first_retry.min(Duration::from_secs(60));
        Self {
            retry_at: self.retry_at.min(self.failed_at + pause.as_secs()),
            ..self
        }
    }
}

/// Between three and five quarters of a delay, so that servers that failed together do not return
/// together. `random` is a number from 0 to 1.
fn spread(delay: Duration, random: f64) -> Duration {
    delay.mul_f64(0.75 + random / 2.0)
}

fn seconds(moment: SystemTime) -> u64 {
    moment
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs()
}

/// A random number from 0 to 1.
pub(super) fn random() -> f64 {
    let mut octets = [0; 4];
    match aws_lc_rs::rand::fill(&mut octets) {
        Ok(()) => f64::from(u32::from_be_bytes(octets)) / f64::from(u32::MAX),
        Err(_) => 0.5,
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime, UNIX_EPOCH};

    use super::{FailureRecord, RenewalWindow, due_at};
    use crate::acme::AcmeTiming;
    use crate::testing::certificate;

    const HOUR: Duration = Duration::from_secs(60 * 60);

    fn now() -> SystemTime {
        UNIX_EPOCH + HOUR * 500_000
    }

    #[test]
    fn a_certificate_is_due_in_the_window_or_at_two_thirds() {
        let facts = certificate(&["example.org"]).facts().clone();
        assert_eq!(due_at(&facts, None), facts.two_thirds());
        let window = RenewalWindow {
            start: now(),
            end: now() + HOUR,
        };
        let due = due_at(&facts, Some(window));
        assert!(window.start <= due && due <= window.end);
        assert_eq!(due_at(&facts, Some(window)), due, "each time the same");
        for end in [now(), now() - HOUR] {
            let start = now();
            let reversed = RenewalWindow { start, end };
            assert_eq!(due_at(&facts, Some(reversed)), facts.two_thirds());
        }
        let too_late = RenewalWindow {
            start: now(),
            end: facts.not_after + HOUR,
        };
        assert_eq!(due_at(&facts, Some(too_late)), facts.two_thirds());
    }

    #[test]
    fn moments_in_a_window_are_spread() {
        let window = RenewalWindow {
            start: now(),
            end: now() + HOUR,
        };
        let facts = certificate(&["example.org"]).facts().clone();
        let late = (0_u8..64).filter(|serial| {
            let mut facts = facts.clone();
            facts.serial = vec![*serial];
            due_at(&facts, Some(window)) > now() + HOUR / 2
        });
        let late = late.count();
        assert!((16..48).contains(&late), "{late} of 64");
    }

    #[test]
    fn each_failure_doubles_the_wait_up_to_a_limit() {
        let timing = AcmeTiming::default();
        let mut record = FailureRecord::default();
        let mut waits = Vec::new();
        for _ in 0..40 {
            record = record.after_failure(now(), None, &timing, 0.5);
            waits.push(record.retry_at().duration_since(now()).unwrap());
        }
        let minutes: Vec<u64> = waits.iter().map(|wait| wait.as_secs() / 60).collect();
        assert_eq!(minutes[..6], [25, 50, 100, 200, 400, 720]);
        assert_eq!(minutes[39], 720);
        let wait = |random| {
            let record = FailureRecord::default().after_failure(now(), None, &timing, random);
            record.retry_at().duration_since(now()).unwrap()
        };
        assert!(wait(0.0) < HOUR / 3 && wait(1.0) > HOUR / 2);
    }

    #[test]
    fn a_failure_of_a_time_when_the_clock_was_ahead_holds_up_no_longer_than_one_of_now() {
        let timing = AcmeTiming::default();
        let later = now() + 100_000 * HOUR;
        let pause = Some(later + HOUR);
        let ahead = FailureRecord::default().after_failure(later, pause, &timing, 0.5);
        let limited = ahead.limited(now(), &timing);
        assert_eq!(limited.retry_at(), now() + 7 * 24 * HOUR);
        let later = now() + HOUR;
        assert_eq!(limited.limited(later, &timing), limited, "it ends");
        let own = FailureRecord::default().after_failure(now(), None, &timing, 1.0);
        assert_eq!(own.limited(now(), &timing), own);
    }

    #[test]
    fn the_authoritys_pause_is_kept_also_when_a_person_asks() {
        let timing = AcmeTiming::default();
        let failed = FailureRecord::default().after_failure(now(), None, &timing, 0.5);
        let asked = failed.without_own_delay(&timing).retry_at();
        assert_eq!(asked, now() + Duration::from_secs(60));
        let until = now() + 5 * HOUR;
        let failed = FailureRecord::default().after_failure(now(), Some(until), &timing, 0.5);
        assert_eq!(failed.retry_at(), until);
        assert_eq!(failed.without_own_delay(&timing).retry_at(), until);
    }
}
