//! Finds the first of many patterns that matches a path.

use std::collections::HashMap;

use super::pattern::PathPattern;

type Map<T> = HashMap<String, T, foldhash::fast::RandomState>;

/// Patterns by what their paths begin with. An exact path is found by one look-up; of the others
/// only those are tried that begin as the path does, or with a placeholder.
#[derive(Debug, Default)]
pub(super) struct Index {
    exact: Map<usize>,
    by_first_part: Map<Vec<NumberedPattern>>,
    others: Vec<NumberedPattern>,
}

#[derive(Debug)]
struct NumberedPattern {
    number: usize,
    pattern: PathPattern,
}

impl Index {
    /// Patterns numbered in their order. Of equal exact paths the first counts.
    pub(super) fn new<'p>(patterns: impl IntoIterator<Item = &'p PathPattern>) -> Self {
        let mut index = Self::default();
        for (number, pattern) in patterns.into_iter().enumerate() {
            if let Some(path) = pattern.exact() {
                index.exact.entry(path.to_owned()).or_insert(number);
                continue;
            }
            let list = match pattern.first_part() {
                Some(part) => index.by_first_part.entry(part.to_owned()).or_default(),
                None => &mut index.others,
            };
            list.push(NumberedPattern {
                number,
                pattern: pattern.clone(),
            });
        }
        index
    }

    /// The number of the pattern for a path in its normal form: the exact one, else the first that
    /// matches. Allocates nothing.
    pub(super) fn find(&self, path: &str) -> Option<usize> {
        if let Some(&number) = self.exact.get(path) {
            return Some(number);
        }
        let first = |list: &[NumberedPattern]| {
            let found = list.iter().find(|numbered| numbered.pattern.matches(path));
            found.map(|numbered| numbered.number)
        };
        let part = path.get(1..).and_then(|path| path.split_once('/'));
        let listed = part.and_then(|(part, _)| first(self.by_first_part.get(part)?));
        match (listed, first(&self.others)) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exact_one_and_then_the_first() {
        let patterns = [
            "/:x/new",
            "/old/*",
            "/old/a",
            "/*.php",
            "/old/*.php",
            "/old/a",
        ];
        let patterns = patterns.map(|text| PathPattern::parse(text).unwrap());
        let index = Index::new(&patterns);
        for (path, number) in [
            ("/old/a", Some(2)),
            ("/old/b", Some(1)),
            ("/old/new", Some(0)),
            ("/old/x.php", Some(1)),
            ("/x.php", Some(3)),
            ("/other/x.php", Some(3)),
            ("/old", None),
            ("/", None),
        ] {
            assert_eq!(index.find(path), number, "{path}");
        }
    }
}
