//! Codings that lie beside their files.

use super::*;

fn gzip(content: &[u8]) -> Vec<u8> {
    // What is in it does not matter here; that it is shorter does.
    content[..content.len() / 2].to_vec()
}

/// The coding of the response to a client that reads `accept`, and its content.
fn get(statics: &Statics, path: &str, accept: &str) -> (Option<String>, Vec<u8>) {
    let file = statics.find(path).unwrap();
    let response = respond(file, "GET", &[("Accept-Encoding", accept)]);
    assert_eq!(response.status(), 200);
    let coding = response.field("content-encoding").map(str::to_owned);
    (coding, body(&response))
}

fn set_time(temp: &TempDir, name: &str, seconds_ago: u64) {
    let file = File::options()
        .write(true)
        .open(temp.path().join("static").join(name))
        .unwrap();
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000 - seconds_ago);
    file.set_modified(time).unwrap();
}

#[test]
fn a_file_beside_another_is_its_coding() {
    // In memory, in the kernel, and on disk.
    for len in [1000, 30_000, 200_000] {
        let (plain, br, zst, gz) = (
            vec![b'p'; len],
            vec![b'b'; len - 400],
            vec![b'z'; len - 300],
            vec![b'g'; len - 200],
        );
        let temp = folder(&[
            ("app.js", &plain),
            ("app.js.br", &br),
            ("app.js.zst", &zst),
            ("app.js.gz", &gz),
        ]);
        ["app.js", "app.js.br", "app.js.zst", "app.js.gz"]
            .iter()
            .for_each(|name| set_time(&temp, name, 0));
        let statics = load(&temp, None);
        for (accept, coding, content) in [
            ("br", Some("br"), &br),
            ("zstd", Some("zstd"), &zst),
            ("gzip", Some("gzip"), &gz),
            ("x-gzip", Some("gzip"), &gz),
            ("gzip, deflate, br, zstd", Some("br"), &br),
            ("*", Some("br"), &br),
            ("gzip;q=1, br;q=0.5", Some("gzip"), &gz),
            ("br;q=0, *", Some("zstd"), &zst),
            ("gzip;q=0.2, identity;q=0.5", None, &plain),
            ("*;q=0", None, &plain),
            ("identity;q=0, gzip;q=0.1", Some("gzip"), &gz),
            ("", None, &plain),
        ] {
            let (found, sent) = get(&statics, "/app.js", accept);
            assert_eq!(found.as_deref(), coding, "{len} {accept}");
            assert!(sent == *content, "{len} {accept}");
        }
        let file = statics.find("/app.js").unwrap();
        let plain_response = respond(file, "GET", &[]);
        assert_eq!(plain_response.field("vary"), Some("Accept-Encoding"));
        let coded = respond(file, "GET", &[("Accept-Encoding", "br")]);
        let content_type = Some("text/javascript; charset=utf-8");
        assert_eq!(coded.field("content-type"), content_type);
        let tag = coded.field("etag").unwrap();
        assert_ne!(Some(tag), plain_response.field("etag"));
        let fields = [("Accept-Encoding", "br"), ("If-None-Match", tag)];
        let unchanged = respond(file, "GET", &fields);
        assert_eq!(unchanged.status(), 304);
        assert_eq!(unchanged.field("vary"), Some("Accept-Encoding"));
        // By its own name it is a file like any other.
        assert_eq!(get(&statics, "/app.js.gz", "gzip"), (None, gz));
        let own = respond(statics.find("/app.js.gz").unwrap(), "GET", &[]);
        assert_eq!(own.field("content-type"), Some("application/gzip"));
        assert_eq!(own.field("vary"), None);
    }
}

#[test]
fn an_older_one_is_of_another_version() {
    let text = [b't'; 1000];
    let temp = folder(&[("a.png", &text), ("a.png.gz", &gzip(&text))]);
    set_time(&temp, "a.png", 10);
    for (ago, coding) in [(10, Some("gzip")), (9, Some("gzip")), (11, None)] {
        set_time(&temp, "a.png.gz", ago);
        let found = get(&load(&temp, None), "/a.png", "gzip").0;
        assert_eq!(found.as_deref(), coding, "{ago}");
    }
}

#[test]
fn one_that_is_empty_or_saves_nothing_is_not_used() {
    let text = [b't'; 1000];
    let temp = folder(&[
        ("a.png", &text),
        ("a.png.gz", b""),
        ("a.png.br", &text),
        ("b.png.gz", b"without its file"),
    ]);
    let statics = load(&temp, None);
    assert_eq!(get(&statics, "/a.png", "gzip, br"), (None, text.to_vec()));
    assert!(statics.find("/b.png").is_none());
}

#[test]
fn its_changes_are_changes_of_the_representation() {
    let text = [b't'; 1000];
    let temp = folder(&[("a.css", &text), ("a.css.br", b"one"), ("b.css", &text)]);
    let tag = |statics: &Statics| {
        let response = respond(statics.find("/a.css").unwrap(), "GET", &[]);
        response.field("etag").unwrap().to_owned()
    };
    let before = load(&temp, None);
    let same = load(&temp, Some(&before));
    assert!(Arc::ptr_eq(
        prepared(&before, "/a.css"),
        prepared(&same, "/a.css")
    ));
    write(&temp, "a.css.br", b"two");
    let after = load(&temp, Some(&same));
    assert_ne!(tag(&before), tag(&after));
    assert_eq!(get(&after, "/a.css", "br").1, b"two");
    // The other codings are made as of any file.
    assert!(prepared(&after, "/a.css").make(Coding::Gzip) > 0);
    assert_eq!(get(&after, "/a.css", "gzip").0.as_deref(), Some("gzip"));
    fs::remove_file(temp.path().join("static/a.css.br")).unwrap();
    let without = load(&temp, Some(&after));
    assert_eq!(get(&without, "/a.css", "br"), (None, text.to_vec()));
}

#[test]
fn a_coding_on_disk_that_is_written_is_not_sent_under_its_old_head() {
    let text = [b't'; 200_000];
    let temp = folder(&[("a.css", &text), ("a.css.br", &[b'1'; 100_000])]);
    let statics = load(&temp, None);
    assert_eq!(get(&statics, "/a.css", "br").0.as_deref(), Some("br"));
    write(&temp, "a.css.br", &[b'2'; 100_000]);
    assert_eq!(get(&statics, "/a.css", "br"), (None, text.to_vec()));
}
