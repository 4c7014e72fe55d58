//! Graphs as SVG. Colours come from the page's style sheet, so that they follow light and dark.
//!
//! A graph is drawn twice, for a wide and for a narrow column: scaled down to a phone, its letters could not be read.

mod bars;
mod file;
mod lines;
mod scale;

pub(crate) use bars::{bars, stacks};
pub(crate) use file::files;
pub(crate) use lines::lines;

use std::fmt::Write as _;

use crate::escape::Escaped;

/// For which column a graph is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Width {
    /// A page.
    Wide,
    /// A phone.
    Narrow,
}

impl Width {
    pub(crate) const BOTH: [Self; 2] = [Self::Wide, Self::Narrow];

    /// In user units, which are CSS pixels where the column is as wide as meant.
    fn units(self) -> f64 {
        match self {
            Self::Wide => 736.0,
            Self::Narrow => 358.0,
        }
    }

    pub(crate) fn class(self) -> &'static str {
        match self {
            Self::Wide => "wide",
            Self::Narrow => "narrow",
        }
    }
}

/// Number of colours that the style sheet has; further series begin again with the first.
pub(crate) const COLOURS: usize = 6;

/// Width of a letter or digit at the size used in graphs, in a wide font.
const LETTER: f64 = 7.3;

/// What is drawn, without the element around it: a page and a file put different ones.
pub(crate) struct Drawing {
    /// In user units.
    pub(crate) width: f64,
    /// In user units.
    pub(crate) height: f64,
    /// The elements.
    pub(crate) body: String,
}

impl Drawing {
    fn new(width: f64, height: f64) -> Self {
        Self {
            width,
            height,
            body: String::new(),
        }
    }

    /// The graph within a page, with its name for those who do not see it.
    pub(crate) fn inline(&self, class: &str, title: &str) -> String {
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
