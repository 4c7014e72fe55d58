//! Several programs on one file, and its log.

use super::*;

#[test]
fn a_foreign_commit_just_before_our_own_is_applied_first() {
    let fixture = SqliteFixture::recorded_with(SCHEMA, |options| {
        options.poll = Duration::from_secs(3_600);
    });
    let foreign = open(&fixture);
    filled(&fixture, "select a from t where id = :id", &[int(1)]);
    fixture.fill(
        "other",
        &fixture.prepare("select a from t where id = :id"),
        &[int(2)],
    );
    let seen = fixture.sink.calls().len();
    foreign
        .execute_batch("update t set a = 5 where id = 1")
        .unwrap();
    fixture.write("insert into log (what) values ('own')", vec![]);
    assert!(reasons(&fixture, seen).is_empty());
    assert!(fixture.sink.cached("q").is_none());
    assert!(fixture.sink.cached("other").is_some());
}

#[test]
fn own_writes_leave_no_records_and_remove_old_ones() {
    let fixture = SqliteFixture::recorded(SCHEMA);
    let foreign = open(&fixture);
    let rows = || -> i64 {
        let count = "select count(*) from _millpond_change";
        foreign.query_row(count, [], |row| row.get(0)).unwrap()
    };
    run(&fixture, &foreign, "update t set a = a + 1");
    assert_eq!(rows(), 3);
    let epoch = fixture.sink.epoch();
    fixture.write("update t set b = 'own' where id = 1", vec![]);
    assert_eq!(rows(), 0);
    fixture.write("insert into log (id) with recursive n(i) as (select 1 union all select i + 1 from n where i < 2000) select i from n", vec![]);
    assert_eq!(rows(), 0, "the triggers recorded what the hook sees");
    assert!(
        fixture
            .try_write("insert into t (id) values (1)", vec![])
            .is_err()
    );
    fixture.sink.settle();
    assert_eq!(
        fixture.sink.epoch(),
        epoch,
        "{:?}",
        fixture.sink.calls().last()
    );
    filled(&fixture, "select a from t where id = :id", &[int(1)]);
    assert!(run(&fixture, &foreign, "update t set a = 9 where id = 2").is_empty());
    assert!(fixture.sink.cached("q").is_some());
}

#[test]
fn two_servers_on_one_file_miss_nothing_of_each_other() {
    let fixture = SqliteFixture::recorded(SCHEMA);
    let other = fixture.neighbour();
    filled(&fixture, "select a from t where id = :id", &[int(1)]);
    let seen = fixture.sink.calls().len();
    other.write("update t set a = 77 where id = 1", vec![]);
    fixture.sink.settle();
    assert!(fixture.sink.cached("q").is_none());
    assert_eq!(reasons(&fixture, seen).len(), 1);
}

#[test]
fn statistics_end_nothing_with_and_without_triggers() {
    for fixture in [SqliteFixture::new(SCHEMA), SqliteFixture::recorded(SCHEMA)] {
        let foreign = open(&fixture);
        // The first time makes the table of statistics, which changes the schema.
        run(&fixture, &foreign, "analyze");
        fixture.write("insert into t (id) values (77)", vec![]);
        filled(&fixture, "select a from t where id = :id", &[int(1)]);
        let found = run(
            &fixture,
            &foreign,
            "analyze; pragma wal_checkpoint(restart)",
        );
        assert!(found.is_empty(), "{found:?}");
        assert!(fixture.sink.cached("q").is_some());
    }
}

/// The name of the write-ahead log.
fn salt(fixture: &SqliteFixture) -> Vec<u8> {
    let log = fixture.directory.path().join("site.db-wal");
    std::fs::read(log).unwrap()[16..24].to_vec()
}

/// The log begins again when all of it is in the file; what it had before is still to be seen.
#[test]
fn a_log_that_began_again_loses_no_commit() {
    let fixture = SqliteFixture::recorded(SCHEMA);
    let foreign = open(&fixture);
    foreign.execute_batch("pragma synchronous = off").unwrap();
    let query = fixture.prepare("select a from t where id = :id");
    let (mut epochs, salt_before) = (0, salt(&fixture));
    for round in 0..600 {
        fixture.fill("q", &query, &[int(1)]);
        fixture.fill("other", &query, &[int(2)]);
        if round % 20 == 0 {
            foreign
                .execute_batch("pragma wal_checkpoint(passive)")
                .unwrap();
        }
        epochs += run(
            &fixture,
            &foreign,
            &format!("update t set a = {round} where id = 1"),
        )
        .len();
        assert!(fixture.sink.cached("q").is_none());
    }
    assert_eq!(epochs, 0);
    assert_ne!(salt(&fixture), salt_before, "it did not begin again");
}

/// With an unrecorded commit in the log before it began again.
#[test]
fn a_log_that_began_again_hides_no_unrecorded_commit() {
    for truncate in ["", "pragma wal_checkpoint(truncate);"] {
        let fixture = SqliteFixture::recorded_with(SCHEMA, |options| {
            options.poll = Duration::from_secs(3_600);
        });
        let foreign = open(&fixture);
        fixture.write("insert into log (what) values ('own')", vec![]);
        filled(&fixture, "select b from bare where rowid = :r", &[int(1)]);
        {
            let mut blob = foreign.blob_open("main", "bare", "b", 1, false).unwrap();
            std::io::Write::write_all(&mut blob, b"O").unwrap();
        }
        let again = format!("pragma wal_checkpoint(restart); {truncate} update t set a = 1");
        foreign.execute_batch(&again).unwrap();
        let seen = fixture.sink.calls().len();
        fixture.write("insert into log (what) values ('own')", vec![]);
        assert_eq!(reasons(&fixture, seen).len(), 1, "{truncate}");
        assert!(fixture.sink.cached("q").is_none());
    }
}

#[test]
fn the_shell_ends_what_shows_its_rows() {
    let fixture = SqliteFixture::recorded(SCHEMA);
    let shell = |sql: &str| {
        let path = fixture.path();
        Command::new("sqlite3")
            .args([path.to_str().unwrap(), sql])
            .output()
    };
    let Ok(version) = shell("select sqlite_version()") else {
        println!("sqlite3 is not installed");
        return;
    };
    println!("sqlite3 {}", String::from_utf8_lossy(&version.stdout));
    fixture.fill(
        "other",
        &fixture.prepare("select a from t where id = :id"),
        &[int(2)],
    );
    let query = filled(&fixture, "select a from t where id = :id", &[int(1)]);
    let seen = fixture.sink.calls().len();
    let done = shell("update t set a = 99 where id = 1").unwrap();
    assert!(done.status.success(), "{done:?}");
    fixture.sink.settle();
    assert_eq!(reasons(&fixture, seen), Vec::<String>::new());
    assert!(fixture.sink.cached("q").is_none() && fixture.sink.cached("other").is_some());
    assert_eq!(fixture.rows(&query, vec![int(1)]), [[int(99)]]);
}

/// A shell that is killed at any moment has committed a change with its record, or nothing.
#[test]
fn a_shell_that_is_killed_loses_no_change() {
    let fixture = SqliteFixture::recorded(SCHEMA);
    let query = fixture.prepare("select a from t where id = :id");
    for round in 0..20 {
        for id in 1..4 {
            fixture.try_fill(&id.to_string(), &query, &[int(id)]);
        }
        let updates: String = (0..2_000)
            .map(|n| {
                format!(
                    "update t set a = {round} * 10000 + {n} where id = {};",
                    n % 3 + 1
                )
            })
            .collect();
        let script = fixture.directory.path().join("updates.sql");
        std::fs::write(&script, updates).unwrap();
        let shell = Command::new("sqlite3")
            .arg(fixture.path())
            .arg(format!(".read {}", script.display()))
            .stderr(std::process::Stdio::null())
            .spawn();
        let Ok(mut shell) = shell else {
            println!("sqlite3 is not installed");
            return;
        };
        // Killed at some moment of its work, another one each time.
        thread::sleep(Duration::from_millis(5 + round));
        shell.kill().unwrap();
        shell.wait().unwrap();
        fixture.sink.settle();
        for id in 1..4 {
            if let Some(entry) = fixture.sink.cached(&id.to_string()) {
                assert_eq!(entry.rows[0].rows, fixture.rows(&query, vec![int(id)]));
            }
        }
    }
}
