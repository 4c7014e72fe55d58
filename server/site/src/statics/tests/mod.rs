//! A folder loaded, changed, loaded again, and asked for its files.

mod disk;
mod links;
mod precompressed;
mod reload;

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, PermissionsExt, symlink};
use std::time::{Duration, SystemTime};

use millpond_http::{Body, Coding, OwnedRequest};
use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
use tempfile::TempDir;

use super::*;

/// Of a copy is made only up to this size, and from a quarter of it on the kernel sends it.
const OPTIONS: StaticOptions = StaticOptions {
    memory: 100_000_000,
    in_memory: 64 << 10,
    sendfile_from: 16 << 10,
    follow_links: false,
};

/// A folder `static` with these files, whose modification times are an hour ago. It is on disk,
/// because tests replace files and send files from disk.
fn folder(files: &[(&str, &[u8])]) -> TempDir {
    let temp = tempfile::tempdir().unwrap();
    fs::create_dir(temp.path().join("static")).unwrap();
    for (name, content) in files {
        write(&temp, name, content);
        set_back(&temp, name);
    }
    temp
}

fn write(temp: &TempDir, name: &str, content: &[u8]) {
    let path = temp.path().join("static").join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

fn set_back(temp: &TempDir, name: &str) {
    let file = File::options()
        .write(true)
        .open(temp.path().join("static").join(name));
    let hour_ago = base_clock::wall() - Duration::from_secs(3600);
    file.unwrap().set_modified(hour_ago).unwrap();
}

/// Returns the settings of a site that says nothing.
fn settings() -> FileSettings {
    FileSettings {
        index: vec!["index.html".to_owned()],
        ..FileSettings::default()
    }
}

fn load(temp: &TempDir, previous: Option<&Statics>) -> Statics {
    load_with(temp, &OPTIONS, previous)
}

fn load_with(temp: &TempDir, options: &StaticOptions, previous: Option<&Statics>) -> Statics {
    Statics::load(&temp.path().join("static"), options, &settings(), previous).unwrap()
}

/// Loads the files with a limit on descriptors.
fn load_open(temp: &TempDir, descriptors: usize, previous: Option<&Statics>) -> Statics {
    let budget = Budget::new(&OPTIONS, descriptors);
    Statics::load_within(
        &temp.path().join("static"),
        &OPTIONS,
        &settings(),
        previous,
        budget,
    )
    .unwrap()
}

/// Root may read every file; a thread without these two capabilities may not.
fn without_privileges() {
    let mut mine = capabilities(None).unwrap();
    mine.effective -= CapabilitySet::DAC_OVERRIDE | CapabilitySet::DAC_READ_SEARCH;
    set_capabilities(None, mine).unwrap();
}

fn respond(file: &StaticFile, method: &str, fields: &[(&str, &str)]) -> Response {
    let request = OwnedRequest::new(method, "/");
    let request = fields
        .iter()
        .fold(request, |request, (name, value)| request.field(name, value));
    file.respond(&request.as_request())
}

fn body(response: &Response) -> Vec<u8> {
    match response.body() {
        Body::Empty => Vec::new(),
        Body::Bytes(bytes) => bytes.to_vec(),
        Body::File { file, offset, len } => {
            let mut bytes = vec![0; usize::try_from(*len).unwrap()];
            file.read_exact_at(&mut bytes, *offset).unwrap();
            bytes
        }
        Body::Streamed(_) => panic!("a file is not streamed"),
    }
}

fn content(statics: &Statics, path: &str) -> Option<Vec<u8>> {
    Some(body(&respond(statics.find(path)?, "GET", &[])))
}

fn prepared<'a>(statics: &'a Statics, path: &str) -> &'a Arc<Prepared> {
    statics.find(path).unwrap().prepared().unwrap()
}

fn paths(statics: &Statics) -> Vec<&str> {
    let mut paths: Vec<_> = statics.files.keys().map(String::as_str).collect();
    paths.sort_unstable();
    paths
}

#[test]
fn a_missing_folder_is_empty_and_a_file_in_its_place_a_problem() {
    let temp = tempfile::tempdir().unwrap();
    assert_eq!(load(&temp, None).len(), 0);
    fs::create_dir(temp.path().join("static")).unwrap();
    assert_eq!(load(&temp, None).len(), 0);
    fs::remove_dir(temp.path().join("static")).unwrap();
    fs::write(temp.path().join("static"), "").unwrap();
    let problem =
        Statics::load(&temp.path().join("static"), &OPTIONS, &settings(), None).unwrap_err();
    assert_eq!(problem.file, Path::new("static"));
    assert_eq!(problem.hint.as_deref(), Some("it must be a folder"));
}

#[test]
fn files_and_folders() {
    let temp = folder(&[
        ("style.css", b"body {}"),
        ("index.html", b"front"),
        ("docs/index.html", b"docs"),
        ("docs/a b ä.txt", b"umlaut"),
        ("deep/er/x", b""),
        ("not-index.html", b"other"),
    ]);
    let statics = load(&temp, None);
    assert_eq!(statics.len(), 6);
    for (path, expected) in [
        ("/style.css", Some("body {}")),
        ("/", Some("front")),
        ("/docs/", Some("docs")),
        ("/docs/index.html", Some("docs")),
        ("/docs/a b ä.txt", Some("umlaut")),
        ("/deep/er/x", Some("")),
        ("/docs", None),
        ("/deep/", None),
        ("/not-", None),
        ("style.css", None),
        ("/../static/style.css", None),
        ("//style.css", None),
        ("", None),
    ] {
        let found = content(&statics, path);
        assert_eq!(found.as_deref(), expected.map(str::as_bytes), "{path}");
    }
    let css = respond(statics.find("/style.css").unwrap(), "GET", &[]);
    assert_eq!(css.field("content-type"), Some("text/css; charset=utf-8"));
    assert_eq!(css.field("cache-control"), Some("no-cache"));
    assert_eq!(css.field("x-content-type-options"), Some("nosniff"));
    let date = httpdate::parse_http_date(css.field("last-modified").unwrap()).unwrap();
    let age = base_clock::wall().duration_since(date).unwrap();
    assert!(age >= Duration::from_secs(3599), "{age:?}");
}

#[test]
fn what_may_not_be_read_is_said_once_and_refused() {
    let temp = folder(&[("docs/x", b"x"), ("docs/y", b"y"), ("shut/z", b"z")]);
    let at = |name: &str| temp.path().join("static").join(name);
    let may = |name: &str, mode| {
        fs::set_permissions(at(name), fs::Permissions::from_mode(mode)).unwrap();
    };
    may("docs/x", 0o000);
    may("shut", 0o000);
    without_privileges();
    let statics = load(&temp, None);
    let mut notes: Vec<_> = statics.news(None).map(ToString::to_string).collect();
    notes.sort_unstable();
    let expected = ["static/docs/x", "static/shut"].map(|name| {
        format!(
            "{name}: cannot be read: Permission denied (os error 13)\n  \
             hint: let the user that runs millpond read it, or take it out of the folder"
        )
    });
    assert_eq!(notes, expected);
    assert_eq!(content(&statics, "/docs/y").unwrap(), b"y");
    assert!(statics.find("/shut/z").is_none());
    let refused = respond(statics.find("/docs/x").unwrap(), "GET", &[]);
    assert_eq!(refused.status(), 403);
    assert_eq!(refused.field("cache-control"), Some("no-store"));
    let again = load(&temp, Some(&statics));
    assert_eq!(again.news(Some(&statics)).count(), 0);
    may("docs/x", 0o600);
    may("shut", 0o700);
    let mended = load(&temp, Some(&again));
    assert_eq!(content(&mended, "/docs/x").unwrap(), b"x");
    assert_eq!(content(&mended, "/shut/z").unwrap(), b"z");
    assert!(mended.notes().is_empty());
}

#[test]
fn the_limit_of_open_files_is_reported() {
    let error = std::io::Error::from_raw_os_error(rustix::io::Errno::MFILE.raw_os_error());
    let problem = scan::unreadable(Path::new("static/big"), &error);
    assert!(problem.hint.unwrap().contains("ulimit -n"));
}

#[test]
fn codings_are_made_of_what_is_in_memory() {
    let temp = folder(&[("a.css", &[b'a'; 2000]), ("a.png", &[b'a'; 2000])]);
    let statics = load(&temp, None);
    let request = OwnedRequest::new("GET", "/").field("Accept-Encoding", "br");
    assert_eq!(
        prepared(&statics, "/a.css").wanted(&request.as_request()),
        Some(Coding::Brotli)
    );
    assert_eq!(
        prepared(&statics, "/a.png").wanted(&request.as_request()),
        None
    );
}

#[test]
fn a_large_copy_is_sent_by_the_kernel_and_compressed_like_any_other() {
    let text = "a line of text\n".repeat(2000);
    let temp = folder(&[("large.txt", text.as_bytes()), ("small.txt", b"small")]);
    let statics = load(&temp, None);
    let large = statics.find("/large.txt").unwrap();
    let response = respond(large, "GET", &[]);
    assert!(matches!(response.body(), Body::File { .. }));
    assert_eq!(body(&response), text.as_bytes());
    let part = respond(large, "GET", &[("Range", "bytes=15-20")]);
    assert_eq!((part.status(), body(&part)), (206, b"a line".to_vec()));
    assert!(!large.looks, "nobody else can write the copy");
    let small = respond(statics.find("/small.txt").unwrap(), "GET", &[]);
    assert!(matches!(small.body(), Body::Bytes(_)));
    // Written in place: what is served stays whole until the folder is loaded again.
    write(&temp, "large.txt", b"other");
    assert_eq!(body(&respond(large, "GET", &[])), text.as_bytes());
    assert!(prepared(&statics, "/large.txt").make(Coding::Gzip) > 0);
    let coded = respond(large, "GET", &[("Accept-Encoding", "gzip")]);
    assert_eq!(coded.field("content-encoding"), Some("gzip"));
    assert_eq!(coded.field("vary"), Some("Accept-Encoding"));
}

#[test]
fn codings_are_made_within_the_memory() {
    let (a, b) = ("a".repeat(6000), "b".repeat(5000));
    let temp = folder(&[("a.txt", a.as_bytes()), ("b.txt", b.as_bytes())]);
    let options = StaticOptions {
        memory: 20_000,
        ..OPTIONS
    };
    let statics = load_with(&temp, &options, None);
    assert_eq!(statics.room.left(), 9000);
    let compressor = Compressor::start();
    let request = |statics: &Statics, path, coding| {
        let request = OwnedRequest::new("GET", "/").field("Accept-Encoding", coding);
        statics.request_coding(
            statics.find(path).unwrap(),
            &request.as_request(),
            &compressor,
        );
        // An earlier request is done once a later one is.
        let (done, end) = std::sync::mpsc::channel();
        let other = folder(&[("x.txt", "x".repeat(1000).as_bytes())]);
        let other = load(&other, None);
        compressor.request_coding(prepared(&other, "/x.txt"), Coding::Gzip, move |_| {
            done.send(()).unwrap();
        });
        end.recv().unwrap();
    };
    request(&statics, "/a.txt", "gzip");
    let coded = respond(
        statics.find("/a.txt").unwrap(),
        "GET",
        &[("Accept-Encoding", "gzip")],
    );
    assert_eq!(coded.field("content-encoding"), Some("gzip"));
    let left = statics.room.left();
    assert!(
        (8000..9000).contains(&left),
        "the coding alone was taken: {left}"
    );
    // What is made stays counted when the folder is loaded again.
    let again = load_with(&temp, &options, Some(&statics));
    assert_eq!(again.room.left(), left);
    let tight = StaticOptions {
        memory: 11_000,
        ..options
    };
    let tight = load_with(&temp, &tight, None);
    request(&tight, "/b.txt", "gzip");
    let plain = respond(
        tight.find("/b.txt").unwrap(),
        "GET",
        &[("Accept-Encoding", "gzip")],
    );
    assert_eq!(
        plain.field("content-encoding"),
        None,
        "there is no memory for it"
    );
}
