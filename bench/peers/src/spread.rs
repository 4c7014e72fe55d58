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
        assert_eq!(Spread::new(Vec::new()), None);
    }
}
