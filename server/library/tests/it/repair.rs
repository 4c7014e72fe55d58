//! What a database lacks for pages to be kept is said, and mended.

use std::process::{Command, Output};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use millpond::{FeedKind, SqlDatabase, SqlQuery, SqlSettings};
use postgres::{Client, NoTls};

use crate::sql::{POSTGRES, SCHEMA, routes, until};
use crate::support::{Gate, get, serve};

/// The address of a page, as this program's own tests ask for it.
const ONE: &str = "select name from address where id = :id";

fn open(url: &str, feed: FeedKind) -> (SqlDatabase, SqlQuery) {
    let settings = SqlSettings {
        feed,
        ..SqlSettings::default()
    };
    let database = SqlDatabase::open_with(url, &settings).unwrap();
    database.migrate([("0001", SCHEMA)]).unwrap();
    let one = database.prepare(ONE).unwrap();
    (database, one)
}

/// Mends the database, and then changes a row as another program: only its page ends.
fn check(url: &str, feed: FeedKind, lacking: &str, change: impl Fn(&str)) {
    let (database, one) = open(url, feed);
    let missing = database.missing([&one]).unwrap();
    assert!(missing.iter().any(|it| it.contains(lacking)), "{missing:?}");
    assert!(missing.iter().all(|it| it.len() < 200), "{missing:?}");
    let is_exact = |ends: &[String]| ends == ["address with id = :id"];
    let is_postgres = url.starts_with("postgres");
    assert_eq!(is_exact(&one.ends()), !is_postgres, "{:?}", one.ends());
    let made = database.repair([&one]).unwrap();
    assert_eq!(made.len(), missing.len(), "{made:?}");
    // No page has been asked for since.
    assert!(is_exact(&one.ends()), "{:?}", one.ends());
    assert_eq!(database.missing([&one]).unwrap(), [""; 0]);
    assert_eq!(database.repair([&one]).unwrap(), [""; 0]);
    let made = Arc::<AtomicUsize>::default();
    let server = serve(routes(&database, &made, &Gate::default()));
    let name = |target: &str| get(&server, target).text();
    // The first change is after what was made; the second finds all as it stays.
    for (new, is_exact) in [("Ann", false), ("Amy", true)] {
        for target in ["/addresses/1", "/addresses/2"] {
            until(target, || {
                let before = made.load(Ordering::SeqCst);
                name(target);
                made.load(Ordering::SeqCst) == before
            });
        }
        let before = made.load(Ordering::SeqCst);
        change(&format!("update address set name = '{new}' where id = 1"));
        until("the change shows", || name("/addresses/1") == new);
        assert_eq!(name("/addresses/2"), "Ben");
        let made = made.load(Ordering::SeqCst) - before;
        assert!(!is_exact || made == 1, "the other page stays");
    }
}

#[test]
fn triggers_of_sqlite_are_made() {
    let dir = lab_testkit::fast_dir();
    let path = dir.path().join("book.db");
    let url = format!("sqlite:{}", path.display());
    // A new database has them from the start.
    drop(open(&url, FeedKind::Logical));
    check(&url, FeedKind::Triggers, "table of changes", |sql| {
        let other = rusqlite::Connection::open(&path).unwrap();
        other.execute_batch(sql).unwrap();
    });
    // The owner goes back.
    let (database, one) = open(&url, FeedKind::Logical);
    let missing = database.missing([&one]).unwrap();
    assert_eq!(missing.len(), 1, "{missing:?}");
    assert!(missing[0].contains("no server reads"), "{missing:?}");
    database.repair([&one]).unwrap();
    assert_eq!(database.missing([&one]).unwrap(), [""; 0]);
}

#[test]
fn what_postgresql_needs_is_made() {
    for (feed, lacking) in [
        (FeedKind::Logical, "publication"),
        (FeedKind::Triggers, "trigger"),
    ] {
        let home = POSTGRES.database().unwrap();
        let url = home.url();
        check(&url, feed, lacking, |sql| {
            let mut other = Client::connect(&url, NoTls).unwrap();
            other.batch_execute(sql).unwrap();
        });
    }
}

const CHILD: &str = "MILLPOND_TEST_URL";

#[test]
fn a_start_without_triggers_says_so() {
    if let Ok(url) = std::env::var(CHILD) {
        let (database, _) = open(&url, FeedKind::Triggers);
        for _ in 0..2 {
            drop(serve(routes(&database, &Arc::default(), &Gate::default())));
        }
        return;
    }
    let dir = lab_testkit::fast_dir();
    let url = format!("sqlite:{}", dir.path().join("book.db").display());
    drop(open(&url, FeedKind::Logical));
    let warnings = || {
        let Output { stderr, status, .. } = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "--nocapture",
                "repair::a_start_without_triggers_says_so",
            ])
            .env(CHILD, &url)
            .output()
            .unwrap();
        let stderr = String::from_utf8(stderr).unwrap();
        assert!(status.success(), "{stderr}");
        let lines = stderr.lines().filter(|line| line.starts_with("warning: "));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let said = warnings();
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].contains("SqlDatabase::repair"), "{said:?}");
    let (database, one) = open(&url, FeedKind::Triggers);
    database.repair([&one]).unwrap();
    drop(database);
    assert_eq!(warnings(), [""; 0]);
}
