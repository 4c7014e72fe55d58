//! Fuzz targets for what a request's parameters and forms are read as; `millpond_http`'s own say how they are run. The
//! site as a whole has one in `tests/it`.

mod forms;
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
