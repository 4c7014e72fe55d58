//! The fingerprint is another one after every change that the feed does not report, and the same
//! after everything else.

use super::support::AnalysisFixture;
use crate::postgres::catalog;

const SCHEMA: &str = "
create table a (id int primary key, b text, c int);
create table p (id int primary key) partition by range (id);
create table p1 partition of p for values from (1) to (9);
create table heir (id int not null, b text, c int not null);
create type pair as (a int, b int);
create view v as select id from a;
create type mood as enum ('low');
create domain small as int;
create function f(int) returns int language sql immutable as 'select $1';
create policy pol on a using (true);
create index plain on a (b);
create publication one for table a;
";

fn fingerprint(fixture: &AnalysisFixture) -> String {
    fixture
        .texts(&format!("select {}", catalog::fingerprint()))
        .remove(0)
}

#[test]
fn every_kind_of_ddl_changes_the_fingerprint() {
    let fixture = AnalysisFixture::bare(SCHEMA);
    let mut before = fingerprint(&fixture);
    for ddl in [
        "create table fresh (id int)",
        "alter table fresh rename to stale",
        "drop table stale",
        "alter table a add column d int",
        "alter table a rename column d to e",
        "alter table a alter column e type text",
        "alter table a drop column e",
        "alter table a alter column c set not null",
        "alter table a alter column c set default 3",
        "alter table a replica identity full",
        "create unique index only_one on a (c)",
        "alter table a replica identity using index only_one",
        "drop index only_one",
        "alter table heir inherit a",
        "alter table heir no inherit a",
        "create table p2 partition of p for values from (9) to (19)",
        "alter table p detach partition p2",
        "create or replace view v as select id + 1 as id from a",
        "alter view v set (security_barrier = true)",
        "create rule nothing as on insert to v do instead nothing",
        "create or replace function f(int) returns int language sql immutable as 'select $1 + 1'",
        "alter function f(int) volatile",
        "alter policy pol on a using (id > 1)",
        "drop policy pol on a",
        "alter table a enable row level security",
        "alter table a force row level security",
        "alter type mood add value 'high'",
        "alter type pair alter attribute b type text",
        "alter domain small add check (value < 100)",
        "create collation mine from \"C\"",
        "create publication millpond",
        "alter publication millpond add table a",
        "alter publication millpond set table a where (id > 1)",
        "alter publication millpond set tables in schema public",
        "alter publication millpond set (publish = 'insert')",
        "drop publication millpond",
        "create function _millpond_record() returns trigger language plpgsql as 'begin return null; end'",
        "create trigger _millpond_insert after insert on a for each statement execute function _millpond_record()",
        "alter table a disable trigger _millpond_insert",
        "begin; alter table a enable trigger _millpond_insert; alter table a disable trigger _millpond_insert; commit",
        "drop trigger _millpond_insert on a",
        "create table _millpond_change (transaction xid8)",
        "truncate _millpond_change",
        "create schema more",
        "alter table heir set schema more",
        "alter schema more rename to less",
        "alter table p1 set unlogged",
        "create sequence s",
        "create materialized view m as select 1",
        "create cast (mood as int) with inout",
        "create operator === (function = int4eq, leftarg = int, rightarg = int)",
        "create text search configuration words (copy = simple)",
        "do 'begin execute format(''alter database %I set search_path = less, public'', current_database()); end'",
        "set search_path = less, public",
    ] {
        let is_partial = ddl.contains("set table a where") || ddl.contains("set tables in schema");
        if is_partial && !fixture.has_partial_publications() {
            continue;
        }
        fixture.run(ddl);
        let after = fingerprint(&fixture);
        assert_ne!(after, before, "{ddl}");
        before = after;
    }
}

#[test]
fn data_and_upkeep_leave_the_fingerprint_as_it_is() {
    let fixture = AnalysisFixture::bare(SCHEMA);
    let before = fingerprint(&fixture);
    for sql in [
        "insert into a select n, 'x', n from generate_series(1, 1000) n",
        "update a set b = 'y' where id < 500",
        "delete from a where id > 900",
        "analyze",
        "vacuum",
        "vacuum full a",
        "vacuum freeze",
        "cluster a using a_pkey",
        "reindex table a",
        "truncate a",
        "insert into p values (1)",
        "create index other on a (c)",
        "create temporary table mine (id int primary key, b text default 'x' check (b <> ''), unique (b))",
        "create temporary view ours as select * from mine",
        "insert into mine values (1)",
        "create temporary table kids () inherits (mine)",
        "drop table mine cascade",
        "grant select on a to public",
        "comment on table a is 'x'",
    ] {
        fixture.run(sql);
        let excused = sql.starts_with("create temporary view");
        if !excused {
            assert_eq!(fingerprint(&fixture), before, "{sql}");
        } else {
            fixture.run("drop view ours");
        }
    }
    fixture.analyse("select * from a where id = $1").unwrap();
    assert_eq!(
        fingerprint(&fixture),
        before,
        "an analysis leaves nothing behind"
    );
}
