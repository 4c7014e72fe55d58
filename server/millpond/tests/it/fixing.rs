//! `millpond check --fix`: it prints what it would change, asks, and does it.

use std::io::Write as _;
use std::process::Stdio;

use lab_pgtest::{Database, Postgres};
use tempfile::TempDir;

use crate::support::{millpond, run, text, write};
use lab_testkit::terminal;

/// A site that reads these tables.
fn site(database: &Database<'_>, tables: &[&str]) -> TempDir {
    let site = lab_testkit::fast_dir();
    let settings = format!("[database]\nurl = \"{}\"\n", database.url());
    write(site.path(), "millpond.toml", &settings);
    for table in tables {
        let page = format!("-- name: {table} :many\nselect id from {table};\n");
        write(site.path(), &format!("pages/{table}.sql"), &page);
    }
    site
}

/// Runs `check --fix` at a terminal and gives this answer.
fn answered(site: &TempDir, answer: &str) -> String {
    let (ours, theirs) = terminal();
    std::fs::File::from(ours.try_clone().unwrap())
        .write_all(answer.as_bytes())
        .unwrap();
    let output = millpond(&["check", "--fix", "."])
        .current_dir(site.path())
        .stdin(Stdio::from(theirs))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stderr)
}

#[test]
fn what_logical_replication_needs_is_done_when_the_owner_agrees_and_not_before() {
    let postgres = Postgres::start().unwrap();
    let database = postgres.database().unwrap();
    let mut client = postgres::Client::connect(&database.url(), postgres::NoTls).unwrap();
    client
        .batch_execute("create table note (id int primary key); create table loose (id int)")
        .unwrap();
    let site = site(&database, &["note", "loose"]);
    // The publication, the tables in it, and the setting that the server is to be started with.
    let mut changed = || -> (i64, i64, bool) {
        let asked = "select (select count(*) from pg_publication), (select count(*) from pg_publication_tables), \
            exists (select from pg_file_settings where name = 'wal_level' and setting = 'logical')";
        let row = client.query_one(asked, &[]).unwrap();
        (row.get(0), row.get(1), row.get(2))
    };
    let before = (0, 0, false);

    let output = run(site.path(), &["check", "--fix", "."]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    for statement in [
        "fix: alter system set wal_level = logical; then start the server anew",
        "fix: create publication \"millpond\" for table note;",
        "fix: alter table loose replica identity full; alter publication \"millpond\" add table loose;",
        "the 3 statements marked \"fix\" above change your database, and no terminal is there to ask you first",
    ] {
        assert!(said.contains(statement), "{statement}: {said}");
    }
    assert!(!said.contains("done: "), "{said}");
    assert_eq!(changed(), before);

    for refusal in ["n\n", "\n"] {
        let said = answered(&site, refusal);
        assert!(said.contains("Run them? [y/N]"), "{said}");
        assert!(!said.contains("done: "), "{said}");
        assert_eq!(changed(), before);
    }

    let said = answered(&site, "y\n");
    assert_eq!(said.matches("done: ").count(), 3, "{said}");
    assert_eq!(changed(), (1, 2, true));
    // The table without a key may be updated as before.
    client
        .batch_execute("insert into loose values (1); update loose set id = 2; delete from loose")
        .unwrap();
}

#[test]
fn a_script_agrees_beforehand() {
    let postgres = lab_pgtest::Options::new().logical().start().unwrap();
    let database = postgres.database().unwrap();
    let mut client = postgres::Client::connect(&database.url(), postgres::NoTls).unwrap();
    client
        .batch_execute("create table note (id int primary key); create publication millpond")
        .unwrap();
    let site = site(&database, &["note"]);
    let check = |args: &[&str]| text(&run(site.path(), args).stderr);
    // Without --fix the command only reports.
    let said = check(&["check", "."]);
    let statement = "alter publication \"millpond\" add table note;";
    assert!(said.contains(&format!("hint: {statement}")), "{said}");
    let said = check(&["check", "--fix", "."]);
    assert!(
        said.contains("the statement marked \"fix\" above changes your database"),
        "{said}"
    );
    // The report is of the state after it.
    let output = run(site.path(), &["check", "--fix", "--yes", "."]);
    let said = text(&output.stderr);
    let (before, after) = said.split_once(&format!("done: {statement}")).unwrap();
    assert!(before.contains("nothing is wrong, 1 note"), "{said}");
    assert!(
        after.contains("all is well") && !after.contains("note:"),
        "{said}"
    );
    let pages = text(&output.stdout);
    assert!(!pages.contains("not cacheable"), "{pages}");
    let said = check(&["check", "--fix", "."]);
    assert!(said.contains("all is well"), "{said}");
}

/// Gives a full identity to a table with a generated column, whose rows can still be changed:
/// PostgreSQL 18 refuses that where the publication leaves the column out.
#[test]
fn a_table_with_a_generated_column_can_be_updated_afterwards() {
    let postgres = lab_pgtest::Options::new().logical().start().unwrap();
    let database = postgres.database().unwrap();
    let mut client = postgres::Client::connect(&database.url(), postgres::NoTls).unwrap();
    let schema = "create table loose (id int, twice int generated always as (2 * id) stored);
        create table whole (id int primary key, twice int generated always as (2 * id) stored);
        alter table whole replica identity full;";
    client.batch_execute(schema).unwrap();
    let site = site(&database, &["loose", "whole"]);
    let check = |args: &[&str]| text(&run(site.path(), args).stderr);
    let change = "insert into loose values (1); update loose set id = 2; delete from loose;
        insert into whole values (1); update whole set id = 2; delete from whole";
    let said = check(&["check", "--fix", "--yes", "."]);
    assert!(
        said.contains("replica identity full; alter publication"),
        "{said}"
    );
    client.batch_execute(change).unwrap();
    let said = check(&["check", "."]);
    assert!(!said.contains("PostgreSQL refuses"), "{said}");

    let row = client.query_one("show server_version_num", &[]).unwrap();
    if row.get::<_, &str>(0) < "180000" {
        return;
    }
    // An older publication leaves the column out.
    client
        .batch_execute("alter publication millpond set (publish_generated_columns = none)")
        .unwrap();
    assert!(client.batch_execute(change).is_err());
    let said = check(&["check", "--fix", "--yes", "."]);
    assert!(
        said.contains("PostgreSQL refuses to update or delete rows of loose"),
        "{said}"
    );
    client.batch_execute(change).unwrap();
}

/// Names old values that the log does not report once, for all tables, and mends them by a step of
/// its own, as it costs log.
#[test]
fn old_values_are_offered_once_for_all_tables() {
    let postgres = lab_pgtest::Options::new().logical().start().unwrap();
    let database = postgres.database().unwrap();
    let mut client = postgres::Client::connect(&database.url(), postgres::NoTls).unwrap();
    client
        .batch_execute(
            "create table article (id int primary key, slug text not null unique); \
             create table reply (id int primary key, article int not null); \
             create publication millpond for table article, reply",
        )
        .unwrap();
    let site = site(&database, &[]);
    for (page, table, column) in [
        ("article", "article", "slug"),
        ("title", "article", "slug"),
        ("replies", "reply", "article"),
        ("one", "article", "id"),
    ] {
        let query = format!("-- name: found :many\nselect id from {table} where {column} = :it;\n");
        write(site.path(), &format!("pages/{page}/[it].sql"), &query);
    }
    let statements =
        "alter table article replica identity full; alter table reply replica identity full;";
    let check = |args: &[&str]| run(site.path(), args);
    let output = check(&["check", "."]);
    let said = text(&output.stderr);
    assert!(said.contains("all is well"), "{said}");
    assert!(
        said.contains("note: 3 queries end at each update of another row too"),
        "{said}"
    );
    assert!(said.contains(&format!("  hint: {statements}")), "{said}");
    assert!(!text(&output.stdout).contains("could depend on less"));
    let identities = "select count(*) from pg_class where relname in ('article', 'reply') and relreplident = 'f'";
    let mut full = || -> i64 { client.query_one(identities, &[]).unwrap().get(0) };
    let refused = check(&["check", "--fix", "."]);
    assert_eq!((refused.status.code(), full()), (Some(1), 0));
    let said = text(&check(&["check", "--fix", "--yes", "."]).stderr);
    assert_eq!((said.matches("done: ").count(), full()), (2, 2), "{said}");
    let said = text(&check(&["check", "--fix", "."]).stderr);
    assert!(
        said.contains("all is well") && !said.contains("note:"),
        "{said}"
    );
}

/// A table that is published for the first time may lack old values, which the first report cannot
/// know.
#[test]
fn one_run_mends_everything() {
    let postgres = lab_pgtest::Options::new().logical().start().unwrap();
    let database = postgres.database().unwrap();
    let mut client = postgres::Client::connect(&database.url(), postgres::NoTls).unwrap();
    client
        .batch_execute("create table article (id int primary key, slug text not null unique)")
        .unwrap();
    let site = site(&database, &[]);
    let query = "-- name: found :many\nselect id from article where slug = :it;\n";
    write(site.path(), "pages/article/[it].sql", query);
    let said = text(&run(site.path(), &["check", "--fix", "--yes", "."]).stderr);
    for statement in [
        "create publication \"millpond\" for table article",
        "alter table article replica identity full",
    ] {
        assert!(said.contains(&format!("done: {statement};")), "{said}");
    }
    let again = text(&run(site.path(), &["check", "."]).stderr);
    assert!(
        again.contains("all is well") && !again.contains("note:"),
        "{again}"
    );
}

#[test]
fn a_new_table_of_files_is_published() {
    let postgres = lab_pgtest::Options::new().logical().start().unwrap();
    let database = postgres.database().unwrap();
    let mut client = postgres::Client::connect(&database.url(), postgres::NoTls).unwrap();
    client
        .batch_execute(
            "create table note (id int primary key); create publication millpond for table note",
        )
        .unwrap();
    let site = site(&database, &["note", "rates"]);
    write(site.path(), "data/rates.csv", "id,rate\n1,1.5\n");
    let said = text(&run(site.path(), &["check", "--fix", "--yes", "."]).stderr);
    assert!(
        said.contains("written: migrations/0001_data_rates.sql"),
        "{said}"
    );
    drop(crate::support::serve(site.path()));
    let listed = "select count(*) from pg_publication_tables where tablename = 'rates'";
    assert_eq!(client.query_one(listed, &[]).unwrap().get::<_, i64>(0), 1);
    let said = text(&run(site.path(), &["check", "."]).stderr);
    assert!(said.contains("all is well"), "{said}");
}
