//! Reads metrics in the text format of Prometheus, and what was added between two readings.

use std::collections::{BTreeMap, HashMap};

/// Labels of a sample as they are written.
type Labels = BTreeMap<String, String>;

/// Samples by their names.
#[derive(Debug, Default)]
pub(super) struct MetricValues(HashMap<String, Vec<(Labels, f64)>>);

impl MetricValues {
    /// Reads the samples of a text; what is no sample is passed over.
    pub(super) fn read(text: &str) -> Self {
        let mut values = Self::default();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            if let Some((name, labels, value)) = sample(line) {
                let of_name = values.0.entry(name.to_owned()).or_default();
                of_name.push((labels, value));
            }
        }
        values
    }

    /// Returns the samples of a name.
    pub(super) fn of(&self, name: &str) -> &[(Labels, f64)] {
        self.0.get(name).map_or(&[], Vec::as_slice)
    }

    /// Returns the sum of the samples of a name for whose labels `is_wanted` is true.
    pub(super) fn sum(&self, name: &str, is_wanted: impl Fn(&Labels) -> bool) -> f64 {
        let wanted = self.of(name).iter().filter(|(labels, _)| is_wanted(labels));
        wanted.map(|(_, value)| value).sum()
    }

    /// Returns the value of a sample without labels.
    pub(super) fn value(&self, name: &str) -> Option<f64> {
        self.of(name).first().map(|(_, value)| *value)
    }

    /// Returns the upper edges of a histogram, in seconds, with the samples up to each, for labels
    /// for which `is_wanted` is true.
    pub(super) fn buckets(
        &self,
        name: &str,
        is_wanted: impl Fn(&Labels) -> bool,
    ) -> Vec<(f64, f64)> {
        let mut buckets: Vec<(f64, f64)> = Vec::new();
        let wanted = self.of(name).iter().filter(|(labels, _)| is_wanted(labels));
        for (labels, value) in wanted {
            let Some(edge) = labels.get("le").and_then(|edge| edge.parse().ok()) else {
                continue;
            };
            match buckets.iter_mut().find(|(known, _)| *known == edge) {
                Some((_, sum)) => *sum += value,
                None => buckets.push((edge, *value)),
            }
        }
        buckets.sort_by(|one, other| one.0.total_cmp(&other.0));
        buckets
    }
}

/// Reads `name{label="value",…} number`.
fn sample(line: &str) -> Option<(&str, Labels, f64)> {
    let (name, mut rest) = line.split_at(line.find([' ', '{'])?);
    let mut labels = Labels::new();
    if let Some(inside) = rest.strip_prefix('{') {
        rest = inside;
        while !rest.starts_with('}') {
            let (label, value) = rest.split_once("=\"")?;
            let mut text = String::new();
            let mut letters = value.char_indices();
            let end = loop {
                match letters.next()? {
                    (end, '"') => break end,
                    (_, '\\') => text.push(match letters.next()?.1 {
                        'n' => '\n',
                        letter => letter,
                    }),
                    (_, letter) => text.push(letter),
                }
            };
            labels.insert(label.trim_start_matches(',').to_owned(), text);
            rest = &value[end + 1..];
        }
        rest = &rest[1..];
    }
    let value = rest.split_ascii_whitespace().next()?.parse().ok()?;
    Some((name, labels, value))
}

/// Returns the upper edge of the bucket in which the quantile of what was added lies.
pub(super) fn quantile(before: &[(f64, f64)], now: &[(f64, f64)], share: f64) -> Option<f64> {
    let was = |edge: f64| {
        let known = before.iter().find(|(known, _)| *known == edge);
        known.map_or(0.0, |(_, count)| *count)
    };
    let added: Vec<(f64, f64)> = now
        .iter()
        .map(|(edge, count)| (*edge, count - was(*edge)))
        .collect();
    let all = added
        .last()
        .map(|(_, count)| *count)
        .filter(|all| *all > 0.0)?;
    let found = added.iter().find(|(_, count)| *count >= all * share);
    found.map(|(edge, _)| *edge)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_read_with_their_labels() {
        let values = MetricValues::read(
            "# HELP a b\na 3\nb_total{route=\"/x\\\"{},\\\\\",result=\"hit\"} 2.5 17\nb_total{result=\"miss\"} 1\nbroken{\n{} 1\n",
        );
        assert_eq!(values.value("a"), Some(3.0));
        assert_eq!(values.sum("b_total", |_| true), 3.5);
        let labels = &values.of("b_total")[0].0;
        assert_eq!(labels["route"], "/x\"{},\\");
        assert_eq!(
            values.sum("b_total", |labels| labels["result"] == "miss"),
            1.0
        );
        assert!(values.of("broken").is_empty());
    }

    #[test]
    fn quantiles_are_those_of_what_was_added() {
        let text = |counts: [u32; 3]| {
            let edges = ["0.001", "0.1", "+Inf"];
            let lines = edges.iter().zip(counts);
            let lines = lines.map(|(edge, count)| format!("d_bucket{{le=\"{edge}\"}} {count}\n"));
            MetricValues::read(&lines.collect::<String>()).buckets("d_bucket", |_| true)
        };
        let (before, now) = (text([100, 100, 100]), text([190, 199, 200]));
        assert_eq!(quantile(&before, &now, 0.5), Some(0.001));
        assert_eq!(quantile(&before, &now, 0.99), Some(0.1));
        assert_eq!(quantile(&before, &now, 1.0), Some(f64::INFINITY));
        assert_eq!(quantile(&now, &now, 0.5), None);
        assert_eq!(quantile(&[], &now, 0.5), Some(0.001));
    }
}
