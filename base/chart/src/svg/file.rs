//! Charts as files of their own: with title, legend and styles, light or dark.

use std::collections::HashSet;
use std::fmt::Write as _;

use super::{CHART_STYLE, COLOURS, Drawing, LETTER, PALETTE, Width, bars, label, lines, stacks};
use crate::{BarChart, Chart, Escaped, LineChart};

/// Style that only a file needs.
const OWN: &str = "svg { font-family: var(--plain); background: var(--paper); }\n.paper { fill: var(--paper); }\n\
                   svg .head { font-size: 15px; font-weight: 600; fill: var(--ink); }\n";
/// Room around everything.
const EDGE: f64 = 16.0;
/// Height of the title, and of a line of the legend.
const HEAD: f64 = 30.0;
const LEGEND: f64 = 20.0;
/// Room of a swatch before its name, of a line and of a bar, and between two of the legend.
const STROKE: f64 = 32.0;
const SQUARE: f64 = 18.0;
const GAP: f64 = 20.0;

/// A chart as a file of its own.
#[derive(Clone, Debug)]
pub struct SvgFile {
    /// The file name, made from the title: letters, digits and hyphens, and `.svg`.
    pub name: String,
    /// The content.
    pub svg: String,
}

/// Every chart as an SVG file that needs no page around it: with title, legend, a description for
/// screen readers, and styles that follow light and dark.
///
/// The text beside a chart is the heading above it. The name of a file is made from heading and
/// title, and ends in a number where an earlier chart has the same name.
pub fn svg_files<'a>(charts: impl IntoIterator<Item = (&'a str, Chart<'a>)>) -> Vec<SvgFile> {
    let mut taken = HashSet::new();
    let mut files = Vec::new();
    for (heading, chart) in charts {
        let stem = stem(&format!("{heading} {}", chart.title()));
        let numbered = (2..).map(|n| format!("{stem}-{n}"));
        let free = std::iter::once(stem.clone())
            .chain(numbered)
            .find(|name| !taken.contains(name));
        if let Some(name) = free {
            taken.insert(name.clone());
            files.push(SvgFile {
                name: format!("{name}.svg"),
                svg: match chart {
                    Chart::Bars(chart) => of_bars(chart, bars),
                    Chart::Stacks(chart) => of_bars(chart, stacks),
                    Chart::Lines(chart) => of_lines(chart),
                },
            });
        }
    }
    files
}

/// A title in letters, digits and hyphens, at most sixty: a name on every file system.
fn stem(title: &str) -> String {
    let mut stem = String::new();
    for c in title.chars().flat_map(char::to_lowercase) {
        if c.is_ascii_alphanumeric() {
            stem.push(c);
        } else if !stem.is_empty() && !stem.ends_with('-') {
            stem.push('-');
        }
        if stem.len() >= 60 {
            break;
        }
    }
    match stem.trim_end_matches('-') {
        "" => "graph".to_owned(),
        stem => stem.to_owned(),
    }
}

fn of_lines(chart: &LineChart) -> String {
    let names: Vec<&str> = chart.lines.iter().map(|line| line.name.as_str()).collect();
    let description = format!(
        "{} over {}: {}. {}",
        chart.y.title,
        chart.x.title,
        names.join(", "),
        chart.note
    );
    let swatch = |svg: &mut String, x: f64, y: f64, colour: usize| {
        let _ = writeln!(
            svg,
            "<path class=\"line c{colour}\" d=\"M{x:.1} {y:.1}h26\"/>"
        );
    };
    file(
        &chart.title,
        &description,
        &names,
        STROKE,
        swatch,
        &lines(chart, Width::Wide),
    )
}

fn of_bars(chart: &BarChart, draw: fn(&BarChart, Width) -> Drawing) -> String {
    let names: Vec<&str> = chart
        .series
        .iter()
        .map(|series| series.name.as_str())
        .collect();
    let description = format!(
        "{} for {}. {}",
        names.join(", "),
        chart.groups.join(", "),
        chart.note
    );
    let swatch = |svg: &mut String, x: f64, y: f64, colour: usize| {
        let _ = writeln!(
            svg,
            "<rect class=\"bar c{colour}\" x=\"{:.1}\" y=\"{:.1}\" width=\"12\" height=\"12\"/>",
            x,
            y - 6.0
        );
    };
    file(
        &chart.title,
        &description,
        &names,
        SQUARE,
        swatch,
        &draw(chart, Width::Wide),
    )
}

/// The styles of a file, light and dark, with values in place of variables: many programs that read
/// SVG know none.
fn styles() -> String {
    let (light, dark) = PALETTE.split_once("@media").unwrap_or((PALETTE, ""));
    let values = |block: &'static str| {
        let rules = block.split([';', '{', '}']).map(str::trim);
        rules.filter_map(|rule| {
            rule.split_once(": ")
                .filter(|(name, _)| name.starts_with("--"))
        })
    };
    let css = [CHART_STYLE, OWN].concat();
    let with = |css: &str, block: &'static str| {
        values(block).fold(css.to_owned(), |css, (name, value)| {
            css.replace(&format!("var({name})"), value)
        })
    };
    let (day, night) = (with(&css, light), with(&with(&css, dark), light));
    format!("{day}@media (prefers-color-scheme: dark) {{\n{night}}}\n")
}

/// Title, legend and drawing, one above the other.
fn file(
    title: &str,
    description: &str,
    names: &[&str],
    room: f64,
    swatch: impl Fn(&mut String, f64, f64, usize),
    drawing: &Drawing,
) -> String {
    let mut legend = String::new();
    let (mut x, mut y) = (0.0, HEAD + LEGEND / 2.0);
    // A single series is named by the title.
    let named = if names.len() > 1 { names } else { &[] };
    for (n, name) in named.iter().enumerate() {
        let width = room + name.chars().count() as f64 * LETTER;
        if x > 0.0 && x + width > drawing.width {
            (x, y) = (0.0, y + LEGEND);
        }
        swatch(&mut legend, x, y, n % COLOURS);
        label(&mut legend, "tick", "start", (x + room, y + 4.0), name);
        x += width + GAP;
    }
    let top = if named.is_empty() {
        HEAD
    } else {
        y + LEGEND / 2.0 + 8.0
    };
    let (width, height) = (
        drawing.width + 2.0 * EDGE,
        drawing.height + top + 2.0 * EDGE,
    );
    let (name, description) = (Escaped(title), Escaped(description));
    let mut head = String::new();
    label(&mut head, "head", "start", (0.0, 14.0), title);
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
         role=\"img\" aria-labelledby=\"title desc\">\n\
         <title id=\"title\">{name}</title>\n<desc id=\"desc\">{description}</desc>\n\
         <style><![CDATA[\n{}]]></style>\n\
         <rect class=\"paper\" width=\"{width}\" height=\"{height}\"/>\n\
         <g transform=\"translate({EDGE} {EDGE})\">\n{head}{legend}<g transform=\"translate(0 {top})\">\n{}</g>\n</g>\n</svg>\n",
        styles(),
        drawing.body
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Axis, Line, Unit};

    fn chart(title: &str, lines: usize) -> LineChart {
        let line = |n: usize| Line {
            name: format!("line <{n}>"),
            points: vec![(0.0, Some(1.0)), (1.0, Some(2.0))],
        };
        LineChart {
            title: title.to_owned(),
            note: "A & B.".to_owned(),
            x: Axis::linear("x", Unit::Count),
            y: Axis::linear("y", Unit::Count),
            lines: (0..lines).map(line).collect(),
        }
    }

    #[test]
    fn each_chart_is_a_file_with_a_name_of_its_own() {
        let titles = ["Response time", "Response time", "../é/..", "", "µ"];
        let charts = titles.map(|title| chart(title, 2));
        let headed = chart("Response time", 1);
        let all = charts.iter().map(|chart| ("", Chart::Lines(chart)));
        let all = all.chain([("Run 2", Chart::Lines(&headed))]);
        let names: Vec<String> = svg_files(all).into_iter().map(|file| file.name).collect();
        let expected = [
            "response-time.svg",
            "response-time-2.svg",
            "graph.svg",
            "graph-2.svg",
            "graph-3.svg",
            "run-2-response-time.svg",
        ];
        assert_eq!(names, expected);
    }

    #[test]
    fn a_file_stands_alone_and_nothing_handed_in_is_markup() {
        let svg = &svg_files([("", Chart::Lines(&chart("<b>]]>", 12)))])[0].svg;
        for part in [
            "xmlns=",
            "<title id=\"title\">&lt;b&gt;]]&gt;</title>",
            "A &amp; B.",
            "prefers-color-scheme: dark",
            "line &lt;11&gt;",
        ] {
            assert!(svg.contains(part), "{part} is not in {svg}");
        }
        assert!(!svg.contains("<b>") && !svg.contains("var("));
    }
}
