//! Several measurements of one thing.

/// Measurements in ascending order, at least one.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Spread(Vec<f64>);

impl Spread {
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

    pub(crate) fn min(&self) -> f64 {
        self.0[0]
    }

    pub(crate) fn max(&self) -> f64 {
        self.0[self.0.len() - 1]
    }
}

#[cfg(test)]
mod tests {
    use super::Spread;

    #[test]
    fn the_median_is_in_the_middle() {
        let odd = Spread::new(vec![3.0, 1.0, 2.0]).expect("some");
        assert_eq!((odd.min(), odd.median(), odd.max()), (1.0, 2.0, 3.0));
        assert_eq!(
            Spread::new(vec![4.0, 1.0, 2.0, 3.0])
                .expect("some")
                .median(),
            2.5
        );
        let hundred = Spread::new((1..=100).map(f64::from).collect()).expect("some");
        assert_eq!(
            (hundred.quantile(0.99), hundred.quantile(1.0)),
            (99.0, 100.0)
        );
        assert_eq!(Spread::new(Vec::new()), None);
    }
}
