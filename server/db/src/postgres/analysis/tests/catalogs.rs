//! docs/reference/catalogs.md against real servers of all versions that are on this machine.

use std::collections::{BTreeMap, BTreeSet};

use ::postgres::{Client, NoTls};
use lab_pgtest::{Options, Postgres};

use crate::postgres::catalog::fingerprint;

const PAGE: &str = include_str!("../../../../../../docs/reference/catalogs.md");

/// Returns the columns of the page, by their catalogs.
fn said() -> BTreeMap<&'static str, BTreeMap<&'static str, bool>> {
    let mut said: BTreeMap<_, BTreeMap<_, _>> = BTreeMap::new();
    for line in PAGE.lines().filter(|line| line.starts_with("| `pg_")) {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let [_, catalog, counts, columns, why, _] = cells[..] else {
            panic!("five cells: {line}");
        };
        assert!(["yes", "no"].contains(&counts) && !why.is_empty(), "{line}");
        let of_catalog = said.entry(catalog.trim_matches('`')).or_default();
        for column in columns.split(' ') {
            let twice = of_catalog.insert(column, counts == "yes");
            assert_eq!(twice, None, "{catalog}.{column}");
        }
    }
    said
}

/// One of each kind of object; `web` reads, `owner` owns a view.
const SCHEMA: &str = "
create role owner bypassrls; create role web; create role crew; create role other;
create role m1; create role m2; create role m3; create role m4;
create schema s1; create schema s2; create table s1.t (id int); create table s2.t (id int);
create table a (id int primary key, b text default 'x');
create table heir () inherits (a);
create view v as select id from a;
grant select on a to owner; alter view v owner to owner;
create function secret() returns bigint language sql security definer as 'select count(*) from a';
alter function secret() owner to web; grant select on a to web;
create policy pol on a to crew using (true);
create domain small as int check (value < 100);
create type mood as enum ('low');
create cast (mood as int) with inout;
create function _millpond_record() returns trigger language plpgsql as 'begin return null; end';
create trigger _millpond_insert after insert on a for each statement execute function _millpond_record();
create function on_ddl() returns event_trigger language plpgsql as 'begin end';
create event trigger ddl on ddl_command_end execute function on_ddl();
alter event trigger ddl disable;
create function s1.cmp(int, numeric) returns int language sql immutable as 'select 0';
create publication one for table a;
grant crew to m1, m2;
alter role postgres set work_mem = '4MB';
";

/// Calls `test` with a client of each version, after `SCHEMA`.
fn on_each_version(test: impl Fn(&mut Client, i32)) {
    let others = Options::other_versions();
    let servers = [Options::new()].into_iter().chain(others);
    for options in servers {
        let server: Postgres = options.start().unwrap();
        let mut client = Client::connect(&server.url(), NoTls).unwrap();
        let version = "select current_setting('server_version_num')::int / 10000";
        let version = client.query_one(version, &[]).unwrap().get(0);
        println!("on PostgreSQL {version}");
        client.batch_execute(SCHEMA).unwrap();
        if version > 14 {
            let schema = "create publication two for tables in schema s1";
            client.batch_execute(schema).unwrap();
        }
        test(&mut client, version);
    }
}

fn look(client: &mut Client) -> String {
    let sql = format!("select {}", fingerprint());
    client.query_one(&sql, &[]).unwrap().get(0)
}

/// The catalogs of a server, with names and types of their columns.
fn catalogs(client: &mut Client) -> BTreeMap<String, Vec<(String, String)>> {
    let sql = "select c.relname::text, a.attname::text, a.atttypid::regtype::text \
        from pg_class c join pg_attribute a on a.attrelid = c.oid \
        where c.relnamespace = 'pg_catalog'::regnamespace and c.relkind = 'r' and a.attnum > 0 and not a.attisdropped";
    let mut catalogs: BTreeMap<String, Vec<_>> = BTreeMap::new();
    for row in client.query(sql, &[]).unwrap() {
        let columns = catalogs.entry(row.get(0)).or_default();
        columns.push((row.get(1), row.get(2)));
    }
    catalogs
}

#[test]
fn each_catalog_and_column_is_named() {
    let said = said();
    on_each_version(|client, version| {
        for (catalog, columns) in catalogs(client) {
            let named = said.get(catalog.as_str());
            let named = named.unwrap_or_else(|| panic!("{catalog} of {version} is not named"));
            let columns: BTreeSet<&str> = columns.iter().map(|(name, _)| &**name).collect();
            let missing: Vec<_> = columns
                .iter()
                .filter(|name| !named.contains_key(*name))
                .collect();
            assert!(missing.is_empty(), "{catalog} of {version}: {missing:?}");
        }
    });
}

/// Returns the row of a catalog that is written.
fn row(catalog: &str, column: &str) -> &'static str {
    match (catalog, column) {
        ("pg_class", _) => "oid = 'a'::regclass",
        ("pg_attribute", _) => "attrelid = 'a'::regclass and attnum = 1",
        ("pg_attrdef", _) => "adrelid = 'a'::regclass",
        ("pg_authid", "rolname") => "rolname = current_user",
        ("pg_authid", _) => "rolname = 'owner'",
        ("pg_constraint", _) => "contypid <> 0",
        ("pg_database", _) => "datname = current_database()",
        ("pg_depend", _) => "classid = 6237",
        ("pg_index", _) => "indrelid = 'a'::regclass",
        ("pg_inherits", _) => "inhrelid = 'heir'::regclass",
        ("pg_namespace", _) => "nspname = 's1'",
        ("pg_rewrite", _) => "ev_class = 'v'::regclass",
        ("pg_trigger", _) => "tgname = '_millpond_insert'",
        ("pg_type", _) => "typname = 'int4'",
        _ => "true",
    }
}

/// Catalogs of which the columns count and not the transaction that wrote them.
const BY_COLUMN: [&str; 5] = [
    "pg_authid",
    "pg_class",
    "pg_database",
    "pg_index",
    "pg_inherits",
];

/// Another value of a column where that makes a difference, else what it has.
fn other_value(catalog: &str, column: &str, kind: &str) -> String {
    match kind {
        // Without it the session's own database is gone.
        _ if (catalog, column) == ("pg_database", "oid") => format!("\"{column}\""),
        _ if !BY_COLUMN.contains(&catalog) => format!("\"{column}\""),
        "boolean" => format!("not \"{column}\""),
        "\"char\"" => "'z'".into(),
        "name" => "'z'".into(),
        "oid" => "4242424".into(),
        "smallint" | "integer" | "bigint" | "real" => format!("\"{column}\" + 1"),
        "text" => "'z'".into(),
        "text[]" => "array['a=b']".into(),
        "aclitem[]" => "'{postgres=r/postgres}'".into(),
        "int2vector" => "'2'".into(),
        // Written as it is.
        _ => format!("\"{column}\""),
    }
}

#[test]
fn a_write_counts_as_the_table_says() {
    let said = said();
    on_each_version(|client, version| {
        let before = look(client);
        let mut written = 0;
        for (catalog, columns) in catalogs(client) {
            for (column, kind) in columns {
                let (value, row) = (
                    other_value(&catalog, &column, &kind),
                    row(&catalog, &column),
                );
                let mut write = client.transaction().unwrap();
                let sql = format!(
                    "set local allow_system_table_mods = on; update pg_catalog.{catalog} set \"{column}\" = {value} \
                     where ctid = (select ctid from pg_catalog.{catalog} where {row} limit 1)"
                );
                write
                    .batch_execute(&sql)
                    .unwrap_or_else(|error| panic!("{sql}: {error:?}"));
                let changed = "select count(*) from pg_catalog.";
                let changed = format!("{changed}{catalog} where xmin = pg_current_xact_id()::xid");
                let changed: i64 = write.query_one(&changed, &[]).unwrap().get(0);
                let sql = format!("select {}", fingerprint());
                let after: String = write.query_one(&sql, &[]).unwrap().get(0);
                write.rollback().unwrap();
                let counts = said[catalog.as_str()][column.as_str()];
                if changed > 0 {
                    written += 1;
                    assert_eq!(after != before, counts, "{catalog}.{column} of {version}");
                }
            }
        }
        assert!(written > 450, "{written} columns of {version} had a row");
        assert_eq!(look(client), before);
    });
}

/// Each is one transaction.
const COUNTS: &[&str] = &[
    "alter text search configuration english alter mapping for asciiword with simple",
    // Two rows with one configuration, written by one transaction.
    "alter text search configuration english alter mapping for asciiword, word with english_stem",
    "alter text search configuration english alter mapping replace english_stem with simple",
    "alter text search dictionary english_stem (stopwords = 'dutch')",
    "alter role owner nobypassrls",
    "alter role owner noinherit",
    "alter role owner superuser",
    "alter role owner nosuperuser",
    "grant crew to owner",
    // Two rows with one role, written by one transaction.
    "revoke crew from m1, m2; grant crew to m3, m4",
    "revoke select on a from owner",
    "grant select on a to public",
    "revoke select on a from public, web",
    "grant select (id) on a to owner",
    "revoke select (id) on a from owner",
    "revoke usage on schema s1 from public; grant usage on schema s1 to owner",
    "alter function pg_catalog.lower(text) volatile",
    "revoke execute on function pg_catalog.upper(text) from public",
    "alter function pg_catalog.concat(variadic \"any\") strict",
    "alter table a owner to owner",
    "do 'begin execute format(''alter database %I owner to owner'', current_database()); end'",
    "create operator class mine default for type mood using btree as operator 1 < (anyenum, anyenum), \
     operator 3 = (anyenum, anyenum), function 1 enum_cmp(anyenum, anyenum)",
    "alter operator family pg_catalog.integer_ops using btree add function 1 (int4, numeric) s1.cmp(int, numeric)",
    "alter collation pg_catalog.\"C\" rename to \"D\"",
    "alter role postgres set search_path = s1, public",
    "alter role all set lc_time = 'C'",
    "alter event trigger ddl enable",
    "create default conversion mine for 'LATIN1' to 'UTF8' from iso8859_1_to_utf8",
    "set transform_null_equals = on",
    "set quote_all_identifiers = on",
];

/// Columns that count for no answer, or for none that is given here.
const COUNTS_NOT: &[&str] = &[
    "create role fresh login password 'x'",
    "alter role fresh password 'y' valid until '2100-01-01'",
    "grant select, insert on a to fresh",
    "grant insert, update on a to owner, public",
    "revoke select on a from fresh",
    "alter role fresh set search_path = s1",
    "alter default privileges grant select on tables to public",
    "comment on table a is 'x'",
    "revoke all on a from fresh; drop owned by fresh; drop role fresh",
    "create index other on a (b)",
    "vacuum full pg_catalog.pg_proc",
    "vacuum (freeze, full) pg_catalog.pg_ts_config_map",
];

#[test]
fn each_kind_of_change_counts_and_what_concerns_others_does_not() {
    on_each_version(|client, version| {
        let swapped = "alter publication two set tables in schema s2";
        let newer = [swapped].into_iter().filter(|_| version > 14);
        let mut before = look(client);
        for sql in COUNTS.iter().copied().chain(newer) {
            client
                .batch_execute(sql)
                .unwrap_or_else(|error| panic!("{sql}: {error:?}"));
            let after = look(client);
            assert_ne!(after, before, "{sql}, on {version}");
            before = after;
        }
        for sql in COUNTS_NOT {
            client
                .batch_execute(sql)
                .unwrap_or_else(|error| panic!("{sql}: {error:?}"));
            assert_eq!(look(client), before, "{sql}, on {version}");
        }
    });
}
