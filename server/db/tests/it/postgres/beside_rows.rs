//! Rule 9 from a query to a change that is none of a row, and back: what is kept ends, and what is
//! read then is what a server that has just begun reads (docs/reference/catalogs.md).

use std::sync::Arc;
use std::time::{Duration, Instant};

use lab_pgtest::{Options, Postgres};
use millpond_db::{Database, FeedKind, PostgresOptions, Query, Value};

use super::feed::started;
use super::{options, prepare, try_read};
use crate::support::RecordingSink;

/// The role `site` reads; it is no superuser and owns nothing.
const SCHEMA: &str = "
create role site login replication; create role crew; create role boss;
create role free bypassrls; create role heir; create role plain; create role barred; create role lent;
create role guards; create role trusty bypassrls; grant guards to site;
grant usage, create on schema public to trusty, site, free, heir, plain, barred, lent;
create schema s1; create schema s2; create schema s3;
grant usage on schema s1, s2, s3 to site, plain;
create table s1.place (n int); insert into s1.place values (1);
create table s2.place (n int); insert into s2.place values (2);
create table s3.shut (n int); insert into s3.shut values (3);
create table doc (id int primary key, body text); insert into doc values (1, 'he runs'), (2, 'she is running');
create table t (id int primary key, n int, word text); insert into t values (1, 10, 'one'), (2, 20, 'two');
create table hidden (id int primary key, word text); insert into hidden values (1, 'a'), (2, 'b');
create table ruled (id int primary key); insert into ruled values (1), (2);
create table crewed (id int primary key); insert into crewed values (1), (2);
create table led (id int primary key); insert into led values (1), (2);
create table owned (id int primary key); insert into owned values (1), (2);
alter table hidden enable row level security; create policy few on hidden using (id = 1);
alter table ruled enable row level security; create policy few on ruled using (id = 1);
alter table crewed enable row level security; create policy few on crewed to crew using (true);
alter table led enable row level security; create policy few on led to pg_database_owner using (true);
alter table owned enable row level security; create policy few on owned using (id = 1);
grant crew to heir, plain;
grant select on all tables in schema public, s1, s2, s3 to site, free, heir, plain, barred, lent;
create view by_free as select * from hidden; alter view by_free owner to free;
create view by_heir as select * from crewed; alter view by_heir owner to heir;
create view by_plain as select * from crewed; alter view by_plain owner to plain;
create view by_barred as select * from t; alter view by_barred owner to barred;
create view by_site as select * from t;
grant select on by_free, by_heir, by_plain, by_barred, by_site to site;
create function lent() returns bigint language sql stable security definer
  begin atomic select count(*) from public.t; end;
alter function lent() owner to lent;
create function number() returns int language sql immutable begin atomic select 1; end;
create table guarded (id int primary key); insert into guarded values (1), (2);
alter table guarded enable row level security; create policy few on guarded to guards using (true);
create table trusted (id int primary key); insert into trusted values (1), (2);
alter table trusted enable row level security; create policy few on trusted using (id = 1);
grant select on guarded, trusted to site, trusty;
create function guarded() returns bigint language plpgsql stable as 'begin return (select count(*) from guarded); end';
create function trusted() returns bigint language plpgsql stable security definer as 'begin return (select count(*) from trusted); end';
alter function trusted() owner to trusty;
create function stemmed() returns bigint language plpgsql stable as
  'begin return (select count(*) from doc where to_tsvector(''french'', body) @@ to_tsquery(''french'', ''run'')); end';
create type price as (amount int, taxed int); create type old_price as (taxed int, amount int);
create type mood as enum ('low', 'high');
create table feeling (id int primary key, mood mood); insert into feeling values (1, 'low');
grant select on feeling to site;
";

/// A query, and a change after which its answer is another one, or none. Each pair has objects of
/// its own. `DATABASE` stands for the database's name.
const CHANGES: &[(&str, &str)] = &[
    (
        "select id from doc where to_tsvector(body) @@ to_tsquery('is')",
        "alter database DATABASE set default_text_search_config = 'pg_catalog.simple'",
    ),
    (
        "select id from doc where to_tsvector('english', body) @@ to_tsquery('english', 'run')",
        "alter text search configuration english alter mapping for asciiword with simple",
    ),
    (
        "select id from doc where to_tsvector('german', body) @@ to_tsquery('german', 'running')",
        "alter text search dictionary german_stem (language = 'english')",
    ),
    (
        "select id, word from by_free",
        "alter role free nobypassrls",
    ),
    // Since PostgreSQL 16 the grant says whether its rights are inherited.
    (
        "select id from by_heir",
        "do $$ begin if current_setting('server_version_num')::int < 160000 then alter role heir noinherit; \
         else execute 'grant crew to heir with inherit false'; end if; end $$",
    ),
    ("select id from by_plain", "revoke crew from plain"),
    ("select id from by_barred", "revoke select on t from barred"),
    (
        "select word from by_site",
        "revoke select on by_site from site",
    ),
    // Functions keep plans of their own for as long as their session lives.
    (
        "-- depends: guarded\nselect guarded() as many",
        "revoke guards from site",
    ),
    (
        "-- depends: trusted\nselect trusted() as many",
        "alter role trusty nobypassrls",
    ),
    (
        "-- depends: doc\nselect stemmed() as many",
        "alter text search configuration french alter mapping for asciiword with simple",
    ),
    (
        "select (row(id, n)::price).amount from t",
        "alter type price rename to x; alter type old_price rename to price",
    ),
    ("select lent() as many", "revoke select on t from lent"),
    (
        "select n from s3.shut",
        "revoke usage on schema s3 from site",
    ),
    (
        "select word from hidden",
        "revoke select (word) on hidden from site; revoke select on hidden from site",
    ),
    (
        "select id from ruled",
        "alter policy few on ruled using (id = 2)",
    ),
    (
        "select id from led",
        "alter database DATABASE owner to site",
    ),
    ("select id from owned", "alter table owned owner to site"),
    (
        "select n from place",
        "alter role site set search_path = public, s2",
    ),
    (
        "select n from s1.place",
        "alter schema s1 rename to s4; alter schema s2 rename to s1",
    ),
    (
        "select number() as n",
        "create or replace function number() returns int language sql immutable begin atomic select 2; end",
    ),
    (
        "select mood from feeling",
        "alter type mood rename value 'low' to 'down'",
    ),
    (
        "select upper(word) as word from t",
        "revoke execute on function pg_catalog.upper(text) from public",
    ),
    ("select n from t", "revoke select on t from site"),
];

/// A node, and a session of a superuser.
struct Beside {
    server: Postgres,
    client: postgres::Client,
    options: PostgresOptions,
    database: Database,
    sink: Arc<RecordingSink>,
}

impl Drop for Beside {
    fn drop(&mut self) {
        self.database.stop();
    }
}

impl Beside {
    fn new(feed: FeedKind) -> Self {
        let server = Options::new().logical().start().unwrap();
        let mut client = postgres::Client::connect(&server.url(), postgres::NoTls).unwrap();
        client.batch_execute(SCHEMA).unwrap();
        let first = "alter role site set search_path = public, s1; set search_path = public, s1";
        client.batch_execute(first).unwrap();
        let options = PostgresOptions {
            feed,
            ..options(server.url().replace("postgres@", "site@"))
        };
        install(&options, &mut client);
        let (database, sink) = started(options.clone());
        sink.settle();
        Self {
            server,
            client,
            options,
            database,
            sink,
        }
    }

    /// Asks the server in a new session.
    fn fresh(&self, sql: &str) -> Result<Vec<Vec<Value>>, ()> {
        let database = Database::connect(self.options.clone()).unwrap();
        let query = try_prepare(&database, sql);
        let rows = query.and_then(|query| rows(&database, &query));
        database.stop();
        rows
    }

    /// Reads until the result is kept.
    fn fill(&self, query: &Query) -> Vec<Vec<Value>> {
        for _ in 0..1_000 {
            let epoch = self.sink.epoch();
            let read = try_read(&self.database, query, vec![]).unwrap();
            if self.sink.store(query.sql(), epoch, &read) {
                return read.results[0].rows.clone();
            }
            self.sink.settle();
        }
        panic!("{} is never kept", query.sql());
    }
}

/// Makes all that a feed lacks, as its owner would.
fn install(options: &PostgresOptions, client: &mut postgres::Client) {
    let database = Database::connect(options.clone()).unwrap();
    let queries = CHANGES.iter().map(|(sql, _)| try_prepare(&database, sql));
    let queries: Vec<Query> = queries.collect::<Result<_, _>>().unwrap();
    loop {
        let lacking = database.requirements(&queries).unwrap();
        let statements: Vec<&str> = lacking
            .iter()
            .filter_map(|lacking| lacking.statement.as_deref())
            .collect();
        if statements.is_empty() {
            assert!(lacking.is_empty(), "{lacking:?}");
            break;
        }
        client.batch_execute(statements[0]).unwrap();
    }
    database.stop();
}

fn try_prepare(database: &Database, sql: &str) -> Result<Query, ()> {
    let line = sql
        .split_once('\n')
        .and_then(|(first, _)| first.strip_prefix("-- depends: "));
    let depends = line.map(|table| vec![table.to_owned()]);
    let prepared = database.prepare_depending(sql, depends.as_deref());
    prepared.map_err(|error| println!("{error}, in: {sql}"))
}

fn rows(database: &Database, query: &Query) -> Result<Vec<Vec<Value>>, ()> {
    let read = try_read(database, query, vec![]).map_err(drop)?;
    Ok(read.results[0].rows.clone())
}

fn what_an_answer_depends_on(feed: FeedKind) {
    let mut beside = Beside::new(feed);
    let queries = CHANGES.iter();
    let queries = queries.map(|(sql, _)| try_prepare(&beside.database, sql));
    let queries: Vec<Query> = queries.collect::<Result<_, _>>().unwrap();
    let name = beside.server.url().rsplit('/').next().unwrap().to_owned();
    for ((sql, change), query) in CHANGES.iter().zip(&queries) {
        let before = beside.fill(query);
        assert_eq!(beside.fresh(sql).as_ref(), Ok(&before), "{sql}");
        let change = change.replace("DATABASE", &name);
        beside
            .client
            .batch_execute(&change)
            .unwrap_or_else(|error| panic!("{change}: {error:?}"));
        // A heartbeat that was sent after the change: the bound holds from here on.
        beside.sink.settle();
        assert!(beside.sink.cached(sql).is_none(), "kept after {change}");
        let (after, fresh) = (rows(&beside.database, query), beside.fresh(sql));
        assert_ne!(
            fresh.as_ref(),
            Ok(&before),
            "nothing is another after {change}"
        );
        assert_eq!(after, fresh, "after {change}");
    }
}

#[test]
fn what_an_answer_depends_on_besides_rows() {
    what_an_answer_depends_on(FeedKind::Logical);
}

#[test]
fn what_an_answer_depends_on_besides_rows_with_triggers() {
    what_an_answer_depends_on(FeedKind::Triggers);
}

#[test]
fn what_concerns_others_ends_nothing() {
    let mut beside = Beside::new(FeedKind::Logical);
    let query = prepare(&beside.database, "select n from t");
    beside.fill(&query);
    let epoch = beside.sink.epoch();
    for change in [
        "create role guest login password 'x'",
        "alter role guest set work_mem = '1MB'",
        "grant select on t to guest",
        "grant insert on t to site, barred",
        "revoke select on t from guest",
        "comment on table t is 'x'",
        "create index by_word on t (word)",
        "vacuum full t",
        "vacuum full pg_catalog.pg_class",
        "analyze",
        "drop owned by guest; drop role guest",
    ] {
        beside.client.batch_execute(change).unwrap();
        beside.sink.settle();
        assert_eq!(beside.sink.epoch(), epoch, "{change}");
    }
    assert!(beside.sink.cached(query.sql()).is_some());
}

#[test]
fn settings_that_change_while_the_feed_is_away_reach_what_is_read() {
    let mut beside = Beside::new(FeedKind::Logical);
    let query = prepare(&beside.database, "select n from place");
    assert_eq!(beside.fill(&query), [[Value::Integer(1)]]);
    let away = "alter role site noreplication; \
        select pg_terminate_backend(pid) from pg_stat_activity where backend_type = 'walsender'; \
        alter role site set search_path = public, s2";
    beside.client.batch_execute(away).unwrap();
    let began = Instant::now();
    while rows(&beside.database, &query) != Ok(vec![vec![Value::Integer(2)]]) {
        assert!(
            began.elapsed() < Duration::from_secs(60),
            "still the old settings"
        );
    }
}
