//! What is drawn: charts of bars and of lines, and tables.

use crate::number;

/// A chart of any kind.
#[derive(Clone, Copy, Debug)]
pub enum Chart<'a> {
    /// Bars side by side.
    Bars(&'a BarChart),
    /// The bars of a group in one row, as parts of a whole. The axis begins at zero.
    Stacks(&'a BarChart),
    /// Lines over a common axis.
    Lines(&'a LineChart),
}

impl Chart<'_> {
    /// The title of the chart.
    pub fn title(&self) -> &str {
        match self {
            Self::Bars(chart) | Self::Stacks(chart) => &chart.title,
            Self::Lines(chart) => &chart.title,
        }
    }
}

/// A table.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// Sentence under the chart.
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
    /// Side of the column on which its cells stand.
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

    /// The columns with these headings, which stand between `|`. The heading of a column of numbers
    /// begins with `#`.
    pub fn all(titles: &str) -> Vec<Self> {
        let column = |title: &str| match title.strip_prefix('#') {
            Some(title) => Self::number(title),
            None => Self::text(title),
        };
        titles.split('|').map(column).collect()
    }
}

/// Side of a column on which its cells stand.
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
    /// Title of the chart.
    pub title: String,
    /// A remark in small print; may be empty.
    pub note: String,
    /// Unit of the values.
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
    /// Title of the figure.
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
    /// Title of the axis.
    pub title: String,
    /// How its values are written.
    pub unit: Unit,
    /// How they are spread.
    pub scale: Scale,
}

impl Axis {
    /// An axis with even steps: a vertical one from zero, a horizontal one from its lowest value.
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
    /// Evenly.
    Linear,
    /// By their logarithm; values that are not positive have no place.
    Log,
    /// By how little lies beyond: 90 %, 99 % and 99.9 % are as far apart.
    Percentile,
    /// Evenly, in seconds since 1970, with names for days and times of day.
    Time,
}

/// Kind of a value, which decides how the value is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A time in microseconds.
    Micros,
    /// A time in seconds.
    Seconds,
    /// Events per second.
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
    /// A moment in seconds since 1970.
    Moment,
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
            Self::Moment => number::moment(value),
        }
    }
}
