//! Static files while they change: real files, real inotify events.

use std::{
    fs::{self, File},
    os::unix::fs::symlink,
    time::{Duration, SystemTime},
};

use millpond_http::{Coding, OwnedRequest};

use crate::support::{Answer, TestSite, write};

/// Settings under which a file of more than 1,000 bytes is sent from disk.
const SMALL: &str =
    "[database]\nurl = \"sqlite:site.db\"\n[static]\nin_memory = 1000\nsendfile_from = 500\n";

fn accepting(site: &TestSite, target: &str, codings: &str) -> Answer {
    let request = OwnedRequest::new("GET", target)
        .field("Host", "site.test")
        .field("Accept-Encoding", codings);
    site.ask(&request)
}

/// Makes `name` `seconds` older than it is.
fn age(site: &TestSite, name: &str, seconds: u64) {
    let file = File::options()
        .write(true)
        .open(site.dir.path().join(name))
        .unwrap();
    let time = SystemTime::now() - Duration::from_secs(seconds);
    file.set_modified(time).unwrap();
}

#[test]
fn a_file_comes_changes_and_goes_by_itself() {
    // Sent from memory, by sendfile, and from disk.
    for len in [100, 700, 5000] {
        let site = TestSite::new(&[("millpond.toml", SMALL)]);
        let path = site.dir.path().join("static/docs/a.bin");
        assert_eq!(site.get("/docs/a.bin").status, 404);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let one = "1".repeat(len);
        fs::write(&path, &one).unwrap();
        site.until("it is there", || site.get("/docs/a.bin").body == one);
        let first = site.get("/docs/a.bin").field("etag").to_owned();
        // In place, with the same length.
        let two = "2".repeat(len);
        fs::write(&path, &two).unwrap();
        site.until("it has changed", || site.get("/docs/a.bin").body == two);
        assert_ne!(site.get("/docs/a.bin").field("etag"), first);
        fs::remove_file(&path).unwrap();
        site.until("it is gone", || site.get("/docs/a.bin").status == 404);
    }
}

#[test]
fn a_replaced_file_is_one_or_the_other() {
    let site = TestSite::new(&[("millpond.toml", SMALL), ("static/a.bin", "0")]);
    let dir = site.dir.path();
    let content = |version: usize| version.to_string().repeat(300 * version);
    for version in 1..6 {
        // Of ever greater length: from memory, then by sendfile, then from disk.
        fs::write(dir.join("a.new"), content(version)).unwrap();
        fs::rename(dir.join("a.new"), dir.join("static/a.bin")).unwrap();
        site.until("the new version is there", || {
            let answer = site.get("/a.bin");
            let versions = [content(version - 1), content(version)];
            assert!(version == 1 || versions.contains(&answer.body));
            assert_eq!(
                answer.field("content-length"),
                answer.body.len().to_string()
            );
            answer.body == versions[1]
        });
    }
}

#[test]
fn a_large_file_that_is_cut_or_grows_is_described_as_it_is() {
    let site = TestSite::new(&[
        ("millpond.toml", SMALL),
        ("static/a.bin", &"x".repeat(9000)),
    ]);
    let file = File::options()
        .write(true)
        .open(site.dir.path().join("static/a.bin"))
        .unwrap();
    for len in [5000, 20_000, 2000, 0] {
        file.set_len(len).unwrap();
        // At once, before the event of the watch arrives.
        let answer = site.get("/a.bin");
        assert_eq!(answer.status, 200);
        assert_eq!(answer.field("content-length"), len.to_string());
        assert_eq!(answer.body.len() as u64, len);
    }
}

#[test]
fn a_coding_beside_a_file_comes_and_goes_by_itself() {
    let text = "text ".repeat(1000);
    let site = TestSite::new(&[("static/a.css", &text)]);
    age(&site, "static/a.css", 100);
    let coded = site.dir.path().join("static/a.css.zst");
    // Not as the server makes it: with what may be skipped behind it.
    let code = |text: &str| {
        let mut code = Coding::Zstd.compress(text.as_bytes()).unwrap();
        code.extend(*b"\x50\x2a\x4d\x18\x05\0\0\0coded");
        code
    };
    fs::write(&coded, code(&text)).unwrap();
    let is_coded = || accepting(&site, "/a.css", "zstd").body.ends_with("coded");
    site.until("the coding is used", is_coded);
    let answer = accepting(&site, "/a.css", "zstd");
    assert_eq!(answer.field("content-encoding"), "zstd");
    assert_eq!(answer.field("vary"), "Accept-Encoding");
    assert_eq!(answer.field("content-type"), "text/css; charset=utf-8");
    assert_eq!(site.get("/a.css").body, text);
    // A new version of the file: its coding belongs to the old one.
    age(&site, "static/a.css.zst", 50);
    let other = "other ".repeat(1000);
    fs::write(site.dir.path().join("static/a.css"), &other).unwrap();
    site.until("the file is new", || site.get("/a.css").body == other);
    assert!(!is_coded());
    // Newer than the file, and still of the old one.
    age(&site, "static/a.css.zst", 0);
    write(site.dir.path(), &[("static/b.css", "b")]);
    site.until("the folder is read", || site.get("/b.css").body == "b");
    assert!(!is_coded());
    fs::write(&coded, code(&other)).unwrap();
    site.until("the coding is of the new file", is_coded);
    fs::remove_file(coded).unwrap();
    site.until("it is made by the server", || {
        let answer = accepting(&site, "/a.css", "zstd");
        answer.field("content-encoding") == "zstd" && !is_coded()
    });
}

#[test]
fn text_is_compressed_after_it_was_asked_for() {
    let text = "text ".repeat(100_000);
    let site = TestSite::new(&[("static/a.txt", &text), ("static/a.png", &text)]);
    let first = accepting(&site, "/a.txt", "gzip");
    assert_eq!(first.field("vary"), "Accept-Encoding");
    site.until("it is compressed", || {
        accepting(&site, "/a.txt", "gzip").field("content-encoding") == "gzip"
    });
    assert_eq!(site.get("/a.txt").body, text);
    let image = accepting(&site, "/a.png", "gzip");
    assert_eq!(
        (image.field("vary"), image.field("content-encoding")),
        ("", "")
    );
}

#[test]
fn what_looks_like_a_database_or_a_log_is_a_file_like_any_other() {
    let site = TestSite::new(&[
        ("static/dump.db", "one"),
        ("static/build.log", "one"),
        ("static/.well-known/security.txt", "one"),
    ]);
    for name in ["dump.db", "build.log", ".well-known/security.txt"] {
        let target = format!("/{name}");
        assert_eq!(site.get(&target).body, "one", "{name}");
        fs::write(site.dir.path().join("static").join(name), "two!").unwrap();
        site.until(name, || site.get(&target).body == "two!");
    }
}

#[test]
fn a_file_outside_that_a_link_leads_to_is_followed() {
    let outside = tempfile::Builder::new().prefix("out").tempdir().unwrap();
    let target = outside.path().join("report.log");
    fs::write(&target, "one").unwrap();
    let with = "[database]\nurl = \"sqlite:site.db\"\n[static]\nfollow_links = true\n";
    let site = TestSite::new(&[("millpond.toml", with), ("static/x", "x")]);
    symlink(&target, site.dir.path().join("static/report.txt")).unwrap();
    let is = |text: &str| site.get("/report.txt").body == text;
    site.until("the link is there", || is("one"));
    fs::write(&target, "two!").unwrap();
    site.until("it is written", || is("two!"));
    fs::write(outside.path().join("new"), "three!!").unwrap();
    fs::rename(outside.path().join("new"), &target).unwrap();
    site.until("it is replaced", || is("three!!"));
    fs::write(&target, "four").unwrap();
    site.until("the one in its place is written", || is("four"));
}
