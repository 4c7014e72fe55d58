//! A folder loaded, changed, loaded again, and asked for its files.

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, PermissionsExt, symlink};
use std::time::{Duration, SystemTime};

use millpond_http::{Body, Coding, OwnedRequest};
use tempfile::TempDir;

use super::*;

/// A folder `static` with these files, all written an hour ago, as far as their times say.
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
    let hour_ago = SystemTime::now() - Duration::from_secs(3600);
    file.unwrap().set_modified(hour_ago).unwrap();
}

/// Those of a site that says nothing.
fn settings() -> FileSettings {
    FileSettings {
        index: vec!["index.html".to_owned()],
        ..FileSettings::default()
    }
}

fn load(temp: &TempDir, previous: Option<&Statics>) -> Statics {
    Statics::load(&temp.path().join("static"), previous, &settings()).unwrap()
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
    let problem = Statics::load(&temp.path().join("static"), None, &settings()).unwrap_err();
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
    let age = SystemTime::now().duration_since(date).unwrap();
    assert!(age >= Duration::from_secs(3599), "{age:?}");
}

#[test]
fn what_is_hidden_or_outside_is_not_served() {
    let temp = folder(&[
        ("real/x.txt", b"x"),
        (".env", b"secret"),
        (".git/config", b"secret"),
        ("a/.hidden/y", b"secret"),
    ]);
    let dir = temp.path().join("static");
    fs::write(temp.path().join("site.db"), "secret").unwrap();
    fs::create_dir(temp.path().join("static-not")).unwrap();
    fs::write(temp.path().join("static-not/z"), "secret").unwrap();
    for (target, link) in [
        ("../site.db", "db"),
        ("..", "up"),
        ("/etc/passwd", "passwd"),
        ("../static-not", "sibling"),
        (".env", "env"),
        ("a/.hidden", "hidden"),
        ("nowhere", "broken"),
        ("self", "self"),
        (".", "circle"),
        ("real", "alias"),
        ("real/x.txt", "x"),
        ("../static/real/x.txt", "round"),
        ("../x.txt", "real/up"),
        ("../real", "real/again"),
    ] {
        symlink(target, dir.join(link)).unwrap();
    }
    // A pipe: opening it would wait for a writer for ever.
    rustix::fs::mknodat(
        rustix::fs::CWD,
        dir.join("pipe"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    let statics = load(&temp, None);
    assert_eq!(
        paths(&statics),
        ["/alias/x.txt", "/real/x.txt", "/round", "/x"]
    );
    assert_eq!(content(&statics, "/round").unwrap(), b"x");
    // The type is that of the name that was asked for.
    let alias = respond(statics.find("/x").unwrap(), "GET", &[]);
    assert_eq!(
        alias.field("content-type"),
        Some("application/octet-stream")
    );
}

#[test]
fn links_across_end() {
    let temp = folder(&[("a/x", b"x"), ("b/y", b"y")]);
    symlink("../b", temp.path().join("static/a/b")).unwrap();
    symlink("../a", temp.path().join("static/b/a")).unwrap();
    let statics = load(&temp, None);
    assert_eq!(paths(&statics), ["/a/b/y", "/a/x", "/b/a/x", "/b/y"]);
}

#[test]
fn a_folder_too_deep_is_a_problem() {
    let deep = "d/".repeat(40) + "x";
    let temp = folder(&[(&deep, b"x")]);
    let problem = Statics::load(&temp.path().join("static"), None, &settings()).unwrap_err();
    assert!(problem.message.contains("deep"), "{problem}");
}

#[test]
fn what_is_the_same_is_taken_over() {
    let temp = folder(&[("same", b"same"), ("changed", b"before"), ("fresh", b"1")]);
    write(&temp, "fresh", b"2");
    let before = load(&temp, None);
    assert!(before.find("/same").unwrap().settled && !before.find("/fresh").unwrap().settled);
    write(&temp, "changed", b"after!");
    write(&temp, "new", b"new");
    let after = load(&temp, Some(&before));
    let is_same = |path| Arc::ptr_eq(prepared(&before, path), prepared(&after, path));
    assert!(is_same("/same") && is_same("/fresh") && !is_same("/changed"));
    assert_eq!(content(&after, "/changed").unwrap(), b"after!");
    assert_eq!((before.len(), after.len()), (3, 4));
    assert_eq!(content(&before, "/changed").unwrap(), b"before");
    fs::remove_file(temp.path().join("static/same")).unwrap();
    assert!(load(&temp, Some(&after)).find("/same").is_none());
}

#[test]
fn a_settled_file_is_not_read_again() {
    let temp = folder(&[("x", b"x")]);
    let before = load(&temp, None);
    // What was loaded is made to say something else than the file: only reading it would tell.
    let mut other = Statics::default();
    let mut file = before.find("/x").unwrap().clone();
    let elsewhere = folder(&[("x", b"y")]);
    file.content = load(&elsewhere, None).find("/x").unwrap().content.clone();
    other.files.insert("/x".to_owned(), file);
    assert_eq!(content(&load(&temp, Some(&other)), "/x").unwrap(), b"y");
}

#[test]
fn a_write_that_left_the_same_times_is_noticed() {
    let temp = folder(&[]);
    write(&temp, "x", b"one");
    let mut before = load(&temp, None);
    // The same size and, as far as the file system can tell, the same moment.
    write(&temp, "x", b"two");
    let file = File::open(temp.path().join("static/x")).unwrap();
    before.files.get_mut("/x").unwrap().stamp = Stamp::of(&file.metadata().unwrap());
    assert_eq!(content(&load(&temp, Some(&before)), "/x").unwrap(), b"two");
}

#[test]
fn times_set_back_do_not_hide_a_change() {
    let temp = folder(&[("x", b"one")]);
    let before = load(&temp, None);
    let path = temp.path().join("static/x");
    let time = fs::metadata(&path).unwrap().modified().unwrap();
    fs::write(&path, "two").unwrap();
    File::options()
        .write(true)
        .open(&path)
        .unwrap()
        .set_modified(time)
        .unwrap();
    assert_eq!(content(&load(&temp, Some(&before)), "/x").unwrap(), b"two");
}

#[test]
fn the_largest_stay_on_disk_when_memory_is_used_up() {
    let temp = folder(&[
        ("a", &[b'a'; 400]),
        ("b", &[b'b'; 500]),
        ("c", &[b'c'; 600]),
    ]);
    let dir = temp.path().join("static");
    let statics = Statics::load_within(&dir, None, &settings(), 1000).unwrap();
    let in_memory = |path| statics.find(path).unwrap().prepared().is_some();
    assert!(in_memory("/a") && in_memory("/b") && !in_memory("/c"));
    assert_eq!(content(&statics, "/c").unwrap(), [b'c'; 600]);
    let all = Statics::load_within(&dir, Some(&statics), &settings(), 2000).unwrap();
    assert!(
        all.find("/c").unwrap().prepared().is_some(),
        "there is room now"
    );
    assert!(Arc::ptr_eq(prepared(&statics, "/a"), prepared(&all, "/a")));
}

fn big() -> Vec<u8> {
    (0..(MAX_IN_MEMORY as u32 + 1000) / 4)
        .flat_map(u32::to_be_bytes)
        .collect()
}

#[test]
fn a_big_file_is_sent_from_disk() {
    let big = big();
    let temp = folder(&[
        ("big.html", &big),
        ("small.html", &big[..MAX_IN_MEMORY as usize]),
    ]);
    let statics = load(&temp, None);
    assert!(statics.find("/small.html").unwrap().prepared().is_some());
    let file = statics.find("/big.html").unwrap();
    assert!(file.prepared().is_none());
    let response = respond(file, "GET", &[("Accept-Encoding", "gzip")]);
    assert!(matches!(response.body(), Body::File { .. }));
    assert_eq!((response.status(), body(&response) == big), (200, true));
    for (name, value) in [
        ("content-type", "text/html; charset=utf-8"),
        ("content-length", &big.len().to_string()),
        ("cache-control", "no-cache"),
        ("x-content-type-options", "nosniff"),
        ("accept-ranges", "bytes"),
    ] {
        assert_eq!(response.field(name), Some(value));
    }
    let part = respond(file, "GET", &[("Range", "bytes=1048570-1048580")]);
    assert_eq!(
        (part.status(), body(&part)),
        (206, big[1_048_570..=1_048_580].to_vec())
    );
    let total = format!("bytes 1048570-1048580/{}", big.len());
    assert_eq!(part.field("content-range"), Some(&total[..]));
    assert_eq!(part.field("content-length"), Some("11"));
    assert_eq!(part.field("etag"), response.field("etag"));
    let suffix = respond(file, "GET", &[("Range", "bytes=-5")]);
    assert_eq!(body(&suffix), big[big.len() - 5..]);

    let again = load(&temp, Some(&statics));
    let (Content::Disk(a), Content::Disk(b)) =
        (&file.content, &again.find("/big.html").unwrap().content)
    else {
        panic!("both are on disk");
    };
    assert!(Arc::ptr_eq(a, b), "the open file is kept");
}

/// A file on disk must answer as one in memory does: the same requests to both.
#[test]
fn conditions_and_ranges_mean_the_same_on_disk_and_in_memory() {
    let temp = folder(&[("x.bin", &[b'x'; 1000])]);
    let dir = temp.path().join("static");
    let memory = load(&temp, None);
    let disk = Statics::load_within(&dir, None, &settings(), 0).unwrap();
    let files = [memory.find("/x.bin").unwrap(), disk.find("/x.bin").unwrap()];
    let date = respond(files[0], "GET", &[])
        .field("last-modified")
        .unwrap()
        .to_owned();
    let earlier = httpdate::parse_http_date(&date).unwrap() - Duration::from_secs(1);
    let earlier = httpdate::fmt_http_date(earlier);
    let values = [
        "TAG",
        "W/TAG",
        "\"other\", TAG",
        "W/\"o\" ,\t,TAG",
        "\"other\"",
        "*",
        "TAG",
        "nonsense",
        "nonsense, TAG",
        "\"",
        "W/",
        "",
        "\"a,b\",TAG",
        &date,
        &earlier,
        "yesterday",
    ];
    let ranges = [
        None,
        Some("bytes=0-9"),
        Some("BYTES=990-"),
        Some("bytes=-1"),
        Some("bytes=-0"),
        Some("bytes=-99999"),
        Some("bytes=1000-"),
        Some("bytes=999-99999999999999999999999"),
        Some("bytes=9-1"),
        Some("bytes=0-1,4-2"),
        Some("bytes=-"),
        Some("lines=1-2"),
        Some("bytes= 1-2 "),
        Some("bytes=+1-2"),
        Some("bytes"),
        Some("bytes=99999999999999999999999-"),
    ];
    let names = [
        "if-match",
        "if-none-match",
        "if-modified-since",
        "if-unmodified-since",
        "if-range",
    ];
    let mut seen = std::collections::BTreeSet::new();
    let mut ask = |method: &str, name: &str, value: &str, range: Option<&str>| {
        let answers = files.map(|file| {
            let etag = respond(file, "GET", &[]);
            let value = value.replace("TAG", etag.field("etag").unwrap());
            let mut fields = vec![(name, &value[..])];
            fields.extend(range.map(|range| ("Range", range)));
            let response = respond(file, method, &fields);
            let field = |name| response.field(name).map(str::to_owned);
            let has_tag = matches!(response.status(), 200 | 206 | 304);
            assert_eq!(field("etag").is_some(), has_tag);
            let fields = [
                "content-type",
                "content-range",
                "content-length",
                "last-modified",
                "cache-control",
                "accept-ranges",
            ];
            (response.status(), fields.map(field), body(&response))
        });
        assert_eq!(
            answers[0], answers[1],
            "{method} {name}: {value:?} {range:?}"
        );
        seen.insert(answers[0].0);
    };
    for method in ["GET", "HEAD", "POST"] {
        for name in names {
            for value in values {
                for range in ranges {
                    ask(method, name, value, range);
                }
            }
        }
    }
    assert_eq!(
        seen.into_iter().collect::<Vec<_>>(),
        [200, 206, 304, 412, 416]
    );
}

#[test]
fn a_big_file_that_grows_is_described_as_it_is() {
    let temp = folder(&[("big", &big())]);
    let statics = load(&temp, None);
    let file = statics.find("/big").unwrap();
    let before = respond(file, "GET", &[]);
    let path = temp.path().join("static/big");
    File::options()
        .write(true)
        .open(path)
        .unwrap()
        .set_len(MAX_IN_MEMORY * 2)
        .unwrap();
    let after = respond(file, "GET", &[]);
    assert_eq!(after.field("content-length"), Some("2097152"));
    assert_ne!(before.field("etag"), after.field("etag"));
    File::options()
        .write(true)
        .open(temp.path().join("static/big"))
        .unwrap()
        .set_len(0)
        .unwrap();
    let empty = respond(file, "GET", &[("Range", "bytes=0-")]);
    assert_eq!(empty.status(), 416);
    assert_eq!(respond(file, "GET", &[]).field("content-length"), Some("0"));
}

#[test]
fn a_file_that_may_not_be_read_is_a_problem() {
    if rustix::process::geteuid().is_root() {
        return; // Root may read everything.
    }
    let temp = folder(&[("docs/x", b"x")]);
    let path = temp.path().join("static/docs/x");
    fs::set_permissions(path, fs::Permissions::from_mode(0o000)).unwrap();
    let problem = Statics::load(&temp.path().join("static"), None, &settings()).unwrap_err();
    assert_eq!(problem.file, Path::new("static/docs/x"));
    assert!(problem.hint.is_some());
}

#[test]
fn the_limit_of_open_files_is_told() {
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
