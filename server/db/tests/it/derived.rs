//! Set operations, windows and OR: which equalities restrict (coherence.md, rule 10).

use expect_test::{Expect, expect};
use millpond_db::Value;

use crate::support::{SqliteFixture, descriptions, int, text};

const SCHEMA: &str = "
create table album (id integer primary key, title text, artist_id integer, year integer);
create index album_artist on album (artist_id);
create table track (id integer primary key, name text, album_id integer, seconds integer);
create index track_album on track (album_id);
create table artist (id integer primary key, name text);
create table odd (id integer primary key, n integer, date integer);
create table tag (id integer primary key, word text collate nocase, album_id integer, code, size real);
create view entry as select id, title, artist_id from album union all select id, name, album_id from track;
create view either as select title, artist_id from album union select name, album_id from track;
create view untagged as select id, artist_id from album except select album_id, id from tag;
create view deep as select e.title, e.artist_id as by from entry e union all select name, id from artist;
create view counted as select artist_id, count(*) as n from album group by artist_id union all select album_id, id from track;
create view latest as select id, artist_id from album union all select id, album_id from track order by id desc limit 3;
create view ranked as select id, album_id, row_number() over (partition by album_id order by seconds) as place from track;
";

fn check(queries: &[&str], expected: &Expect) {
    expected.assert_eq(&descriptions(SCHEMA, queries));
}

#[test]
fn an_equality_passes_into_each_part_of_a_set_operation() {
    check(
        &[
            "select * from entry where artist_id = :r",
            "select * from either where artist_id = :r and title = :t",
            "select * from untagged where artist_id in (1, :r)",
            "select * from deep where by = :r",
            "select * from (select id from album intersect select album_id from track) where id = :id",
            "select * from (select * from entry order by title) where id = :id",
            "select * from (select id, artist_id from album union all select id, album_id from track order by 2) where id = :id",
            "with e (i, by) as (select id, artist_id from album union select id, album_id from track) select * from e where by = :r",
            "select * from counted where artist_id = :r",
            "select * from (select max(id) as id, artist_id from album union all select id, album_id from track) where artist_id = :r",
            "select * from (select id from album where year = 1973 limit 9) a join entry e on e.id = a.id where e.artist_id = :r",
            "select * from artist r join entry e on e.artist_id = r.id where r.id = :id",
            "select * from album a join entry e on e.artist_id = a.artist_id where a.id = :id",
            "select * from artist r left join entry e on e.artist_id = r.id and e.id = :id where r.name = 'a'",
            "select * from album where id = :a union all select * from album where id = :b except select * from album where id = :c",
            "select * from album where id = :a union all select * from album",
        ],
        &expect![[r#"
            select * from entry where artist_id = :r
                album: rows with artist_id = :r
                track: rows with album_id = :r
            select * from either where artist_id = :r and title = :t
                album: rows with artist_id = :r
                track: rows with album_id = :r
            select * from untagged where artist_id in (1, :r)
                album: rows with artist_id in (1, :r)
                tag: rows with id in (1, :r)
            select * from deep where by = :r
                album: rows with artist_id = :r
                artist: rows with id = :r
                track: rows with album_id = :r
            select * from (select id from album intersect select album_id from track) where id = :id
                album: rows with id = :id
                track: rows with album_id = :id
            select * from (select * from entry order by title) where id = :id
                album: rows with id = :id
                track: rows with id = :id
            select * from (select id, artist_id from album union all select id, album_id from track order by 2) where id = :id
                album: rows with id = :id
                track: rows with id = :id
            with e (i, by) as (select id, artist_id from album union select id, album_id from track) select * from e where by = :r
                album: rows with artist_id = :r
                track: rows with album_id = :r
            select * from counted where artist_id = :r
                album: rows with artist_id = :r
                track: rows with album_id = :r
            select * from (select max(id) as id, artist_id from album union all select id, album_id from track) where artist_id = :r
                album: every change
                track: rows with album_id = :r
            select * from (select id from album where year = 1973 limit 9) a join entry e on e.id = a.id where e.artist_id = :r
                album: rows with artist_id = :r
                album: rows with year = 1973
                track: rows with album_id = :r
            select * from artist r join entry e on e.artist_id = r.id where r.id = :id
                album: rows with artist_id = :id
                artist: rows with id = :id
                track: rows with album_id = :id
            select * from album a join entry e on e.artist_id = a.artist_id where a.id = :id
                album: rows with id = :id
                album: rows with artist_id = artist_id of album with id = :id
                track: rows with album_id = artist_id of album with id = :id
            select * from artist r left join entry e on e.artist_id = r.id and e.id = :id where r.name = 'a'
                album: rows with id = :id
                artist: rows with name = 'a'
                track: rows with id = :id
            select * from album where id = :a union all select * from album where id = :b except select * from album where id = :c
                album: rows with id = :a
                album: rows with id = :b
                album: rows with id = :c
            select * from album where id = :a union all select * from album
                album: every change
        "#]],
    );
}

#[test]
fn what_a_set_operation_does_not_let_pass() {
    check(
        &[
            // The first rows of all.
            "select * from latest where artist_id = :r",
            "select * from (select id from album union select id from track limit 2 offset 1) where id = :id",
            // The parts have other forms of a value, or none.
            "select * from (select id from album union all select name from track) where id = :id",
            "select * from (select id from album union all select size from tag) where id = :id",
            "select * from (select id from album union all select code from tag) where id = :id",
            "select * from (select id from album union all select id + 0 from track) where id = :id",
            "select * from (select id from album union all values (1)) where id = :id",
            // 'a' and 'A' are one row.
            "select * from (select word from tag union select name from artist) where word = :w",
            "select * from (select name from artist union select word from tag) where name = :w",
            "select * from (select name from artist union select name from track order by name collate nocase) where name = :w",
            // The names are those of the first part.
            "select * from (select id as a, year as b from album union all select year as b, id as a from album) where a = :id",
            "select * from (select id, year from album union all select * from (select id, name, album_id from track)) where id = :id",
            // Each reference counts by itself.
            "select * from entry x, entry y where x.id = :id",
            "with e as (select id from album union select id from track) select * from e x, e y where x.id = :id",
            // No witness is asked of what is inside.
            "select * from (select id, artist_id from album where year = :y union all select id, album_id from track where seconds = :s) e join artist r on r.id = e.artist_id",
            "select * from artist r where r.id in (select artist_id from album where year = :y union select album_id from track where id = :id)",
        ],
        &expect![[r#"
            select * from latest where artist_id = :r
                album: every change
                track: every change
            select * from (select id from album union select id from track limit 2 offset 1) where id = :id
                album: every change
                track: every change
            select * from (select id from album union all select name from track) where id = :id
                album: every change
                track: every change
            select * from (select id from album union all select size from tag) where id = :id
                album: every change
                tag: every change
            select * from (select id from album union all select code from tag) where id = :id
                album: every change
                tag: every change
            select * from (select id from album union all select id + 0 from track) where id = :id
                album: every change
                track: every change
            select * from (select id from album union all values (1)) where id = :id
                album: every change
            select * from (select word from tag union select name from artist) where word = :w
                artist: every change
                tag: every change
            select * from (select name from artist union select word from tag) where name = :w
                artist: every change
                tag: every change
            select * from (select name from artist union select name from track order by name collate nocase) where name = :w
                artist: every change
                track: every change
            select * from (select id as a, year as b from album union all select year as b, id as a from album) where a = :id
                album: rows with id = :id
                album: rows with year = :id
            select * from (select id, year from album union all select * from (select id, name, album_id from track)) where id = :id
                error: SELECTs to the left and right of UNION ALL do not have the same number of result columns at None
            select * from entry x, entry y where x.id = :id
                album: every change
                track: every change
            with e as (select id from album union select id from track) select * from e x, e y where x.id = :id
                album: every change
                track: every change
            select * from (select id, artist_id from album where year = :y union all select id, album_id from track where seconds = :s) e join artist r on r.id = e.artist_id
                album: rows with year = :y
                artist: every change
                track: rows with seconds = :s
            select * from artist r where r.id in (select artist_id from album where year = :y union select album_id from track where id = :id)
                album: rows with year = :y
                artist: every change
                track: rows with id = :id
        "#]],
    );
}

#[test]
fn a_disjunction_narrows_what_every_branch_narrows() {
    check(
        &[
            "select * from album where id = :a or id = :b",
            "select * from album where id = :a or :b = id or id in (3, :a)",
            "select * from album where (artist_id = :r and year > 1973) or (artist_id = 5 and (year = 3 or title = 'a'))",
            "select * from album where (id = :a and (artist_id = 1 or artist_id = 2)) or (artist_id = 3 and year = 4)",
            "select * from album where id = null or id = :b",
            "select * from album a join track t on t.album_id = a.id where a.id = :a or a.id = :b",
            "select * from album a left join track t on t.album_id = a.id and (t.id = :x or t.id = :y)",
            "select * from entry where id = :a or id = :b",
            "select * from album where year = :y and (artist_id = :a or id = :b)",
        ],
        &expect![[r#"
            select * from album where id = :a or id = :b
                album: rows with id in (:a, :b)
            select * from album where id = :a or :b = id or id in (3, :a)
                album: rows with id in (:a, :b, 3)
            select * from album where (artist_id = :r and year > 1973) or (artist_id = 5 and (year = 3 or title = 'a'))
                album: rows with artist_id in (:r, 5)
            select * from album where (id = :a and (artist_id = 1 or artist_id = 2)) or (artist_id = 3 and year = 4)
                album: rows with artist_id in (1, 2, 3)
            select * from album where id = null or id = :b
                album: rows with id in (NULL, :b)
            select * from album a join track t on t.album_id = a.id where a.id = :a or a.id = :b
                album: rows with id in (:a, :b)
                track: rows with album_id in (:a, :b)
            select * from album a left join track t on t.album_id = a.id and (t.id = :x or t.id = :y)
                album: every change
                track: rows with id in (:x, :y)
            select * from entry where id = :a or id = :b
                album: rows with id in (:a, :b)
                track: rows with id in (:a, :b)
            select * from album where year = :y and (artist_id = :a or id = :b)
                album: rows with year = :y
        "#]],
    );
    check(
        &[
            "select * from album where id = :a or year > 3",
            "select * from album where id = :a or artist_id = :b",
            "select * from album where id = :a or id = 3 or title is null",
            "select * from album a, track t where a.id = :a or t.id = :b",
            "select * from album a, track t where (a.id = :a and t.id = :t) or a.id = :b",
            "select * from album a, track t where a.id = :a or (a.id = t.album_id and t.album_id = :t)",
            "select * from album a left join track t on t.album_id = a.id or a.id = :id or a.id = 4",
            "select * from album where not (id = :a or id = :b)",
            "select * from album where (id = :a or id = :b) is not true",
            "select * from album where id = :a or id in (select album_id from track where id = :t)",
            "select * from album a, artist r where (a.id = :a and r.id = a.artist_id) or (a.id = 5 and r.id = 6)",
        ],
        &expect![[r#"
            select * from album where id = :a or year > 3
                album: every change
            select * from album where id = :a or artist_id = :b
                album: every change
            select * from album where id = :a or id = 3 or title is null
                album: every change
            select * from album a, track t where a.id = :a or t.id = :b
                album: every change
                track: every change
            select * from album a, track t where (a.id = :a and t.id = :t) or a.id = :b
                album: rows with id in (:a, :b)
                track: every change
            select * from album a, track t where a.id = :a or (a.id = t.album_id and t.album_id = :t)
                album: every change
                track: every change
            select * from album a left join track t on t.album_id = a.id or a.id = :id or a.id = 4
                album: every change
                track: every change
            select * from album where not (id = :a or id = :b)
                album: every change
            select * from album where (id = :a or id = :b) is not true
                album: every change
            select * from album where id = :a or id in (select album_id from track where id = :t)
                album: every change
                track: rows with id = :t
            select * from album a, artist r where (a.id = :a and r.id = a.artist_id) or (a.id = 5 and r.id = 6)
                album: rows with id in (:a, 5)
                artist: every change
        "#]],
    );
}

#[test]
fn of_more_than_64_values_all_rows_count() {
    let branches = |count: i64| {
        let all = (0..count).map(|id| format!("id = {id}"));
        let all: Vec<String> = all.collect();
        let sql = format!("select * from album where {}", all.join(" or "));
        let query = SqliteFixture::new(SCHEMA).prepare(&sql);
        query.describe().join(", ").chars().take(20).collect()
    };
    let [most, more]: [String; 2] = [branches(64), branches(65)];
    assert_eq!(most, "album: rows with id ");
    assert_eq!(more, "album: every change");
}

#[test]
fn windows_let_the_keys_of_all_pass() {
    check(
        &[
            "select * from ranked where album_id = :a",
            "select * from (select album_id, name, count(*) over (partition by name, album_id), max(id) over (partition by album_id) from track) where album_id = :a",
            "select * from (select album_id, count(*) over w, first_value(id) over (w order by id) from track window w as (partition by album_id)) where album_id = :a",
            "select * from (select album_id, sum(count(*)) over (partition by album_id) from track group by album_id, name) where album_id = :a",
            "select * from (select distinct album_id, count(*) over (partition by album_id) from track) where album_id = :a",
            "select * from (select id, row_number() over (partition by album_id) as n, album_id from track union all select id, year, artist_id from album) where album_id = :a",
        ],
        &expect![[r#"
            select * from ranked where album_id = :a
                track: rows with album_id = :a
            select * from (select album_id, name, count(*) over (partition by name, album_id), max(id) over (partition by album_id) from track) where album_id = :a
                track: rows with album_id = :a
            select * from (select album_id, count(*) over w, first_value(id) over (w order by id) from track window w as (partition by album_id)) where album_id = :a
                track: rows with album_id = :a
            select * from (select album_id, sum(count(*)) over (partition by album_id) from track group by album_id, name) where album_id = :a
                track: rows with album_id = :a
            select * from (select distinct album_id, count(*) over (partition by album_id) from track) where album_id = :a
                track: rows with album_id = :a
            select * from (select id, row_number() over (partition by album_id) as n, album_id from track union all select id, year, artist_id from album) where album_id = :a
                album: rows with artist_id = :a
                track: rows with album_id = :a
        "#]],
    );
    check(
        &[
            "select * from ranked where id = :id",
            "select * from (select id, count(*) over () from track) where id = :id",
            "select * from (select album_id, count(*) over (partition by album_id), count(*) over (order by id) from track) where album_id = :a",
            "select * from (select album_id, count(*) over (partition by album_id), count(*) over (partition by name) from track) where album_id = :a",
            "select * from (select album_id, count(*) over (partition by name), count(*) over (partition by album_id) from track) where album_id = :a",
            "select * from (select album_id, count(*) over (partition by album_id + 0) from track) where album_id = :a",
            "select * from (select album_id, count(*) over w from track window w as (order by id)) where album_id = :a",
            "select * from album a left join (select album_id, row_number() over w from track window w as (partition by album_id order by count(*))) x on x.album_id = a.id where a.id = :a",
            "select * from (select album_id, name, sum(count(*)) over (partition by name) from track group by album_id, name) where album_id = :a",
            "select * from (select name, count(*) over (partition by name collate nocase) from track) where name = :n",
            "select * from (select album_id, row_number() over (partition by album_id) from track limit 3) where album_id = :a",
        ],
        &expect![[r#"
            select * from ranked where id = :id
                track: every change
            select * from (select id, count(*) over () from track) where id = :id
                track: every change
            select * from (select album_id, count(*) over (partition by album_id), count(*) over (order by id) from track) where album_id = :a
                track: every change
            select * from (select album_id, count(*) over (partition by album_id), count(*) over (partition by name) from track) where album_id = :a
                track: every change
            select * from (select album_id, count(*) over (partition by name), count(*) over (partition by album_id) from track) where album_id = :a
                track: every change
            select * from (select album_id, count(*) over (partition by album_id + 0) from track) where album_id = :a
                track: every change
            select * from (select album_id, count(*) over w from track window w as (order by id)) where album_id = :a
                track: every change
            select * from album a left join (select album_id, row_number() over w from track window w as (partition by album_id order by count(*))) x on x.album_id = a.id where a.id = :a
                album: rows with id = :a
                track: every change
            select * from (select album_id, name, sum(count(*)) over (partition by name) from track group by album_id, name) where album_id = :a
                track: every change
            select * from (select name, count(*) over (partition by name collate nocase) from track) where name = :n
                track: every change
            select * from (select album_id, row_number() over (partition by album_id) from track limit 3) where album_id = :a
                track: every change
        "#]],
    );
}

/// Asserts which changes end the result of `sql` for a parameter: the first must change it.
fn ends(sql: &str, param: &Value, setup: &[&str], change: &str, others: &[&str]) {
    let fixture = SqliteFixture::new(SCHEMA);
    for sql in setup {
        fixture.write(sql, vec![]);
    }
    let query = fixture.prepare(sql);
    let params = [param.clone()];
    for other in others {
        assert!(
            !fixture.evicts(&query, &params, other),
            "{other} ends {sql}"
        );
    }
    let before = fixture.rows(&query, params.to_vec());
    let has_ended = fixture.evicts(&query, &params, change);
    let after = fixture.rows(&query, params.to_vec());
    assert_ne!(after, before, "{change} changes nothing of {sql}");
    assert!(has_ended, "after {change} is stale: {sql}");
}

#[test]
fn a_row_that_another_part_takes_away_or_gives_ends_the_result() {
    ends(
        "select * from untagged where artist_id = :r",
        &int(5),
        &["insert into album (id, artist_id) values (1, 5)"],
        "insert into tag (id, album_id) values (5, 1)",
        &["insert into album (id, artist_id) values (2, 6)"],
    );
    ends(
        "select * from (select id from album intersect select album_id from track) where id = :id",
        &int(5),
        &["insert into album (id) values (5)"],
        "insert into track (album_id) values (5)",
        &["insert into track (album_id) values (6)"],
    );
    ends(
        "select * from counted where artist_id = :r",
        &int(5),
        &["insert into album (artist_id) values (5)"],
        "insert into album (artist_id) values (5)",
        &[
            "insert into album (artist_id) values (6)",
            "insert into track (album_id) values (6)",
        ],
    );
}

#[test]
fn one_part_decides_how_the_values_of_all_are_compared() {
    ends(
        "select * from (select word from tag union select name from artist) where word = :w",
        &text("a"),
        &[],
        "insert into artist (name) values ('A')",
        &[],
    );
    ends(
        "select * from (select word from tag union select name from artist) where word = :w",
        &text("a"),
        &["insert into tag (word) values ('A')"],
        "delete from tag where word = 'a'",
        &[],
    );
}

#[test]
fn a_row_of_the_same_window_ends_the_result() {
    ends(
        "select * from ranked where album_id = :a",
        &int(5),
        &["insert into track (album_id, seconds) values (5, 9)"],
        "insert into track (album_id, seconds) values (5, 3)",
        &["insert into track (album_id, seconds) values (6, 3)"],
    );
}

#[test]
fn a_column_without_a_name_may_have_that_of_another() {
    check(
        &[
            "select * from (select (year), id as year from album) where year = :year",
            "select * from (select likely(year), id as year from album) where year = :year",
            "select * from (select year collate binary, id as year from album) where year = :year",
            "select * from (select n'k', id as k from odd) where k = :k",
            "select * from (select date 'k', id as k from odd) where k = :k",
            "select * from (select (year), id as year from album union all select album_id, id from track) where year = :year",
            "with a as (select (year), id as year from album) select * from a where year = :year",
            "select * from (select (year), id from album) where id = :id",
            "select * from (select count(*), 1, max(year) + 1, id from album group by id) where id = :id",
        ],
        &expect![[r#"
            select * from (select (year), id as year from album) where year = :year
                album: every change
            select * from (select likely(year), id as year from album) where year = :year
                album: every change
            select * from (select year collate binary, id as year from album) where year = :year
                album: every change
            select * from (select n'k', id as k from odd) where k = :k
                odd: every change
            select * from (select date 'k', id as k from odd) where k = :k
                odd: every change
            select * from (select (year), id as year from album union all select album_id, id from track) where year = :year
                album: every change
                track: every change
            with a as (select (year), id as year from album) select * from a where year = :year
                album: every change
            select * from (select (year), id from album) where id = :id
                album: rows with id = :id
            select * from (select count(*), 1, max(year) + 1, id from album group by id) where id = :id
                album: rows with id = :id
        "#]],
    );
}
