//! The stylesheet, run by `xsltproc` and by the program itself, gives what the other ways give.

use std::path::Path;
use std::process::Command;

use lab_addressbook::{BookView, STYLESHEET, stream, xslt};

use crate::ways::AWKWARD;
use crate::{VIEWS, data};

/// The output of `xsltproc`; `None` if it is not installed.
fn xsltproc(stylesheet: &Path, file: &Path, view: BookView<'_>) -> Option<String> {
    let (name, value) = match view {
        BookView::List => ("list", ""),
        BookView::Search(text) => ("search", text),
        BookView::Entry(id) => ("entry", id),
    };
    let output = Command::new("xsltproc")
        .args(["--nonet", "--stringparam", "base", "/base"])
        .args([
            "--stringparam",
            "view",
            name,
            "--stringparam",
            "value",
            value,
        ])
        .args([stylesheet, file])
        .output()
        .ok()?;
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.is_empty(), "{said}");
    Some(String::from_utf8(output.stdout).unwrap())
}

#[test]
fn the_stylesheet_makes_the_same_pages() {
    let (folder, mut files) = data();
    let stylesheet = folder.path().join("addressbook.xsl");
    std::fs::write(&stylesheet, STYLESHEET).unwrap();
    let awkward = folder.path().join("awkward.xml");
    std::fs::write(&awkward, AWKWARD).unwrap();
    files.push((files[0].0, awkward));
    for (_, path) in &files {
        for view in VIEWS {
            let expected = stream::render(path, "/base", view).unwrap();
            let Some(output) = xsltproc(&stylesheet, path, view) else {
                eprintln!("left out: xsltproc is not installed (cargo xtask programs)");
                return;
            };
            let own = xslt::render(path, "/base", view).unwrap();
            assert!(own == expected, "{view:?}: {own:?} is not {expected:?}");
            // A document ends with a line end, and a page that is not there is an empty one.
            let output = output.strip_suffix('\n').unwrap_or(&output);
            let expected = expected.unwrap_or_default();
            assert!(output == expected, "{view:?}: {output} is not {expected}");
        }
    }
}

#[test]
fn threads_share_the_stylesheet() {
    if let Err(reason) = xslt::is_available() {
        eprintln!("left out: {reason}");
        return;
    }
    let (_folder, files) = data();
    std::thread::scope(|scope| {
        for (_, path) in files.iter().chain(&files) {
            scope.spawn(move || {
                for view in VIEWS {
                    let expected = stream::render(path, "/base", view).unwrap();
                    assert!(xslt::render(path, "/base", view).unwrap() == expected);
                }
            });
        }
    });
}

#[test]
fn parameters_are_texts() {
    if let Err(reason) = xslt::is_available() {
        eprintln!("left out: {reason}");
        return;
    }
    let (_folder, files) = data();
    for text in [
        "'\"",
        "'] | //*['",
        "$base",
        "concat('a', \"b\")",
        "&amp;<",
        "\u{1F600}",
    ] {
        for view in [BookView::Search(text), BookView::Entry(text)] {
            let expected = stream::render(&files[0].1, text, view).unwrap();
            assert_eq!(xslt::render(&files[0].1, text, view).unwrap(), expected);
        }
    }
    let zero = xslt::render(&files[0].1, "/base", BookView::Search("\0"));
    assert!(
        zero.unwrap_err()
            .to_string()
            .contains("a zero byte is in value")
    );
}
