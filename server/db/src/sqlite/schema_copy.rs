//! A database with the schema of another one and none of its rows, for preparing queries.

use std::path::Path;

use rusqlite::{Connection, OpenFlags};

use super::migrate;
use crate::Error;

/// Creates the database `to` with the tables, views, indexes and triggers of `from`, and with its
/// records of applied migrations and of applied files of rows, without the triggers that record
/// changes. Nothing is written to `from`, and of its rows only those records are read. Gives the
/// names of the applied migrations.
///
/// # Errors
/// If `from` cannot be read, or has a definition that this SQLite cannot execute (a virtual table
/// of a missing module).
pub fn copy_schema(from: &Path, to: &Path) -> Result<Vec<String>, Error> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let source = Connection::open_with_flags(from, flags).map_err(Error::unavailable)?;
    let target = Connection::open(to).map_err(Error::unavailable)?;
    for sql in definitions(&source).map_err(Error::unavailable)? {
        target
            .execute_batch(&sql)
            .map_err(|error| Error::from_sqlite(&error, &sql))?;
    }
    add_own_tables(&source, &target).map_err(Error::unavailable)?;
    copy_applied_files(&source, &target).map_err(Error::unavailable)?;
    copy_record(&source, &target).map_err(Error::unavailable)
}

/// Adds the tables of SQLite's own that the original has: no statement of the schema makes them.
fn add_own_tables(source: &Connection, target: &Connection) -> rusqlite::Result<()> {
    const MADE_BY: [(&str, &str); 2] = [
        ("sqlite_stat1", "analyze"),
        (
            "sqlite_sequence",
            "create table _millpond_probe (id integer primary key autoincrement); drop table _millpond_probe",
        ),
    ];
    for (name, sql) in MADE_BY {
        let exists = "select exists (select 1 from sqlite_schema where name = ?1)";
        if source.query_row(exists, [name], |row| row.get(0))? {
            target.execute_batch(sql)?;
        }
    }
    Ok(())
}

/// Files of rows that were applied: their table is there, if the original has it.
fn copy_applied_files(source: &Connection, target: &Connection) -> rusqlite::Result<()> {
    let known: bool = target.query_row(
        "select exists (select 1 from sqlite_schema where name = '_millpond_data')",
        [],
        |row| row.get(0),
    )?;
    if !known {
        return Ok(());
    }
    let mut rows = source
        .prepare("select \"file\", \"table\", hash, applied_at, version from _millpond_data")?;
    let mut rows = rows.query([])?;
    let mut insert = target.prepare(
        "insert into _millpond_data (\"file\", \"table\", hash, applied_at, version) \
         values (?1, ?2, ?3, ?4, ?5)",
    )?;
    while let Some(row) = rows.next()? {
        for at in 0..5 {
            insert.raw_bind_parameter(at + 1, row.get::<_, rusqlite::types::Value>(at)?)?;
        }
        insert.raw_execute()?;
    }
    Ok(())
}

/// The statements that created the schema, in an order in which they can be repeated. A virtual
/// table creates its shadow tables itself.
fn definitions(source: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut statement = source.prepare(
        "select sql from sqlite_schema s where sql is not null and name not like 'sqlite\\_%' escape '\\'
         and not (type = 'trigger' and name like '\\_millpond\\_%' escape '\\') and name not in ('_millpond_change', '_millpond_feed')
         and not exists (select 1 from pragma_table_list t where t.schema = 'main' and t.name = s.name and t.type = 'shadow')
         order by case type when 'table' then 0 when 'index' then 1 when 'view' then 2 else 3 end, rowid",
    )?;
    let rows = statement.query_map([], |row| row.get(0))?;
    rows.collect()
}

fn copy_record(source: &Connection, target: &Connection) -> rusqlite::Result<Vec<String>> {
    let known: bool = source.query_row(
        "select exists (select 1 from sqlite_schema where name = '_millpond_migrations')",
        [],
        |row| row.get(0),
    )?;
    if !known {
        return Ok(Vec::new());
    }
    target.execute_batch(migrate::TABLE)?;
    let mut rows = source.prepare("select name, hash, applied_at from _millpond_migrations")?;
    let mut rows = rows.query([])?;
    let mut names = Vec::new();
    while let Some(row) = rows.next()? {
        let record: [String; 3] = [row.get(0)?, row.get(1)?, row.get(2)?];
        target.execute(
            "insert into _millpond_migrations (name, hash, applied_at) values (?, ?, ?)",
            record.each_ref(),
        )?;
        let [name, ..] = record;
        names.push(name);
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_copy_takes_the_queries_of_the_original() {
        let dir = lab_testkit::fast_dir();
        let (from, to) = (dir.path().join("a.db"), dir.path().join("b.db"));
        let source = Connection::open(&from).unwrap();
        source.execute_batch("create table t (a unique, b); create virtual table f using fts5(x); create view v as select a from t; create trigger g after insert on t begin insert into f (x) values (new.a); end; insert into t values (1, 2);").unwrap();
        copy_schema(&from, &to).unwrap();
        let target = Connection::open(&to).unwrap();
        assert_eq!(
            target.query_row("select count(*) from t", [], |row| row.get::<_, i64>(0)),
            Ok(0)
        );
        target
            .execute_batch(
                "insert into t values (1, 2); select * from v; select * from f where f match 'a'",
            )
            .unwrap();
        assert!(copy_schema(&dir.path().join("none.db"), &to).is_err());
    }

    /// *Counterexample*: a query on `sqlite_stat1` was refused by `check`, and `serve` took it.
    #[test]
    fn the_copy_has_the_tables_that_sqlite_makes_by_itself() {
        let dir = lab_testkit::fast_dir();
        let (from, to) = (dir.path().join("a.db"), dir.path().join("b.db"));
        let own = "create table t (id integer primary key autoincrement); insert into t values (1); drop table t; \
                   create table u (a unique); insert into u values (1); analyze;";
        Connection::open(&from).unwrap().execute_batch(own).unwrap();
        copy_schema(&from, &to).unwrap();
        let target = Connection::open(&to).unwrap();
        for query in [
            "select tbl from sqlite_stat1",
            "select name from sqlite_sequence",
        ] {
            assert!(target.prepare(query).is_ok(), "{query}");
        }
        let made = "select count(*) from sqlite_schema where name like '\\_millpond%' escape '\\'";
        assert_eq!(
            target.query_row(made, [], |row| row.get::<_, i64>(0)),
            Ok(0)
        );
    }
}
