//! From values to places on an axis, and which values to name there.

use crate::number::{tick_moment, trimmed};
use crate::{Scale, Unit};

/// Share of an axis that two named values are apart.
const APART: f64 = 0.08;
/// Share of its values' span by which an axis reaches below values under zero.
const BELOW: f64 = 0.04;

/// Beginning of an even axis. The other scales begin where their values do.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Begin {
    /// At zero, so that lengths and heights can be compared.
    Zero,
    /// At the lowest value.
    Data,
}

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
    /// An even axis from `begin` on, or another one, for `values` between the places `from` and
    /// `to`, with about `most` named values.
    pub(super) fn new(
        scale: Scale,
        unit: Unit,
        begin: Begin,
        values: impl Iterator<Item = f64>,
        (from, to): (f64, f64),
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
            Scale::Linear => linear(unit, begin, (least, greatest), most),
            Scale::Log => log_ticks(least, greatest, most),
            Scale::Percentile => (percentile_ticks(greatest), (0.0, greatest)),
            Scale::Time => (time_ticks(least, greatest, most), (least, greatest)),
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
            Scale::Time => tick_moment(value),
            _ => trimmed(&self.unit.format(value)),
        }
    }
}

fn transform(scale: Scale, value: f64) -> Option<f64> {
    let transformed = match scale {
        // Further out, the span between two values may be no number.
        Scale::Linear | Scale::Time if value.abs() < 1e300 => value,
        Scale::Log if value > 0.0 => value.log10(),
        Scale::Percentile if (0.0..1.0).contains(&value) => -(1.0 - value).log10(),
        _ => return None,
    };
    transformed.is_finite().then_some(transformed)
}

/// Chooses the labels of an even axis, and its ends.
fn linear(
    unit: Unit,
    begin: Begin,
    (least, greatest): (f64, f64),
    most: usize,
) -> (Vec<f64>, (f64, f64)) {
    let smallest = if unit == Unit::Count { 1.0 } else { 0.0 };
    if begin == Begin::Zero {
        let (low, high) = (least.min(0.0), greatest.max(0.0));
        let mut ticks = linear_ticks(low, high, most, smallest);
        let (first, last) = (ticks[0], ticks[ticks.len() - 1]);
        // A whole step below the values would be empty room.
        let first = first.max(low - BELOW * (high - low));
        ticks.retain(|&tick| tick >= first);
        return (ticks, (first, last));
    }
    // A time that begins a little after zero begins at zero.
    let is_from_zero = unit != Unit::Count && least >= 0.0 && least <= 0.1 * greatest;
    let low = if is_from_zero { 0.0 } else { least };
    let high = if greatest > low { greatest } else { low + 1.0 };
    let mut ticks = linear_ticks(low, high, most, smallest);
    ticks.retain(|tick| (low..=high).contains(tick));
    let is_apart = |tick: &f64| (tick - low).abs() > APART * (high - low);
    if unit == Unit::Count && ticks.iter().all(is_apart) {
        ticks.insert(0, low);
    }
    (ticks, (low, high))
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
        let apart = |tick: &f64| (tick / end).log10().abs() > APART * (high / low).log10();
        if named.iter().all(apart) {
            named.push(end);
        }
    }
    named.sort_by(f64::total_cmp);
    (named, (low, high))
}

/// Multiples of a round part of a day, or of some days.
fn time_ticks(least: f64, greatest: f64, most: usize) -> Vec<f64> {
    const MINUTES: [u32; 14] = [
        1, 5, 15, 30, 60, 180, 360, 720, 1440, 2880, 7200, 14_400, 43_200, 144_000,
    ];
    let rough = (greatest - least) / most as f64;
    let steps = MINUTES.map(|minutes| f64::from(minutes) * 60.0);
    let step = steps.into_iter().find(|step| *step >= rough);
    // A span of decades has few names that say something.
    let step = step.unwrap_or((rough / 86_400.0).ceil() * 86_400.0);
    let first = (least / step).ceil();
    let ticks = (0..=most as u32).map(|n| (first + f64::from(n)) * step);
    ticks.take_while(|tick| *tick <= greatest).collect()
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
        names_from(Begin::Zero, scale, unit, values)
    }

    fn names_from(begin: Begin, scale: Scale, unit: Unit, values: &[f64]) -> String {
        let values = values.iter().copied();
        let axis = Placed::new(scale, unit, begin, values, (0.0, 100.0), 6);
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
            names(
                Scale::Time,
                Unit::Moment,
                &[1_795_219_300.0, 1_795_305_700.0]
            ),
            "06:00 12:00 18:00 22Nov"
        );
        assert_eq!(
            names(
                Scale::Time,
                Unit::Moment,
                &[1_795_219_300.0, 1_795_996_900.0]
            ),
            "23Nov 25Nov 27Nov 29Nov"
        );
        assert_eq!(
            names(Scale::Percentile, Unit::Percent, &[0.0, 0.995]),
            "0% 50% 90% 99%"
        );
    }

    #[test]
    fn an_axis_begins_where_its_values_do() {
        let along = |unit, values: &[f64]| names_from(Begin::Data, Scale::Linear, unit, values);
        assert_eq!(along(Unit::Count, &[1.0, 10.0]), "1 2 4 6 8 10");
        assert_eq!(along(Unit::Count, &[1.0, 60.0]), "1 10 20 30 40 50 60");
        assert_eq!(along(Unit::Count, &[3.0]), "3 4");
        assert_eq!(along(Unit::Seconds, &[0.25, 10.0]), "0s 2s 4s 6s 8s 10s");
        assert_eq!(
            along(Unit::Rate, &[800.0, 1_000.0]),
            "800/s 850/s 900/s 950/s 1k/s"
        );
        // A change from −50 to 400 % has no room for −200 %.
        let axis = |values: &[f64]| {
            let values = values.iter().copied();
            let (unit, ends) = (Unit::Percent, (0.0, 100.0));
            Placed::new(Scale::Linear, unit, Begin::Zero, values, ends, 3)
        };
        let change = axis(&[-0.5, 4.0]);
        assert!(change.low > -0.7 && change.ticks[0] == 0.0);
        let fall = axis(&[-0.5, -0.2]);
        assert!(fall.high == 0.0 && fall.low >= -0.6, "zero is in sight");
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
                for begin in [Begin::Zero, Begin::Data] {
                    let all = values.iter().copied();
                    let axis = Placed::new(scale, Unit::Plain, begin, all, (0.0, 100.0), 6);
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
}
