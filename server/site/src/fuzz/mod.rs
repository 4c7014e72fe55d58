//! Fuzz targets for the parsers of parameters and forms; the targets of `millpond_http` say how to
//! run them. `tests/it` has a target for the site as a whole.

mod forms;
mod json;
mod query;
mod session;

use std::path::Path;

use lab_torture::http::Corpus;

/// The seeds of one target.
fn corpus(target: &str, words: &'static [&'static [u8]]) -> Corpus {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/fuzz/__fuzz__");
    let dir = here.join(target).join("corpus");
    Corpus::read(&dir, words).unwrap_or_else(|error| panic!("{}: {error}", dir.display()))
}
