//! Charts as SVG. Colours come from the style sheet of the page, so they follow light and dark.
//!
//! A chart is drawn twice, for a wide and for a narrow column: the letters of a wide chart would be
//! too small on a phone.

mod bars;
mod file;
mod lines;
mod scale;

pub use bars::{bars, stacks};
pub use file::{SvgFile, svg_files};
pub use lines::lines;

use std::fmt::Write as _;

use crate::escape::Escaped;

/// Width of the column that a chart is drawn for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// A page.
    Wide,
    /// One of two charts side by side.
    Panel,
    /// A phone.
    Narrow,
}

impl Width {
    /// The widths of a report, the wide one first.
    pub const BOTH: [Self; 2] = [Self::Wide, Self::Narrow];

    /// In user units, which are CSS pixels where the column is as wide as meant.
    fn units(self) -> f64 {
        match self {
            Self::Wide => 736.0,
            Self::Panel => 536.0,
            Self::Narrow => 358.0,
        }
    }

    /// The class of the `svg` element, by which a style sheet shows one of the two drawings.
    pub fn class(self) -> &'static str {
        match self {
            Self::Wide => "wide",
            Self::Panel => "panel",
            Self::Narrow => "narrow",
        }
    }
}

/// Number of colours in the style sheet. A series past the last colour takes the first again.
pub const COLOURS: usize = 8;

/// Style sheet with the colours and fonts of a page, light and then dark.
pub const PALETTE: &str = include_str!("palette.css");
/// Style sheet of the charts in a page. It uses the variables of [`PALETTE`].
pub const CHART_STYLE: &str = include_str!("graph.css");

/// Width of a letter or digit at the size used in graphs, in a wide font.
const LETTER: f64 = 7.3;

/// The elements of a chart without the `svg` element: a page and a file have different ones.
#[derive(Clone, Debug)]
pub struct Drawing {
    /// In user units.
    pub width: f64,
    /// In user units.
    pub height: f64,
    /// The elements.
    pub body: String,
}

impl Drawing {
    fn new(width: f64, height: f64) -> Self {
        Self {
            width,
            height,
            body: String::new(),
        }
    }

    /// The `svg` element for a page. `title` is what screen readers say.
    pub fn inline(&self, class: &str, title: &str) -> String {
        let Self {
            width,
            height,
            body,
        } = self;
        format!(
            "<svg class=\"{class}\" viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{}\">\n{body}</svg>\n",
            Escaped(title)
        )
    }
}

/// A line of the grid or of an axis.
fn rule(svg: &mut String, class: &str, from: (f64, f64), to: (f64, f64)) {
    let ((x1, y1), (x2, y2)) = (from, to);
    let _ = writeln!(
        svg,
        "<line class=\"{class}\" x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\"/>"
    );
}

/// Text that begins, is centred or ends at a point.
fn label(svg: &mut String, class: &str, anchor: &str, at: (f64, f64), text: &str) {
    let (x, y) = at;
    let text = Escaped(text);
    let _ = writeln!(
        svg,
        "<text class=\"{class}\" text-anchor=\"{anchor}\" x=\"{x:.1}\" y=\"{y:.1}\">{text}</text>"
    );
}

/// Cuts text that would not fit.
fn fit(text: &str, room: f64) -> String {
    let most = (room / LETTER).max(4.0) as usize;
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let cut: String = text.chars().take(most - 1).collect();
    format!("{}…", cut.trim_end())
}
