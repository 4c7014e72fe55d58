//! From values to places on an axis, and which values to name there.

use crate::number::trimmed;
use crate::{Scale, Unit};

/// An axis with its range.
pub(super) struct Placed {
    scale: Scale,
    unit: Unit,
    /// The range, in transformed values.
    low: f64,
    high: f64,
    /// The place of both ends.
    from: f64,
    to: f64,
    /// Values to name.
    ticks: Vec<f64>,
}

impl Placed {
    /// An axis for `values` between the places `from` and `to`, with about `most` named values.
    pub(super) fn new(
        scale: Scale,
        unit: Unit,
        values: impl Iterator<Item = f64>,
        from: f64,
        to: f64,
        most: usize,
    ) -> Self {
        let usable = values.filter(|&value| transform(scale, value).is_some());
        let (least, greatest) = usable.fold(
            (f64::INFINITY, f64::NEG_INFINITY),
            |(least, greatest), value| (least.min(value), greatest.max(value)),
        );
        let (least, greatest) = if least > greatest {
            (1.0, 1.0)
        } else {
            (least, greatest)
        };
        let (ticks, ends) = match scale {
            Scale::Linear => {
                let smallest = if unit == Unit::Count { 1.0 } else { 0.0 };
                let ticks = linear_ticks(least.min(0.0), greatest, most, smallest);
                let ends = (ticks[0], ticks[ticks.len() - 1]);
                (ticks, ends)
            }
            Scale::Log => log_ticks(least, greatest, most),
            Scale::Percentile => (percentile_ticks(greatest), (0.0, greatest)),
        };
        let low = transform(scale, ends.0).unwrap_or(0.0);
        let mut high = transform(scale, ends.1).unwrap_or(1.0);
        if high <= low {
            high = low + 1.0;
        }
        Self {
            scale,
            unit,
            low,
            high,
            from,
            to,
            ticks,
        }
    }

    /// The place of a value, unless it has none.
    pub(super) fn place(&self, value: f64) -> Option<f64> {
        let share = (transform(self.scale, value)? - self.low) / (self.high - self.low);
        Some(self.from + share.clamp(0.0, 1.0) * (self.to - self.from))
    }

    /// Named values with their places and names.
    pub(super) fn ticks(&self) -> impl Iterator<Item = (f64, String)> + '_ {
        self.ticks
            .iter()
            .filter_map(|&value| Some((self.place(value)?, self.name(value))))
    }

    fn name(&self, value: f64) -> String {
        match self.scale {
            Scale::Percentile => format!("{}\u{a0}%", trimmed(&format!("{:.4}", value * 100.0))),
            _ => trimmed(&self.unit.format(value)),
        }
    }
}

fn transform(scale: Scale, value: f64) -> Option<f64> {
    let transformed = match scale {
        // Further out, the span between two values may be no number.
        Scale::Linear if value.abs() < 1e300 => value,
        Scale::Log if value > 0.0 => value.log10(),
        Scale::Percentile if (0.0..1.0).contains(&value) => -(1.0 - value).log10(),
        _ => return None,
    };
    transformed.is_finite().then_some(transformed)
}

/// Multiples of 1, 2 or 5 times a power of ten that include both ends. They are `smallest` apart or
/// more: there is no half of a connection.
fn linear_ticks(least: f64, greatest: f64, most: usize, smallest: f64) -> Vec<f64> {
    let span = greatest - least;
    if span <= 0.0 || !span.is_finite() {
        return vec![least, least + 1.0];
    }
    let rough = (span / most as f64).max(smallest);
    let power = 10_f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0]
        .iter()
        .map(|n| n * power)
        .find(|step| *step >= rough * 0.999)
        .unwrap_or(rough);
    let (first, last) = ((least / step).floor(), (greatest / step - 1e-9).ceil());
    (0..=(last - first).min(1000.0) as u32)
        .map(|n| (first + f64::from(n)) * step)
        .collect()
}

/// The nearest 1, 2 or 5 times a power of ten below and above everything, and what to name between
/// them: all of those where there is room, else only powers of ten, or some of these.
fn log_ticks(least: f64, greatest: f64, most: usize) -> (Vec<f64>, (f64, f64)) {
    let (first, last) = (
        least.log10().floor() as i32,
        greatest.log10().floor() as i32 + 1,
    );
    let step = |power: i32| [1.0, 2.0, 5.0].map(|step| step * 10_f64.powi(power));
    let low = step(first)
        .into_iter()
        .rev()
        .find(|&tick| tick <= least * 1.000_001)
        .unwrap_or(least);
    let above = step(last - 1)
        .into_iter()
        .chain(step(last))
        .find(|&tick| tick >= greatest * 0.999_999 && tick > low);
    let high = above.unwrap_or(greatest);
    let within = |tick: &f64| (low * 0.999_999..=high * 1.000_001).contains(tick);
    let all: Vec<f64> = (first..=last).flat_map(step).filter(within).collect();
    if all.len() <= most + 1 {
        return (all, (low, high));
    }
    let every = ((last - first) as usize).div_ceil(most.max(1)) as i32;
    let tens = (first..=last)
        .filter(|power| (power - first) % every == 0)
        .map(|power| 10_f64.powi(power));
    let mut named: Vec<f64> = tens.filter(within).collect();
    // The ends too, unless they stand on another's toes.
    for end in [low, high] {
        let apart = |tick: &f64| (tick / end).log10().abs() > 0.08 * (high / low).log10();
        if named.iter().all(apart) {
            named.push(end);
        }
    }
    named.sort_by(f64::total_cmp);
    (named, (low, high))
}

/// 0, 50, 90, 99 % and so on, as far as there is something.
fn percentile_ticks(greatest: f64) -> Vec<f64> {
    let nines = (1..9)
        .map(|n| 1.0 - 10_f64.powi(-n))
        .take_while(|&tick| tick <= greatest + 1e-12);
    [0.0, 0.5].into_iter().chain(nines).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(scale: Scale, unit: Unit, values: &[f64]) -> String {
        let axis = Placed::new(scale, unit, values.iter().copied(), 0.0, 100.0, 6);
        axis.ticks()
            .map(|(_, name)| name.replace(['\u{a0}', '\u{202f}'], ""))
            .collect::<Vec<_>>()
            .join(" ")
    }

    #[test]
    fn axes_name_round_values_around_everything() {
        assert_eq!(
            names(Scale::Linear, Unit::Rate, &[300.0, 4_400.0]),
            "0/s 1k/s 2k/s 3k/s 4k/s 5k/s"
        );
        assert_eq!(names(Scale::Linear, Unit::Count, &[1.0, 4.0]), "0 1 2 3 4");
        assert_eq!(
            names(Scale::Log, Unit::Micros, &[37.0, 9_000.0]),
            "20µs 100µs 1ms 10ms"
        );
        assert_eq!(
            names(Scale::Log, Unit::Micros, &[110.0, 300.0]),
            "100µs 200µs 500µs"
        );
        assert_eq!(
            names(Scale::Percentile, Unit::Percent, &[0.0, 0.995]),
            "0% 50% 90% 99%"
        );
    }

    #[test]
    fn odd_values_have_a_place_or_none_and_never_a_panic() {
        for scale in [Scale::Linear, Scale::Log, Scale::Percentile] {
            for values in [
                &[][..],
                &[0.0],
                &[5.0],
                &[-3.0, f64::NAN, f64::INFINITY],
                &[1e-300, 1e300],
                &[f64::MAX, f64::MIN],
            ] {
                let axis = Placed::new(scale, Unit::Plain, values.iter().copied(), 0.0, 100.0, 6);
                assert!(axis.ticks().count() <= 1001);
                for place in values.iter().filter_map(|&value| axis.place(value)) {
                    assert!(
                        (0.0..=100.0).contains(&place),
                        "{scale:?} {values:?} {place}"
                    );
                }
            }
        }
    }
}
