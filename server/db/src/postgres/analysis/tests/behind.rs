//! What stands behind a name: views, functions, tables that no feed reports.

use expect_test::expect;

use super::schema::{SCHEMA, check};
use super::support::AnalysisFixture;
use crate::query::QueryAnalysis as _;

#[test]
fn views_and_functions_are_seen_through() {
    check(
        &[
            "select * from recent where id = $1",
            "select * from recenter where id = $1",
            "select * from recent r join article a on a.id = r.id where a.id = $1",
            "select shout(name) from author where id = $1",
            "select comments(id) from article where id = $1",
            "select comments(article_id) from comment where id = $1",
            "select longest(name) from author where id = $1",
            "select opaque(1)",
        ],
        &expect![[r#"
            select * from recent where id = $1
                article: rows with id = :a
                author: rows with id = author_id of article with id = :a
            select * from recenter where id = $1
                article: rows with id = :a
                author: rows with id = author_id of article with id = :a
            select * from recent r join article a on a.id = r.id where a.id = $1
                article: rows with id = :a
                author: rows with id = author_id of article with id = :a
            select shout(name) from author where id = $1
                author: rows with id = :a
            select comments(id) from article where id = $1
                article: rows with id = :a
                comment: every change
            select comments(article_id) from comment where id = $1
                comment: every change
            select longest(name) from author where id = $1
                author: rows with id = :a
            select opaque(1)
                not cacheable: opaque() may read tables; write "-- depends:" and their names above the query, separated by commas
        "#]],
    );
    let fixture = AnalysisFixture::new(SCHEMA);
    let told = |names: &[&str]| {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        fixture
            .analyse_with("select opaque($1)", Some(&names))
            .map(|analysis| analysis.describe())
    };
    assert_eq!(told(&["author"]).unwrap(), ["author: every change"]);
    assert_eq!(
        told(&["recent"]).unwrap(),
        ["article: every change", "author: every change"]
    );
    assert_eq!(told(&[]).unwrap(), [""; 0]);
    assert!(told(&["nobody"]).unwrap_err().message.contains("nobody"));
}

#[test]
fn what_no_feed_reports_is_not_cacheable() {
    check(
        &[
            "select * from noise",
            "select * from digest",
            "select nextval('counter')",
            "select last_value from counter",
            "select * from pg_class",
            "select * from information_schema.tables",
            "select now()",
            "select current_date",
            "select localtimestamp from author",
            "select age(at) from article",
            "select clock_timestamp()",
            "select random()",
            "select gen_random_uuid()",
            "select current_setting('search_path')",
            "select current_user",
            "select * from author tablesample bernoulli (10)",
            "select * from author for update",
            "select ctid from author where id = $1",
            "select * from author where xmin::text = $1",
            "select name::regclass from author",
            "select name::timestamptz from author",
            "select * from article where at > 'now'",
            "select * from article where at < 'yesterday'::timestamptz",
            "select '12:00 America/New_York'::timetz",
            "select '12:00'::timetz at time zone 'America/New_York'",
            "select 'author'::regclass::text",
            "with gone as (delete from author returning id) select * from gone",
            "select pg_advisory_lock(1)",
            "select xmlforest(name) from author",
        ],
        &expect![[r#"
            select * from noise
                not cacheable: noise is UNLOGGED, so no feed reports its changes; "alter table noise set logged" has them in the log, at the cost of each write
                noise: every change
            select * from digest
                not cacheable: digest is a materialized view, whose refreshes no feed reports; read a plain view or a table
            select nextval('counter')
                not cacheable: nextval() uses a sequence, whose changes no feed reports
            select last_value from counter
                not cacheable: counter is a sequence, whose changes no feed reports
            select * from pg_class
                not cacheable: no feed reports changes to PostgreSQL's own tables (pg_class)
            select * from information_schema.tables
                not cacheable: no feed reports changes to PostgreSQL's own tables (information_schema.tables)
            select now()
                not cacheable: now() reads the clock
            select current_date
                not cacheable: it reads the clock
            select localtimestamp from author
                not cacheable: it reads the clock
                author: every change
            select age(at) from article
                not cacheable: age() reads the clock
                article: every change
            select clock_timestamp()
                not cacheable: clock_timestamp() reads the clock
            select random()
                not cacheable: the result of random() may differ from one call to the next
            select gen_random_uuid()
                not cacheable: the result of gen_random_uuid() may differ from one call to the next
            select current_setting('search_path')
                not cacheable: current_setting() may differ from one session to the next
            select current_user
                not cacheable: the result depends on who asks
            select * from author tablesample bernoulli (10)
                not cacheable: TABLESAMPLE takes other rows each time
                author: every change
            select * from author for update
                not cacheable: it locks rows
                author: every change
                writes
            select ctid from author where id = $1
                not cacheable: ctid, xmin and their like change without a change to the row's values
                author: rows with id = :a
            select * from author where xmin::text = $1
                not cacheable: ctid, xmin and their like change without a change to the row's values
                author: every change
            select name::regclass from author
                not cacheable: the result of regclass() may differ from one call to the next
                author: every change
            select name::timestamptz from author
                not cacheable: a text that is read as a date or time may say 'now'
                author: every change
            select * from article where at > 'now'
                not cacheable: a date that says 'now' is that of the moment at which the query was prepared
                article: every change
            select * from article where at < 'yesterday'::timestamptz
                not cacheable: a date that says 'now' is that of the moment at which the query was prepared
                article: every change
            select '12:00 America/New_York'::timetz
                error: invalid input syntax for type time with time zone: "12:00 America/New_York"
            select '12:00'::timetz at time zone 'America/New_York'
                not cacheable: a time with a zone and without a date depends on today's
            select 'author'::regclass::text
                not cacheable: the result of writing a value by regclassout() may change
            with gone as (delete from author returning id) select * from gone
                author: every change
                writes
            select pg_advisory_lock(1)
                not cacheable: the result of pg_advisory_lock() may differ from one call to the next
            select xmlforest(name) from author
                not cacheable: Millpond does not know what xmlexpr depends on
                author: every change
        "#]],
    );
}

#[test]
fn what_depends_on_its_arguments_is_cacheable() {
    check(
        &[
            "select lower(name), length(name) || '', concat(name, 1), format('%s', name) from author where id = $1",
            "select to_char(at, 'YYYY'), at::date, date_trunc('day', at), at + interval '1 day', at::text, day < at from article where id = $1",
            "select to_json(a), json_build_object('a', a.id), jsonb_agg(name), array_to_string(array_agg(id), ',') from author a where id = $1 group by a.id",
            "select id::text, score::text, mood::text, array[1]::text, $1::int::text, tableoid from article where id = $2",
            "select ts_rank(to_tsvector(topic), plainto_tsquery('a')) from article where id = $1",
            "select age(at, at), extract(year from at), count(*) over (order by id), coalesce(topic, 'x'), array[id, 1], row(1, 2), nullif(id, 1), greatest(1, id), topic is null, published is true from article where id = $1",
            "select * from author where (id, name) = ($1, $2)",
            "select * from author where (id, name) < ($1, $2)",
            "select grouping(id), count(*) filter (where id > 1) from author where id = $1 group by rollup (id)",
            "select * from json_each($1) j join author a on a.name = j.key and a.id = 1",
            "select '2026-01-01'::timestamptz, 'known' from article where id = $1",
        ],
        &expect![[r#"
            select lower(name), length(name) || '', concat(name, 1), format('%s', name) from author where id = $1
                author: rows with id = :a
            select to_char(at, 'YYYY'), at::date, date_trunc('day', at), at + interval '1 day', at::text, day < at from article where id = $1
                article: rows with id = :a
            select to_json(a), json_build_object('a', a.id), jsonb_agg(name), array_to_string(array_agg(id), ',') from author a where id = $1 group by a.id
                author: rows with id = :a
            select id::text, score::text, mood::text, array[1]::text, $1::int::text, tableoid from article where id = $2
                article: rows with id = :b
            select ts_rank(to_tsvector(topic), plainto_tsquery('a')) from article where id = $1
                article: rows with id = :a
            select age(at, at), extract(year from at), count(*) over (order by id), coalesce(topic, 'x'), array[id, 1], row(1, 2), nullif(id, 1), greatest(1, id), topic is null, published is true from article where id = $1
                article: rows with id = :a
            select * from author where (id, name) = ($1, $2)
                author: rows with id = :a
            select * from author where (id, name) < ($1, $2)
                author: every change
            select grouping(id), count(*) filter (where id > 1) from author where id = $1 group by rollup (id)
                author: rows with id = :a
            select * from json_each($1) j join author a on a.name = j.key and a.id = 1
                author: rows with id = 1
            select '2026-01-01'::timestamptz, 'known' from article where id = $1
                article: rows with id = :a
        "#]],
    );
}

#[test]
fn what_is_not_kept_is_not_for_that_of_unknown_tables() {
    let fixture = AnalysisFixture::new(SCHEMA);
    let tables = |sql: &str| {
        let analysis = fixture.analyse(sql).unwrap();
        analysis.files.map(|files| files.len())
    };
    // It reads the clock, and the locks for its table need not be read.
    assert_eq!(tables("select id, current_timestamp from author"), Some(1));
    assert_eq!(
        tables("select id from author tablesample system (10)"),
        Some(1)
    );
    assert_eq!(tables("select random()"), Some(0));
    assert_eq!(tables("select opaque(1)"), None);
}

#[test]
fn a_function_in_sql_is_looked_into_whatever_it_says_of_itself() {
    let fixture = AnalysisFixture::bare(
        "create table film (id int primary key, title text); create table note (id int primary key);
         create publication millpond for all tables;
         create function _group_concat(text, text) returns text language sql immutable as \
             $$ select case when $2 is null then $1 when $1 is null then $2 else $1 || ', ' || $2 end $$;
         create aggregate group_concat(text) (sfunc = _group_concat, stype = text);
         create function liar() returns bigint language sql immutable as 'select count(*) from note;';
         create function named(what int) returns setof film language sql as 'select * from film where id = what';
         create function inner_liar(int) returns bigint language sql immutable as 'select liar() + $1';
         create function clock() returns timestamptz language sql immutable as 'select now()';
         create function its_own() returns bigint language sql immutable set search_path = public as 'select count(*) from note';
         create function anything(anyelement) returns anyelement language sql immutable as 'select $1';
         create type mood as enum ('low');
         create function to_mood(int) returns mood language plpgsql stable as 'begin return (select ''low'' from note); end';
         create cast (int as mood) with function to_mood(int) as assignment;
         create function moody() returns mood language sql immutable as 'select 1';
         create function moodier() returns mood language sql immutable begin atomic select 1; end",
    );
    let described = |sql: &str| fixture.analyse(sql).unwrap().describe().join("; ");
    for (sql, expected) in [
        (
            "select group_concat(title) from film where id = $1",
            "film: rows with id = :a",
        ),
        ("select liar()", "note: every change"),
        ("select inner_liar(1)", "note: every change"),
        ("select * from named($1)", "film: every change"),
        ("select clock()", "not cacheable: now() reads the clock"),
        (
            "select its_own()",
            "not cacheable: its_own() may read tables",
        ),
        (
            "select anything(1)",
            "not cacheable: anything() may read tables",
        ),
        (
            "select moody()",
            "not cacheable: the result of moody() may be converted",
        ),
        (
            "select moodier()",
            "not cacheable: the result of moodier() may be converted",
        ),
    ] {
        let found = described(sql);
        assert!(found.starts_with(expected), "{sql}: {found}");
    }
    let owners_word = fixture.analyse_with("select clock()", Some(&[]));
    assert_eq!(owners_word.unwrap().describe(), [""; 0]);
}
