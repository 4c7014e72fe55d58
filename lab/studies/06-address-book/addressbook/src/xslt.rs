//! By XSLT: libxslt runs `addressbook.xsl`, compiled once, on the tree of the whole file.
//!
//! libxslt is the engine of `xsltproc`, and what it installs is all that is needed: the library is
//! loaded when the program runs. No engine in Rust was found in November 2026
//! that runs this stylesheet of XSLT 1.0: `xrust` 2.3.0 was tried, stops at a global parameter and
//! reads 300 kB of XML in a second; by its own account `xee-xslt-compiler` 0.1.6 lacks parameters,
//! global variables and named templates.

mod libxslt;

use std::fs;
use std::path::Path;
use std::sync::OnceLock;

use crate::{BookError, BookView, STYLESHEET};
use libxslt::CompiledStylesheet;

/// The stylesheet for all threads, or why there is none.
fn stylesheet() -> Result<&'static CompiledStylesheet, &'static str> {
    static COMPILED: OnceLock<Result<CompiledStylesheet, String>> = OnceLock::new();
    let compiled = COMPILED.get_or_init(|| CompiledStylesheet::compile(STYLESHEET));
    compiled.as_ref().map_err(String::as_str)
}

/// `Err` says what is missing on this machine.
///
/// # Errors
/// libxslt is not installed.
pub fn is_available() -> Result<(), &'static str> {
    stylesheet().map(|_| ())
}

/// The content of a page; `base` is the address that the address of each entry begins with. `None`
/// if the view is of an entry that is not there.
///
/// # Errors
/// The file cannot be read or is not well-formed, or libxslt is not installed.
pub fn render(file: &Path, base: &str, view: BookView<'_>) -> Result<Option<String>, BookError> {
    let (name, value) = match view {
        BookView::List => ("list", ""),
        BookView::Search(text) => ("search", text),
        BookView::Entry(id) => ("entry", id),
    };
    let parameters = [("base", base), ("view", name), ("value", value)];
    let stylesheet = stylesheet().map_err(|error| BookError::new(file, 0, error))?;
    let xml = fs::read(file).map_err(|error| BookError::new(file, 0, error))?;
    let page = stylesheet
        .apply(&xml, &parameters)
        .map_err(|(line, error)| BookError::new(file, line, error))?;
    // A document ends with a line end, and without a root element it is nothing else.
    let page = page.trim_end_matches('\n');
    Ok((!page.is_empty()).then(|| page.to_owned()))
}
