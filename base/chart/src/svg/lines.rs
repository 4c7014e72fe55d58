//! Lines over a common axis.

use std::fmt::Write as _;

use super::scale::{Begin, Placed};
use super::{COLOURS, Drawing, LETTER, Width, label, rule};
use crate::{Line, LineChart, Scale};

/// Room above and below the lines: for the names of values, and with the titles of axes.
const TOP: [f64; 2] = [10.0, 26.0];
const FOOT: [f64; 2] = [26.0, 44.0];

/// Draws the chart.
pub fn lines(chart: &LineChart, width: Width) -> Drawing {
    let total = width.units();
    let (height, x_ticks, y_ticks) = match width {
        Width::Wide => (320.0, 8, 5),
        Width::Panel => (220.0, 6, 4),
        Width::Narrow => (260.0, 4, 4),
    };
    let points = || chart.lines.iter().flat_map(|line| &line.points);
    // A time in which nothing was measured is shown as that.
    let is_spanned = |y: &Option<f64>| y.is_some() || chart.x.scale == Scale::Time;
    let known = || points().filter(|(_, y)| is_spanned(y));
    let room = |title: &str, of: [f64; 2]| of[usize::from(!title.is_empty())];
    let top = room(&chart.y.title, TOP);
    let bottom = height - room(&chart.x.title, FOOT);
    let y = Placed::new(
        chart.y.scale,
        chart.y.unit,
        Begin::Zero,
        points().filter_map(|(_, y)| *y),
        (bottom, top),
        y_ticks,
    );
    let gutter = y
        .ticks()
        .map(|(_, name)| name.chars().count())
        .max()
        .unwrap_or(0) as f64
        * LETTER
        + 10.0;
    let x = Placed::new(
        chart.x.scale,
        chart.x.unit,
        Begin::Data,
        known().map(|(x, _)| *x),
        (gutter, total - 12.0),
        x_ticks,
    );
    let mut drawing = Drawing::new(total, height);
    let svg = &mut drawing.body;
    if !chart.y.title.is_empty() {
        label(svg, "title", "start", (0.0, 12.0), &chart.y.title);
    }
    for (place, name) in y.ticks() {
        rule(svg, "grid", (gutter, place), (total - 12.0, place));
        label(svg, "tick", "end", (gutter - 8.0, place + 4.0), &name);
    }
    rule(svg, "axis", (gutter, bottom), (total - 12.0, bottom));
    let mut last = f64::NEG_INFINITY;
    for (place, name) in x.ticks() {
        let half = name.chars().count() as f64 * LETTER / 2.0;
        let centre = place.min(total - half);
        if centre - half > last + 6.0 {
            rule(svg, "axis", (place, bottom), (place, bottom + 4.0));
            label(svg, "tick", "middle", (centre, bottom + 18.0), &name);
            last = centre + half;
        }
    }
    if !chart.x.title.is_empty() {
        let at = (total - 12.0, height - 6.0);
        label(svg, "title", "end", at, &chart.x.title);
    }
    for (n, line) in chart.lines.iter().enumerate() {
        draw(svg, line, n % COLOURS, &x, &y);
    }
    drawing
}

/// One line: in pieces where it has gaps, a dot where a piece is a single point.
fn draw(svg: &mut String, line: &Line, colour: usize, x: &Placed, y: &Placed) {
    let place = |(at, value): &(f64, Option<f64>)| Some((x.place(*at)?, y.place((*value)?)?));
    let places: Vec<Option<(f64, f64)>> = line.points.iter().map(place).collect();
    for piece in places
        .split(Option::is_none)
        .filter(|piece| !piece.is_empty())
    {
        let mut piece = piece.iter().flatten();
        let Some((x, y)) = piece.next() else { continue };
        let mut path = format!("M{x:.1} {y:.1}");
        let mut single = true;
        for (x, y) in piece {
            let _ = write!(path, "L{x:.1} {y:.1}");
            single = false;
        }
        let _ = if single {
            writeln!(
                svg,
                "<circle class=\"dot c{colour}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"2.5\"/>"
            )
        } else {
            writeln!(svg, "<path class=\"line c{colour}\" d=\"{path}\"/>")
        };
    }
}
