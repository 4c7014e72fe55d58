//! All ways to make a page give the same bytes, and the files have the sizes of the article.

#![allow(
    clippy::disallowed_methods,
    reason = "tests read the clock to give up waiting"
)]

mod files;
mod server;
mod ways;
mod xsltproc;

use std::path::PathBuf;

use lab_addressbook::{BookView, DataFile, FILES, make_missing};
use tempfile::TempDir;

/// The files in a folder that ends with the test.
fn data() -> (TempDir, Vec<(DataFile, PathBuf)>) {
    let folder = tempfile::tempdir().unwrap();
    make_missing(folder.path()).unwrap();
    let files = FILES.map(|file| (file, file.path(folder.path())));
    (folder, files.to_vec())
}

/// Views that are asked of each file: every kind of page, and one that is not there.
const VIEWS: [BookView<'static>; 9] = [
    BookView::List,
    BookView::Search("WILLOW"),
    BookView::Search("a b"),
    BookView::Search("o'f"),
    BookView::Search("ł"),
    BookView::Search(""),
    BookView::Search("no such name"),
    BookView::Entry("17"),
    BookView::Entry("100000"),
];
