//! The schema that most cases are about.

use expect_test::Expect;

use super::support::AnalysisFixture;

pub(super) const SCHEMA: &str = r#"
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

pub(super) fn check(queries: &[&str], expected: &Expect) {
    AnalysisFixture::new(SCHEMA).check(queries, expected);
}
