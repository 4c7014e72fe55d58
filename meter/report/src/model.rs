//! What a report consists of.

use crate::number;

/// A report: a title and sections in their order.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// What it is about.
    pub title: String,
    /// One sentence under the title; may be empty.
    pub subtitle: String,
    /// The body.
    pub sections: Vec<Section>,
}

impl Report {
    /// A report without sections.
    pub fn new(title: impl Into<String>, subtitle: impl Into<String>) -> Self {
        Self {
            title: title.into(),
            subtitle: subtitle.into(),
            sections: Vec::new(),
        }
    }

    /// Appends a section.
    pub fn push(&mut self, section: Section) -> &mut Self {
        self.sections.push(section);
        self
    }

    /// The report as one HTML file that needs nothing else.
    pub fn to_html(&self) -> String {
        crate::html::page(self)
    }

    /// Every graph as an SVG file that stands alone: with its title, its legend, a description for those who do not see it,
    /// and styles that follow light and dark.
    pub fn to_svg_files(&self) -> Vec<SvgFile> {
        crate::svg::files(self)
    }
}

/// A graph as a file.
#[derive(Clone, Debug)]
pub struct SvgFile {
    /// The file's name, made from the graph's title: letters, digits and hyphens, and `.svg`.
    pub name: String,
    /// Its content.
    pub svg: String,
}

/// One part of a report.
#[derive(Clone, Debug)]
pub enum Section {
    /// A heading.
    Heading(String),
    /// A paragraph.
    Text(String),
    /// Text in a fixed-width font, as it stands: a command, a configuration.
    Code {
        /// What it is.
        caption: String,
        /// The text.
        text: String,
    },
    /// The same, folded away until somebody wants to read it.
    Folded {
        /// The line that is always seen.
        summary: String,
        /// The text.
        text: String,
    },
    /// A judgement with its reasons.
    Banner(Banner),
    /// Big numbers.
    Figures(Vec<Figure>),
    /// A table.
    Table(Table),
    /// Bars in groups.
    Bars(BarChart),
    /// Lines.
    Lines(LineChart),
    /// Bars in groups, those of a group one after the other in one: parts of a whole. Always from zero.
    Stacks(BarChart),
}

impl Section {
    /// The command line that leads to the same figures.
    pub(crate) fn command(line: &str) -> Self {
        Self::Code {
            caption: "The command".to_owned(),
            text: line.to_owned(),
        }
    }
}

/// A judgement.
#[derive(Clone, Debug)]
pub struct Banner {
    /// Good, doubtful or bad.
    pub tone: Tone,
    /// The judgement, in a word or two.
    pub title: String,
    /// Why; may be empty.
    pub reasons: Vec<String>,
}

/// How a judgement sounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// As it should be.
    Good,
    /// With doubts.
    Doubtful,
    /// Not as it should be.
    Bad,
}

/// A big number.
#[derive(Clone, Debug)]
pub struct Figure {
    /// What it counts.
    pub label: String,
    /// The number with its unit, as [`number`] writes it.
    pub value: String,
    /// A remark in small print; may be empty.
    pub note: String,
}

impl Figure {
    /// A figure without a remark.
    pub fn new(label: impl Into<String>, value: impl Into<String>) -> Self {
        Self {
            label: label.into(),
            value: value.into(),
            note: String::new(),
        }
    }

    /// The same figure with a remark.
    #[must_use]
    pub fn with_note(mut self, note: impl Into<String>) -> Self {
        self.note = note.into();
        self
    }
}

/// A table.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// What it shows.
    pub caption: String,
    /// Its columns.
    pub columns: Vec<Column>,
    /// Its rows; a cell that is missing is empty.
    pub rows: Vec<Vec<String>>,
    /// A remark in small print, or one on each line; may be empty.
    pub note: String,
}

/// A column of a table.
#[derive(Clone, Debug)]
pub struct Column {
    /// Its heading.
    pub title: String,
    /// Where its cells stand.
    pub align: Align,
}

impl Column {
    /// A column of words.
    pub fn text(title: impl Into<String>) -> Self {
        Self {
            title: title.into(),
            align: Align::Left,
        }
    }

    /// A column of numbers.
    pub fn number(title: impl Into<String>) -> Self {
        Self {
            title: title.into(),
            align: Align::Right,
        }
    }
}

/// Where the cells of a column stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// Words.
    Left,
    /// Numbers.
    Right,
}

/// Horizontal bars: a group for each thing, in it a bar for each series.
#[derive(Clone, Debug)]
pub struct BarChart {
    /// What it shows.
    pub title: String,
    /// A remark in small print; may be empty.
    pub note: String,
    /// What its values are.
    pub unit: Unit,
    /// [`Scale::Linear`] from zero, or [`Scale::Log`]; a percentile scale is taken as linear.
    pub scale: Scale,
    /// The names of the groups.
    pub groups: Vec<String>,
    /// The series, each with a value for every group.
    pub series: Vec<Bars>,
}

/// One series of bars.
#[derive(Clone, Debug)]
pub struct Bars {
    /// Its name.
    pub name: String,
    /// Its value in each group, `None` where there is none.
    pub values: Vec<Option<f64>>,
}

/// Lines over a common axis.
#[derive(Clone, Debug)]
pub struct LineChart {
    /// What it shows.
    pub title: String,
    /// A remark in small print; may be empty.
    pub note: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// The lines.
    pub lines: Vec<Line>,
}

/// One line.
#[derive(Clone, Debug)]
pub struct Line {
    /// Its name.
    pub name: String,
    /// Its points in order of x; the line has a gap where y is `None`.
    pub points: Vec<(f64, Option<f64>)>,
}

/// An axis of a graph.
#[derive(Clone, Debug)]
pub struct Axis {
    /// What it measures.
    pub title: String,
    /// How its values are written.
    pub unit: Unit,
    /// How they are spread.
    pub scale: Scale,
}

impl Axis {
    /// An axis with even steps from zero.
    pub fn linear(title: impl Into<String>, unit: Unit) -> Self {
        Self {
            title: title.into(),
            unit,
            scale: Scale::Linear,
        }
    }

    /// An axis on which equal distances are equal factors.
    pub fn log(title: impl Into<String>, unit: Unit) -> Self {
        Self {
            title: title.into(),
            unit,
            scale: Scale::Log,
        }
    }

    /// An axis of shares from 0 to 1 that gives each further nine of the tail the same room.
    pub fn percentile(title: impl Into<String>) -> Self {
        Self {
            title: title.into(),
            unit: Unit::Percent,
            scale: Scale::Percentile,
        }
    }
}

/// How values are spread over an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Evenly, from zero.
    Linear,
    /// By their logarithm; values that are not positive have no place.
    Log,
    /// By how little lies beyond: 90 %, 99 % and 99.9 % are as far apart.
    Percentile,
}

/// What a value is, and so how it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A time in microseconds.
    Micros,
    /// A time in seconds.
    Seconds,
    /// So many a second.
    Rate,
    /// A whole number.
    Count,
    /// Bytes.
    Bytes,
    /// A share from 0 to 1.
    Percent,
    /// How many times.
    Times,
    /// A bare number.
    Plain,
}

impl Unit {
    /// A value as people read it.
    pub fn format(self, value: f64) -> String {
        match self {
            Self::Micros => number::micros(value),
            Self::Seconds => number::seconds(value),
            Self::Rate => number::rate(value),
            Self::Count => number::count(value.round().max(0.0) as u64),
            Self::Bytes => number::bytes(value),
            Self::Percent => number::percent(value),
            Self::Times => number::times(value),
            Self::Plain => number::plain(value),
        }
    }
}
