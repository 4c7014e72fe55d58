//! Horizontal bars: names of any length have room above their group, also on a phone.

use std::fmt::Write as _;

use super::scale::{Begin, Placed};
use super::{COLOURS, Drawing, LETTER, Width, fit, label, rule};
use crate::{BarChart, Scale};

const BAR: f64 = 15.0;
const GAP: f64 = 3.0;
const NAME: f64 = 21.0;
const BETWEEN: f64 = 12.0;
const FOOT: f64 = 26.0;
/// More groups than the first number are a list, if no name has more letters than the second.
const LIST: (usize, usize) = (12, 6);

/// Draws the chart.
pub fn bars(chart: &BarChart, width: Width) -> Drawing {
    let total = width.units();
    let values = || {
        chart
            .series
            .iter()
            .flat_map(|series| series.values.iter().flatten().copied())
    };
    let widest = values()
        .map(|value| chart.unit.format(value).chars().count())
        .max()
        .unwrap_or(0);
    let right = total - widest as f64 * LETTER - 10.0;
    // Short names of many groups stand beside their only bar.
    let longest = chart.groups.iter().map(|name| name.chars().count()).max();
    let is_list = chart.series.len() == 1 && chart.groups.len() > LIST.0;
    let gutter = match longest {
        Some(letters) if is_list && letters <= LIST.1 => letters as f64 * LETTER + 12.0,
        _ => 0.0,
    };
    let scale = if chart.scale == Scale::Log {
        Scale::Log
    } else {
        Scale::Linear
    };
    let ticks = if width == Width::Wide { 6 } else { 3 };
    let axis = Placed::new(
        scale,
        chart.unit,
        Begin::Zero,
        values(),
        (gutter + 1.0, right),
        ticks,
    );
    let (above, below) = if gutter > 0.0 {
        (0.0, 0.0)
    } else {
        (NAME, BETWEEN)
    };
    let group_height = above + chart.series.len() as f64 * (BAR + GAP) + below;
    let foot = chart.groups.len() as f64 * group_height;
    let mut drawing = Drawing::new(total, foot + FOOT);
    let svg = &mut drawing.body;
    grid(svg, &axis, total, foot);
    // Bars begin at zero, or where a logarithmic axis begins.
    let base = if scale == Scale::Linear {
        axis.place(0.0).unwrap_or(gutter + 1.0)
    } else {
        gutter + 1.0
    };
    rule(svg, "axis", (base, 4.0), (base, foot));
    for (group, name) in chart.groups.iter().enumerate() {
        let top = group as f64 * group_height;
        if gutter > 0.0 {
            let at = (gutter - 6.0, top + BAR - 3.5);
            label(svg, "value", "end", at, name);
        } else {
            let at = (5.0, top + NAME - 6.0);
            label(svg, "name", "start", at, &fit(name, total - 8.0));
        }
        for (n, series) in chart.series.iter().enumerate() {
            let y = top + above + n as f64 * (BAR + GAP);
            let value = series.values.get(group).copied().flatten();
            let name = value.map_or_else(|| "–".to_owned(), |value| chart.unit.format(value));
            // What has no place on the axis, such as zero on a logarithmic one, still has its
            // value.
            let end = value.and_then(|value| axis.place(value)).unwrap_or(base);
            if value.is_some_and(|value| axis.place(value).is_some()) {
                let (colour, x, length) = (n % COLOURS, base.min(end), (end - base).abs().max(1.5));
                let _ = writeln!(
                    svg,
                    "<rect class=\"bar c{colour}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{length:.1}\" height=\"{BAR}\"/>"
                );
            }
            label(
                svg,
                "value",
                "start",
                (base.max(end) + 6.0, y + BAR - 3.5),
                &name,
            );
        }
    }
    drawing
}

/// Draws the chart with the bars of a group as parts of one, from zero, and their sum behind them.
pub fn stacks(chart: &BarChart, width: Width) -> Drawing {
    let total = width.units();
    let parts = |group: usize| {
        chart.series.iter().map(move |series| {
            let value = series.values.get(group).copied().flatten();
            value.filter(|value| value.is_finite() && *value > 0.0)
        })
    };
    let sums: Vec<Option<f64>> = (0..chart.groups.len())
        .map(|group| parts(group).flatten().reduce(|sum, part| sum + part))
        .collect();
    let name = |sum: Option<f64>| sum.map_or_else(|| "–".to_owned(), |sum| chart.unit.format(sum));
    let widest = sums.iter().map(|sum| name(*sum).chars().count()).max();
    let right = total - widest.unwrap_or(0) as f64 * LETTER - 10.0;
    let ticks = if width == Width::Wide { 6 } else { 3 };
    let values = sums.iter().copied().flatten();
    let axis = Placed::new(
        Scale::Linear,
        chart.unit,
        Begin::Zero,
        values,
        (1.0, right),
        ticks,
    );
    let group_height = NAME + BAR + GAP + BETWEEN;
    let foot = chart.groups.len() as f64 * group_height;
    let mut drawing = Drawing::new(total, foot + FOOT);
    let svg = &mut drawing.body;
    grid(svg, &axis, total, foot);
    let base = axis.place(0.0).unwrap_or(1.0);
    rule(svg, "axis", (base, 4.0), (base, foot));
    for (group, title) in chart.groups.iter().enumerate() {
        let top = group as f64 * group_height;
        let (text, y) = (fit(title, total - 8.0), top + NAME);
        label(svg, "name", "start", (5.0, y - 6.0), &text);
        let (mut sum, mut end) = (0.0, base);
        for (n, part) in parts(group).enumerate() {
            sum += part.unwrap_or(0.0);
            let to = axis.place(sum).unwrap_or(end);
            // A gap as wide as a hair between two parts, where they are wider than that.
            let (colour, length) = (n % COLOURS, (to - end - 1.0).max(0.0));
            if part.is_some() {
                let _ = writeln!(
                    svg,
                    "<rect class=\"bar c{colour}\" x=\"{end:.1}\" y=\"{y:.1}\" width=\"{length:.1}\" height=\"{BAR}\"/>"
                );
            }
            end = to;
        }
        let at = (end + 6.0, y + BAR - 3.5);
        label(svg, "value", "start", at, &name(sums[group]));
    }
    drawing
}

/// The named values below the bars, with a line through all of them.
fn grid(svg: &mut String, axis: &Placed, total: f64, foot: f64) {
    let mut last = f64::NEG_INFINITY;
    for (x, name) in axis.ticks() {
        rule(svg, "grid", (x, 4.0), (x, foot));
        // Names at the edges must not be cut off, nor run into each other.
        let half = name.chars().count() as f64 * LETTER / 2.0;
        let centre = x.max(half).min(total - half);
        if centre - half > last + 4.0 {
            label(svg, "tick", "middle", (centre, foot + 18.0), &name);
            last = centre + half;
        }
    }
}
