//! Fuzz targets: what is true of every input, tried on many.
//!
//! `cargo test` tries each target for a second, `cargo ci` for a few, `cargo xtask soak fuzz` for
//! as long as one has patience. Inputs are the seeds in `__fuzz__/TARGET/corpus`, bytes at random,
//! and the seeds after random edits. An input that fails is printed: make it a seed, and a test of
//! its own where the rule belongs.
//!
//! Each property is held against a second, slow and simple reading that stands here, so that a
//! mistake has to be made twice to go unnoticed.

mod events;
mod header_blocks;
mod http2;
mod paths;
mod reading;
mod representation;
mod requests;

use std::path::Path;

use lab_torture::http::Corpus;

/// The seeds of one target.
fn corpus(target: &str, words: &'static [&'static [u8]]) -> Corpus {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/fuzz/__fuzz__");
    let dir = here.join(target).join("corpus");
    Corpus::read(&dir, words).unwrap_or_else(|error| panic!("{}: {error}", dir.display()))
}
