//! Charts, tables and reports: bars and lines as SVG, reports as HTML and as text, numbers as
//! people read them.
//!
//! It knows titles, units, scales and colours. It must not know what was measured, or which program
//! measured it. It does no IO and reads no clock: all goes out as a `String`. Both programs may use
//! it, so it depends on no other crate of the project. The HTML needs no script and no network,
//! follows the reader's light or dark preference, fits a phone, prints, and has every graph as a
//! table too. All text that is handed in is escaped.
//!
//! ```
//! use base_chart::{BarChart, Bars, Chart, Scale, Unit, svg_files};
//!
//! let chart = BarChart {
//!     title: "Requests".into(),
//!     note: String::new(),
//!     unit: Unit::Rate,
//!     scale: Scale::Linear,
//!     groups: vec!["1 connection".into()],
//!     series: vec![Bars { name: "server".into(), values: vec![Some(21_100.0)] }],
//! };
//! let files = svg_files([("", Chart::Bars(&chart))]);
//! assert_eq!(files[0].name, "requests.svg");
//! ```

mod escape;
mod html;
mod model;
pub mod number;
mod prose;
mod report;
mod svg;
mod text;

pub use escape::Escaped;
pub use model::{Align, Axis, BarChart, Bars, Chart, Column, Line, LineChart, Scale, Table, Unit};
pub use report::{Banner, Figure, PageLink, Report, Section, Tone};
pub use svg::{
    CHART_STYLE, COLOURS, Drawing, PALETTE, SvgFile, Width, bars, lines, stacks, svg_files,
};
pub use text::text_table;
