//! The generated files.

use std::fs;

use lab_addressbook::{DataFile, Model};

use crate::data;

fn size(model: Model, entries: usize) -> usize {
    DataFile { model, entries }.generate().unwrap().len()
}

#[test]
fn files_have_the_sizes_of_the_article() {
    for (model, entries, expected) in [
        (Model::Simple, 100, 25_000),
        (Model::Simple, 500, 126_000),
        (Model::Medium, 100, 58_000),
        (Model::Medium, 500, 290_000),
    ] {
        let size = size(model, entries);
        let difference = size.abs_diff(expected) * 100;
        assert!(
            difference <= 3 * expected,
            "{model:?} {entries}: {size} bytes, {expected} expected"
        );
    }
    // The article gives no size for the normalized model.
    assert!(size(Model::Complex, 500) > size(Model::Medium, 500));
}

#[test]
fn files_are_the_same_each_time_and_are_not_replaced() {
    let (folder, files) = data();
    let (file, path) = &files[0];
    assert_eq!(fs::read(path).unwrap(), file.generate().unwrap());
    fs::write(path, "<addressbook/>").unwrap();
    lab_addressbook::make_missing(folder.path()).unwrap();
    assert_eq!(fs::read_to_string(path).unwrap(), "<addressbook/>");
}
