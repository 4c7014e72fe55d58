//! One table of statements for each rule of the reasoning about rows, run on both databases: what
//! narrows on one narrows on the other (coherence.md, rules 10, 21 and 23).

use std::fmt::Write as _;

use expect_test::{Expect, expect};

use crate::postgres::Fixture;
use crate::support::descriptions;

const SCHEMA: &str = "
create table label (id integer primary key, name text);
create table artist (id integer primary key, name text, label_id integer);
create table album (id integer primary key, title text, artist_id integer, year integer);
create index album_artist on album (artist_id);
create index album_title on album (title);
create table track (id integer primary key, name text, album_id integer, genre_id integer, price real);
create index track_album on track (album_id);
create table line (id integer primary key, track_id integer, invoice_id integer);
create index line_track on line (track_id);
create index artist_lower on artist (lower(name));
create index track_upper on track (upper(name));
create table follow (who text, artist_id integer, primary key (who, artist_id));
create view disc as select a.id, a.title, r.name as artist, r.label_id from album a join artist r on r.id = a.artist_id;
create view shown as select d.id, d.title, d.artist, l.name as label from disc d left join label l on l.id = d.label_id;
create view charts as select album_id, count(*) as sold from track join line on line.track_id = track.id group by album_id;
create view works as select id, title as name, artist_id from album union all select id, name, album_id from track;
create view latest as select * from album order by year limit 3;
insert into album (id, title) with recursive n (i) as (select 1 union all select i + 1 from n where i < 1100) select i, 't' from n;
analyze album;
";

/// Describes the statements on both databases. Where they differ, both are given.
fn check(statements: &[&str], expected: &Expect) {
    let full = "do $$ declare t regclass; begin
             for t in select oid from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace loop
                 execute format('alter table %s replica identity full', t);
             end loop;
         end $$; create publication millpond for all tables;";
    let postgres = Fixture::new(&format!("{SCHEMA} {full}"));
    let mut text = String::new();
    for sql in statements {
        let on_sqlite = descriptions(SCHEMA, &[sql]);
        let lines = postgres.prepare(sql).describe();
        let on_postgres = lines.iter().fold(format!("{sql}\n"), |mut all, line| {
            let _ = writeln!(all, "    {line}");
            all
        });
        text += &on_sqlite;
        if on_postgres != on_sqlite {
            text += "  on PostgreSQL\n";
            text += on_postgres.split_once('\n').map_or("", |(_, lines)| lines);
        }
    }
    expected.assert_eq(&text);
}

#[test]
fn equalities_restrict() {
    check(
        &[
            "select * from album where id = :id",
            "select * from album where :id = id and title > 'a'",
            "select * from album where id in (:a, :b, 3)",
            "select * from album where id = :a or id = :b or id = 4",
            "select * from album where (id = :a and year = 3) or id = 4",
            "select * from album where id = :a or year = 3",
            "select * from album where id = :a or :a is null",
            "select * from album where (:a = 0 or id in (:a, :b)) and (lower(title) = lower(:t) or :t is null)",
            "select * from album where (id = :a or year = 3 or :a is null)",
            "select * from album where (id = :a or :a is not null)",
            "select * from album a join artist r on r.id = a.artist_id where a.artist_id = :a or :a is null",
            "select * from album a join artist r on r.id = a.artist_id where (a.id = :a or :a is null) and a.title = :t",
            "select a.id, r.name from album a join artist r on r.id = a.artist_id where (a.year = :l or :l is null) order by a.id desc limit 3",
            "select * from album where not (id = :a)",
            "select * from album where id + 0 = :a",
            "select * from album where title = :t and year = 1973",
            "select * from album a, artist r where a.id = :id and r.name = :name",
            "select * from album a left join artist r on r.id = :id",
            "select * from album a left join artist r on a.id = :id",
            "select * from album a left join artist r on r.id = a.artist_id where a.id = :id",
            "select * from album a join artist r on r.id = a.artist_id and a.id = :id",
            "select * from album where id = :id order by title limit 3",
            "select count(*) from album where artist_id = :r",
            "select year, count(*) from album where artist_id = :r group by year",
            "select * from album where id = null",
            "select * from album where lower(title) = lower(:t)",
            "select * from album where :t = upper(title) and year > 1973",
            "select * from album where title = lower(:t)",
            "select * from album where lower(title) = title",
            "select * from album a join artist r on r.id = a.artist_id where lower(a.title) = lower(:t)",
            "select * from album a join artist r on lower(r.name) = lower(a.title) where lower(a.title) = lower(:t)",
            "select * from album a join artist r on r.id = a.artist_id where lower(a.title) = lower(:t) and a.id = :id",
            "select * from artist r join album a on a.artist_id = r.id where lower(r.name) = lower(:n)",
            "select * from artist r join album a on a.artist_id = r.id where lower(r.name) = :n",
            "select * from artist r join album a on a.artist_id = r.id where lower(r.name) = upper(:n)",
            "select * from track t join line i on i.track_id = t.id where upper(t.name) = upper(:n)",
            "select * from artist r join album a on a.artist_id = r.id where lower(r.name) = lower(:n) or lower(r.name) = 'x'",
            "select * from album",
        ],
        &expect![[r#"
            select * from album where id = :id
                album: rows with id = :id
            select * from album where :id = id and title > 'a'
                album: rows with id = :id
            select * from album where id in (:a, :b, 3)
                album: rows with id in (:a, :b, 3)
            select * from album where id = :a or id = :b or id = 4
                album: rows with id in (:a, :b, 4)
            select * from album where (id = :a and year = 3) or id = 4
                album: rows with id in (:a, 4)
            select * from album where id = :a or year = 3
                album: every change
            select * from album where id = :a or :a is null
                album: rows with id = :a unless :a is null
            select * from album where (:a = 0 or id in (:a, :b)) and (lower(title) = lower(:t) or :t is null)
                album: rows with id in (:a, :b) unless :a = 0
            select * from album where (id = :a or year = 3 or :a is null)
                album: every change
            select * from album where (id = :a or :a is not null)
                album: every change
            select * from album a join artist r on r.id = a.artist_id where a.artist_id = :a or :a is null
                album: rows with artist_id = :a unless :a is null
                artist: rows with id = :a unless :a is null
            select * from album a join artist r on r.id = a.artist_id where (a.id = :a or :a is null) and a.title = :t
                album: rows with title = :t
                artist: every change
              on PostgreSQL
                album: rows with title = :t
                artist: rows with id = artist_id of album with title = :t
            select a.id, r.name from album a join artist r on r.id = a.artist_id where (a.year = :l or :l is null) order by a.id desc limit 3
                album: rows with year = :l unless :l is null
                artist: rows with id = artist_id of album among the first 3 by id desc
              on PostgreSQL
                album: rows among the first 3 by id desc
                artist: rows with id = artist_id of album among the first 3 by id desc
            select * from album where not (id = :a)
                album: every change
            select * from album where id + 0 = :a
                album: every change
            select * from album where title = :t and year = 1973
                album: rows with title = :t
            select * from album a, artist r where a.id = :id and r.name = :name
                album: rows with id = :id
                artist: rows with name = :name
            select * from album a left join artist r on r.id = :id
                album: every change
                artist: rows with id = :id
            select * from album a left join artist r on a.id = :id
                album: every change
                artist: every change
            select * from album a left join artist r on r.id = a.artist_id where a.id = :id
                album: rows with id = :id
                artist: rows with id = artist_id of album with id = :id
            select * from album a join artist r on r.id = a.artist_id and a.id = :id
                album: rows with id = :id
                artist: rows with id = artist_id of album with id = :id
            select * from album where id = :id order by title limit 3
                album: rows with id = :id
            select count(*) from album where artist_id = :r
                album: rows with artist_id = :r
            select year, count(*) from album where artist_id = :r group by year
                album: rows with artist_id = :r
            select * from album where id = null
                album: rows with id = NULL
            select * from album where lower(title) = lower(:t)
                album: rows with lower(title) = :t
            select * from album where :t = upper(title) and year > 1973
                album: rows with upper(title) = :t
            select * from album where title = lower(:t)
                album: every change
            select * from album where lower(title) = title
                album: every change
            select * from album a join artist r on r.id = a.artist_id where lower(a.title) = lower(:t)
                album: rows with lower(title) = :t
                artist: every change
            select * from album a join artist r on lower(r.name) = lower(a.title) where lower(a.title) = lower(:t)
                album: rows with lower(title) = :t
                artist: every change
            select * from album a join artist r on r.id = a.artist_id where lower(a.title) = lower(:t) and a.id = :id
                album: rows with id = :id
                artist: rows with id = artist_id of album with id = :id
            select * from artist r join album a on a.artist_id = r.id where lower(r.name) = lower(:n)
                album: rows with artist_id = id of artist with lower(name) = :n
                artist: rows with lower(name) = :n
            select * from artist r join album a on a.artist_id = r.id where lower(r.name) = :n
                album: rows with artist_id = id of artist with lower(name) = :n
                artist: rows with lower(name) = :n
            select * from artist r join album a on a.artist_id = r.id where lower(r.name) = upper(:n)
                album: every change
                artist: every change
            select * from track t join line i on i.track_id = t.id where upper(t.name) = upper(:n)
                line: rows with track_id = id of track with upper(name) = :n
                track: rows with upper(name) = :n
            select * from artist r join album a on a.artist_id = r.id where lower(r.name) = lower(:n) or lower(r.name) = 'x'
                album: rows with artist_id = id of artist with lower(name) in (:n, 'x')
                artist: rows with lower(name) in (:n, 'x')
            select * from album
                album: every change
        "#]],
    );
}

#[test]
fn equalities_pass_into_views_subqueries_and_common_tables() {
    check(
        &[
            "select * from disc where id = :id",
            "select * from shown where id = :id",
            "select * from charts where album_id = :id",
            "select * from charts where sold = :n",
            "select * from works where id = :id",
            "select * from latest where id = :id",
            "select * from disc where lower(title) = :t",
            "select * from (select title, count(*) from album group by title) a where lower(a.title) = :t",
            "select * from (select id, title from album) a where a.id = :id",
            "select * from (select distinct artist_id from album) a where a.artist_id = :r",
            "select * from (select artist_id, max(year) as y from album group by artist_id) a where a.artist_id = :r",
            "select * from (select artist_id, max(year) as y from album group by artist_id) a where a.y = :y",
            "select * from (select id, row_number() over (partition by artist_id order by year) as n, artist_id from album) a where a.artist_id = :r",
            "select * from (select id, row_number() over (order by year) as n from album) a where a.id = :id",
            "select * from (select * from album limit 5) a where a.id = :id",
            "select * from (select title || '' as t, count(*) over (partition by title || '') as n from album) a where a.t = :t",
            "select * from (select id from album union select id from track) x where x.id = :id",
            "select * from (select id from album except select id from track) x where x.id = :id",
            "with a as (select * from album) select * from a where id = :id",
            "with a as (select * from album) select * from a x, a y where x.id = :id and y.id = :id",
            "with a as (select artist_id, count(*) as n from album group by artist_id) select * from artist r join a on a.artist_id = r.id where r.id = :id",
            "with a as (select * from track) select * from album b where b.id = :id and exists (select 1 from a where a.album_id = b.id)",
            "with x as (select * from album), y as (select * from x) select * from y where id = :id",
            "with a as (select * from album), b as (select * from a where id = :p) select * from b x, b y",
        ],
        &expect![[r#"
            select * from disc where id = :id
                album: rows with id = :id
                artist: rows with id = artist_id of album with id = :id
            select * from shown where id = :id
                album: rows with id = :id
                artist: rows with id = artist_id of album with id = :id
                label: rows with id = label_id of disc with id = :id
              on PostgreSQL
                album: rows with id = :id
                artist: rows with id = artist_id of album with id = :id
                label: every change
            select * from charts where album_id = :id
                line: rows with track_id = id of track with album_id = :id
                track: rows with album_id = :id
            select * from charts where sold = :n
                line: every change
                track: every change
            select * from works where id = :id
                album: rows with id = :id
                track: rows with id = :id
            select * from latest where id = :id
                album: every change
            select * from disc where lower(title) = :t
                album: rows with lower(title) = :t
                artist: every change
            select * from (select title, count(*) from album group by title) a where lower(a.title) = :t
                album: rows with lower(title) = :t
            select * from (select id, title from album) a where a.id = :id
                album: rows with id = :id
            select * from (select distinct artist_id from album) a where a.artist_id = :r
                album: rows with artist_id = :r
            select * from (select artist_id, max(year) as y from album group by artist_id) a where a.artist_id = :r
                album: rows with artist_id = :r
            select * from (select artist_id, max(year) as y from album group by artist_id) a where a.y = :y
                album: every change
            select * from (select id, row_number() over (partition by artist_id order by year) as n, artist_id from album) a where a.artist_id = :r
                album: rows with artist_id = :r
            select * from (select id, row_number() over (order by year) as n from album) a where a.id = :id
                album: every change
            select * from (select * from album limit 5) a where a.id = :id
                album: every change
            select * from (select title || '' as t, count(*) over (partition by title || '') as n from album) a where a.t = :t
                album: every change
            select * from (select id from album union select id from track) x where x.id = :id
                album: rows with id = :id
                track: rows with id = :id
            select * from (select id from album except select id from track) x where x.id = :id
                album: rows with id = :id
                track: rows with id = :id
            with a as (select * from album) select * from a where id = :id
                album: rows with id = :id
            with a as (select * from album) select * from a x, a y where x.id = :id and y.id = :id
                album: every change
            with a as (select artist_id, count(*) as n from album group by artist_id) select * from artist r join a on a.artist_id = r.id where r.id = :id
                album: rows with artist_id = :id
                artist: rows with id = :id
            with a as (select * from track) select * from album b where b.id = :id and exists (select 1 from a where a.album_id = b.id)
                album: rows with id = :id
                track: rows with album_id = :id
            with x as (select * from album), y as (select * from x) select * from y where id = :id
                album: rows with id = :id
            with a as (select * from album), b as (select * from a where id = :p) select * from b x, b y
                album: rows with id = :p
        "#]],
    );
}

#[test]
fn restrictions_are_carried_on_along_keys() {
    check(
        &[
            "select * from album a join artist r on r.id = a.artist_id join label l on l.id = r.label_id where a.id = :id",
            "select * from track t, line i where i.track_id = t.id and t.album_id = :album",
            "select * from artist r join album a on a.artist_id = r.id join track t on t.album_id = a.id join line i on i.track_id = t.id where r.id = :r",
            "select * from album join artist on artist.id = artist_id where year = 1973 and artist_id = :r",
            "select * from album a, artist r where r.id = a.artist_id and a.year = 1973 and r.id = 3",
            "select * from album a join charts c on c.album_id = a.id where a.artist_id = :r",
            "select * from (select * from album where artist_id = :r) a join track t on t.album_id = a.id",
            "with a as (select * from album where artist_id = :r) select * from a join track t on t.album_id = a.id",
            "with a as (select * from album where artist_id = :r), t as (select t.* from track t join a on a.id = t.album_id) select count(*) from t join line on track_id = t.id",
            "with a as (select * from album where artist_id = :r), t as (select t.* from track t left join a on a.id = t.album_id) select count(*) from t join line on track_id = t.id",
            "select i.invoice_id from (select t.id from track t join album a on a.id = t.album_id where a.artist_id = :r) s join line i on i.track_id = s.id",
            "select * from artist where id in (select artist_id from album where id = :id)",
            "select * from artist where id = (select artist_id from album where id = :id)",
            "select * from artist r where exists (select 1 from follow f where f.artist_id = r.id and f.who = :who)",
            "select * from track where album_id in (select id from album where artist_id = :r)",
            "select * from album a where a.id = :id and exists (select 1 from track t where t.album_id = a.id)",
            "select *, (select name from artist r where r.id = a.artist_id) as artist from album a where a.id = :id",
            "select *, (select count(*) from track t where t.album_id = a.id) as tracks from album a where a.artist_id = :r",
            "select * from album a join artist r on r.id = a.artist_id where a.year = :y",
            "select * from album a join artist r on r.id = a.artist_id where a.year = :y and a.title = :t",
            "select * from artist r join album a on a.artist_id = r.id where r.label_id = :l",
            "select * from album a join artist r on r.id = a.artist_id + 0 where a.id = :id",
            "select * from album a full join artist r on r.id = a.artist_id where a.id = :id",
            "select * from artist where id not in (select artist_id from album where id = :id)",
            "select * from album a where a.artist_id = :r and a.id in (select max(album_id) from track)",
            "select * from artist r where exists (select 1 from album a join track t on t.album_id = a.id where a.artist_id = r.id and a.id = :p)",
            "with c as (select * from album where id = :id) select * from artist r, c x, c y where r.id = x.artist_id",
            "select * from artist r where r.id = :r and r.id in (select artist_id from album a where a.title in (select title from album b where b.artist_id = r.id))",
        ],
        &expect![[r#"
            select * from album a join artist r on r.id = a.artist_id join label l on l.id = r.label_id where a.id = :id
                album: rows with id = :id
                artist: rows with id = artist_id of album with id = :id
                label: rows with id = label_id of artist with id = artist_id of album with id = :id
            select * from track t, line i where i.track_id = t.id and t.album_id = :album
                line: rows with track_id = id of track with album_id = :album
                track: rows with album_id = :album
            select * from artist r join album a on a.artist_id = r.id join track t on t.album_id = a.id join line i on i.track_id = t.id where r.id = :r
                album: rows with artist_id = :r
                artist: rows with id = :r
                line: rows with track_id = id of track with album_id = id of album with artist_id = :r
                track: rows with album_id = id of album with artist_id = :r
            select * from album join artist on artist.id = artist_id where year = 1973 and artist_id = :r
                album: rows with artist_id = :r
                artist: rows with id = :r
            select * from album a, artist r where r.id = a.artist_id and a.year = 1973 and r.id = 3
                album: rows with artist_id = 3
                artist: rows with id = 3
            select * from album a join charts c on c.album_id = a.id where a.artist_id = :r
                album: rows with artist_id = :r
                line: rows with track_id = id of track with album_id = id of album with artist_id = :r
                track: rows with album_id = id of album with artist_id = :r
            select * from (select * from album where artist_id = :r) a join track t on t.album_id = a.id
                album: rows with artist_id = :r
                track: rows with album_id = id of album with artist_id = :r
            with a as (select * from album where artist_id = :r) select * from a join track t on t.album_id = a.id
                album: rows with artist_id = :r
                track: rows with album_id = id of album with artist_id = :r
            with a as (select * from album where artist_id = :r), t as (select t.* from track t join a on a.id = t.album_id) select count(*) from t join line on track_id = t.id
                album: rows with artist_id = :r
                line: rows with track_id = id of track with album_id = id of album with artist_id = :r
                track: rows with album_id = id of album with artist_id = :r
            with a as (select * from album where artist_id = :r), t as (select t.* from track t left join a on a.id = t.album_id) select count(*) from t join line on track_id = t.id
                album: rows with artist_id = :r
                line: every change
                track: every change
            select i.invoice_id from (select t.id from track t join album a on a.id = t.album_id where a.artist_id = :r) s join line i on i.track_id = s.id
                album: rows with artist_id = :r
                line: rows with track_id = id of track with album_id = id of album with artist_id = :r
                track: rows with album_id = id of album with artist_id = :r
            select * from artist where id in (select artist_id from album where id = :id)
                album: rows with id = :id
                artist: rows with id = artist_id of album with id = :id
            select * from artist where id = (select artist_id from album where id = :id)
                album: rows with id = :id
                artist: rows with id = artist_id of album with id = :id
            select * from artist r where exists (select 1 from follow f where f.artist_id = r.id and f.who = :who)
                artist: rows with id = artist_id of follow with who = :who
                follow: rows with who = :who
            select * from track where album_id in (select id from album where artist_id = :r)
                album: rows with artist_id = :r
                track: rows with album_id = id of album with artist_id = :r
            select * from album a where a.id = :id and exists (select 1 from track t where t.album_id = a.id)
                album: rows with id = :id
                track: rows with album_id = :id
            select *, (select name from artist r where r.id = a.artist_id) as artist from album a where a.id = :id
                album: rows with id = :id
                artist: rows with id = artist_id of album with id = :id
            select *, (select count(*) from track t where t.album_id = a.id) as tracks from album a where a.artist_id = :r
                album: rows with artist_id = :r
                track: rows with album_id = id of album with artist_id = :r
            select * from album a join artist r on r.id = a.artist_id where a.year = :y
                album: rows with year = :y
                artist: every change
            select * from album a join artist r on r.id = a.artist_id where a.year = :y and a.title = :t
                album: rows with year = :y
                artist: every change
              on PostgreSQL
                album: rows with year = :y
                artist: rows with id = artist_id of album with title = :t
            select * from artist r join album a on a.artist_id = r.id where r.label_id = :l
                album: rows with artist_id = id of artist with label_id = :l
                artist: rows with label_id = :l
            select * from album a join artist r on r.id = a.artist_id + 0 where a.id = :id
                album: rows with id = :id
                artist: every change
            select * from album a full join artist r on r.id = a.artist_id where a.id = :id
                album: rows with id = :id
                artist: every change
            select * from artist where id not in (select artist_id from album where id = :id)
                album: rows with id = :id
                artist: every change
            select * from album a where a.artist_id = :r and a.id in (select max(album_id) from track)
                album: rows with artist_id = :r
                track: every change
            select * from artist r where exists (select 1 from album a join track t on t.album_id = a.id where a.artist_id = r.id and a.id = :p)
                album: rows with id = :p
                artist: rows with id = artist_id of album with id = :p
                track: rows with album_id = :p
            with c as (select * from album where id = :id) select * from artist r, c x, c y where r.id = x.artist_id
                album: rows with id = :id
                artist: rows with id = artist_id of album with id = :id
            select * from artist r where r.id = :r and r.id in (select artist_id from album a where a.title in (select title from album b where b.artist_id = r.id))
                album: rows with artist_id = :r
                artist: rows with id = :r
        "#]],
    );
}

#[test]
fn the_first_rows_of_an_order_restrict() {
    check(
        &[
            "select id, year from album order by id limit 3",
            "select id, year from album order by id desc limit :n",
            "select id, title from album order by id limit 3 offset 2",
            "select id, year from album where title = 'a' order by id limit 3",
            "select title from album order by id limit 3",
            "select id, year from album order by year, id limit 3",
            "select id, year from album order by year limit 3",
            "select a.id, r.name from album a join artist r on r.id = a.artist_id order by a.id limit 3",
            "select a.id, r.name from album a left join artist r on r.id = a.artist_id order by a.id desc limit :n offset 5",
            "select a.id, (select count(*) from track t where t.album_id = a.id) as tracks from album a order by a.id limit 3",
            "select a.id, l.name from album a join artist r on r.id = a.artist_id left join label l on l.id = r.label_id where a.year > 1973 order by a.id limit 3",
            "select artist_id, count(*) from album group by artist_id order by artist_id limit 3",
            "select id, year from album order by id limit :n offset (:page - 1) * :n",
            "select a.id, r.name from album a join artist r on r.id = a.artist_id order by a.id desc limit :n + 1 offset 20 * (:page - 1)",
            "select id, year from album order by id limit 20 offset :page / 2",
            "select t.price, t.id from track t order by t.price desc, t.id limit 3",
            "select r.id, r.label_id, l.name from artist r join label l on l.id = r.label_id order by r.label_id, r.id limit 3",
            "select a.id, a.year, r.name from album a join artist r on r.id = a.artist_id order by a.year, a.id limit 3",
        ],
        &expect![[r#"
            select id, year from album order by id limit 3
                album: rows among the first 3 by id
            select id, year from album order by id desc limit :n
                album: rows among the first :n by id desc
            select id, title from album order by id limit 3 offset 2
                album: rows among the first 3 + 2 by id
            select id, year from album where title = 'a' order by id limit 3
                album: rows among the first 3 by id
            select title from album order by id limit 3
                album: rows among the first 3 by id
              on PostgreSQL
                album: every change
            select id, year from album order by year, id limit 3
                album: rows among the first 3 by year
            select id, year from album order by year limit 3
                album: rows among the first 3 by year
              on PostgreSQL
                album: every change
            select a.id, r.name from album a join artist r on r.id = a.artist_id order by a.id limit 3
                album: rows among the first 3 by id
                artist: rows with id = artist_id of album among the first 3 by id
            select a.id, r.name from album a left join artist r on r.id = a.artist_id order by a.id desc limit :n offset 5
                album: rows among the first :n + 5 by id desc
                artist: rows with id = artist_id of album among the first :n + 5 by id desc
            select a.id, (select count(*) from track t where t.album_id = a.id) as tracks from album a order by a.id limit 3
                album: rows among the first 3 by id
                track: rows with album_id = id of album among the first 3 by id
            select a.id, l.name from album a join artist r on r.id = a.artist_id left join label l on l.id = r.label_id where a.year > 1973 order by a.id limit 3
                album: rows among the first 3 by id
                artist: rows with id = artist_id of album among the first 3 by id
                label: rows with id = label_id of artist with id = artist_id of album among the first 3 by id
            select artist_id, count(*) from album group by artist_id order by artist_id limit 3
                album: every change
            select id, year from album order by id limit :n offset (:page - 1) * :n
                album: rows among the first :n + (:page - 1) * :n by id
            select a.id, r.name from album a join artist r on r.id = a.artist_id order by a.id desc limit :n + 1 offset 20 * (:page - 1)
                album: rows among the first :n + 1 + 20 * (:page - 1) by id desc
                artist: rows with id = artist_id of album among the first :n + 1 + 20 * (:page - 1) by id desc
            select id, year from album order by id limit 20 offset :page / 2
                album: every change
            select t.price, t.id from track t order by t.price desc, t.id limit 3
                track: rows among the first 3 by price desc
              on PostgreSQL
                track: every change
            select r.id, r.label_id, l.name from artist r join label l on l.id = r.label_id order by r.label_id, r.id limit 3
                artist: rows among the first 3 by label_id
                label: rows with id = label_id of artist among the first 3 by label_id
            select a.id, a.year, r.name from album a join artist r on r.id = a.artist_id order by a.year, a.id limit 3
                album: rows among the first 3 by year
                artist: every change
        "#]],
    );
}

#[test]
fn long_chains_and_many_common_tables_are_taken_apart() {
    let parts: Vec<String> = (0..900).map(|n| format!("id = {n}")).collect();
    let either = format!("select * from album where {}", parts.join(" or "));
    let both = format!("select * from album where {}", parts.join(" and "));
    let tables = (1..600).map(|n| format!(", c{n} as (select * from c{})", n - 1));
    let tables: String = tables.collect();
    let common =
        format!("with c0 as (select * from album){tables} select * from c599 where id = :id");
    let postgres = Fixture::new(SCHEMA);
    for sql in [&either, &both, &common] {
        let _ = descriptions(SCHEMA, &[sql]);
        postgres.prepare(sql);
    }
}
