//! Restrictions that are carried on along keys (coherence.md, rule 21).

use expect_test::{Expect, expect};

use crate::support::{SqliteFixture, descriptions, int};

const SCHEMA: &str = "
create table label (id integer primary key, name text);
create table artist (id integer primary key, name text, label_id integer);
create table album (id integer primary key, title text, artist_id integer, year integer);
create index album_artist on album (artist_id);
create table track (id integer primary key, name text, album_id integer, genre_id integer, price real);
create index track_album on track (album_id);
create table genre (id integer primary key, name text);
create table line (id integer primary key, track_id integer, invoice_id integer);
create index line_track on line (track_id);
create table review (id integer primary key, album_id integer, who text collate nocase, stars);
create table follow (who text, artist_id integer, primary key (who, artist_id)) without rowid;
create table word (id integer primary key, t text, n integer);
create index word_t on word (t);
create index word_n on word (n);
create index track_name on track (name);
create view pair as select y.n as k, x.name as b, x.genre_id as c from word y join track x on x.genre_id = y.id;
create view disc as select a.id, a.title, r.name as artist, r.label_id from album a join artist r on r.id = a.artist_id;
create view shown as select d.*, l.name as label from disc d left join label l on l.id = d.label_id;
create view charts as select album_id, count(*) as sold from track join line on line.track_id = track.id group by album_id;
";

fn check(queries: &[&str], expected: &Expect) {
    expected.assert_eq(&descriptions(SCHEMA, queries));
}

#[test]
fn a_restriction_is_carried_on_along_keys() {
    check(
        &[
            "select * from album a join artist r on r.id = a.artist_id join label l on l.id = r.label_id where a.id = :id",
            "select * from album a left join artist r on r.id = a.artist_id left join label l on l.id = r.label_id where a.id = :id",
            "select * from track t, line i where i.track_id = t.id and t.album_id = :album",
            "select * from artist r join album a on a.artist_id = r.id join track t on t.album_id = a.id join line i on i.track_id = t.id where r.id = :r",
            "select * from track join genre on genre.id = genre_id where album_id in (:a, :b)",
            "select * from album join artist on artist.id = artist_id where year = 1973 and artist_id = :r",
            "select * from album a, artist r where r.id = a.artist_id and a.year = 1973 and r.id = 3",
            "select * from shown where id = :id",
            "select * from charts where album_id = :id",
            "select * from album a join charts c on c.album_id = a.id where a.artist_id = :r",
            "select * from disc d join label l on l.id = d.label_id where d.id = :id",
            "select * from (select * from album where artist_id = :r) a join track t on t.album_id = a.id",
            "with a as (select * from album where artist_id = :r) select * from a join track t on t.album_id = a.id",
            "with a as (select * from album where artist_id = :r), t as (select t.* from track t join a on a.id = t.album_id) select count(*) from t join line on track_id = t.id",
            "with a (i, by) as (select id, artist_id from album) select * from a where i = :id",
            "with a (i, by) as (select id, artist_id from album) select * from a join artist r on r.id = a.by where i = :id",
            "with a as (select * from album) select * from a where id = :id union select * from a where id = :b",
            "select * from album join artist using (id) join track using (name) where id = :id",
            "select * from artist join album using (id) where artist.id = :id",
        ],
        &expect![[r#"
            select * from album a join artist r on r.id = a.artist_id join label l on l.id = r.label_id where a.id = :id
                album: rows with id = :id
                artist: rows with id = artist_id of album with id = :id
                label: rows with id = label_id of artist with id = artist_id of album with id = :id
            select * from album a left join artist r on r.id = a.artist_id left join label l on l.id = r.label_id where a.id = :id
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
            select * from track join genre on genre.id = genre_id where album_id in (:a, :b)
                genre: rows with id = genre_id of track with album_id in (:a, :b)
                track: rows with album_id in (:a, :b)
            select * from album join artist on artist.id = artist_id where year = 1973 and artist_id = :r
                album: rows with artist_id = :r
                artist: rows with id = :r
            select * from album a, artist r where r.id = a.artist_id and a.year = 1973 and r.id = 3
                album: rows with artist_id = 3
                artist: rows with id = 3
            select * from shown where id = :id
                album: rows with id = :id
                artist: rows with id = artist_id of album with id = :id
                label: rows with id = label_id of disc with id = :id
            select * from charts where album_id = :id
                line: rows with track_id = id of track with album_id = :id
                track: rows with album_id = :id
            select * from album a join charts c on c.album_id = a.id where a.artist_id = :r
                album: rows with artist_id = :r
                line: rows with track_id = id of track with album_id = id of album with artist_id = :r
                track: rows with album_id = id of album with artist_id = :r
            select * from disc d join label l on l.id = d.label_id where d.id = :id
                album: rows with id = :id
                artist: rows with id = artist_id of album with id = :id
                label: rows with id = label_id of disc with id = :id
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
            with a (i, by) as (select id, artist_id from album) select * from a where i = :id
                album: rows with id = :id
            with a (i, by) as (select id, artist_id from album) select * from a join artist r on r.id = a.by where i = :id
                album: rows with id = :id
                artist: rows with id = artist_id of album with id = :id
            with a as (select * from album) select * from a where id = :id union select * from a where id = :b
                album: every change
            select * from album join artist using (id) join track using (name) where id = :id
                error: ambiguous column name: id at Some(73)
            select * from artist join album using (id) where artist.id = :id
                album: rows with id = :id
                artist: rows with id = :id
        "#]],
    );
}

#[test]
fn what_ends_a_result_is_said_in_few_words() {
    let sql = "select * from album a join artist r on r.id = a.artist_id join label l on l.id = r.label_id, genre where a.id = :id";
    let ends = SqliteFixture::new(SCHEMA).prepare(sql).ends();
    let expected = [
        "album with id = :id",
        "artist by album.artist_id",
        "any genre",
        "label by artist.label_id",
    ];
    assert_eq!(ends, expected);
}

#[test]
fn subqueries_are_narrowed_by_what_is_around_them() {
    check(
        &[
            "select a.*, (select count(*) from track t where t.album_id = a.id) from album a where a.artist_id = :r",
            "select * from album a where a.artist_id = :r and exists (select 1 from track t where t.album_id = a.id and t.price > 1)",
            "select * from album a where a.artist_id = :r and not exists (select 1 from track t where t.album_id = a.id)",
            "select * from album a where a.artist_id = :r order by (select count(*) from track t where t.album_id = a.id)",
            "select * from artist where id in (select artist_id from album where id = :id)",
            "select * from artist where id = (select artist_id from album where id = :id)",
            "select * from artist r where exists (select 1 from follow f where f.artist_id = r.id and f.who = :who)",
            "select * from album where artist_id = :r and id in (select album_id from track where price > 1)",
            "select * from album a where a.id = :id and (select count(*) from artist r where r.id = a.artist_id and exists (select 1 from label l where l.id = r.label_id)) > 0",
            "select * from album a where a.id = :id and (select count(*) from artist r where exists (select 1 from follow f where f.artist_id = a.artist_id)) > 0",
        ],
        &expect![[r#"
            select a.*, (select count(*) from track t where t.album_id = a.id) from album a where a.artist_id = :r
                album: rows with artist_id = :r
                track: rows with album_id = id of album with artist_id = :r
            select * from album a where a.artist_id = :r and exists (select 1 from track t where t.album_id = a.id and t.price > 1)
                album: rows with artist_id = :r
                track: rows with album_id = id of album with artist_id = :r
            select * from album a where a.artist_id = :r and not exists (select 1 from track t where t.album_id = a.id)
                album: rows with artist_id = :r
                track: rows with album_id = id of album with artist_id = :r
            select * from album a where a.artist_id = :r order by (select count(*) from track t where t.album_id = a.id)
                album: rows with artist_id = :r
                track: every change
            select * from artist where id in (select artist_id from album where id = :id)
                album: rows with id = :id
                artist: rows with id = artist_id of album with id = :id
            select * from artist where id = (select artist_id from album where id = :id)
                album: rows with id = :id
                artist: rows with id = artist_id of album with id = :id
            select * from artist r where exists (select 1 from follow f where f.artist_id = r.id and f.who = :who)
                artist: rows with id = artist_id of follow with who = :who
                follow: rows with who = :who
            select * from album where artist_id = :r and id in (select album_id from track where price > 1)
                album: rows with artist_id = :r
                track: rows with album_id = id of album with artist_id = :r
            select * from album a where a.id = :id and (select count(*) from artist r where r.id = a.artist_id and exists (select 1 from label l where l.id = r.label_id)) > 0
                album: rows with id = :id
                artist: rows with id = artist_id of album with id = :id
                label: rows with id = label_id of artist with id = artist_id of album with id = :id
            select * from album a where a.id = :id and (select count(*) from artist r where exists (select 1 from follow f where f.artist_id = a.artist_id)) > 0
                album: rows with id = :id
                artist: every change
                follow: rows with artist_id = artist_id of album with id = :id
        "#]],
    );
}

#[test]
fn a_row_that_a_join_did_not_find_ends_the_result_when_it_comes() {
    let fixture = SqliteFixture::new(SCHEMA);
    let sql = "select * from album a join artist r on r.id = a.artist_id where a.id = :id";
    let query = fixture.prepare(sql);
    let write = |sql: &str| fixture.write(sql, vec![]);
    write("insert into album (id, artist_id) values (1, 7), (2, null)");
    for album in [1, 2] {
        fixture.fill(&album.to_string(), &query, &[int(album)]);
    }
    let kept = |album: &str| fixture.sink.cached(album).is_some();
    write("insert into artist (id, name) values (8, 'b')");
    assert!(kept("1") && kept("2"));
    write("insert into artist (id, name) values (7, 'a')");
    assert!(!kept("1") && kept("2"));
    write("update album set artist_id = 8 where id = 2");
    assert!(!kept("2"));
}

#[test]
fn of_two_references_neither_narrows_the_other() {
    let setup = [
        "insert into label values (3, 'l')",
        "insert into album (id, artist_id) values (1, 7)",
    ];
    let change = "insert into artist (id, label_id) values (7, 3)";
    for sql in [
        "with d as (select * from disc where id = :id) select d.title, l.name from d join label l on l.id = d.label_id",
        "with d as (select * from disc where id = :id) select d.title, l.name, (select count(*) from d) from d join label l on l.id = d.label_id",
        "select d.title, l.name from (select * from disc where id = :id) d join label l on l.id = d.label_id",
        "select * from label l where exists (select 1 from disc d where d.id = :id and d.label_id = l.id)",
        "select * from label l where l.id in (select d.label_id from disc d where d.id = :id and d.label_id = l.id)",
        "select * from label l where l.id = (select d.label_id from disc d where d.id = :id and d.label_id = l.id)",
        "select (select count(*) from label l where exists (select 1 from disc d where d.id = a.id and d.label_id = l.id)) from album a where a.id = :id",
    ] {
        is_ended(&setup, sql, 1, change);
    }
    is_ended(
        &[
            "insert into track (id, name, genre_id) values (1, 'z', 5)",
            "insert into artist (id) values (2)",
            "insert into word (id, t, n) values (2, 'b', 5)",
        ],
        "select x.id, z.id from track x, artist z where z.id in (select e.c from pair e where e.k = :k and e.b = x.name)
         and x.name in (select d.b from pair d where d.k = :k and d.c = z.id)",
        5,
        "insert into track (id, name, genre_id) values (9, 'z', 2)",
    );
}

#[test]
fn bytes_that_are_no_text_are_no_value_of_a_witness() {
    is_ended(
        &["insert into word (id, t, n) values (1, cast(x'61ff' as text), 5)"],
        "select w.id, t.id from word w join track t on t.name = w.t where w.n = :n",
        5,
        "insert into track (id, name) values (9, cast(x'61ff' as text))",
    );
}

/// Asserts that `change` changes the result of `sql` for a parameter, and ends it.
fn is_ended(setup: &[&str], sql: &str, param: i64, change: &str) {
    let fixture = SqliteFixture::new(SCHEMA);
    for sql in setup {
        fixture.write(sql, vec![]);
    }
    let query = fixture.prepare(sql);
    let rows = || fixture.rows(&query, vec![int(param)]);
    let before = rows();
    let has_ended = fixture.evicts(&query, &[int(param)], change);
    assert_ne!(rows(), before, "{change} changes nothing of {sql}");
    assert!(
        has_ended,
        "after {change} is stale: {sql}\n{:?}",
        query.describe()
    );
}

#[test]
fn what_a_witness_cannot_say_is_the_whole_table() {
    let fixture = SqliteFixture::new(SCHEMA);
    let write = |sql: &str| fixture.write(sql, vec![]);
    let numbers = "with recursive n (i) as (select 1 union all select i + 1 from n where i < 1100)";
    let lines = "select * from track t join line i on i.track_id = t.id where t.album_id = :album";
    let lines = fixture.prepare(lines);
    let followed = "select * from follow f join artist r on r.id = f.artist_id where f.who = :who";
    let followed = fixture.prepare(followed);
    // Album 1 has 64 tracks, album 2 has 65.
    write(&format!(
        "insert into track (id, album_id) {numbers} select i, 1 + (i > 64) from n where i < 130"
    ));
    write("insert into track (id, album_id) values (200, 3), (201, '07x')");
    fixture.fill("64", &lines, &[int(1)]);
    fixture.fill("65", &lines, &[int(2)]);
    let kept = |key: &str| fixture.sink.cached(key).is_some();
    write("insert into line (track_id) values (200)");
    assert!(kept("64") && !kept("65"));
    write("insert into line (track_id) values (64)");
    assert!(!kept("64"));
    // More than 1,024 rows.
    write(&format!(
        "insert into follow {numbers} select 'a' || (i > 1050), i from n"
    ));
    fixture.fill("many", &followed, &["a0".into()]);
    fixture.fill("few", &followed, &["a1".into()]);
    write("insert into artist (id) values (5000)");
    assert!(!kept("many") && kept("few"));
    // A value that does not belong into its column.
    write("insert into follow values ('b', 'x')");
    fixture.fill("foreign", &followed, &["b".into()]);
    write("insert into artist (id) values (5001)");
    assert!(!kept("foreign"));
}

#[test]
fn a_small_table_is_asked_without_an_index_until_it_has_grown() {
    let fixture = SqliteFixture::new(SCHEMA);
    let write = |sql: &str| fixture.write(sql, vec![]);
    write("insert into artist (id) values (1), (2)");
    write("insert into album (id, title, artist_id, year) values (1, 'a', 1, 1973)");
    let sql = "select a.id, a.year, r.name from album a join artist r on r.id = a.artist_id";
    let by_title = fixture.prepare(&format!("{sql} where a.title = :t"));
    let first = fixture.prepare(&format!("{sql} order by a.year limit 1"));
    let kept_where_another_row_changes = |write_other: &str| {
        fixture.fill("title", &by_title, &["a".into()]);
        fixture.fill("first", &first, &[]);
        write(write_other);
        ["title", "first"].map(|key| fixture.sink.cached(key).is_some())
    };
    let other = "update artist set name = 'b' where id = 2";
    assert_eq!(kept_where_another_row_changes(other), [true, true]);
    write(
        "insert into album (id, title, artist_id, year) \
         with recursive n (i) as (select 10 union all select i + 1 from n where i < 1100) select i, 'z', 2, 2000 from n",
    );
    let other = "update artist set name = 'c' where id = 2";
    assert_eq!(kept_where_another_row_changes(other), [false, false]);
    // Too many for it to be asked at all.
    let described = fixture
        .prepare("select * from album a join artist r on r.id = a.artist_id where a.title = :a");
    assert_eq!(
        described.describe(),
        ["album: rows with title = :a", "artist: every change"]
    );
}

#[test]
fn what_is_equal_without_its_case_is_carried_on() {
    let schema = "create table u (id integer primary key, name text collate nocase, mail text, town integer);
        create index u_mail on u (lower(mail)); create table t (id integer primary key, name text);
        create table tag (word text collate nocase primary key, u integer);
        create table told (id integer primary key, word text collate nocase); create index told_word on told (word);
        insert into u values (1, 'Ann', 'A@x', 7), (2, 'ben', 'b@x', 8);
        insert into t values (7, 'Graz'), (8, 'Linz'); insert into tag values ('Rust', 1);";
    let fixture = SqliteFixture::new(schema);
    let by = |condition: &str| {
        format!("select u.id, t.name from u join t on t.id = u.town where {condition}")
    };
    for (sql, value, ending, other) in [
        (
            by("u.name = :v"),
            "aNN",
            "update t set name = 'G' where id = 7",
            "update t set name = 'L' where id = 8",
        ),
        (
            by("lower(u.name) = lower(:v)"),
            "ANN",
            "update u set town = 8 where name = 'ann'",
            "update u set town = 7 where id = 2",
        ),
        (
            by("lower(u.mail) = lower(:v)"),
            "a@X",
            "update t set name = 'G' where id = 7",
            "update t set name = 'L' where id = 8",
        ),
        (
            by("lower(u.mail) = :v"),
            "a@x",
            "insert into u values (3, 'c', 'A@X', 8)",
            "insert into u values (4, 'd', 'D@X', 7)",
        ),
        (
            "select d.id from tag w join told d on d.word = w.word where w.word = :v".to_owned(),
            "RUST",
            "insert into told values (1, 'rusT')",
            "insert into told values (2, 'ruse')",
        ),
    ] {
        let fixture = SqliteFixture::new(schema);
        let query = fixture.prepare(&sql);
        let params = [value.into()];
        assert!(
            !fixture.evicts(&query, &params, other),
            "{sql}: {:?}",
            query.describe()
        );
        assert!(
            fixture.evicts(&query, &params, ending),
            "{sql}: {:?}",
            query.describe()
        );
    }
    // NOCASE compares no more behind a character of code zero.
    let query = fixture.prepare("select count(*) from u where name = 'a' || char(0) || 'b'");
    assert_eq!(query.describe(), ["u: every change"]);
    let stored = fixture.prepare("select count(*) from u where name = :v");
    assert!(fixture.evicts(
        &stored,
        &["q".into()],
        "insert into u (id, name) values (9, 'a' || char(0) || 'b')"
    ));
}

#[test]
fn what_is_not_proven_is_not_carried_on() {
    check(
        &[
            // No canonical form.
            "select * from review v join album a on a.id = v.album_id where v.stars = 5",
            // Not an equality of two columns with one canonical form.
            "select * from album a join artist r on r.id = a.artist_id + 0 where a.id = :id",
            "select * from album a join artist r on r.name = a.artist_id where a.id = :id",
            "select * from review v join follow f on f.who = v.who where v.id = :id",
            "select * from album a join artist r on r.id is a.artist_id where a.id = :id",
            "select * from album a join artist r on r.id = a.artist_id or r.id = 1 where a.id = :id",
            // Outer joins keep rows.
            "select * from artist r left join album a on r.id = a.artist_id and a.id = :id",
            "select * from album a full join artist r on r.id = a.artist_id where a.id = :id",
            // A null in the table changes every NOT IN.
            "select * from album where artist_id = :r and id not in (select album_id from track)",
            "select * from artist where id not in (select artist_id from album where id = :id)",
            "select * from artist r where not exists (select 1 from follow f where f.artist_id = r.id and f.who = :who)",
            "select * from artist where name = 'a' or id in (select artist_id from album where id = :id)",
            // Which row is first depends on all rows.
            "select * from album where artist_id = :r and id = (select album_id from track)",
            "select * from album a where a.artist_id = :r and a.id in (select album_id from track limit 3)",
            "select * from album a where a.artist_id = :r and a.id in (select max(album_id) from track)",
            "select * from artist r where exists (select count(*) from follow f where f.artist_id = r.id and f.who = :who)",
            "select * from (select * from album limit 5) a join artist r on r.id = a.artist_id where a.id = :id",
            // A name inside means a column inside.
            "select * from album a where a.id = :id and exists (select 1 from track a where a.album_id = a.id)",
            "select * from album a where a.id = :id and exists (select 1 from (select * from track t where t.album_id = a.id) x)",
            "with a as (select * from track) select * from album b where b.id = :id and exists (select 1 from a where a.album_id = b.id)",
        ],
        &expect![[r#"
            select * from review v join album a on a.id = v.album_id where v.stars = 5
                album: every change
                review: every change
            select * from album a join artist r on r.id = a.artist_id + 0 where a.id = :id
                album: rows with id = :id
                artist: every change
            select * from album a join artist r on r.name = a.artist_id where a.id = :id
                album: rows with id = :id
                artist: every change
            select * from review v join follow f on f.who = v.who where v.id = :id
                follow: every change
                review: rows with id = :id
            select * from album a join artist r on r.id is a.artist_id where a.id = :id
                album: every change
                artist: every change
            select * from album a join artist r on r.id = a.artist_id or r.id = 1 where a.id = :id
                album: rows with id = :id
                artist: every change
            select * from artist r left join album a on r.id = a.artist_id and a.id = :id
                album: rows with id = :id
                artist: every change
            select * from album a full join artist r on r.id = a.artist_id where a.id = :id
                album: rows with id = :id
                artist: every change
            select * from album where artist_id = :r and id not in (select album_id from track)
                album: rows with artist_id = :r
                track: every change
            select * from artist where id not in (select artist_id from album where id = :id)
                album: rows with id = :id
                artist: every change
            select * from artist r where not exists (select 1 from follow f where f.artist_id = r.id and f.who = :who)
                artist: every change
                follow: rows with who = :who
            select * from artist where name = 'a' or id in (select artist_id from album where id = :id)
                album: rows with id = :id
                artist: every change
            select * from album where artist_id = :r and id = (select album_id from track)
                album: rows with artist_id = :r
                track: every change
            select * from album a where a.artist_id = :r and a.id in (select album_id from track limit 3)
                album: rows with artist_id = :r
                track: every change
            select * from album a where a.artist_id = :r and a.id in (select max(album_id) from track)
                album: rows with artist_id = :r
                track: every change
            select * from artist r where exists (select count(*) from follow f where f.artist_id = r.id and f.who = :who)
                artist: every change
                follow: rows with who = :who
            select * from (select * from album limit 5) a join artist r on r.id = a.artist_id where a.id = :id
                album: every change
                artist: every change
            select * from album a where a.id = :id and exists (select 1 from track a where a.album_id = a.id)
                album: rows with id = :id
                track: every change
            select * from album a where a.id = :id and exists (select 1 from (select * from track t where t.album_id = a.id) x)
                album: rows with id = :id
                track: every change
            with a as (select * from track) select * from album b where b.id = :id and exists (select 1 from a where a.album_id = b.id)
                album: rows with id = :id
                track: rows with album_id = :id
        "#]],
    );
}
