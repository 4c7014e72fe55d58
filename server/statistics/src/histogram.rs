//! Response times, within 3 %.

/// Buckets for each doubling.
const PARTS: u64 = 32;
/// Longest time that is told from longer ones: 19 hours.
const LONGEST: u64 = 1 << 36;

/// Counts of microseconds.
#[derive(Clone, Debug, Default)]
pub(crate) struct ResponseTimes {
    counts: Vec<u64>,
    count: u64,
    sum: u64,
}

impl ResponseTimes {
    /// Adds a time, if there is one.
    pub(crate) fn extend(&mut self, micros: Option<u64>) {
        let Some(micros) = micros else { return };
        let place = place(micros.min(LONGEST));
        if self.counts.len() <= place {
            self.counts.resize(place + 1, 0);
        }
        self.counts[place] += 1;
        self.count += 1;
        self.sum = self.sum.saturating_add(micros);
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        let length = self.counts.len().max(other.counts.len());
        self.counts.resize(length, 0);
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count += more;
        }
        self.count += other.count;
        self.sum = self.sum.saturating_add(other.sum);
    }

    /// Number of times.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Their mean in microseconds.
    pub(crate) fn mean(&self) -> f64 {
        self.sum as f64 / self.count.max(1) as f64
    }

    /// Microseconds within which this share of the answers was given; `None` without any.
    pub(crate) fn quantile(&self, share: f64) -> Option<f64> {
        let rank = ((share * self.count as f64).ceil() as u64).max(1);
        let mut below = 0;
        let mut reaches = |count: &u64| {
            below += count;
            below >= rank
        };
        let place = self.counts.iter().position(&mut reaches)?;
        Some((lowest(place) + lowest(place + 1) - 1) as f64 / 2.0)
    }
}

/// Times below two times `PARTS` have a bucket each.
fn place(micros: u64) -> usize {
    let shift = u64::from(micros.max(PARTS).ilog2() - PARTS.ilog2());
    (shift * PARTS + (micros >> shift)) as usize
}

/// The lowest time of a bucket.
fn lowest(place: usize) -> u64 {
    let place = place as u64;
    let shift = (place / PARTS).saturating_sub(1);
    (place - shift * PARTS) << shift
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_time_lies_in_its_bucket() {
        for micros in (0..5000).chain((12..36).flat_map(|n| [(1 << n) - 1, 1 << n, (1 << n) + 1])) {
            let place = place(micros);
            assert!(
                lowest(place) <= micros && micros < lowest(place + 1),
                "{micros}"
            );
            assert!(
                lowest(place + 1) - lowest(place) <= 1 + micros / PARTS,
                "{micros}"
            );
        }
    }

    #[test]
    fn quantiles_are_within_three_percent() {
        let mut times = ResponseTimes::default();
        assert_eq!(times.quantile(0.5), None);
        let mut other = ResponseTimes::default();
        (0..5000).for_each(|n| times.extend(Some(n * 10)));
        (5000..10_000).for_each(|n| other.extend(Some(n * 10)));
        times.merge(&other);
        for share in [0.5, 0.9, 0.99] {
            let error = times.quantile(share).unwrap() / (share * 100_000.0);
            assert!((0.97..1.03).contains(&error), "{share}: {error}");
        }
        assert_eq!((times.count(), times.mean()), (10_000, 49_995.0));
        times.extend(Some(u64::MAX));
        assert!(times.quantile(1.0).unwrap() >= LONGEST as f64);
    }
}
