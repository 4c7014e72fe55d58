//! What a report consists of.

use crate::{BarChart, Chart, LineChart, SvgFile, Table, svg_files};

/// A report: a title and sections in their order.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Title of the section.
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

    /// The report for a terminal of 80 columns, without its lines.
    pub fn to_text(&self) -> String {
        crate::text::report(self)
    }

    /// Every chart as an SVG file that needs no page around it. The name of a file is made from the
    /// heading above the chart and from the title of the chart.
    pub fn to_svg_files(&self) -> Vec<SvgFile> {
        let mut heading = "";
        let mut charts = Vec::new();
        for section in &self.sections {
            let chart = match section {
                Section::Heading(text) => {
                    heading = text;
                    continue;
                }
                Section::Bars(chart) => Chart::Bars(chart),
                Section::Stacks(chart) => Chart::Stacks(chart),
                Section::Lines(chart) => Chart::Lines(chart),
                _ => continue,
            };
            charts.push((heading, chart));
        }
        svg_files(charts)
    }
}

/// One part of a report.
#[derive(Clone, Debug)]
pub enum Section {
    /// A heading.
    Heading(String),
    /// A paragraph.
    Text(String),
    /// Paragraphs, lists and tables in Markdown. HTML in it is shown as it is written.
    Prose(String),
    /// Other pages, one below the other.
    Links(Vec<PageLink>),
    /// Text in a fixed-width font, as it stands: a command, a configuration.
    Code {
        /// Caption of the table.
        caption: String,
        /// The text.
        text: String,
    },
    /// A text that is folded until the reader opens it.
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
    /// Bars in groups; the bars of a group are stacked as parts of a whole. Always from zero.
    Stacks(BarChart),
}

impl Section {
    /// The command line that leads to the same figures.
    pub fn command(line: &str) -> Self {
        Self::Code {
            caption: "The command".to_owned(),
            text: line.to_owned(),
        }
    }
}

/// A link to another page of the same folder.
#[derive(Clone, Debug)]
pub struct PageLink {
    /// The file of the page.
    pub href: String,
    /// Label of the figure.
    pub label: String,
    /// Remark on the figure; may be empty.
    pub note: String,
    /// A judgement in a word; may be empty.
    pub verdict: String,
    /// How the judgement sounds.
    pub tone: Tone,
}

impl PageLink {
    /// A link without a note and a judgement.
    pub fn new(href: impl Into<String>, label: impl Into<String>) -> Self {
        Self {
            href: href.into(),
            label: label.into(),
            note: String::new(),
            verdict: String::new(),
            tone: Tone::Good,
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
    /// Label of the count.
    pub label: String,
    /// The number with its unit, as [`number`](crate::number) writes it.
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

    /// Adds a remark to the figure.
    #[must_use]
    pub fn with_note(mut self, note: impl Into<String>) -> Self {
        self.note = note.into();
        self
    }
}
