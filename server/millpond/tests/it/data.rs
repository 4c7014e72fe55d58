//! Files as tables, with the built program: its commands, its log, and its death.

use std::fmt::Write as _;
use std::fs;
use std::time::{Duration, Instant};

use lab_testkit::fast_dir;
use rustix::process::Signal;
use tempfile::TempDir;

use crate::support::{Connection, PATIENCE, fail, run, serve, text, write};

fn site(csv: &str) -> TempDir {
    let dir = fast_dir();
    write(
        dir.path(),
        "millpond.toml",
        "[database]\nurl = \"sqlite:site.db\"\n",
    );
    write(dir.path(), "data/rates.csv", csv);
    write(
        dir.path(),
        "pages/index.sql",
        "-- name: all :one\nselect count(*) as n, min(name) as name from rates;\n",
    );
    write(dir.path(), "pages/index.html", "{{ all.n }} {{ all.name }}");
    dir
}

/// Asks until the page has this text.
fn until_shown(server: &lab_testkit::Server, body: &str) {
    let since = Instant::now();
    while server.get("/").text() != body {
        assert!(since.elapsed() < PATIENCE, "{}", server.get("/").text());
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn a_file_becomes_a_table_by_check_and_its_faults_are_said() {
    let dir = site("id,name\n1,one\n2,two\n");
    let (status, said) = fail(dir.path(), &["check"]);
    assert_eq!(status, 1, "{said}");
    assert!(
        said.contains("data/rates.csv: there is no table rates yet"),
        "{said}"
    );
    assert!(said.contains("`millpond check --fix` writes"), "{said}");
    let fixed = run(dir.path(), &["check", "--fix"]);
    let said = text(&fixed.stderr);
    assert!(fixed.status.success(), "{said}");
    assert!(
        said.contains("written: migrations/0001_data_rates.sql"),
        "{said}"
    );
    let server = serve(dir.path());
    assert_eq!(server.get("/").text(), "2 one");
    server.wait_for("data/rates.csv: table rates, rows: 2 new");
    write(dir.path(), "data/rates.csv", "id,name\n1,ONE\n2,\"two\n");
    server.wait_for("data/rates.csv:3:1: a quote is opened here and never closed");
    assert_eq!(server.get("/").text(), "2 one");
    let (status, said) = fail(dir.path(), &["check"]);
    assert_eq!(status, 1);
    assert!(
        said.contains("data/rates.csv:3:1: a quote is opened here"),
        "{said}"
    );
    write(dir.path(), "data/rates.csv", "id,name\n1,ONE\n");
    server.wait_for("data/rates.csv: is mended");
    until_shown(&server, "1 ONE");
    write(dir.path(), "data/later.json", "[{\"id\": 1}]");
    server.wait_for("data/later.json: there is no table later yet");
    let (status, log) = server.stop();
    assert!(status.success(), "{log}");
}

#[test]
fn a_broken_file_is_shown_on_the_page_of_a_site_under_development() {
    let dir = site("id,name\n1,one\n");
    assert!(run(dir.path(), &["check", "--fix"]).status.success());
    let server = crate::dev::dev(dir.path());
    assert!(server.get("/").text().starts_with("1 one"));
    write(dir.path(), "data/rates.csv", "id,name\n1\n");
    let browse = |holds: &dyn Fn(&str) -> bool| {
        let since = Instant::now();
        loop {
            let mut browser = Connection::open(server.address());
            let page = browser
                .get_with("/", &["Accept: text/html", &server.cookie])
                .text();
            if holds(&page) {
                return;
            }
            assert!(since.elapsed() < PATIENCE, "{page}");
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    browse(&|page| {
        page.contains("the row has 1 fields, and there are 2 columns") && page.contains("rates.csv")
    });
    write(dir.path(), "data/rates.csv", "id,name\n1,two\n");
    browse(&|page| page.starts_with("1 two"));
}

#[test]
fn a_server_that_is_killed_while_it_applies_a_file_has_applied_all_of_it_or_nothing() {
    let many = |name: &str| {
        let mut csv = "id,name\n".to_owned();
        for id in 0..20_000 {
            let _ = writeln!(csv, "{id},{name}");
        }
        csv
    };
    let dir = site("id,name\n1,first\n");
    assert!(run(dir.path(), &["check", "--fix"]).status.success());
    let mut before = "1 first".to_owned();
    for (round, name) in ["a", "b", "c", "d"].into_iter().enumerate() {
        let server = serve(dir.path());
        // What the last one left undone is done at the start.
        if round > 0 {
            assert_eq!(server.get("/").text(), before);
        }
        write(dir.path(), "data/rates.csv", &many(name));
        std::thread::sleep(Duration::from_millis(40 * round as u64));
        server.signal(Signal::KILL);
        let _ = server.wait();
        let database = rusqlite::Connection::open(dir.path().join("site.db")).unwrap();
        let names: Vec<(String, i64)> = database
            .prepare("select name, count(*) from rates group by name")
            .unwrap()
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
            .unwrap()
            .map(Result::unwrap)
            .collect();
        assert_eq!(names.len(), 1, "{names:?}");
        assert!(names[0].1 == 20_000 || names[0].1 == 1, "{names:?}");
        before = format!("20000 {name}");
    }
    let server = serve(dir.path());
    assert_eq!(server.get("/").text(), before);
}

#[test]
fn a_folder_of_ten_thousand_files_is_a_table() {
    let dir = fast_dir();
    write(
        dir.path(),
        "millpond.toml",
        "[database]\nurl = \"sqlite:site.db\"\n",
    );
    write(
        dir.path(),
        "pages/index.sql",
        "-- name: all :one\nselect count(*) as n, min(title) as name from posts;\n",
    );
    write(dir.path(), "pages/index.html", "{{ all.n }} {{ all.name }}");
    let folder = dir.path().join("data/posts");
    fs::create_dir_all(&folder).unwrap();
    for number in 0..10_000 {
        fs::write(
            folder.join(format!("{number}.md")),
            "---\ntitle: same\n---\n",
        )
        .unwrap();
    }
    assert!(run(dir.path(), &["check", "--fix"]).status.success());
    let server = serve(dir.path());
    assert_eq!(server.get("/").text(), "10000 same");
    write(dir.path(), "data/posts/77.md", "---\ntitle: other\n---\n");
    until_shown(&server, "10000 other");
    // The files, not the folder: without it the rows would stay.
    for file in fs::read_dir(&folder).unwrap() {
        fs::remove_file(file.unwrap().path()).unwrap();
    }
    until_shown(&server, "0 ");
}
