//! Files as tables with several nodes on one PostgreSQL.

use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::Path,
    sync::mpsc::{self, TryRecvError},
    thread,
    time::Duration,
};

use millpond_site::SiteOptions;

use crate::{postgres, support::TestSite};

const RATES: &str =
    "create table rate (id integer primary key, name text not null, _file text not null);
    alter publication millpond add table rate;";

/// A folder with its own version of the file.
fn node(database: &lab_pgtest::Database<'static>, name: &str) -> tempfile::TempDir {
    let dir = postgres::folder(
        database,
        &[
            ("migrations/0002_data_rate.postgres.sql", RATES),
            ("data/rate.csv", &format!("id,name\n1,{name}\n")),
            (
                "pages/rate.sql",
                "-- name: rate :one?\nselect name from rate where id = 1;\n",
            ),
            ("pages/rate.html", "{{ rate.name if rate else 'none' }}"),
        ],
    );
    // The next file is younger by more than the clock of the file system tells apart.
    thread::sleep(Duration::from_millis(20));
    dir
}

fn shows(site: &TestSite, name: &str) {
    site.until(&format!("the page shows {name}"), || {
        site.get("/rate").body == name
    });
}

#[test]
fn of_several_versions_of_a_file_the_newest_wins_and_no_two_nodes_take_turns() {
    let database = postgres::database();
    let (old, new) = (node(&database, "old"), node(&database, "new"));
    let new = TestSite::open(new, SiteOptions::default());
    shows(&new, "new");
    // A node with an older version starts, as in a deployment.
    let old = TestSite::open(old, SiteOptions::default());
    shows(&old, "new");
    let applied = |site: &TestSite| {
        shows(site, "new");
        let mut client = postgres::client(&database);
        let read = "select hash || version || applied_at from _millpond_data";
        client.query_one(read, &[]).unwrap().get::<_, String>(0)
    };
    let before = applied(&old);
    let (old, new) = (old.restart(&[]), new.restart(&[]));
    assert_eq!(applied(&old), before);
    assert_eq!(applied(&new), before);
    // What a running node sees change is newer.
    fs::write(old.dir.path().join("data/rate.csv"), "id,name\n1,edited\n").unwrap();
    shows(&old, "edited");
    shows(&new, "edited");
    let new = new.restart(&[]);
    shows(&new, "edited");
    // An older file is applied once it is touched.
    let path = new.dir.path().join("data/rate.csv");
    let text = fs::read(&path).unwrap();
    thread::sleep(Duration::from_millis(20));
    let new = new.restart(&[("data/rate.csv", str::from_utf8(&text).unwrap())]);
    shows(&new, "new");
    shows(&old, "new");
    // A removed file stays removed where another node still has it.
    fs::remove_file(new.dir.path().join("data/rate.csv")).unwrap();
    shows(&new, "none");
    let old = old.restart(&[]);
    shows(&old, "none");
}

#[test]
fn nodes_that_start_together_apply_a_file_once() {
    let database = postgres::database();
    let nodes: Vec<_> = (0..4).map(|_| node(&database, "same")).collect();
    let sites: Vec<_> = thread::scope(|scope| {
        let open = |dir| {
            scope.spawn(|| {
                TestSite::open(dir, SiteOptions::default())
                    .dir
                    .path()
                    .to_owned()
            })
        };
        let started: Vec<_> = nodes.into_iter().map(open).collect();
        started
            .into_iter()
            .map(|site| site.join().unwrap())
            .collect()
    });
    assert_eq!(sites.len(), 4);
    let mut client = postgres::client(&database);
    let count: i64 = client
        .query_one("select count(*) from rate", &[])
        .unwrap()
        .get(0);
    assert_eq!(count, 1);
}

/// A folder whose table has the files of a folder elsewhere.
fn node_beside(database: &lab_pgtest::Database<'static>, folder: &Path) -> tempfile::TempDir {
    let dir = postgres::folder(
        database,
        &[
            ("migrations/0002_data_rate.postgres.sql", RATES),
            (
                "pages/rate.sql",
                "-- name: rate :one?\nselect name from rate where id = 1;\n",
            ),
            ("pages/rate.html", "{{ rate.name if rate else 'none' }}"),
        ],
    );
    let settings = dir.path().join("millpond.toml");
    let mut text = fs::read_to_string(&settings).unwrap();
    let folder = folder.display();
    text.push_str(&format!(
        "\n[[data]]\ntable = \"rate\"\nfolder = \"{folder}\"\n"
    ));
    fs::write(settings, text).unwrap();
    dir
}

#[test]
fn nodes_of_one_folder_agree() {
    let database = postgres::database();
    let folder = lab_testkit::fast_dir();
    let file = folder.path().join("rate.csv");
    fs::write(&file, "id,name\n1,first\n").unwrap();
    let beside = || open(node_beside(&database, folder.path()));
    let nodes = [beside(), beside(), beside()];
    for number in 0..20 {
        fs::write(&file, format!("id,name\n1,n{number}\n2,n{number}\n")).unwrap();
    }
    for node in &nodes {
        shows(node, "n19");
    }
    let mut client = postgres::client(&database);
    let mut text = |sql: &str| -> String { client.query_one(sql, &[]).unwrap().get(0) };
    let rows = "select string_agg(id || name, ' ' order by id) from rate";
    assert_eq!(text(rows), "1n19 2n19");
    let applied = "select hash || version || applied_at from _millpond_data";
    let before = text(applied);
    // Each node looks once more, and finds nothing to do.
    let nodes = nodes.map(|node| node.restart(&[]));
    for node in &nodes {
        shows(node, "n19");
    }
    assert_eq!(text(applied), before);
    fs::remove_file(&file).unwrap();
    for node in &nodes {
        shows(node, "none");
    }
}

#[test]
fn nodes_whose_folders_differ_for_a_moment_never_go_back() {
    let database = postgres::database();
    let (one, two) = (node(&database, "000"), node(&database, "000"));
    let (one, two) = (open(one), open(two));
    // Dropped at the end, also by a panic.
    let (running, is_over) = mpsc::channel::<()>();
    let database = &database;
    thread::scope(|scope| {
        let running = running;
        let seen = scope.spawn(move || {
            let mut client = postgres::client(database);
            let mut seen = vec![String::new()];
            while is_over.try_recv() == Err(TryRecvError::Empty) {
                let row = client.query_one("select max(name) from rate", &[]).unwrap();
                let name: String = row.get(0);
                if seen.last() != Some(&name) {
                    seen.push(name);
                }
            }
            seen
        });
        for number in 1..=30 {
            let csv = format!("id,name\n1,{number:03}\n");
            for node in [&one, &two] {
                let path = node.dir.path().join("data/rate.csv");
                fs::write(&path, &csv).unwrap();
                shows(node, &format!("{number:03}"));
                // It has seen its own file, too: else that would be news after the next one.
                node.until("the file was looked at", || {
                    version(database) >= changed(&path)
                });
            }
        }
        drop(running);
        let seen = seen.join().unwrap();
        assert!(seen.is_sorted(), "{seen:?}");
        assert_eq!(seen.last().map(String::as_str), Some("030"));
    });
    shows(&one, "030");
    shows(&two, "030");
}

/// When the applied file was put on its node, in milliseconds.
fn version(database: &lab_pgtest::Database<'static>) -> i64 {
    let mut client = postgres::client(database);
    let row = client.query_one("select version from _millpond_data", &[]);
    row.unwrap().get(0)
}

/// When a file was changed, in milliseconds.
fn changed(path: &Path) -> i64 {
    let metadata = fs::metadata(path).unwrap();
    metadata.ctime() * 1_000 + metadata.ctime_nsec() / 1_000_000
}

fn open(dir: tempfile::TempDir) -> TestSite {
    TestSite::open(dir, SiteOptions::default())
}
