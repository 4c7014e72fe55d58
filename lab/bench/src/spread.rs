//! Several measurements of one thing.

/// Measurements in ascending order, at least one.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SampleSpread(Vec<f64>);

/// Result of holding measurements against a limit: it is decided by the bound of an interval, not
/// by the median.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Holds,
    Missed,
    NotDecided,
}

impl Outcome {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Missed => "MISSED",
            Self::NotDecided => "NOT DECIDED",
        }
    }
}

impl SampleSpread {
    /// `None` if there are none.
    pub(crate) fn new(mut values: Vec<f64>) -> Option<Self> {
        values.sort_by(f64::total_cmp);
        (!values.is_empty()).then_some(Self(values))
    }

    pub(crate) fn median(&self) -> f64 {
        let middle = self.0.len() / 2;
        if self.0.len() % 2 == 1 {
            self.0[middle]
        } else {
            f64::midpoint(self.0[middle - 1], self.0[middle])
        }
    }

    /// The smallest value that at least this share of all does not exceed.
    pub(crate) fn quantile(&self, share: f64) -> f64 {
        let rank = (self.0.len() as f64 * share).ceil() as usize;
        self.0[rank.clamp(1, self.0.len()) - 1]
    }

    /// The interval of the median, in at least 95 of 100 cases, for any distribution: between two
    /// order statistics (Conover, Practical Nonparametric Statistics, 1999, 3.2). `None` for fewer
    /// than six values.
    pub(crate) fn interval(&self) -> Option<(f64, f64)> {
        let count = self.0.len();
        // The chance that at most `below` of all lie below the median.
        let mut chance = 0.5_f64.powi(i32::try_from(count).ok()?);
        let (mut sum, mut below) = (chance, 0);
        while sum <= 0.025 && below < count {
            below += 1;
            chance *= (count - below + 1) as f64 / below as f64;
            sum += chance;
        }
        let low = below.checked_sub(1)?;
        Some((self.0[low], self.0[count - 1 - low]))
    }

    /// Decides if the median is at most `limit`.
    pub(crate) fn at_most(&self, limit: f64) -> Outcome {
        match self.interval() {
            Some((_, high)) if high <= limit => Outcome::Holds,
            Some((low, _)) if low > limit => Outcome::Missed,
            _ => Outcome::NotDecided,
        }
    }

    /// Decides if the median is at least `limit`.
    pub(crate) fn at_least(&self, limit: f64) -> Outcome {
        match self.interval() {
            Some((low, _)) if low >= limit => Outcome::Holds,
            Some((_, high)) if high < limit => Outcome::Missed,
            _ => Outcome::NotDecided,
        }
    }

    /// The median and its interval, or all that was found where there are too few values for one.
    pub(crate) fn shown(&self, decimals: usize) -> String {
        let (low, high, what) = match self.interval() {
            Some((low, high)) => (low, high, "95 %"),
            None => (self.min(), self.max(), "all"),
        };
        let median = self.median();
        format!("{median:.decimals$} ({low:.decimals$} to {high:.decimals$}, {what})")
    }

    pub(crate) fn min(&self) -> f64 {
        self.0[0]
    }

    pub(crate) fn max(&self) -> f64 {
        self.0[self.0.len() - 1]
    }
}

#[cfg(test)]
mod tests {
    use super::{Outcome, SampleSpread};

    #[test]
    fn a_limit_is_decided_by_the_interval_of_the_median() {
        let of = |count: u8| SampleSpread::new((1..=count).map(f64::from).collect()).expect("some");
        // Ranks 1 and 6, 2 and 9, 6 and 15: of tables of the sign test.
        assert_eq!(of(5).interval(), None);
        assert_eq!(of(6).interval(), Some((1.0, 6.0)));
        assert_eq!(of(10).interval(), Some((2.0, 9.0)));
        assert_eq!(of(20).interval(), Some((6.0, 15.0)));
        let ten = of(10);
        let most = [9.0, 8.9, 1.9].map(|limit| ten.at_most(limit));
        assert_eq!(most, [Outcome::Holds, Outcome::NotDecided, Outcome::Missed]);
        let least = [2.0, 2.1, 9.1].map(|limit| ten.at_least(limit));
        assert_eq!(least, most);
        assert_eq!(of(5).at_most(9.0), Outcome::NotDecided);
        assert_eq!(ten.shown(1), "5.5 (2.0 to 9.0, 95 %)");
        assert_eq!(of(2).shown(1), "1.5 (1.0 to 2.0, all)");
    }

    #[test]
    fn the_median_is_in_the_middle() {
        let odd = SampleSpread::new(vec![3.0, 1.0, 2.0]).expect("some");
        assert_eq!((odd.min(), odd.median(), odd.max()), (1.0, 2.0, 3.0));
        assert_eq!(
            SampleSpread::new(vec![4.0, 1.0, 2.0, 3.0])
                .expect("some")
                .median(),
            2.5
        );
        let hundred = SampleSpread::new((1..=100).map(f64::from).collect()).expect("some");
        assert_eq!(
            (hundred.quantile(0.99), hundred.quantile(1.0)),
            (99.0, 100.0)
        );
        assert_eq!(SampleSpread::new(Vec::new()), None);
    }
}
