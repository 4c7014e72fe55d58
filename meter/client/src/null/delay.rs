//! How long a null server lets a request wait.

use std::sync::Arc;
use std::time::Duration;

use base_clock::{Nanos, nanos};
use millrace_stats::random::mix;

/// The time between reading a request and sending its response. A busy thread or a late wake-up
/// makes it longer; the log has the actual time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delay {
    /// No delay.
    None,
    /// One delay for all requests.
    Fixed(Duration),
    /// Independent exponentially distributed times.
    Exponential {
        /// Their mean.
        mean: Duration,
        /// Seed of the times: an equal seed gives equal times.
        seed: u64,
    },
    /// These times, in nanoseconds, in the order in which requests are read over all threads. After
    /// the last, they begin again.
    Listed(Arc<[u64]>),
}

impl Delay {
    /// True if there is no delay at all.
    pub fn is_none(&self) -> bool {
        *self == Self::None
    }

    /// The delay of the `n`th request.
    pub fn of(&self, n: u64) -> Nanos {
        match self {
            Self::None => 0,
            Self::Fixed(delay) => nanos(*delay),
            Self::Exponential { mean, seed } => {
                // The inverse of the distribution, from 53 random bits: never of 0.
                let uniform = ((mix(*seed, n) >> 11) as f64 + 0.5) / (1_u64 << 53) as f64;
                (-uniform.ln() * nanos(*mean) as f64) as Nanos
            }
            Self::Listed(list) => list[(n % list.len() as u64) as usize],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_request_has_its_delay() {
        assert_eq!(Delay::None.of(7), 0);
        assert_eq!(Delay::Fixed(Duration::from_millis(2)).of(7), 2_000_000);
        let listed = Delay::Listed(Arc::from([5, 6, 7]));
        assert_eq!([0, 1, 2, 3].map(|n| listed.of(n)), [5, 6, 7, 5]);
    }

    #[test]
    fn exponential_delays_have_the_mean_the_median_and_the_seed() {
        let mean = Duration::from_millis(2);
        let delay = |seed| Delay::Exponential { mean, seed };
        let mut all: Vec<Nanos> = (0..100_000).map(|n| delay(3).of(n)).collect();
        assert_eq!(all[77], delay(3).of(77));
        assert_ne!(all[77], delay(4).of(77));
        let average = all.iter().sum::<Nanos>() as f64 / all.len() as f64;
        // The standard error is 0.3 %.
        assert!((average / 2e6 - 1.0).abs() < 0.015, "{average}");
        all.sort_unstable();
        let median = all[all.len() / 2] as f64 / (2e6 * 2_f64.ln());
        assert!((median - 1.0).abs() < 0.02, "{median}");
    }
}
