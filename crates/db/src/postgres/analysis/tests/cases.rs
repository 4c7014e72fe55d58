//! What queries depend on, one by one.

use expect_test::{Expect, expect};

use super::support::Fixture;
use crate::{Kind, Value};

const SCHEMA: &str = r#"
create collation nocase (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
create domain slug as text check (value <> '');
create type mood as enum ('low', 'high');
create table author (id int primary key, name text not null, email text collate nocase, code char(4), tag name);
create table article (id bigint primary key, author_id int references author, slug slug, title varchar(200), topic text,
  score numeric, day date, at timestamptz, published boolean, token uuid, mood mood, size smallint,
  loud text generated always as (upper(topic)) stored);
alter table article replica identity full;
create table comment (id int primary key, article_id bigint, who text, body text);
create table "Odd Name" ("Id" int primary key, "a:b" text);
create view recent as select a.id, a.title, u.name from article a join author u on u.id = a.author_id;
create view recenter as select * from recent;
create table event (id int, at date, primary key (id, at)) partition by range (at);
create table event_1 partition of event for values from ('2026-01-01') to ('2026-02-01');
create table event_2 partition of event for values from ('2026-02-01') to ('2026-03-01');
create table place (id int primary key, name text);
create table city (people int) inherits (place);
create unlogged table noise (id int primary key);
create materialized view digest as select count(*) from article;
create sequence counter;
create schema other;
create table other.comment (id int primary key, note text);
create function shout(text) returns text language sql immutable begin atomic select upper($1); end;
create function comments(bigint) returns bigint language sql stable begin atomic select count(*) from comment where article_id = $1; end;
create function opaque(int) returns text language plpgsql immutable as 'begin return (select name from author where id = $1); end';
create aggregate longest(text) (sfunc = textcat, stype = text);
"#;

fn check(queries: &[&str], expected: &Expect) {
    Fixture::new(SCHEMA).check(queries, expected);
}

#[test]
fn equalities_narrow() {
    check(
        &[
            "select * from author where id = $1",
            "select * from author where $1 = id and name > 'a'",
            "select * from author where (id = $1)",
            "select * from author where id in (1, $1, -3)",
            "select * from author where id in (1)",
            "select * from author where id = any ($1)",
            "select * from author where id = null",
            "select * from article where id = 7",
            "select * from article where id = $1::int",
            "select * from article where size = $1",
            "select * from article where title = $1 and topic = 'it''s'",
            "select * from article where slug = $1",
            "select * from article where token = $1 or false",
            "select * from article where token = 'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'",
            "select * from article where published",
            "select * from article where not published",
            "select * from article where published = true and topic = $1",
            "select * from comment where article_id = $1 order by id limit $2",
            "select * from AUTHOR as X where x.ID = $1",
            "select * from public.author where author.id = $1",
            "select * from \"Odd Name\" where \"Id\" = $1",
            "select * from \"Odd Name\" as \":x\" where \":x\".\"a:b\" = '(a {b} \\ '",
            "select * from event where id = $1",
            "select * from event_1 where id = $1",
            "select * from place where id = $1",
            "select * from only city where id = $1",
            "select * from other.comment where id = $1",
            "select id, count(*) from comment where article_id = $1 group by id having count(*) = $2",
            "table author",
            "values (1), ($1::int)",
            "select 1",
        ],
        &expect![[r#"
            select * from author where id = $1
                author: rows with id = :a
            select * from author where $1 = id and name > 'a'
                author: rows with id = :a
            select * from author where (id = $1)
                author: rows with id = :a
            select * from author where id in (1, $1, -3)
                author: rows with id in (1, :a, -3)
            select * from author where id in (1)
                author: rows with id = 1
            select * from author where id = any ($1)
                author: rows with id = any (:a)
            select * from author where id = null
                author: rows with id = NULL
            select * from article where id = 7
                article: rows with id = 7
            select * from article where id = $1::int
                article: rows with id = :a
            select * from article where size = $1
                article: rows with size = :a
            select * from article where title = $1 and topic = 'it''s'
                article: rows with title = :a
            select * from article where slug = $1
                article: rows with slug = :a
            select * from article where token = $1 or false
                article: every change
            select * from article where token = 'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'
                article: rows with token = 'a0eebc999c0b4ef8bb6d6bb9bd380a11'
            select * from article where published
                article: rows with published = true
            select * from article where not published
                article: rows with published = false
            select * from article where published = true and topic = $1
                article: rows with published = true
            select * from comment where article_id = $1 order by id limit $2
                comment: rows with article_id = :a (updates and deletions elsewhere in the table count too: REPLICA IDENTITY DEFAULT tells the old values of keys only; "alter table comment replica identity full" makes it exact, and the log a little larger)
            select * from AUTHOR as X where x.ID = $1
                author: rows with id = :a
            select * from public.author where author.id = $1
                author: rows with id = :a
            select * from "Odd Name" where "Id" = $1
                Odd Name: rows with Id = :a
            select * from "Odd Name" as ":x" where ":x"."a:b" = '(a {b} \ '
                Odd Name: rows with a:b = '(a {b} \ ' (updates and deletions elsewhere in the table count too: REPLICA IDENTITY DEFAULT tells the old values of keys only; "alter table "public"."Odd Name" replica identity full" makes it exact, and the log a little larger)
            select * from event where id = $1
                event: rows with id = :a
            select * from event_1 where id = $1
                event_1: rows with id = :a
            select * from place where id = $1
                place: rows with id = :a (updates and deletions elsewhere in the table count too: REPLICA IDENTITY DEFAULT tells the old values of keys only; "alter table place replica identity full" makes it exact, and the log a little larger)
            select * from only city where id = $1
                city: rows with id = :a (updates and deletions elsewhere in the table count too: without a replica identity no old values are told; "alter table city replica identity full" makes it exact, and the log a little larger)
            select * from other.comment where id = $1
                other.comment: rows with id = :a
            select id, count(*) from comment where article_id = $1 group by id having count(*) = $2
                comment: rows with article_id = :a (updates and deletions elsewhere in the table count too: REPLICA IDENTITY DEFAULT tells the old values of keys only; "alter table comment replica identity full" makes it exact, and the log a little larger)
            table author
                author: every change
            values (1), ($1::int)
            select 1
        "#]],
    );
}

#[test]
fn what_is_not_certain_is_the_whole_table() {
    check(
        &[
            "select * from author",
            "select * from author where id = $1 or id = $2",
            "select * from author where not id = $1",
            "select * from author where id + 0 = $1",
            "select * from author where id = $1::int + 1",
            "select * from author where id = $1::numeric",
            "select * from author where id = $1::float8",
            "select * from author where id = $1::text::int",
            "select * from author where id is not distinct from $1",
            "select * from author where id not in ($1)",
            "select * from author where id <> all ($1)",
            "select * from author where id = all ($1)",
            "select * from author where id in (select id from article where id = $1)",
            "select * from author where id = author.id",
            "select * from author where email = $1",
            "select * from author where name = $1 collate nocase",
            "select * from author where name collate nocase = $1",
            "select * from author where code = $1",
            "select * from author where tag = $1",
            "select * from author where name = $1::bpchar",
            "select * from author where name = $1::name",
            "select * from author where lower(name) = $1",
            "select * from author where name = 'ä'",
            "select * from author where name = $1::varchar(3)",
            "select * from author where name like $1",
            "select * from article where score = $1",
            "select * from article where day = $1",
            "select * from article where at = $1",
            "select * from article where mood = $1",
            "select * from article where loud = $1",
            "select * from article group by id having id = $1",
            "select * from author order by id = $1",
            "select * from author where (select id = $1)",
            "select * from author where case when id = $1 then true end",
        ],
        &expect![[r#"
            select * from author
                author: every change
            select * from author where id = $1 or id = $2
                author: every change
            select * from author where not id = $1
                author: every change
            select * from author where id + 0 = $1
                author: every change
            select * from author where id = $1::int + 1
                author: every change
            select * from author where id = $1::numeric
                author: every change
            select * from author where id = $1::float8
                author: every change
            select * from author where id = $1::text::int
                author: every change
            select * from author where id is not distinct from $1
                author: every change
            select * from author where id not in ($1)
                author: every change
            select * from author where id <> all ($1)
                author: every change
            select * from author where id = all ($1)
                author: every change
            select * from author where id in (select id from article where id = $1)
                article: rows with id = :a
                author: every change
            select * from author where id = author.id
                author: every change
            select * from author where email = $1
                author: every change
            select * from author where name = $1 collate nocase
                author: every change
            select * from author where name collate nocase = $1
                author: every change
            select * from author where code = $1
                author: every change
            select * from author where tag = $1
                author: every change
            select * from author where name = $1::bpchar
                author: every change
            select * from author where name = $1::name
                author: every change
            select * from author where lower(name) = $1
                author: every change
            select * from author where name = 'ä'
                author: every change
            select * from author where name = $1::varchar(3)
                author: every change
            select * from author where name like $1
                author: every change
            select * from article where score = $1
                article: every change
            select * from article where day = $1
                article: every change
            select * from article where at = $1
                article: every change
            select * from article where mood = $1
                article: every change
            select * from article where loud = $1
                article: every change
            select * from article group by id having id = $1
                article: every change
            select * from author order by id = $1
                author: every change
            select * from author where (select id = $1)
                author: every change
            select * from author where case when id = $1 then true end
                author: every change
        "#]],
    );
}

#[test]
fn each_reference_counts_by_itself() {
    check(
        &[
            "select a.title, u.name from article a join author u on u.id = a.author_id where a.id = $1",
            "select * from comment a join comment b on a.id = b.article_id where a.id = $1",
            "select * from comment a join comment b on a.id = $1 and b.id = $2",
            "select * from article a left join comment c on c.article_id = a.id and a.id = $1",
            "select * from article a left join comment c on c.article_id = $1",
            "select * from article a left join comment c on c.article_id = a.id where c.article_id = $1",
            "select * from article a right join comment c on c.article_id = a.id and a.id = $1",
            "select * from article a full join comment c on c.article_id = a.id and a.id = $1",
            "select * from article a full join comment c on c.article_id = a.id where a.id = $1",
            "select * from author u left join (article a join comment c on c.article_id = a.id and c.article_id = $1) on a.author_id = u.id",
            "select * from author u left join (article a left join comment c on c.article_id = $2) on a.id = $1",
            "select * from article a, comment c where a.id = $1 and article_id = $1",
            "select * from comment join author using (id) where id = $1",
            "select * from comment join author using (id) where author.id = $1",
            "select * from comment full join author using (id) where id = $1",
            "select * from comment natural join author where author.name = $1",
            "select * from author where id = $1 and exists (select 1 from comment where who = author.name)",
            "select * from author where exists (select 1 from comment where article_id = $1 and author.id = $2)",
            "select (select count(*) from comment where article_id = $1) from article where id = $1",
            "select id from comment where id = $1 union select id from comment where id = $2",
            "with c as (select * from comment where id = $1) select * from c",
            "with author as (select * from comment where id = $1) select * from author where id = $1",
            "with recursive c (x) as (select id from comment where id = $1 union select a.id from comment a join c on a.article_id = c.x) select * from c",
            "select * from (select * from comment where id = $1) c where c.who = 'a'",
            "select * from (comment c join author u on u.id = c.id) j where j.name = $1",
            "select * from article a, lateral (select * from comment c where c.article_id = a.id and c.id = $1) l where a.id = 3",
            "select * from author, generate_series(1, 3) where author.id = $1",
            "select * from event e join event_1 f on f.id = $1 where e.id = $2",
            "select * from event e, event_2 where e.id = $1",
        ],
        &expect![[r#"
            select a.title, u.name from article a join author u on u.id = a.author_id where a.id = $1
                article: rows with id = :a
                author: every change
            select * from comment a join comment b on a.id = b.article_id where a.id = $1
                comment: every change
            select * from comment a join comment b on a.id = $1 and b.id = $2
                comment: rows with id = :a
                comment: rows with id = :b
            select * from article a left join comment c on c.article_id = a.id and a.id = $1
                article: every change
                comment: every change
            select * from article a left join comment c on c.article_id = $1
                article: every change
                comment: rows with article_id = :a (updates and deletions elsewhere in the table count too: REPLICA IDENTITY DEFAULT tells the old values of keys only; "alter table comment replica identity full" makes it exact, and the log a little larger)
            select * from article a left join comment c on c.article_id = a.id where c.article_id = $1
                article: every change
                comment: rows with article_id = :a (updates and deletions elsewhere in the table count too: REPLICA IDENTITY DEFAULT tells the old values of keys only; "alter table comment replica identity full" makes it exact, and the log a little larger)
            select * from article a right join comment c on c.article_id = a.id and a.id = $1
                article: rows with id = :a
                comment: every change
            select * from article a full join comment c on c.article_id = a.id and a.id = $1
                article: every change
                comment: every change
            select * from article a full join comment c on c.article_id = a.id where a.id = $1
                article: rows with id = :a
                comment: every change
            select * from author u left join (article a join comment c on c.article_id = a.id and c.article_id = $1) on a.author_id = u.id
                article: every change
                author: every change
                comment: rows with article_id = :a (updates and deletions elsewhere in the table count too: REPLICA IDENTITY DEFAULT tells the old values of keys only; "alter table comment replica identity full" makes it exact, and the log a little larger)
            select * from author u left join (article a left join comment c on c.article_id = $2) on a.id = $1
                article: rows with id = :a
                author: every change
                comment: rows with article_id = :b (updates and deletions elsewhere in the table count too: REPLICA IDENTITY DEFAULT tells the old values of keys only; "alter table comment replica identity full" makes it exact, and the log a little larger)
            select * from article a, comment c where a.id = $1 and article_id = $1
                article: rows with id = :a
                comment: rows with article_id = :a (updates and deletions elsewhere in the table count too: REPLICA IDENTITY DEFAULT tells the old values of keys only; "alter table comment replica identity full" makes it exact, and the log a little larger)
            select * from comment join author using (id) where id = $1
                author: every change
                comment: rows with id = :a
            select * from comment join author using (id) where author.id = $1
                author: rows with id = :a
                comment: every change
            select * from comment full join author using (id) where id = $1
                author: every change
                comment: every change
            select * from comment natural join author where author.name = $1
                author: rows with name = :a (updates and deletions elsewhere in the table count too: REPLICA IDENTITY DEFAULT tells the old values of keys only; "alter table author replica identity full" makes it exact, and the log a little larger)
                comment: every change
            select * from author where id = $1 and exists (select 1 from comment where who = author.name)
                author: rows with id = :a
                comment: every change
            select * from author where exists (select 1 from comment where article_id = $1 and author.id = $2)
                author: every change
                comment: rows with article_id = :a (updates and deletions elsewhere in the table count too: REPLICA IDENTITY DEFAULT tells the old values of keys only; "alter table comment replica identity full" makes it exact, and the log a little larger)
            select (select count(*) from comment where article_id = $1) from article where id = $1
                article: rows with id = :a
                comment: rows with article_id = :a (updates and deletions elsewhere in the table count too: REPLICA IDENTITY DEFAULT tells the old values of keys only; "alter table comment replica identity full" makes it exact, and the log a little larger)
            select id from comment where id = $1 union select id from comment where id = $2
                comment: rows with id = :a
                comment: rows with id = :b
            with c as (select * from comment where id = $1) select * from c
                comment: rows with id = :a
            with author as (select * from comment where id = $1) select * from author where id = $1
                comment: rows with id = :a
            with recursive c (x) as (select id from comment where id = $1 union select a.id from comment a join c on a.article_id = c.x) select * from c
                comment: every change
            select * from (select * from comment where id = $1) c where c.who = 'a'
                comment: rows with id = :a
            select * from (comment c join author u on u.id = c.id) j where j.name = $1
                author: rows with name = :a (updates and deletions elsewhere in the table count too: REPLICA IDENTITY DEFAULT tells the old values of keys only; "alter table author replica identity full" makes it exact, and the log a little larger)
                comment: every change
            select * from article a, lateral (select * from comment c where c.article_id = a.id and c.id = $1) l where a.id = 3
                article: rows with id = 3
                comment: rows with id = :a
            select * from author, generate_series(1, 3) where author.id = $1
                author: rows with id = :a
            select * from event e join event_1 f on f.id = $1 where e.id = $2
                event, event_1: rows with id = :b
                event, event_1: rows with id = :a
            select * from event e, event_2 where e.id = $1
                event, event_2: every change
        "#]],
    );
}

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
                article: every change
                author: every change
            select * from recenter where id = $1
                article: every change
                author: every change
            select * from recent r join article a on a.id = r.id where a.id = $1
                article: every change
                author: every change
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
    let fixture = Fixture::new(SCHEMA);
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
fn what_no_feed_tells_is_not_cacheable() {
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
                not cacheable: noise is UNLOGGED, so its changes are not told
                noise: every change
            select * from digest
                not cacheable: digest is a materialized view, whose refreshes are not told; read a plain view or a table
            select nextval('counter')
                not cacheable: nextval() uses a sequence, whose changes are not told
            select last_value from counter
                not cacheable: counter is a sequence, whose changes are not told
            select * from pg_class
                not cacheable: changes to PostgreSQL's own tables are not told (pg_class)
            select * from information_schema.tables
                not cacheable: changes to PostgreSQL's own tables are not told (information_schema.tables)
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
fn statements_that_write_and_those_that_are_none() {
    check(
        &[
            "insert into comment values ($1, $2)",
            "update comment set body = $1 where id = $2",
            "delete from comment where id = $1 returning id",
            "insert into comment values (1) on conflict (id) do update set body = excluded.body",
            "",
            "-- nothing",
            "select 1; -- a comment",
            "select 1 -- a comment",
            "set search_path = other",
            "begin",
            "create table x ()",
            "select 1; select 2",
            "select * from nowhere",
        ],
        &expect![[r#"
            insert into comment values ($1, $2)
                comment: every change
                writes
            update comment set body = $1 where id = $2
                comment: rows with id = :b
                writes
            delete from comment where id = $1 returning id
                comment: rows with id = :a
                writes
            insert into comment values (1) on conflict (id) do update set body = excluded.body
                comment: every change
                writes

                error: there is no statement here (write one SELECT, INSERT, UPDATE or DELETE)
            -- nothing
                error: there is no statement here (write one SELECT, INSERT, UPDATE or DELETE)
            select 1; -- a comment
            select 1 -- a comment
            set search_path = other
                error: this is not a query (write one SELECT, INSERT, UPDATE or DELETE)
            begin
                error: this is not a query (write one SELECT, INSERT, UPDATE or DELETE)
            create table x ()
                error: this is not a query (write one SELECT, INSERT, UPDATE or DELETE)
            select 1; select 2
                error: cannot insert multiple commands into a prepared statement
            select * from nowhere
                error: relation "nowhere" does not exist
        "#]],
    );
}

#[test]
fn parameters_and_columns_are_known() {
    let fixture = Fixture::new(SCHEMA);
    let analysis = fixture
        .analyse("select id, title as t from article a where id = $1 and topic = $2 and published = $3 and score = $4 and slug = $5 limit $6")
        .unwrap();
    let kinds: Vec<_> = analysis.params.iter().map(|param| param.kind).collect();
    assert_eq!(
        kinds,
        [
            Some(Kind::Integer),
            Some(Kind::Text),
            Some(Kind::Boolean),
            Some(Kind::Other),
            Some(Kind::Text),
            Some(Kind::Integer)
        ]
    );
    assert_eq!(analysis.params[0].name, "a");
    assert_eq!(&*analysis.columns, ["id".into(), "t".into()]);
    assert_eq!(analysis.tables, ["article"]);
    let view = fixture.analyse("select * from recent").unwrap();
    assert_eq!(view.tables, ["recent"]);
    assert_eq!(view.reads().count(), 2);
}

#[test]
fn values_decide_at_each_execution() {
    let fixture = Fixture::new(SCHEMA);
    let by_key = fixture
        .analyse("select * from author where id = $1")
        .unwrap();
    assert_eq!(by_key.wanted().count(), 1);
    assert_eq!(by_key.deps(&[Value::Integer(7)]).tags.len(), 2);
    // Not the type that the server asked for: whatever it makes of it, all rows count.
    assert_eq!(by_key.deps(&["7".into()]).tags.len(), 1);
    let any = fixture
        .analyse("select * from author where id = any ($1)")
        .unwrap();
    let list = |json: serde_json::Value| any.deps(&[Value::from(json)]).tags.len();
    assert_eq!(list(serde_json::json!([1, 2, 3])), 4);
    assert_eq!(list(serde_json::json!([])), 2);
    assert_eq!(list(serde_json::json!((0..65).collect::<Vec<_>>())), 1);
    let clock = fixture
        .analyse("select * from article where at > $1")
        .unwrap();
    assert_eq!(clock.deps(&["2026-01-01".into()]).uncacheable, None);
    assert!(clock.deps(&["now".into()]).uncacheable.is_some());
}

#[test]
fn policies_count_where_the_role_is_subject_to_them() {
    let schema = "create table tenant (id int primary key); create table doc (id int primary key, tenant int, body text);
        alter table doc enable row level security;
        create policy mine on doc for select using (tenant in (select id from tenant));
        create policy who on doc for update using (body = current_user);
        create view docs as select * from doc";
    let fixture = Fixture::new(schema);
    let sql = "select * from doc where id = $1";
    // Whoever made the table, and superusers, are not subject to its policies.
    fixture.check(
        &[sql, "select * from docs"],
        &expect![[r#"
            select * from doc where id = $1
                doc: rows with id = :a
            select * from docs
                doc: every change
                tenant: every change
        "#]],
    );
    fixture.run("do 'begin if not exists (select from pg_roles where rolname = ''reader'') then create role reader; end if; end';
        grant select on all tables in schema public to reader; set role reader");
    fixture.check(
        &[sql],
        &expect![[r#"
        select * from doc where id = $1
            doc: rows with id = :a
            tenant: every change
    "#]],
    );
    fixture.run("reset role; drop policy mine on doc; create policy mine on doc using (body = current_user); set role reader");
    fixture.check(
        &[sql],
        &expect![[r#"
        select * from doc where id = $1
            not cacheable: the result depends on who asks
            doc: rows with id = :a
    "#]],
    );
    fixture.run("reset role; drop owned by reader");
}

#[test]
fn a_publication_that_leaves_something_out_is_none() {
    let tables = "create table a (id int primary key, b int); create table c (id int primary key);
        create table p (id int primary key) partition by range (id); create table p1 partition of p for values from (1) to (9);
        create table parent (id int primary key); create table child () inherits (parent)";
    let queries = [
        "select * from a",
        "select * from c",
        "select * from p",
        "select * from parent",
    ];
    for publication in [
        "",
        "create publication millpond for table a where (id > 1), only parent",
        "create publication millpond for table a (id), c, p",
        "create publication millpond for table a, c, p, parent with (publish_via_partition_root = true)",
        "create publication millpond for all tables with (publish = 'insert, update')",
    ] {
        let fixture = Fixture::bare(&format!("{tables}; {publication}"));
        let reasons: Vec<String> = queries
            .iter()
            .map(|sql| {
                let deps = fixture.analyse(sql).unwrap().deps(&[]);
                deps.uncacheable
                    .map_or("cacheable".into(), |reason| reason.to_string())
            })
            .collect();
        let expected: [&str; 4] = match publication {
            "" => ["there is no publication millpond; \"millpond check --fix\" makes it"; 4],
            _ if publication.contains("where") => [
                "the publication millpond leaves out rows or columns of a",
                "c is not in the publication millpond; \"millpond check --fix\" adds it",
                "p1 is not in the publication millpond; \"millpond check --fix\" adds it",
                "child is not in the publication millpond; \"millpond check --fix\" adds it",
            ],
            _ if publication.contains("(id)") => [
                "the publication millpond leaves out rows or columns of a",
                "cacheable",
                "cacheable",
                "parent is not in the publication millpond; \"millpond check --fix\" adds it",
            ],
            _ if publication.contains("via") => ["cacheable"; 4],
            _ => ["the publication millpond leaves out some kinds of changes"; 4],
        };
        assert_eq!(reasons, expected, "{publication}");
    }
}

#[test]
fn who_may_make_no_temporary_objects_gets_no_stale_answer() {
    let fixture = Fixture::new(SCHEMA);
    fixture.run("do 'begin if not exists (select from pg_roles where rolname = ''strict'') then create role strict; end if; end';
        do 'begin execute format(''revoke temporary on database %I from public'', current_database()); end';
        grant select on author to strict; set role strict");
    let analysis = fixture
        .analyse("select * from author where id = $1")
        .unwrap();
    let reason = analysis.deps(&[Value::Integer(1)]).uncacheable.unwrap();
    assert!(reason.contains("grant temporary"), "{reason}");
    assert!(analysis.readonly);
    fixture.run("reset role; set default_transaction_read_only = on");
    let analysis = fixture
        .analyse("select * from author where id = $1")
        .unwrap();
    assert_eq!(analysis.deps(&[Value::Integer(1)]).uncacheable, None);
    fixture.run("reset default_transaction_read_only");
    fixture.run("drop owned by strict");
}
